package modeldoc

import (
	"iter"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/internal/diag"
)

// Document is the whole document. Instances and variables are not copied into it, because there
// may be many: Write takes them from the result.
type Document struct {
	Success  bool
	Output   []string
	Warnings []Warning
	Error    *Error
	// Further are errors that Error did not cause.
	Further []*Error
	// Resources and ResourceSets are those of an export; nil without one.
	Resources    iter.Seq[Resource]
	ResourceSets map[string]string

	model *eval.Result // nil when the compile failed
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

// Resource is a resource as the server receives it, without its version.
type Resource struct {
	ID         []byte
	Attributes []byte // JSON
	Requires   [][]byte
}

// New makes the document of a compile that has a result, which may be an error.
func New(r *eval.Result) *Document {
	d := &Document{Success: r.Err == nil, Output: r.Output}
	seen := map[Warning]bool{}
	for _, w := range r.Warnings {
		if !Lists(w.Kind) {
			continue
		}
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
	d.model = r
	return d
}

// placeless are the warnings that have no location in this document, as in the reference. People
// see one all the same.
var placeless = map[string]bool{
	"VariableShadowWarning":    true,
	"TypeDeprecationWarning":   true,
	"PluginDeprecationWarning": true,
	"InmantaWarning":           true,
}

// Lists reports whether the document lists warnings of a kind. It leaves out the warning about
// meaningless escapes: the reference looks for the words of an older Python, so that its
// programs never get that one.
func Lists(kind string) bool { return kind[strings.LastIndexByte(kind, '.')+1:] != "ParserWarning" }

// Failed makes the document of a compile that failed before there was a result.
func Failed(problems ...diag.Diagnostic) *Document {
	d := &Document{}
	if len(problems) > 0 {
		d.Error = fromDiagnostic(problems[0])
		for _, further := range problems[1:] {
			d.Further = append(d.Further, fromDiagnostic(further))
		}
	}
	return d
}

func failure(e *eval.Error) *Error {
	d := e.Diagnostic()
	out := &Error{Trace: d.Trace, Causes: []*Error{}}
	out.Kind, out.Message = d.ForPrograms()
	// A diagnostic may show people a place though the error itself has none.
	if _, ok := e.At(); (ok || e.File != "") && !strings.HasPrefix(d.Kind, "builtins.") {
		out.Location = located(d.Location)
	}
	for _, cause := range e.Causes {
		if !cause.Foreign() { // a Python exception is not an error of the compiler
			out.Causes = append(out.Causes, failure(cause))
		}
	}
	return out
}

func located(l *diag.Location) *Location {
	if l == nil {
		return nil
	}
	return &Location{File: l.File, Line: l.Line, Column: l.Column, EndLine: l.EndLine, EndColumn: l.EndColumn}
}

func fromDiagnostic(d diag.Diagnostic) *Error {
	out := &Error{Trace: d.Trace, Causes: []*Error{}}
	out.Kind, out.Message = d.ForPrograms()
	// In the reference, errors of project.yml and of a hyphen in an import have no location.
	nowhere := strings.HasSuffix(d.Kind, ".InvalidMetadata") || d.Kind == "inmanta.ast.CompilerException"
	if !nowhere && !strings.HasPrefix(d.Kind, "builtins.") {
		out.Location = located(d.Location)
	}
	if strings.HasSuffix(d.Kind, ".ExternalException") || strings.HasSuffix(d.Kind, ".ExplicitPluginException") {
		return out // what Python raised is not an error of the compiler
	}
	for _, cause := range d.Causes {
		if !strings.HasSuffix(cause.Kind, ".InvalidMetadata") { // for people only: the reference has no such cause
			out.Causes = append(out.Causes, fromDiagnostic(cause))
		}
	}
	return out
}
