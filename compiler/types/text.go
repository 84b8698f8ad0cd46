package types

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"

	"ordain.dev/ordain/internal/python/pytext"
)

// Text returns the text of a value as Python's str does it.
func Text(v Value) string {
	if s, is := v.(Str); is {
		return string(s)
	}
	var b printer
	b.repr(v, false)
	return b.String()
}

// Printed returns Text, or Repr when quoted is set, for a value that a model can
// see. As in Python, a whole number with too many digits has no text.
func Printed(v Value, quoted bool) (string, error) {
	if s, is := v.(Str); is && !quoted {
		return string(s), nil
	}
	var b printer
	b.repr(v, quoted)
	return b.String(), b.err
}

// maxDigits is how many digits of a number Python converts from or to text.
const maxDigits = 4300

var tooLong = sync.OnceValue(func() *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits), nil) })

// tooManyDigits is the error that Python raises for the text of a number with more
// than maxDigits digits.
func tooManyDigits(n *big.Int) error {
	const fewer = 14284 // the bits of 10
	if n.BitLen() <= fewer || n.CmpAbs(tooLong()) < 0 {
		return nil
	}
	return PythonError{
		"ValueError",
		"Exceeds the limit (4300 digits) for integer string conversion; use sys.set_int_max_str_digits() to " +
			"increase the limit",
	}
}

// Interpolated returns the text of a value in a "{{ }}" field: as Printed, but a
// float that is a whole number has no fraction.
func Interpolated(v Value) (string, error) {
	v, err := Whole(v)
	if err != nil {
		return "", err
	}
	return Printed(v, false)
}

// Whole converts a float that is a whole number to an integer. It finds out by
// converting every float, as Python's int does, so that one that is not finite is an
// error.
func Whole(v Value) (Value, error) {
	f, ok := Plain(v).(Float)
	if !ok {
		return v, nil
	}
	whole := math.Trunc(float64(f))
	if whole == float64(f) && math.Abs(whole) <= math.MaxFloat64 {
		return floatToInt(whole), nil
	}
	return v, notFinite(float64(f))
}

// notFinite is the error that int raises for a float; nil for a finite one.
func notFinite(f float64) error {
	switch {
	case math.IsNaN(f):
		return PythonError{"ValueError", "cannot convert float NaN to integer"}
	case math.IsInf(f, 0):
		return PythonError{"OverflowError", "cannot convert float infinity to integer"}
	}
	return nil
}

// Repr returns the text of a value as Python's repr does it.
func Repr(v Value) string {
	var b printer
	b.repr(v, true)
	return b.String()
}

// instanceText is what instances have beside the interface Instance.
type instanceText interface {
	// Text is the long form, with where the instance was made.
	Text() string
	// ReprText is the short form inside lists and dicts.
	ReprText() string
}

// printer writes values as Python does; err is set when Python would raise an error.
type printer struct {
	strings.Builder
	err error
}

func (b *printer) repr(v Value, quoted bool) {
	switch v := v.(type) {
	case nil, Null:
		b.WriteString("null")
	case Unknown:
		// a stand-in for the address, which differs from those of others
		fmt.Fprintf(&b.Builder, "<inmanta.execute.util.Unknown object at %#x>", 0x7f0000000000+16*v.Number)
	case Bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case BigInt:
		if err := tooManyDigits(v.Int); err != nil {
			b.err = err
		}
		b.WriteString(v.Int.String())
	case Float:
		b.WriteString(pytext.Float(float64(v)))
	case Complex:
		b.WriteString(complexText(v))
	case Str:
		b.WriteString(pytext.Quote(string(v)))
	case *List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			b.repr(item, true)
		}
		b.WriteByte(']')
	case *Dict:
		b.WriteByte('{')
		for i, k := range v.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(pytext.Quote(k))
			b.WriteString(": ")
			b.repr(v.Values[k], true)
		}
		b.WriteByte('}')
	case *Reference:
		b.WriteString(v.Type + "(")
		for i, a := range v.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(a.Name + "=")
			b.repr(a.Value, true)
		}
		b.WriteByte(')')
	case *Object:
		which := 0
		if quoted {
			which = 1
		}
		b.WriteString(v.shown(which))
	case instanceText:
		if quoted {
			b.WriteString(v.ReprText())
		} else {
			b.WriteString(v.Text())
		}
	default:
		fmt.Fprintf(&b.Builder, "%v", v)
	}
}
