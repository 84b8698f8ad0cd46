package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// tree is the JSON of an entity while a form changes it. Members that the form does not know stay.
type tree map[string]any

func treeOf(text []byte) tree {
	t := tree{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&t) != nil || t == nil {
		return tree{}
	}
	return t
}

// at returns the value at a path, or nil.
func (t tree) at(path ...string) any {
	var now any = map[string]any(t)
	for _, name := range path {
		members, ok := now.(map[string]any)
		if !ok {
			return nil
		}
		now = members[name]
	}
	return now
}

// object returns the object at a path, or nil.
func (t tree) object(path ...string) map[string]any {
	o, _ := t.at(path...).(map[string]any)
	return o
}

// set puts a value at a path. Nothing, an empty text, list or object is taken away, with objects that become empty;
// what was empty before stays as it is written.
func (t tree) set(value any, path ...string) {
	if len(path) == 1 {
		if hollow(value) {
			if !hollow(t[path[0]]) {
				delete(t, path[0])
			}
			return
		}
		t[path[0]] = value
		return
	}
	inner, ok := t[path[0]].(map[string]any)
	if !ok {
		if hollow(value) {
			return
		}
		inner = map[string]any{}
	}
	before := len(inner)
	tree(inner).set(value, path[1:]...)
	if len(inner) == 0 && before > 0 {
		delete(t, path[0])
		return
	}
	t[path[0]] = inner
}

func hollow(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// setText puts a text at a path. What means the same is left as it is, as the number 10 for the text 10.
func (t tree) setText(text string, path ...string) {
	if have := t.at(path...); have != nil && plainValue(have) == text {
		return
	}
	t.set(text, path...)
}

// setNames puts a list of names at a path. Names that were there keep their order.
func (t tree) setNames(names []string, path ...string) {
	var out []any
	for _, name := range t.names(path...) {
		if slices.Contains(names, name) && !slices.Contains(out, any(name)) {
			out = append(out, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(out, any(name)) {
			out = append(out, name)
		}
	}
	t.set(out, path...)
}

// text returns the text at a path; of other values, how they are written.
func (t tree) text(path ...string) string { return plainValue(t.at(path...)) }

// names returns the list of texts at a path.
func (t tree) names(path ...string) (out []string) {
	list, _ := t.at(path...).([]any)
	for _, one := range list {
		out = append(out, plainValue(one))
	}
	return out
}

// encode returns the JSON of the tree.
func (t tree) encode() []byte { return encoded(map[string]any(t), "") }

func encoded(value any, indent string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if encoder.Encode(value) != nil {
		return nil // it was decoded from JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

// plainValue writes a value for a form.
func plainValue(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any, []any:
		if text := encoded(v, ""); len(text) < 60 {
			return string(text)
		}
		return string(encoded(v, "  "))
	}
	return string(encoded(value, ""))
}

// jsonValue reads what a person wrote as JSON; what is none is a text.
func jsonValue(text string) (value any, ok bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil || decoder.More() {
		return text, false
	}
	return value, true
}

func sortedNames[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// indented writes JSON for people.
func indented(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}
