package module

import (
	"math/big"

	"ordain.dev/ordain/compiler/module/pydantic"
	"ordain.dev/ordain/internal/python/pytext"
)

// fields reads typed fields from the sections of a file. They are checked whole,
// against a schema, before they are read one by one.
type fields struct {
	path string
	root *mapping
	top  value // of the file, for what is missing
}

// openFields reads a file that holds a section, for a class of the reference.
func openFields(path, class string) (*fields, error) {
	top, err := parseYAML(path)
	if err != nil {
		return nil, err
	}
	f := &fields{path: path, top: top}
	var ok bool
	if f.root, ok = top.is.(*mapping); !ok {
		return nil, f.stumble(
			KindNoMapping,
			class+"() argument after ** must be a mapping, not "+className(top.is),
			top,
			"the file must be lines `key: value`; it needs at least a line such as `name: example`",
		)
	}
	for _, k := range f.root.keys {
		if _, ok := k.is.(string); !ok {
			return nil, f.stumble(
				KindNoMapping,
				"keywords must be strings",
				k,
				"write the key in quotes, or leave it out",
			)
		}
	}
	return f, nil
}

// className is the class of a value, with its module where Python's messages have it.
func className(is any) string {
	name := pydantic.TypeOf(dataOf(value{is: is}))
	if name == "date" || name == "datetime" {
		return "datetime." + name
	}
	return name
}

// stumble is an error that the reference does not take for one of the file: its
// Python fails at the value.
func (f *fields) stumble(kind, message string, v value, hint string) *Error {
	return &Error{Kind: kind, Message: message, At: at(f.path, max(1, v.node.Line), v.node.Column), Hint: hint}
}

// check holds the file against a schema.
func (f *fields) check(schema *pydantic.Model) *Error {
	data, _ := dataOf(f.top).(*pydantic.Dict)
	wrong := schema.Check(data)
	if wrong == nil {
		return nil
	}
	first := wrong.Problems[0]
	v := f.find(first.Path)
	return &Error{
		Kind: KindInvalidMetadata, Message: "Metadata defined in " + f.path + " is invalid:\n" + setIn(wrong.Error()),
		At: at(f.path, max(1, v.node.Line), v.node.Column), Hint: f.hints(wrong.Problems),
	}
}

// find gives the value that a path leads to, or the last one on the way.
func (f *fields) find(path []any) value {
	v := f.top
	for _, step := range path {
		switch is := v.is.(type) {
		case *mapping:
			if key, ok := step.(string); ok && is.get(key) != nil {
				v = *is.get(key)
			}
		case []value:
			if i, ok := step.(int); ok && i < len(is) {
				v = is[i]
			}
		}
	}
	return v
}

// text reads a text, or a number as one; it is empty when it is missing or null.
func (f *fields) text(m *mapping, key string) string {
	v := m.get(key)
	if v == nil || v.is == nil {
		return ""
	}
	return textOf(v.is)
}

func (f *fields) textOr(key, standard string) string {
	if f.root.get(key) == nil {
		return standard
	}
	return f.text(f.root, key)
}

func textOf(is any) string {
	switch is := is.(type) {
	case string:
		return is
	case []byte:
		return string(is)
	case *big.Int:
		return is.String()
	case float64:
		return pytext.Float(is)
	}
	return ""
}

// truth reads a truth value; nil when the key is not there, or null.
func (f *fields) truth(m *mapping, key string) *bool {
	v := m.get(key)
	if v == nil || v.is == nil {
		return nil
	}
	yes, _ := pydantic.TruthOf(v.is)
	return &yes
}

// several gives the elements of a list or a set, or a single value as a list; null
// has none.
func (f *fields) several(m *mapping, key string) []value {
	v := m.get(key)
	if v == nil || v.is == nil {
		return nil
	}
	switch is := v.is.(type) {
	case []value:
		return is
	case set:
		return is.keys
	}
	return []value{*v}
}

// texts reads a list of texts, or a single one.
func (f *fields) texts(m *mapping, key string) []string {
	var out []string
	for _, v := range f.several(m, key) {
		out = append(out, textOf(v.is))
	}
	return out
}
