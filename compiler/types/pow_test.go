package types

import (
	"math"
	"testing"
)

// TestPowIsAsExactAsPython compares with what Python prints for x ** y, where math.Pow is off by a
// bit or more.
func TestPowIsAsExactAsPython(t *testing.T) {
	for _, c := range []struct{ x, y, want float64 }{
		{2, 1.5, 2.8284271247461903}, {2, 0.5, 1.4142135623730951}, {10, -3.7, 0.00019952623149688788},
		{1.1, 100, 13780.61233982238}, {7.3, 13.9, 1000432416882.0908}, {0.3, 20, 3.4867844009999975e-11},
		{-2, 3, -8}, {-2.5, 3, -15.625}, {3, -2, 0.1111111111111111}, {1e100, 2.5, 1.0000000000000001e+250},
		{7.5e-21, 15, 1.336346101015808e-302}, {3, -670, 2.132e-320}, {-3, -671, -7.105e-321},
		{2, -1074, 5e-324}, {2, -1075, 0},
		{1e300, 2, math.Inf(1)}, {1e300, 1e308, math.Inf(1)}, {1e-300, 1e308, 0},
		{2, 1023.9999, 1.7975685325879886e+308},
	} {
		if got := pow(c.x, c.y); got != c.want {
			t.Errorf("%v ** %v is %v, not %v", c.x, c.y, got, c.want)
		}
	}
	for _, c := range []struct{ x, y float64 }{
		{0, 2}, {2, 0}, {math.Inf(1), 2}, {1, math.NaN()}, {1e300, 2}, {1e-300, 2},
	} {
		if got, want := pow(c.x, c.y), math.Pow(c.x, c.y); got != want {
			t.Errorf("%v ** %v is %v, not %v", c.x, c.y, got, want)
		}
	}
}
