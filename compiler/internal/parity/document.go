package parity

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Document is the result of a compile in the form in which outcomes are recorded: instances are
// numbered from 1, paths are relative, the order is fixed.
type Document struct {
	Success   bool           `json:"success"`
	Instances []Instance     `json:"instances,omitempty"`
	Variables map[string]any `json:"variables,omitempty"`
	Output    []string       `json:"output,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"` // kind at line
	Error     *Error         `json:"error,omitempty"`
	// These are only for cases that are exported.
	Resources    []Resource        `json:"resources,omitempty"`
	ResourceSets map[string]string `json:"resource_sets,omitempty"`
	RemovedSets  []string          `json:"removed_sets,omitempty"`
	Unknowns     []string          `json:"unknowns,omitempty"` // parameter of resource
	// Files are the files of Case.Writes after the compile.
	Files map[string]string `json:"files,omitempty"`
}

// Resource is a resource as the server receives it, without its version.
type Resource struct {
	ID         string         `json:"id"`
	Attributes map[string]any `json:"attributes"`
	Requires   []string       `json:"requires,omitempty"`
}

// Instance is an instance of the model.
type Instance struct {
	ID         string           `json:"id"`
	Type       string           `json:"type"`
	Attributes map[string]any   `json:"attributes,omitempty"`
	Relations  map[string][]any `json:"relations,omitempty"`
}

// Error is why the compile failed.
type Error struct {
	Kind    string  `json:"kind"`
	Message string  `json:"message,omitempty"`
	File    string  `json:"file,omitempty"`
	Line    int     `json:"line,omitempty"`
	Column  int     `json:"column,omitempty"`
	Causes  []Error `json:"causes,omitempty"`
}

// wire is what `--model-json` writes.
type wire struct {
	Success   bool           `json:"success"`
	Instances []Instance     `json:"instances"`
	Variables map[string]any `json:"variables"`
	Output    []string       `json:"output"`
	Warnings  []struct {
		Kind     string    `json:"kind"`
		Location *location `json:"location"`
	} `json:"warnings"`
	Error        *wireError        `json:"error"`
	Resources    []Resource        `json:"resources"`
	ResourceSets map[string]string `json:"resource_sets"`
	// These are not in `--model-json`: reference.py adds them.
	RemovedSets []string `json:"removed_sets"`
	Unknowns    []string `json:"unknowns"`
}

type location struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

type wireError struct {
	Kind     string      `json:"kind"`
	Message  string      `json:"message"`
	Location *location   `json:"location"`
	Causes   []wireError `json:"causes"`
}

// Normalise makes a Document of a document of `--model-json`. Paths below dirs, those of the project
// and of packages, become relative.
func Normalise(text []byte, dirs ...string) (*Document, error) {
	for _, dir := range dirs {
		text = bytes.ReplaceAll(text, []byte(dir+"/"), nil)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var w wire
	if err := d.Decode(&w); err != nil {
		return nil, err
	}
	out := &Document{Success: w.Success, Output: w.Output}
	for _, one := range w.Warnings {
		line := 0
		if one.Location != nil {
			line = one.Location.Line
		}
		out.Warnings = append(out.Warnings, last(one.Kind)+" at "+strconv.Itoa(line))
	}
	slices.Sort(out.Warnings)
	out.Warnings = slices.Compact(out.Warnings)
	if w.Error != nil {
		e := w.Error.normalise()
		out.Error = &e
	}
	if !w.Success {
		return out, nil
	}
	out.Instances, out.Variables = canonical(w.Instances, w.Variables)
	out.Resources, out.RemovedSets, out.Unknowns = w.Resources, w.RemovedSets, w.Unknowns
	if len(w.ResourceSets) > 0 {
		out.ResourceSets = w.ResourceSets
	}
	for i, r := range out.Resources {
		out.Resources[i].Attributes = plain(r.Attributes, nil).(map[string]any)
		slices.Sort(r.Requires)
	}
	slices.SortFunc(out.Resources, func(a, b Resource) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(out.RemovedSets)
	slices.Sort(out.Unknowns)
	return out, nil
}

func (e wireError) normalise() Error {
	out := Error{Kind: last(e.Kind), Message: e.Message}
	if l := e.Location; l != nil && l.Line > 0 {
		out.File, out.Line, out.Column = l.File, l.Line, l.Column
		if filepath.IsAbs(out.File) {
			out.File = filepath.Base(out.File)
		}
	}
	for _, cause := range e.Causes {
		out.Causes = append(out.Causes, cause.normalise())
	}
	if out.Kind == "MultiException" { // the language leaves the order open
		slices.SortStableFunc(out.Causes, func(a, b Error) int { return cmp.Compare(a.topic(), b.topic()) })
	}
	return out
}

// topic is the error without what only one of the two compilers knows: the columns of most errors,
// and the addresses of instances.
func (e Error) topic() string {
	e.Column = 0
	causes := e.Causes
	e.Causes = nil
	s := nameless(e.String())
	for _, c := range causes {
		s += c.topic()
	}
	return s
}

func last(kind string) string { return kind[strings.LastIndexByte(kind, '.')+1:] }

// canonical numbers instances by their content. Each has a colour: at first its type, then, step by
// step, a hash of its values and of the colours of related instances, until no step distinguishes
// more of them. Instances that still share a colour are interchangeable: one of them gets a mark,
// and the steps go on.
func canonical(instances []Instance, variables map[string]any) ([]Instance, map[string]any) {
	colour := map[string]string{}
	for _, i := range instances {
		colour[i.ID] = i.Type
	}
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mark(name, variables[name], colour)
	}
	named := func(id string) string {
		if c, ok := colour[id]; ok {
			return c
		}
		return "nobody"
	}
	for {
		refine(instances, colour, named)
		alike := tied(instances, colour)
		if alike == "" {
			break
		}
		colour[alike] += " first" // they are interchangeable, so any one will do
	}
	sorted := slices.Clone(instances)
	slices.SortStableFunc(sorted, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(colour[a.ID], colour[b.ID]))
	})
	number := map[string]string{}
	for n, i := range sorted {
		number[i.ID] = strconv.Itoa(n + 1)
	}
	numbered := func(id string) string {
		if n, ok := number[id]; ok {
			return n
		}
		return "nobody"
	}
	for n, i := range sorted {
		sorted[n] = i.plain(numbered)
		sorted[n].ID = number[i.ID]
	}
	vars := map[string]any{}
	for name, v := range variables {
		vars[name] = plain(v, numbered)
	}
	return sorted, vars
}

// mark puts into the colour of an instance which variable refers to it and, in a list, at which
// index: equal instances have no other order.
func mark(where string, v any, colour map[string]string) {
	switch v := v.(type) {
	case []any:
		for n, item := range v {
			mark(where+"["+strconv.Itoa(n)+"]", item, colour)
		}
	case map[string]any:
		if id, ok := v["$ref"].(string); ok {
			colour[id] += " " + where
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			mark(where+"."+key, v[key], colour)
		}
	}
}

// refine distinguishes instances by the colours of the instances that they refer to and that refer
// to them, until that distinguishes no more.
func refine(instances []Instance, colour map[string]string, named func(string) string) {
	count := func() int {
		seen := map[string]bool{}
		for _, c := range colour {
			seen[c] = true
		}
		return len(seen)
	}
	for before := 0; ; {
		next, knownBy := map[string]string{}, map[string][]string{}
		for _, i := range instances {
			for relation, items := range i.Relations {
				for _, item := range items {
					if id, ok := item.(string); ok {
						knownBy[id] = append(knownBy[id], relation+" of "+colour[i.ID])
					}
				}
			}
		}
		for _, i := range instances {
			slices.Sort(knownBy[i.ID])
			sum := sha256.Sum256([]byte(colour[i.ID] + text(i.plain(named)) + text(knownBy[i.ID])))
			next[i.ID] = hex.EncodeToString(sum[:8])
		}
		for id, c := range next {
			colour[id] = c
		}
		now := count()
		if now == before || now == len(instances) {
			return
		}
		before = now
	}
}

// tied returns an instance of the first colour that several share; empty when there is none.
func tied(instances []Instance, colour map[string]string) string {
	first := map[string]string{}
	least, found := "", ""
	for _, i := range instances {
		c := colour[i.ID]
		if id, have := first[c]; have && (least == "" || c < least) {
			least, found = c, id
		}
		if _, have := first[c]; !have {
			first[c] = i.ID
		}
	}
	return found
}

// plain is the instance with other ids, without empty relations, and with sorted ones.
func (i Instance) plain(id func(string) string) Instance {
	out := Instance{Type: i.Type, Attributes: map[string]any{}, Relations: map[string][]any{}}
	for name, v := range i.Attributes {
		out.Attributes[name] = plain(v, id)
	}
	for name, items := range i.Relations {
		if len(items) == 0 {
			continue
		}
		list := make([]any, len(items))
		for n, item := range items {
			if s, ok := item.(string); ok {
				list[n] = id(s)
			} else {
				list[n] = plain(item, id)
			}
		}
		slices.SortFunc(list, func(a, b any) int {
			x, y := text(a), text(b)
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		})
		out.Relations[name] = list
	}
	return out
}

// plain is a value with other ids; id may be nil for a value without instances.
func plain(v any, id func(string) string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item, id)
		}
		return out
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && len(v) == 1 && id != nil {
			return map[string]any{"$ref": id(ref)}
		}
		if class, ok := v["$python"].(string); ok && len(v) == 1 {
			return map[string]any{"$python": last(class)}
		}
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = plain(item, id)
		}
		return out
	case json.Number:
		return number(v)
	}
	return v
}

// number makes 1e16 and 10000000000000000.0 the same, but keeps 1 and 1.0 different.
func number(n json.Number) any {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	f, err := n.Float64()
	if err != nil {
		return n
	}
	return json.Number(strconv.FormatFloat(f, 'e', -1, 64))
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v) // cannot happen: the value comes from JSON
	}
	return string(b)
}
