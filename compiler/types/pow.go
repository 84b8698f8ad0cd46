package types

import "math"

// pow is x ** y to the last bit nearly always, as the C library's is, and so
// Python's; math.Pow is a few bits off. It computes exp(y·log x) in numbers of
// twice the precision.
func pow(x, y float64) float64 {
	rough := math.Pow(x, y)
	if x == 0 || x == 1 || y == 0 || math.IsInf(rough, 0) || math.IsNaN(rough) || math.IsInf(x, 0) || math.IsInf(y, 0) || math.Abs(rough) < 1e-300 {
		return rough
	}
	out := exponential(logarithm(math.Abs(x)).times(y))
	return math.Copysign(out.high+out.low, rough)
}

// double is high + low, where low is what high leaves over.
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

func (a double) over(b float64) double {
	q := a.high / b
	p := product(q, b)
	return sum(q, (a.high-p.high-p.low+a.low)/b)
}

func (a double) scaled(exponent int) double {
	return double{math.Ldexp(a.high, exponent), math.Ldexp(a.low, exponent)}
}

// exponential takes whole powers of two off, sums the series of a small rest
// and squares it up again.
func exponential(a double) double {
	const halvings = 8
	whole := math.Round(a.high / ln2.high)
	rest := a.plus(ln2.times(-whole)).scaled(-halvings)
	term, result := double{1, 0}, double{1, 0}
	for n := 1.0; n <= 14; n++ {
		term = term.mul(rest).over(n)
		result = result.plus(term)
	}
	for range halvings {
		result = result.mul(result)
	}
	return result.scaled(int(whole))
}

// logarithm improves math.Log by one step of Newton's method.
func logarithm(x float64) double {
	fraction, exponent := math.Frexp(x)
	near := math.Log(fraction)
	e := exponential(double{-near, 0}).times(fraction).plus(double{-1, 0})
	return double{near, 0}.plus(e).plus(e.mul(e).times(-0.5)).plus(ln2.times(float64(exponent)))
}
