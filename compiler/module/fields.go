package module

import (
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/pytext"
)

// fields reads typed fields from the sections of a file and remembers the first
// thing that is wrong, with its line.
//
// What a field takes is what the reference's models take (pydantic, in its lax
// mode): numbers are texts where they are coerced, "yes" is true.
type fields struct {
	path string
	root *mapping
	top  value // of the file, for what is missing
	err  *Error
	// raised is set when err is of a kind of its own, which goes before all others.
	raised bool
}

// openFields reads a file that holds a section.
func openFields(path string) (*fields, error) {
	top, err := parseYAML(path)
	if err != nil {
		return nil, err
	}
	root, ok := top.is.(*mapping)
	if !ok {
		return nil, &Error{
			Kind: KindNoMapping, Message: "Metadata defined in " + path + " is invalid: it is not a list of `key: value`",
			At: at(path, max(1, top.node.Line), 0), Hint: "it needs at least a line such as `name: example`",
		}
	}
	for _, k := range root.keys {
		if _, ok := k.is.(string); !ok {
			return nil, &Error{
				Kind: KindNoMapping, Message: fmt.Sprintf("Metadata defined in %s is invalid: the key %s is no text", path, k.node.Value),
				At: at(path, max(1, k.node.Line), k.node.Column), Hint: "write the key in quotes, or leave it out",
			}
		}
	}
	return &fields{path: path, root: root, top: top}, nil
}

func (f *fields) fail(v value, format string, args ...any) {
	if f.err == nil {
		f.err = f.problem(KindInvalidMetadata, v, format, args...)
	}
}

// raise fails with an error that the reference does not take for one of the
// file: it goes before all that is wrong in fields.
func (f *fields) raise(kind string, v value, format string, args ...any) {
	if !f.raised {
		f.err, f.raised = f.problem(kind, v, format, args...), true
	}
}

func (f *fields) problem(kind string, v value, format string, args ...any) *Error {
	return &Error{
		Kind: kind, Message: "Metadata defined in " + f.path + " is invalid: " + fmt.Sprintf(format, args...),
		At: at(f.path, max(1, v.node.Line), v.node.Column),
	}
}

// coerced takes a number for a text too.
const coerced = true

// textOf reads a text.
func (f *fields) textOf(v value, key string, numbers bool) (string, bool) {
	switch is := v.is.(type) {
	case string:
		return is, true
	case []byte:
		if utf8.Valid(is) {
			return string(is), true
		}
	case *big.Int:
		if numbers {
			return is.String(), true
		}
	case float64:
		if numbers {
			return pytext.Float(is), true
		}
	case bool:
		f.fail(v, "%s must be a text, and YAML takes %s for a truth value: write it in quotes", key, v.node.Value)
		return "", false
	}
	if tagOf(v.node) == tagPrefix+"timestamp" {
		f.fail(v, "%s must be a text, and YAML takes %s for a date: write it in quotes", key, v.node.Value)
	}
	f.fail(v, "%s must be a text", key)
	return "", false
}

// optional reads a text that may be missing or null: both are empty.
func (f *fields) optional(m *mapping, key string, numbers bool) string {
	v := m.get(key)
	if v == nil || v.is == nil {
		return ""
	}
	s, _ := f.textOf(*v, key, numbers)
	return s
}

// required reads a text that must be there.
func (f *fields) required(key string) string {
	v := f.root.get(key)
	if v == nil {
		f.fail(f.top, "the key `%s` is missing", key)
		return ""
	}
	s, _ := f.textOf(*v, key, coerced)
	return s
}

// truth reads a truth value; nil when the key is not there, or null where that
// is allowed.
func (f *fields) truth(m *mapping, key string, nullable bool) *bool {
	v := m.get(key)
	if v == nil || v.is == nil && nullable {
		return nil
	}
	yes, ok := truthOf(v.is)
	if !ok {
		f.fail(*v, "%s must be true or false", key)
	}
	return &yes
}

func truthOf(is any) (yes, ok bool) {
	switch is := is.(type) {
	case bool:
		return is, true
	case *big.Int:
		return is.Cmp(big.NewInt(1)) == 0, is.Cmp(big.NewInt(1)) == 0 || is.Sign() == 0
	case float64:
		return is == 1, is == 1 || is == 0
	case []byte:
		return truthOf(string(is))
	case string:
		switch strings.ToLower(is) {
		case "true", "yes", "on", "1", "y", "t":
			return true, true
		case "false", "no", "off", "0", "n", "f":
			return false, true
		}
	}
	return false, false
}

// several gives the elements of a list, or a single value as a list; null has none.
func (f *fields) several(m *mapping, key string) []value {
	v := m.get(key)
	if v == nil || v.is == nil {
		return nil
	}
	if list, ok := v.is.([]value); ok {
		return list
	}
	return []value{*v}
}

// texts reads a list of texts, or a single one.
func (f *fields) texts(m *mapping, key string) []string {
	var out []string
	for _, v := range f.several(m, key) {
		if s, ok := f.textOf(v, key, coerced); ok {
			out = append(out, s)
		}
	}
	return out
}

// choice reads one of some texts.
func (f *fields) choice(key, standard string, numbers bool, allowed ...string) string {
	v := f.root.get(key)
	if v == nil {
		return standard
	}
	s, ok := f.textOf(*v, key, numbers)
	for _, a := range allowed {
		if ok && s == a {
			return s
		}
	}
	if ok {
		f.fail(*v, "%s must be one of %s, not %q", key, strings.Join(allowed, ", "), s)
	}
	return standard
}
