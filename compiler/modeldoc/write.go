package modeldoc

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/jsontext"
)

// flushSize is the size from which a writer writes its buffer out.
const flushSize = 64 << 10

// writer collects JSON in a buffer and writes it out piece by piece, so that the document of a
// large model is never in memory as a whole.
type writer struct {
	to  io.Writer
	b   []byte
	err error
}

func newWriter(to io.Writer) *writer {
	return &writer{to: to, b: make([]byte, 0, flushSize+flushSize/4)}
}

func (w *writer) flush() {
	if w.err == nil {
		_, w.err = w.to.Write(w.b)
	}
	w.b = w.b[:0]
}

// entry begins the nth entry of a list or object, on a line of its own.
func (w *writer) entry(n int) {
	if n > 0 {
		w.b = append(w.b, ',')
	}
	if w.b = append(w.b, '\n'); len(w.b) >= flushSize {
		w.flush()
	}
}

// texts appends a list of strings.
func (w *writer) texts(list []string) {
	w.b = append(w.b, '[')
	for n, text := range list {
		if n > 0 {
			w.b = append(w.b, ',')
		}
		w.b = jsontext.AppendString(w.b, text)
	}
	w.b = append(w.b, ']')
}

func (w *writer) warnings(list []Warning) {
	w.b = append(w.b, '[')
	for n, one := range list {
		if n > 0 {
			w.b = append(w.b, ',')
		}
		w.b = jsontext.AppendString(append(w.b, `{"kind":`...), one.Kind)
		w.b = jsontext.AppendString(append(w.b, `,"message":`...), one.Message)
		w.b = append(w.b, `,"location":`...)
		w.location(one.Location)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}

func (w *writer) location(l *Location) {
	if l == nil {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = jsontext.AppendString(append(w.b, `{"file":`...), l.File)
	w.b = strconv.AppendInt(append(w.b, `,"line":`...), int64(l.Line), 10)
	for _, one := range []struct {
		before string
		n      int
	}{{`,"column":`, l.Column}, {`,"end_line":`, l.EndLine}, {`,"end_column":`, l.EndColumn}} {
		if one.n != 0 {
			w.b = strconv.AppendInt(append(w.b, one.before...), int64(one.n), 10)
		}
	}
	w.b = append(w.b, '}')
}

// sets appends the resource set of each resource, sorted by resource.
func (w *writer) sets(all map[string]string) {
	w.b = append(w.b, '{')
	for n, name := range slices.Sorted(maps.Keys(all)) {
		if n > 0 {
			w.b = append(w.b, ',')
		}
		w.b = jsontext.AppendString(w.b, name)
		w.b = jsontext.AppendString(append(w.b, ':'), all[name])
	}
	w.b = append(w.b, '}')
}

// encoded appends what encoding/json makes of a value.
func (w *writer) encoded(v any) {
	text, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.b = append(w.b, text...)
}

// Write writes the document as JSON, with one instance, variable or resource in each line.
func (d *Document) Write(to io.Writer) error {
	w := newWriter(to)
	w.b = strconv.AppendBool(append(w.b, `{"success":`...), d.Success)
	w.b = append(w.b, ",\n\"instances\":["...)
	if d.model != nil {
		w.instances(d.model.Instances)
	}
	w.b = append(w.b, "],\n\"variables\":{"...)
	if d.model != nil {
		for n, v := range d.model.Variables {
			w.entry(n)
			w.b = jsontext.AppendString(w.b, v.Name)
			w.b = append(w.b, ':')
			w.b = appendValue(w.b, v.Value)
		}
	}
	w.b = append(w.b, "},\n\"output\":"...)
	w.texts(d.Output)
	w.b = append(w.b, ",\n\"warnings\":"...)
	w.warnings(d.Warnings)
	w.b = append(w.b, ",\n\"error\":"...)
	if d.Error == nil {
		w.b = append(w.b, "null"...)
	} else {
		w.encoded(d.Error)
	}
	if d.Further != nil {
		w.b = append(w.b, ",\n\"further\":"...)
		w.encoded(d.Further)
	}
	if d.Resources != nil {
		w.b = append(w.b, ",\n\"resources\":["...)
		w.resources(d.Resources)
		w.b = append(w.b, "],\n\"resource_sets\":"...)
		w.sets(d.ResourceSets)
	}
	w.b = append(w.b, "}\n"...)
	w.flush()
	return w.err
}

// shape is the JSON that all instances of an entity have in common.
type shape struct {
	begin                 []byte // what follows the id
	attributes, relations []slot
}

// slot is one attribute or relation.
type slot struct {
	position int    // in the entity's attributes
	before   []byte // what precedes the value
}

func shapeOf(e *types.Entity) *shape {
	s := &shape{}
	s.begin = append(jsontext.AppendString([]byte(`","type":`), e.Name), `,"attributes":{`...)
	for n, a := range e.Attributes {
		if a.Name == "self" {
			continue // the instance itself
		}
		list := &s.attributes
		if a.End != nil {
			list = &s.relations
		}
		var before []byte
		if len(*list) > 0 {
			before = append(before, ',')
		}
		before = append(jsontext.AppendString(before, a.Name), ':')
		*list = append(*list, slot{n, before})
	}
	return s
}

func (w *writer) instances(all []*eval.Instance) {
	shapes := map[*types.Entity]*shape{}
	for n, i := range all {
		s := shapes[i.Entity()]
		if s == nil {
			s = shapeOf(i.Entity())
			shapes[i.Entity()] = s
		}
		w.entry(n)
		w.b = s.instance(w.b, i)
	}
}

func (s *shape) instance(b []byte, i *eval.Instance) []byte {
	b = append(b, `{"id":"`...)
	b = appendID(b, i)
	b = append(b, s.begin...)
	for _, a := range s.attributes {
		v, _ := i.ValueAt(a.position)
		b = appendValue(append(b, a.before...), v)
	}
	b = append(b, `},"relations":{`...)
	for _, a := range s.relations {
		v, _ := i.ValueAt(a.position)
		b = appendRelated(append(b, a.before...), v)
	}
	return append(b, `}}`...)
}

// appendRelated writes the list of the instances in a relation.
func appendRelated(b []byte, v types.Value) []byte {
	b = append(b, '[')
	switch v := v.(type) {
	case nil, types.Null:
	case *types.List:
		for n, item := range v.Items {
			if n > 0 {
				b = append(b, ',')
			}
			b = appendEnd(b, item)
		}
	default:
		b = appendEnd(b, v)
	}
	return append(b, ']')
}

// appendEnd writes one instance of a relation: its id.
func appendEnd(b []byte, v types.Value) []byte {
	i, ok := v.(types.Instance)
	if !ok {
		return appendValue(b, v)
	}
	return append(appendID(append(b, '"'), i), '"')
}

func (w *writer) resources(all func(yield func(Resource) bool)) {
	n := 0
	for r := range all {
		w.entry(n)
		n++
		w.b = jsontext.AppendString(append(w.b, `{"id":`...), r.ID)
		w.b = append(append(w.b, `,"attributes":`...), r.Attributes...)
		w.required(r)
		w.b = append(w.b, '}')
	}
}

func (w *writer) required(r Resource) {
	w.b = append(w.b, `,"requires":[`...)
	for k, required := range r.Requires {
		if k > 0 {
			w.b = append(w.b, ',')
		}
		w.b = jsontext.AppendString(w.b, required)
	}
	w.b = append(w.b, ']')
}

// WriteResources writes only the resources, in the form of the reference's `export -j`: a list
// with an object for each, which has its attributes, its requirements and its id with version 0.
// Without an export the list is empty.
func (d *Document) WriteResources(to io.Writer) error {
	w := newWriter(to)
	w.b = append(w.b, '[')
	n := 0
	if d.Resources != nil {
		for r := range d.Resources {
			w.entry(n)
			n++
			w.b = jsontext.AppendString(append(w.b, `{"id":`...), append(r.ID[:len(r.ID):len(r.ID)], ",v=0"...))
			w.required(r)
			if attributes := r.Attributes[1:]; attributes[0] == '}' {
				w.b = append(w.b, '}')
			} else {
				w.b = append(append(w.b, ','), attributes...)
			}
		}
	}
	w.b = append(w.b, "]\n"...)
	w.flush()
	return w.err
}
