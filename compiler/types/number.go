package types

import (
	"math"
	"math/big"
	"sync/atomic"
)

// IsNumber reports whether Python would calculate with a value: ints, floats, bools.
func IsNumber(v Value) bool {
	switch v := v.(type) {
	case Int, BigInt, Float, Bool:
		return true
	case *Object:
		return v.Base != nil && IsNumber(v.Base)
	}
	return false
}

func asBig(v Value) *big.Int {
	switch v := v.(type) {
	case Int:
		return big.NewInt(int64(v))
	case BigInt:
		return v.Int
	case Bool:
		if v {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	return nil
}

// asFloat converts a number to a float. As in Python, an integer that is too large
// for a float is an Overflow.
func asFloat(v Value) (float64, error) {
	switch v := v.(type) {
	case Float:
		return float64(v), nil
	case Int:
		return float64(v), nil
	case Bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case BigInt:
		f, _ := new(big.Float).SetInt(v.Int).Float64()
		if math.IsInf(f, 0) {
			return 0, Overflow("int too large to convert to float")
		}
		return f, nil
	}
	return math.NaN(), nil
}

func floatToInt(f float64) Value {
	if f >= -9e18 && f <= 9e18 {
		return Int(int64(f))
	}
	n, _ := new(big.Float).SetFloat64(f).Int(nil)
	return NewInt(n)
}

// Compare compares two numbers exactly, as Python does between ints and floats. ok
// is false when one is not a number or is NaN.
func Compare(a, b Value) (order int, ok bool) {
	if !IsNumber(a) || !IsNumber(b) {
		return 0, false
	}
	a, b = Plain(a), Plain(b)
	fa, aFloat := a.(Float)
	fb, bFloat := b.(Float)
	if (aFloat && math.IsNaN(float64(fa))) || (bFloat && math.IsNaN(float64(fb))) {
		return 0, false
	}
	switch {
	case aFloat && bFloat:
		return cmpFloat(float64(fa), float64(fb)), true
	case aFloat:
		return -compareIntFloat(asBig(b), float64(fa)), true
	case bFloat:
		return compareIntFloat(asBig(a), float64(fb)), true
	}
	if x, ok := a.(Int); ok {
		if y, ok := b.(Int); ok {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	return asBig(a).Cmp(asBig(b)), true
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareIntFloat(n *big.Int, f float64) int {
	if math.IsInf(f, 0) {
		return cmpFloat(0, f)
	}
	return new(big.Float).SetPrec(2000).SetInt(n).Cmp(new(big.Float).SetPrec(2000).SetFloat64(f))
}

// Equal is Python's ==: 1 == 1.0 == true, lists and dicts by content,
// instances by identity.
func Equal(a, b Value) bool {
	if y, is := b.(*Object); is {
		_, null := a.(Null)
		return !null && y.equals(a)
	}
	switch x := a.(type) {
	case Str:
		switch y := b.(type) {
		case Str:
			return x == y
		}
		return false
	case Null:
		_, ok := b.(Null)
		return ok
	case Unknown:
		y, ok := b.(Unknown)
		return ok && x == y
	case Int, BigInt, Float, Bool:
		order, ok := Compare(a, b)
		return ok && order == 0
	case *List:
		y, ok := b.(*List)
		if !ok || len(x.Items) != len(y.Items) {
			return false
		}
		for i := range x.Items {
			if !same(x.Items[i], y.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.Keys) != len(y.Keys) {
			return false
		}
		for k, v := range x.Values {
			w, ok := y.Values[k]
			if !ok || !same(v, w) {
				return false
			}
		}
		return true
	case *Reference:
		y, ok := b.(*Reference)
		if !ok || x.Type != y.Type || len(x.Args) != len(y.Args) {
			return x == b
		}
		if x.Handle == y.Handle {
			return true
		}
		for i := range x.Args {
			if x.Args[i].Name != y.Args[i].Name || !Equal(x.Args[i].Value, y.Args[i].Value) {
				return false
			}
		}
		return true
	case *Object:
		return x.equals(b)
	case Instance:
		y, ok := b.(Instance)
		return ok && x.InstanceID() == y.InstanceID()
	}
	return a == b
}

// same compares elements of lists or dicts as Python does: an object is the same as
// itself, even one that does not equal itself, such as a nan.
func same(a, b Value) bool {
	switch x := a.(type) {
	case Float:
		if y, is := b.(Float); is && math.Float64bits(float64(x)) == math.Float64bits(float64(y)) {
			return true
		}
	case *Object:
		if y, is := b.(*Object); is && x.Handle == y.Handle {
			return true
		}
	}
	return Equal(a, b)
}

var nans atomic.Uint64

// newNaN returns a new nan. Each has a number of its own in the spare bits of a nan,
// which distinguishes it from others as Python distinguishes objects.
func newNaN() Float {
	const nan, spare = 0x7ff8_0000_0000_0000, 1<<51 - 1
	return Float(math.Float64frombits(nan | (nans.Add(1)+1)&spare)) // 1 is what math.NaN has
}

// result is the result of an operation. A nan is always a new one.
func result(f float64) Value {
	if f != f {
		return newNaN()
	}
	return Float(f)
}

// ZeroDivision is Python's ZeroDivisionError; Error gives its text.
type ZeroDivision string

func (z ZeroDivision) Error() string { return string(z) }

// Overflow is Python's OverflowError.
type Overflow string

func (o Overflow) Error() string { return string(o) }

// Arithmetic computes `a op b` for two numbers, where op is one of
// + - * / % **. The error is a ZeroDivision or an Overflow.
func Arithmetic(op string, a, b Value) (Value, error) {
	a, b = Plain(a), Plain(b)
	_, aFloat := a.(Float)
	_, bFloat := b.(Float)
	if op == "/" {
		return divide(a, b)
	}
	if aFloat || bFloat {
		return floatArithmetic(op, a, b)
	}
	if x, ok := a.(Int); ok {
		if y, ok := b.(Int); ok {
			if v, done := smallArithmetic(op, int64(x), int64(y)); done {
				return v, nil
			}
		}
	}
	x, y := asBig(a), asBig(b)
	switch op {
	case "+":
		return NewInt(new(big.Int).Add(x, y)), nil
	case "-":
		return NewInt(new(big.Int).Sub(x, y)), nil
	case "*":
		return NewInt(new(big.Int).Mul(x, y)), nil
	case "%":
		if y.Sign() == 0 {
			return nil, ZeroDivision("integer modulo by zero")
		}
		m := new(big.Int).Rem(x, y)
		if m.Sign() != 0 && m.Sign() != y.Sign() {
			m.Add(m, y)
		}
		return NewInt(m), nil
	}
	if y.Sign() < 0 {
		return floatArithmetic(op, a, b)
	}
	if bits := x.BitLen(); bits > 1 && (!y.IsInt64() || y.Int64() > 1<<26/int64(bits)) {
		return nil, Overflow("the result of ** is too large")
	}
	return NewInt(new(big.Int).Exp(x, y, nil)), nil
}

func smallArithmetic(op string, x, y int64) (Value, bool) {
	const limit = 1 << 31
	small := x > -limit && x < limit && y > -limit && y < limit
	switch {
	case !small:
		return nil, false
	case op == "+":
		return Int(x + y), true
	case op == "-":
		return Int(x - y), true
	case op == "*":
		return Int(x * y), true
	case op == "%" && y != 0:
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return Int(m), true
	}
	return nil, false
}

func divide(a, b Value) (Value, error) {
	_, aFloat := a.(Float)
	_, bFloat := b.(Float)
	if aFloat || bFloat {
		return floatArithmetic("/", a, b)
	}
	x, y := asBig(a), asBig(b)
	if y.Sign() == 0 {
		return nil, ZeroDivision("division by zero")
	}
	if x.Sign() == 0 {
		return Float(math.Copysign(0, float64(y.Sign()))), nil
	}
	const exact = 53 // the bits of a float's mantissa
	if x.BitLen() <= exact && y.BitLen() <= exact {
		return Float(float64(x.Int64()) / float64(y.Int64())), nil
	}
	q, _ := new(big.Rat).SetFrac(x, y).Float64()
	if math.IsInf(q, 0) {
		return nil, Overflow("integer division result too large for a float")
	}
	return Float(q), nil
}

func floatArithmetic(op string, a, b Value) (Value, error) {
	x, err := asFloat(a)
	if err != nil {
		return nil, err
	}
	y, err := asFloat(b)
	if err != nil {
		return nil, err
	}
	switch op {
	case "+":
		return result(x + y), nil
	case "-":
		return result(x - y), nil
	case "*":
		return result(x * y), nil
	case "/":
		if y == 0 {
			return nil, ZeroDivision("float division by zero")
		}
		return result(x / y), nil
	case "%":
		if y == 0 {
			return nil, ZeroDivision("float modulo by zero")
		}
		m := math.Mod(x, y)
		switch {
		case m == 0:
			m = math.Copysign(0, y)
		case (m < 0) != (y < 0):
			m += y
		}
		return result(m), nil
	}
	if x == 0 && y < 0 && !math.IsInf(y, 0) {
		return nil, ZeroDivision("0.0 cannot be raised to a negative power")
	}
	if x < 0 && !math.IsInf(x, 0) && y != math.Trunc(y) && !math.IsNaN(y) {
		return complexPow(x, y)
	}
	p := pow(x, y)
	if math.IsInf(p, 0) && x != 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, Overflow("(34, 'Numerical result out of range')")
	}
	return result(p), nil
}
