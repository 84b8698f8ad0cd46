package types

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

func power(exponent int64) Value {
	return NewInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil))
}

// An integer that is too large for a float is rejected wherever a float is needed,
// and only there.
func TestIntegersBeyondFloats(t *testing.T) {
	huge := power(400)
	const overflow = Overflow("int too large to convert to float")
	for _, op := range []string{"+", "-", "*", "/", "%", "**"} {
		if v, err := Arithmetic(op, huge, Float(2.5)); err != overflow {
			t.Errorf("10**400 %s 2.5 is %v, %v", op, v, err)
		}
		if v, err := Arithmetic(op, Float(2.5), huge); err != overflow {
			t.Errorf("2.5 %s 10**400 is %v, %v", op, v, err)
		}
	}
	if v, err := Arithmetic("/", huge, huge); err != nil || v != Float(1) {
		t.Errorf("10**400 / 10**400 is %v, %v", v, err)
	}
	for _, spec := range []string{"e", ".2f", "%", "g"} {
		if text, err := Format(huge, spec); err != (PythonError{"OverflowError", string(overflow)}) {
			t.Errorf("format %s gives %q, %v", spec, text, err)
		}
	}
	if order, ok := Compare(huge, Float(math.Inf(1))); order != -1 || !ok {
		t.Errorf("10**400 and inf compare as %d, %v", order, ok)
	}
}

// A number of 4300 digits has a text. One of more digits has none, except in a base
// that is a power of two.
func TestNumbersOfTooManyDigits(t *testing.T) {
	most, err := Arithmetic("-", power(maxDigits), Int(1))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Printed(most, false); err != nil || len(text) != maxDigits {
		t.Errorf("4300 digits: %d, %v", len(text), err)
	}
	for _, v := range []Value{power(maxDigits), &List{[]Value{power(maxDigits)}}} {
		var python PythonError
		if _, err := Printed(v, true); !errors.As(err, &python) || python.Class != "ValueError" {
			t.Errorf("4301 digits: %v", err)
		}
	}
	if text, err := Format(power(maxDigits), "x"); err != nil || len(text) != 3572 {
		t.Errorf("as hexadecimal: %d, %v", len(text), err)
	}
}

// A nan in a list equals itself and no other nan; by itself it does not even equal
// itself.
func TestNaNsAreToldApart(t *testing.T) {
	nan := func() Value {
		v, err := FloatT.Cast(Str("-nan"))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, b := nan(), nan()
	sum, err := Arithmetic("+", a, Int(0))
	if err != nil {
		t.Fatal(err)
	}
	list := func(v Value) Value { return &List{[]Value{v}} }
	for _, c := range []struct {
		what string
		x, y Value
		want bool
	}{
		{"alone", a, a, false},
		{"in lists", list(a), list(a), true},
		{"another", list(a), list(b), false},
		{"one made of it", list(a), list(sum), false},
		{
			"in dicts",
			&Dict{[]string{"k"}, map[string]Value{"k": a}},
			&Dict{[]string{"k"}, map[string]Value{"k": a}},
			true,
		},
	} {
		if Equal(c.x, c.y) != c.want {
			t.Errorf("%s: equal is %v", c.what, !c.want)
		}
	}
	if _, err := Interpolated(a); err != (PythonError{"ValueError", "cannot convert float NaN to integer"}) {
		t.Errorf("as text: %v", err)
	}
}

// Python's results of format at the edges of its format specifications.
func TestFormatsAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		v          Value
		spec, want string
	}{
		{Int(65), "5c", "    A"}, {Int(65), "<5c", "A    "}, {Float(1e-05), "#", "1.e-05"},
		{Float(1e22), "#", "1.e+22"},
		{Float(1e307), ".1%", "inf%"},
		{Float(math.Copysign(0, -1)), "ze", "0.000000e+00"}, {Float(math.Copysign(0, -1)), "z.1", "0e+00"},
		{Float(-0.001), "z.1f", "0.0"}, {Float(-0.001), "z.2e", "-1.00e-03"},
	} {
		if got, err := Format(c.v, c.spec); got != c.want || err != nil {
			t.Errorf("%v as %s is %q, %v; not %q", c.v, c.spec, got, err, c.want)
		}
	}
	for spec, want := range map[string]string{
		"#c":  "Alternate form (#) not allowed with integer format specifier 'c'",
		".":   "Format specifier missing precision",
		"_,":  "Cannot specify both ',' and '_'.",
		".1s": "Unknown format code 's' for object of type 'int'",
	} {
		if got, err := Format(Int(65), spec); err == nil || err.Error() != want {
			t.Errorf("65 as %s is %q, %v; not %s", spec, got, err, want)
		}
	}
}
