package types

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"ordain.dev/ordain/compiler/syntax"
)

// Text gives the text of a value as Python's str does it.
func Text(v Value) string {
	switch v := v.(type) {
	case Str:
		return string(v)
	case *Object:
		return v.shown(0)
	}
	var b strings.Builder
	repr(&b, v, false)
	return b.String()
}

// Interpolated gives the text of a value in a "{{ }}" field: as Text, but a
// float that is a whole number loses its fraction.
func Interpolated(v Value) string { return Text(Whole(v)) }

// Whole makes an integer of a float that is a whole number.
func Whole(v Value) Value {
	if f, ok := Plain(v).(Float); ok && float64(f) == math.Trunc(float64(f)) && !math.IsInf(float64(f), 0) {
		return floatToInt(float64(f))
	}
	return v
}

// ASCII escapes what is not ASCII, as Python's ascii does.
func ASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// Repr gives the text of a value as Python's repr does it.
func Repr(v Value) string {
	var b strings.Builder
	repr(&b, v, true)
	return b.String()
}

// instanceText is what instances have to offer besides the interface.
type instanceText interface {
	// Text is the long form, with where the instance was made.
	Text() string
	// ReprText is the short form inside lists and dicts.
	ReprText() string
}

func repr(b *strings.Builder, v Value, quoted bool) {
	switch v := v.(type) {
	case nil, Null:
		b.WriteString("null")
	case Unknown:
		// with what stands for an address: it tells one from another
		fmt.Fprintf(b, "<inmanta.execute.util.Unknown object at %#x>", 0x7f0000000000+16*v.Number)
	case Bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case BigInt:
		b.WriteString(v.Int.String())
	case Float:
		b.WriteString(syntax.PyFloat(float64(v)))
	case Complex:
		b.WriteString(complexText(v))
	case Str:
		b.WriteString(Quote(string(v)))
	case *List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			repr(b, item, true)
		}
		b.WriteByte(']')
	case *Dict:
		b.WriteByte('{')
		for i, k := range v.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(Quote(k))
			b.WriteString(": ")
			repr(b, v.Values[k], true)
		}
		b.WriteByte('}')
	case *Reference:
		b.WriteString(v.Type + "(")
		for i, a := range v.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(a.Name + "=")
			repr(b, a.Value, true)
		}
		b.WriteByte(')')
	case *Object:
		b.WriteString(v.shown(1))
	case instanceText:
		if quoted {
			b.WriteString(v.ReprText())
		} else {
			b.WriteString(v.Text())
		}
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

// Quote writes a string literal as Python's repr does it.
func Quote(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x7f || (r != 0xad && unicode.IsPrint(r)):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte(quote)
	return b.String()
}
