package types

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"sync"
)

// complexPow is x ** y where the result is no real number: x is negative and y is
// not whole. As in Python, nothing else makes a Complex.
func complexPow(x, y float64) (Value, error) {
	length := pow(-x, y)
	if math.IsInf(length, 0) {
		return nil, Overflow("complex exponentiation")
	}
	sine, cosine := sincos(math.Pi * y)
	return Complex(complex(length*cosine, length*sine)), nil
}

var halfPi = sync.OnceValue(func() *big.Float {
	const digits = "3.14159265358979323846264338327950288419716939937510" +
		"582097494459230781640628620899862803482534211706798"
	pi, _ := new(big.Float).SetPrec(320).SetString(digits)
	return pi.Quo(pi, big.NewFloat(2))
})

// sincos is exact to the last bit, as those of the C library nearly always are and
// those of package math are not.
func sincos(x float64) (sine, cosine float64) {
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(320).SetFloat64(f) }
	turns, _ := new(big.Float).Add(new(big.Float).Quo(number(math.Abs(x)), halfPi()), number(0.5)).Int(nil)
	rest := number(math.Abs(x))
	rest.Sub(rest, new(big.Float).Mul(new(big.Float).SetInt(turns), halfPi()))
	// The terms of the series for e**(i·rest); every second one is real.
	var sums [2]*big.Float
	sums[0], sums[1] = number(1), number(0)
	for n, term := 1, number(1); n < 60; n++ {
		term.Quo(term.Mul(term, rest), number(float64(n)))
		if n%4 < 2 {
			sums[n%2].Add(sums[n%2], term)
		} else {
			sums[n%2].Sub(sums[n%2], term)
		}
	}
	cosine, _ = sums[0].Float64()
	sine, _ = sums[1].Float64()
	for range new(big.Int).Mod(turns, big.NewInt(4)).Int64() {
		sine, cosine = cosine, -sine
	}
	return math.Copysign(1, x) * sine, cosine
}

// complexText is Python's repr of a complex number.
func complexText(c Complex) string {
	text, _ := spec{precision: -1}.complex(c)
	return text
}

// complex writes both parts as floats and then pads the whole.
func (sp spec) complex(c Complex) (string, error) {
	switch {
	case sp.verb != 0 && strings.IndexByte("eEfFgGn", sp.verb) < 0:
		return "", sp.unknownCode("complex")
	case sp.fill == '0':
		return "", fmt.Errorf("Zero padding is not allowed in complex format specifier")
	case sp.align == '=':
		return "", fmt.Errorf("'=' alignment flag is not allowed in complex format specifier")
	}
	part := sp
	part.width = 0
	if sp.verb == 0 && sp.precision >= 0 {
		part.verb = 'g'
	}
	imaginary := part
	imaginary.sign = '+'
	bare := sp.verb == 0 && real(c) == 0 && !math.Signbit(real(c))
	if bare {
		imaginary.sign = sp.sign
	}
	im, err := imaginary.float(imag(c), "complex")
	if err != nil {
		return "", err
	}
	re, err := part.float(real(c), "complex")
	if err != nil {
		return "", err
	}
	if part.verb == 0 { // unlike in a float, a whole number has no fraction
		re, im = strings.TrimSuffix(re, ".0"), strings.TrimSuffix(im, ".0")
	}
	text := re + im + "j"
	switch {
	case bare:
		text = im + "j"
	case sp.verb == 0:
		text = "(" + text + ")"
	}
	align := sp.align
	if align == 0 {
		align = '>'
	}
	return pad("", text, sp.fill, align, sp.width), nil
}
