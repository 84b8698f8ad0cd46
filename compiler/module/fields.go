package module

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// field is a value that a file has, or may have, under a name. Its methods read
// it; a value of another kind is a problem of the file, and read as nothing.
type field struct {
	*yamlFile
	name string // as messages show it: pip.index_url, requires[0]
	value
	there    bool
	required bool
}

// field returns the field of a key at the top of the file.
func (f *yamlFile) field(key string) field { return f.fieldOf(f.root, "", key) }

// fieldOf returns the field of a key of a section, whose name ends in a dot.
func (f *yamlFile) fieldOf(s *section, prefix, key string) field {
	out := field{yamlFile: f, name: prefix + key}
	if v := s.get(key); v != nil {
		out.value, out.there = *v, true
	}
	return out
}

// required returns the field of a key that must be there, at the top of the file.
func (f *yamlFile) required(key string) field { return f.requiredOf(f.root, f.top, "", key) }

func (f *yamlFile) requiredOf(s *section, in value, prefix, key string) field {
	out := f.fieldOf(s, prefix, key)
	if out.required = true; !out.there {
		f.wrong(in, "", out.name+" is missing", "add a line `"+key+": …`")
	}
	return out
}

// refuse notes that the value is not what the field takes.
func (f field) refuse(expected, fix string) {
	switch is := f.is.(type) {
	case invalid:
		return
	case nil:
		if !f.required {
			fix += ", or leave the key out"
		}
		f.wrong(f.value, "", f.name+" is empty", fix)
		return
	case bool:
		if strings.HasPrefix(expected, "a string") {
			fix = fmt.Sprintf("YAML reads %s as %t: put it in quotes", f.node.Value, is)
		}
	case other:
		if is == "a date" && strings.HasPrefix(expected, "a string") {
			fix = "YAML reads " + f.node.Value + " as a date: put it in quotes"
		}
	}
	f.wrong(f.value, "", f.name+" must be "+expected+", not "+whatIs(f.value), fix)
}

// whatIs says what a value is, for messages.
func whatIs(v value) string {
	switch is := v.is.(type) {
	case nil:
		return "empty"
	case bool:
		return fmt.Sprint(is)
	case *big.Int, float64:
		return "a number"
	case string:
		if text := []rune(is); len(text) > 60 {
			is = string(text[:60]) + "…"
		}
		return fmt.Sprintf("%q", is)
	case []value:
		return "a list"
	case *section:
		return "a section"
	case other:
		return string(is)
	}
	return "invalid"
}

// text reads a text, or a number as one.
func (f field) text() string {
	text, ok := textOf(f.is)
	if f.there && !ok {
		f.refuse("a string", "write a string")
	}
	return text
}

// strictText reads a text, which may not be a number.
func (f field) strictText() string {
	text, ok := f.is.(string)
	if f.there && !ok {
		f.refuse("a string", "write it in quotes if it is one")
	}
	return text
}

// optional returns the field, or one that is not there in place of an empty one.
func (f field) optional() field {
	f.there = f.there && f.is != nil
	return f
}

// textOrNil reads a text; nil when the field is missing or empty.
func (f field) textOrNil() *string {
	if f = f.optional(); !f.there {
		return nil
	}
	text := f.text()
	return &text
}

func textOf(is any) (string, bool) {
	switch is := is.(type) {
	case string:
		return is, true
	case *big.Int:
		return is.String(), true
	case float64:
		return pytext.Float(is), true
	}
	return "", false
}

// truth reads true or false; nil when the field is not there.
func (f field) truth() *bool {
	if !f.there {
		return nil
	}
	yes, ok := truthOf(f.is)
	if !ok {
		f.refuse("true or false", "write true or false")
	}
	return &yes
}

// truthOf reads a truth value: also 0, 1 and words such as yes, off, t.
func truthOf(is any) (yes, ok bool) {
	switch is := is.(type) {
	case bool:
		return is, true
	case float64:
		return is == 1, is == 0 || is == 1
	}
	text, _ := textOf(is)
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1", "y", "t":
		return true, true
	case "false", "no", "off", "0", "n", "f":
		return false, true
	}
	return false, false
}

// oneOf reads one of some texts.
func (f field) oneOf(standard string, texts ...string) string {
	if !f.there {
		return standard
	}
	text, ok := f.is.(string)
	if !ok || !slices.Contains(texts, text) {
		f.refuse(strings.Join(texts[:len(texts)-1], ", ")+" or "+texts[len(texts)-1], "write one of these")
	}
	return text
}

// list returns the elements of a list, as fields.
func (f field) list() []field {
	list, ok := f.is.([]value)
	if f.there && !ok {
		f.refuse("a list", "write a list: a line that begins with - for each element")
	}
	items := make([]field, len(list))
	for i, v := range list {
		items[i] = field{f.yamlFile, fmt.Sprintf("%s[%d]", f.name, i), v, true, true}
	}
	return items
}

// several returns the elements of a list, or a single value as a list of one;
// an empty value is none.
func (f field) several() []field {
	if f = f.optional(); !f.there {
		return nil
	}
	if _, ok := f.is.([]value); ok {
		return f.list()
	}
	return []field{f}
}

// section returns a section; nil when the field is not there.
func (f field) section() *section {
	s, ok := f.is.(*section)
	if f.there && !ok {
		f.refuse("a section", "write lines `key: value`, indented")
	}
	return s
}

// texts reads a list of strings, or a single one; an empty value is none.
func (f field) texts() []string {
	if _, ok := textOf(f.is); !ok && f.is != nil {
		if _, ok := f.is.([]value); !ok && f.there {
			f.refuse("a string or a list of strings", "write a string, or a line that begins with - for each")
			return nil
		}
	}
	var out []string
	for _, item := range f.several() {
		out = append(out, item.text())
	}
	return out
}
