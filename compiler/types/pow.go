package types

import (
	"math"
	"math/big"
)

// pow is x ** y, nearly always to the last bit, as that of the C library and so
// Python's; math.Pow is a few bits off. It computes exp(y·log x) with twice the
// precision.
func pow(x, y float64) float64 {
	rough := math.Pow(x, y)
	if x == 0 || math.Abs(x) == 1 || y == 0 || math.IsNaN(rough) || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return rough
	}
	power := logarithm(math.Abs(x)).times(y)
	if !(math.Abs(power.high) < 800) { // too large or too small: floats end near e**709 and e**-745
		return rough
	}
	out, exponent := exponential(power)
	result := math.Ldexp(out.high+out.low, exponent)
	if result < smallestNormal { // fewer bits are left, and what
		exact := new(big.Float).SetPrec(200).SetFloat64(out.high)
		exact.Add(exact, new(big.Float).SetFloat64(out.low))
		result, _ = exact.SetMantExp(exact, exponent).Float64()
	}
	return math.Copysign(result, rough)
}

const smallestNormal = 0x1p-1022

// double is high + low, where low is the rounding error of high.
type double struct{ high, low float64 }

var ln2 = double{0.6931471805599453, 2.3190468138462996e-17}

func sum(a, b float64) double {
	s := a + b
	v := s - a
	return double{s, (a - (s - v)) + (b - v)}
}

func product(a, b float64) double {
	p := a * b
	return double{p, math.FMA(a, b, -p)}
}

func (a double) plus(b double) double {
	s := sum(a.high, b.high)
	return sum(s.high, s.low+a.low+b.low)
}

func (a double) mul(b double) double {
	p := product(a.high, b.high)
	return sum(p.high, p.low+a.high*b.low+a.low*b.high)
}

func (a double) times(b float64) double {
	p := product(a.high, b)
	return sum(p.high, p.low+a.low*b)
}

func (a double) dividedBy(b float64) double {
	q := a.high / b
	p := product(q, b)
	return sum(q, (a.high-p.high-p.low+a.low)/b)
}

func (a double) scaled(exponent int) double {
	return double{math.Ldexp(a.high, exponent), math.Ldexp(a.low, exponent)}
}

// exponential separates whole powers of two, sums the series of a small rest and
// squares it up again. The result is to be scaled by the power of two.
func exponential(a double) (result double, exponent int) {
	const halvings = 8
	whole := math.Round(a.high / ln2.high)
	rest := a.plus(ln2.times(-whole)).scaled(-halvings)
	term := double{1, 0}
	result = double{1, 0}
	for n := 1.0; n <= 14; n++ {
		term = term.mul(rest).dividedBy(n)
		result = result.plus(term)
	}
	for range halvings {
		result = result.mul(result)
	}
	return result, int(whole)
}

// logarithm improves math.Log by one step of Newton's method.
func logarithm(x float64) double {
	fraction, exponent := math.Frexp(x)
	near := math.Log(fraction)
	inverse, power := exponential(double{-near, 0})
	e := inverse.scaled(power).times(fraction).plus(double{-1, 0})
	return double{near, 0}.plus(e).plus(e.mul(e).times(-0.5)).plus(ln2.times(float64(exponent)))
}
