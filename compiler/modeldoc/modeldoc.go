package modeldoc

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// Document is the whole of it. The export fills Resources and ResourceSets.
type Document struct {
	Success   bool                       `json:"success"`
	Instances []Instance                 `json:"instances"`
	Variables map[string]json.RawMessage `json:"variables"`
	Output    []string                   `json:"output"`
	Warnings  []Warning                  `json:"warnings"`
	Error     *Error                     `json:"error"`
	// Further are errors that do not follow from Error.
	Further      []*Error          `json:"further,omitempty"`
	Resources    []Resource        `json:"resources,omitempty"`
	ResourceSets map[string]string `json:"resource_sets,omitempty"`
}

// Instance is one instance. Relations are lists of ids, also those to at most one.
type Instance struct {
	ID         string                       `json:"id"`
	Type       string                       `json:"type"`
	Attributes map[string]json.RawMessage   `json:"attributes"`
	Relations  map[string][]json.RawMessage `json:"relations"`
}

// Warning is a warning of the compiler.
type Warning struct {
	Kind     string    `json:"kind"`
	Message  string    `json:"message"`
	Location *Location `json:"location"`
}

// Location is a place in a model file, counted from 1.
type Location struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
}

// Error is why a compile failed.
type Error struct {
	Kind     string    `json:"kind"`
	Message  string    `json:"message"`
	Location *Location `json:"location"`
	Trace    string    `json:"trace,omitempty"`
	Causes   []*Error  `json:"causes"`
}

// Resource is a resource as the server gets it, without its version.
type Resource struct {
	ID         string          `json:"id"`
	Attributes json.RawMessage `json:"attributes"`
	Requires   []string        `json:"requires"`
}

// New makes the document of a compile that got as far as a result.
func New(r *eval.Result) *Document {
	d := &Document{
		Success: r.Err == nil, Instances: []Instance{}, Variables: map[string]json.RawMessage{},
		Output: r.Output, Warnings: []Warning{},
	}
	if d.Output == nil {
		d.Output = []string{}
	}
	seen := map[Warning]bool{}
	for _, w := range r.Warnings {
		var at *Location
		one := Warning{Kind: w.Kind, Message: w.Message}
		key := one
		if w.At.File != nil && !placeless[w.Kind[strings.LastIndexByte(w.Kind, '.')+1:]] {
			at = &Location{File: w.At.File.Path, Line: int(w.At.Start.Line), Column: int(w.At.Start.Col)}
			key.Kind += at.File + strconv.Itoa(at.Line)
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		one.Location = at
		d.Warnings = append(d.Warnings, one)
	}
	if r.Err != nil {
		d.Error = failure(r.Err)
		for _, e := range r.Further {
			d.Further = append(d.Further, failure(e))
		}
		return d
	}
	for _, i := range r.Instances {
		d.Instances = append(d.Instances, instance(i))
	}
	for _, v := range r.Variables {
		d.Variables[v.Name] = Value(v.Value)
	}
	return d
}

// placeless are the warnings that name no place in this document. People are
// told one all the same.
var placeless = map[string]bool{"VariableShadowWarning": true, "TypeDeprecationWarning": true, "PluginDeprecationWarning": true}

// Failed makes the document of a compile that failed before there was a result.
func Failed(problems ...diag.Diagnostic) *Document {
	d := &Document{Instances: []Instance{}, Variables: map[string]json.RawMessage{}, Output: []string{}, Warnings: []Warning{}}
	if len(problems) > 0 {
		d.Error = fromDiagnostic(problems[0])
		for _, more := range problems[1:] {
			d.Further = append(d.Further, fromDiagnostic(more))
		}
	}
	return d
}

// Write writes the document of a result, with what an export adds.
func Write(w io.Writer, r *eval.Result, resources []Resource, sets map[string]string) error {
	d := New(r)
	d.Resources, d.ResourceSets = resources, sets
	return d.Write(w)
}

// Write writes the document as JSON.
func (d *Document) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(d)
}

func instance(i *eval.Instance) Instance {
	out := Instance{
		ID: id(i), Type: i.Entity().Name, Attributes: map[string]json.RawMessage{}, Relations: map[string][]json.RawMessage{},
	}
	for _, attr := range i.Entity().Attributes {
		v, _ := i.Value(attr)
		if attr.End == nil {
			out.Attributes[attr.Name] = Value(v)
			continue
		}
		ids := []json.RawMessage{}
		switch v := v.(type) {
		case nil, types.Null:
		case *types.List:
			for _, item := range v.Items {
				ids = append(ids, related(item))
			}
		default:
			ids = append(ids, related(v))
		}
		out.Relations[attr.Name] = ids
	}
	return out
}

func id(i types.Instance) string { return strconv.FormatUint(i.InstanceID(), 10) }

func related(v types.Value) json.RawMessage {
	if i, ok := v.(types.Instance); ok {
		return json.RawMessage(`"` + id(i) + `"`)
	}
	return Value(v)
}

func failure(e *eval.Error) *Error {
	d := e.Diagnostic()
	out := &Error{Kind: d.Kind, Message: d.Message, Trace: d.Trace, Causes: []*Error{}}
	// Diagnostics show a place to people also where the error itself has none.
	if _, ok := e.At(); (ok || e.File != "") && !strings.HasPrefix(d.Kind, "builtins.") {
		out.Location = fromDiagnostic(d).Location
	}
	for _, cause := range e.Causes {
		if !cause.Foreign() { // a Python exception is no error of the compiler
			out.Causes = append(out.Causes, failure(cause))
		}
	}
	return out
}

func fromDiagnostic(d diag.Diagnostic) *Error {
	out := &Error{Kind: d.Kind, Message: d.Message, Trace: d.Trace, Causes: []*Error{}}
	metadata := strings.HasSuffix(d.Kind, ".InvalidMetadata") // which upstream names no place
	if l := d.Location; l != nil && !metadata && !strings.HasPrefix(d.Kind, "builtins.") {
		out.Location = &Location{File: l.File, Line: l.Line, Column: l.Column, EndLine: l.EndLine, EndColumn: l.EndColumn}
	}
	for _, cause := range d.Causes {
		if !strings.HasSuffix(cause.Kind, ".InvalidMetadata") { // told to people, no cause upstream
			out.Causes = append(out.Causes, fromDiagnostic(cause))
		}
	}
	return out
}
