package pydantic

import (
	"fmt"
	"math/big"
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// Kinds of Items.
const (
	List  = "list"
	Tuple = "tuple"
	Set   = "set"
)

// Items is a list, a tuple or a set. It may hold itself.
type Items struct {
	Kind string
	Of   []any
}

// Dict is a dict, in the order in which its keys were first there. It may hold
// itself.
type Dict struct {
	Keys, Values []any
}

// Get finds the value of a text key.
func (d *Dict) Get(key string) (value any, ok bool) {
	for i, k := range d.Keys {
		if k == key {
			return d.Values[i], true
		}
	}
	return nil, false
}

// Other is a value that no schema takes, such as a date.
type Other struct {
	Type string // its class
	Repr string // what repr() gives
	Text string // what str() gives
}

// TypeOf is the name of the class of a value.
func TypeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case *Items:
		return v.Kind
	case *Dict:
		return "dict"
	case Other:
		return v.Type
	}
	return "object"
}

// Repr is what Python's repr() gives.
func Repr(v any) string {
	var b strings.Builder
	repr(&b, v, map[any]bool{})
	return b.String()
}

// Str is what Python's str() gives.
func Str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Other:
		return v.Text
	}
	return Repr(v)
}

// longestRepr ends a text that nobody reads: aliases may multiply what is in it.
const longestRepr = 1 << 20

// repr writes a value; within has the lists and dicts that it stands in.
func repr(b *strings.Builder, v any, within map[any]bool) {
	if b.Len() > longestRepr {
		return
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case *big.Int:
		b.WriteString(v.String())
	case float64:
		b.WriteString(pytext.Float(v))
	case string:
		b.WriteString(pytext.Quote(v))
	case []byte:
		reprBytes(b, v)
	case Other:
		b.WriteString(v.Repr)
	case *Items:
		reprItems(b, v, within)
	case *Dict:
		if within[v] {
			b.WriteString("{...}")
			return
		}
		within[v] = true
		defer delete(within, v)
		b.WriteByte('{')
		for i, k := range v.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			repr(b, k, within)
			b.WriteString(": ")
			repr(b, v.Values[i], within)
		}
		b.WriteByte('}')
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

func reprItems(b *strings.Builder, v *Items, within map[any]bool) {
	first, last := "[", "]"
	switch v.Kind {
	case Tuple:
		first, last = "(", ")"
		if len(v.Of) == 1 {
			last = ",)"
		}
	case Set:
		first, last = "{", "}"
		if len(v.Of) == 0 {
			first, last = "set(", ")"
		}
	}
	b.WriteString(first)
	defer b.WriteString(last)
	if within[v] {
		b.WriteString("...")
		return
	}
	within[v] = true
	defer delete(within, v)
	for i, item := range v.Of {
		if i > 0 {
			b.WriteString(", ")
		}
		repr(b, item, within)
	}
}

func reprBytes(b *strings.Builder, v []byte) {
	quote := byte('\'')
	if strings.ContainsRune(string(v), '\'') && !strings.ContainsRune(string(v), '"') {
		quote = '"'
	}
	b.WriteByte('b')
	b.WriteByte(quote)
	for _, c := range v {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(quote)
}
