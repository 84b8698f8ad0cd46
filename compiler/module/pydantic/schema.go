package pydantic

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Schema is what a value must be like.
type Schema interface {
	check(c *checking, v any)
}

// Check gives what does not fit, in the order of pydantic; nil: all fits.
func (m *Model) Check(v *Dict) *Error {
	c := &checking{}
	m.check(c, v)
	if len(c.problems) == 0 {
		return nil
	}
	return &Error{Title: m.Title, Problems: c.problems}
}

// checking is one run through a value.
type checking struct {
	path     []any
	problems []Problem
}

func (c *checking) fail(kind, text string, input any) {
	c.problems = append(c.problems, Problem{Path: append([]any(nil), c.path...), Type: kind, Text: text, Input: input})
}

func (c *checking) custom(kind, text string, input any) {
	c.fail(kind, text, input)
	c.problems[len(c.problems)-1].Custom = true
}

// at checks a part of the value.
func (c *checking) at(step any, s Schema, v any) {
	c.path = append(c.path, step)
	s.check(c, v)
	c.path = c.path[:len(c.path)-1]
}

// Model is a dict with known keys. Others are ignored.
type Model struct {
	Title  string
	Fields []Field
}

// Field is a key of a model.
type Field struct {
	Name string
	// Alias is another spelling, which goes before the name; empty: none.
	Alias    string
	Required bool
	Is       Schema
}

func (m *Model) check(c *checking, v any) {
	d, ok := v.(*Dict)
	if !ok {
		c.fail("model_type", "Input should be a valid dictionary or instance of "+m.Title, v)
		return
	}
	for _, f := range m.Fields {
		value, ok := d.Get(f.Alias)
		name := f.Alias
		if f.Alias == "" || !ok {
			name = f.Name
			value, ok = d.Get(f.Name)
		}
		switch {
		case ok:
			c.at(name, f.Is, value)
		case f.Required:
			c.at(name, missing{}, v)
		}
	}
}

// missing is a key that must be there.
type missing struct{}

func (missing) check(c *checking, v any) { c.fail("missing", "Field required", v) }

// Text is a str, or bytes that are one.
type Text struct {
	Numbers bool // are taken for texts
	// Pattern must match, if there is one; Python is how Python writes it. What
	// is matched has no space at its ends, and something in it, when Stripped.
	Pattern  *regexp.Regexp
	Python   string
	Stripped bool
	// Then says what else is wrong with the text; empty: nothing.
	Then func(text string) string
}

func (s Text) check(c *checking, v any) {
	text, ok := s.text(c, v)
	if !ok {
		return
	}
	if s.Stripped {
		if text = strings.TrimFunc(text, unicode.IsSpace); text == "" {
			c.fail("string_too_short", "String should have at least 1 character", v)
			return
		}
	}
	if s.Pattern != nil && !s.Pattern.MatchString(text) {
		c.fail("string_pattern_mismatch", "String should match pattern '"+s.Python+"'", v)
		return
	}
	if s.Then != nil {
		if wrong := s.Then(text); wrong != "" {
			c.fail("value_error", "Value error, "+wrong, v)
		}
	}
}

func (s Text) text(c *checking, v any) (string, bool) {
	switch v := v.(type) {
	case string:
		if s.Pattern != nil && !utf8.ValidString(v) {
			break
		}
		return v, true
	case []byte:
		if utf8.Valid(v) {
			return string(v), true
		}
	default:
		if text, ok := TextOfNumber(v); s.Numbers && ok {
			return text, true
		}
		c.fail("string_type", "Input should be a valid string", v)
		return "", false
	}
	noUnicode(c, v)
	return "", false
}

func noUnicode(c *checking, v any) {
	c.fail("string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string", v)
}

// TextOfNumber is str() of an int or a float.
func TextOfNumber(v any) (string, bool) {
	switch v.(type) {
	case *big.Int, float64:
		return Repr(v), true
	}
	return "", false
}

// Truth is a bool, or what stands for one.
type Truth struct{}

func (Truth) check(c *checking, v any) {
	if _, ok := TruthOf(v); ok {
		return
	}
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			noUnicode(c, v)
			return
		}
	case []byte:
	default:
		if !isInt64(v) {
			c.fail("bool_type", "Input should be a valid boolean", v)
			return
		}
	}
	c.fail("bool_parsing", "Input should be a valid boolean, unable to interpret input", v)
}

// isInt64 tells whether a number is a whole one of 64 bits.
func isInt64(v any) bool {
	switch v := v.(type) {
	case *big.Int:
		return v.IsInt64()
	case float64:
		return v == math.Trunc(v) && math.Abs(v) < 1<<63
	}
	return false
}

// TruthOf reads a bool: also 0, 1 and words such as yes, off, t.
func TruthOf(v any) (yes, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case *big.Int:
		return v.Cmp(big.NewInt(1)) == 0, v.Cmp(big.NewInt(1)) == 0 || v.Sign() == 0
	case float64:
		return v == 1, v == 1 || v == 0
	case []byte:
		return TruthOf(string(v))
	case string:
		switch strings.ToLower(v) {
		case "true", "yes", "on", "1", "y", "t":
			return true, true
		case "false", "no", "off", "0", "n", "f":
			return false, true
		}
	}
	return false, false
}

// Int is an int, or bytes that are one.
type Int struct{}

func (Int) check(c *checking, v any) {
	switch v := v.(type) {
	case *big.Int:
	case []byte:
		if _, ok := IntOf(v); !ok {
			c.fail("int_parsing", "Input should be a valid integer, unable to parse string as an integer", v)
		}
	default:
		c.fail("int_type", "Input should be a valid integer", v)
	}
}

// IntOf reads the int that bytes are.
func IntOf(text []byte) (*big.Int, bool) {
	digits := strings.TrimFunc(string(text), unicode.IsSpace)
	if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return nil, false
	}
	if whole, zeros, ok := strings.Cut(digits, "."); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		digits = whole
	}
	return new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), 10)
}

// Float is a number, or bytes that are one.
type Float struct{}

func (Float) check(c *checking, v any) {
	switch v := v.(type) {
	case *big.Int, float64, bool:
	case []byte:
		if _, ok := FloatOf(v); !ok {
			c.fail("float_parsing", "Input should be a valid number, unable to parse string as a number", v)
		}
	default:
		c.fail("float_type", "Input should be a valid number", v)
	}
}

// FloatOf reads the number that bytes are.
func FloatOf(text []byte) (float64, bool) {
	digits := strings.TrimFunc(string(text), unicode.IsSpace)
	if strings.ContainsAny(digits, "xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(digits, 64)
	return f, err == nil || math.IsInf(f, 0) && strings.Trim(digits, "+-.0123456789eE_") == ""
}

// OneOf is one of some texts.
type OneOf []string

func (o OneOf) check(c *checking, v any) {
	text, ok := v.(string)
	if ok && !utf8.ValidString(text) {
		noUnicode(c, v)
		return
	}
	for _, one := range o {
		if ok && text == one {
			return
		}
	}
	quoted := make([]string, len(o))
	for i, one := range o {
		quoted[i] = "'" + one + "'"
	}
	last := len(quoted) - 1
	c.fail("enum", "Input should be "+strings.Join(quoted[:last], ", ")+" or "+quoted[last], v)
}

// Optional may be None.
type Optional struct{ Is Schema }

func (o Optional) check(c *checking, v any) {
	if v != nil {
		o.Is.check(c, v)
	}
}

// ListOf is a list, a tuple or a set.
type ListOf struct{ Each Schema }

func (l ListOf) check(c *checking, v any) {
	items, ok := v.(*Items)
	if !ok {
		c.fail("list_type", "Input should be a valid list", v)
		return
	}
	for i, item := range items.Of {
		c.at(i, l.Each, item)
	}
}

// OneOrMore is a list, or a single value in place of it; None has none.
type OneOrMore struct{ Each Schema }

func (l OneOrMore) check(c *checking, v any) {
	ListOf(l).check(c, Several(v))
}

// Several is a value as a list, for OneOrMore.
func Several(v any) *Items {
	if items, ok := v.(*Items); ok && items.Kind == List {
		return items
	}
	if v == nil {
		return &Items{Kind: List}
	}
	return &Items{Kind: List, Of: []any{v}}
}

// SequenceOf is a list or a tuple.
type SequenceOf struct{ Each Schema }

func (s SequenceOf) check(c *checking, v any) {
	switch v := v.(type) {
	case string, []byte:
		c.custom("sequence_str", "'"+TypeOf(v)+"' instances are not allowed as a Sequence value", v)
		return
	case *Items:
		if v.Kind != Set {
			ListOf(s).check(c, v)
			return
		}
	}
	c.fail("is_instance_of", "Input should be an instance of Sequence", v)
}

// DictOf has keys and values of a kind.
type DictOf struct{ Key, Value Schema }

func (d DictOf) check(c *checking, v any) {
	dict, ok := v.(*Dict)
	if !ok {
		c.fail("dict_type", "Input should be a valid dictionary", v)
		return
	}
	for i, k := range dict.Keys {
		c.path = append(c.path, k)
		c.at(Member("[key]"), d.Key, k)
		d.Value.check(c, dict.Values[i])
		c.path = c.path[:len(c.path)-1]
	}
}

// Union is one of several kinds. When none fits, what is wrong is said for each.
type Union []Alternative

// Alternative is a member of a union, by its name.
type Alternative struct {
	Name string
	Is   Schema
}

func (u Union) check(c *checking, v any) {
	before := len(c.problems)
	for _, m := range u {
		known := len(c.problems)
		if c.at(Member(m.Name), m.Is, v); len(c.problems) == known {
			c.problems = c.problems[:before]
			return
		}
	}
}

// Checked is looked at by a function before all else; what it says ends it.
type Checked struct {
	// Before gives what is wrong; empty: nothing. Custom: pydantic has no page about it.
	Before func(v any) (kind, text string, custom bool)
	Is     Schema // nil: nothing else is asked
}

func (s Checked) check(c *checking, v any) {
	kind, text, custom := s.Before(v)
	switch {
	case text == "" && s.Is != nil:
		s.Is.check(c, v)
	case text == "":
	case custom:
		c.custom(kind, text, v)
	default:
		c.fail(kind, text, v)
	}
}

// Converted is checked as what a function makes of it.
type Converted struct {
	By func(v any) any
	Is Schema
}

func (s Converted) check(c *checking, v any) { s.Is.check(c, s.By(v)) }
