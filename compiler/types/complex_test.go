package types

import "testing"

// TestPowersOfNegativeNumbersAreComplex compares with what Python prints for x ** y.
func TestPowersOfNegativeNumbersAreComplex(t *testing.T) {
	for _, c := range []struct {
		x, y float64
		want string
	}{
		{-8, 0.5, "(1.7319121124709868e-16+2.8284271247461903j)"},
		{-0.5, 0.0000001, "(0.9999999306852351+3.14159243583114e-07j)"},
		{-2, 700.5, "(7.835186552413579e+197+7.438955531895338e+210j)"},
		{-2, -7000.5, "-0j"},
	} {
		v, err := Arithmetic("**", Float(c.x), Float(c.y))
		if err != nil || Text(v) != c.want {
			t.Errorf("%v ** %v is %s, %v; not %s", c.x, c.y, Text(v), err, c.want)
		}
	}
	if _, err := Arithmetic("**", Float(-2), Float(1000000.5)); err != Overflow("complex exponentiation") {
		t.Errorf("too large: %v", err)
	}
}
