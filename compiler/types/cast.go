package types

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// Cast turns a value into one of a primitive type as `int(x)` and its like do.
func (p Primitive) Cast(v Value) (Value, error) {
	if _, unknown := v.(Unknown); unknown {
		return v, nil
	}
	var result Value
	var err error
	o, _ := v.(*Object)
	switch {
	case p == String:
		if b, ok := v.(Bool); ok {
			return Str(strings.ToLower(Text(b))), nil
		}
		return Str(Text(v)), nil
	case o != nil && o.Base == nil:
		result, err = o.cast(p)
	case p == BoolT:
		return Bool(Truth(v)), nil
	default:
		result = castNumber(p, Plain(v))
	}
	if result == nil && err == nil {
		err = fmt.Errorf("Failed to cast '%s' to %s", Text(v), p)
	}
	return result, err
}

func castNumber(p Primitive, v Value) Value {
	switch v.(type) {
	case Int, BigInt, Bool:
		if p == Number {
			return castInt(v)
		}
	}
	if p == IntType {
		return castInt(v)
	}
	return castFloat(v)
}

// Truth is Python's bool(v).
func Truth(v Value) bool {
	switch v := v.(type) {
	case Null:
		return false
	case Bool:
		return bool(v)
	case Int:
		return v != 0
	case Float:
		return v != 0
	case Complex:
		return v != 0
	case Str:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return len(v.Keys) > 0
	case *Object:
		if v.Base != nil {
			return Truth(v.Base)
		}
		return v.truth()
	}
	return true
}

func castInt(v Value) Value {
	switch v := v.(type) {
	case Int, BigInt:
		return v
	case Bool:
		return NewInt(asBig(v))
	case Float:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil
		}
		return floatToInt(math.Trunc(float64(v)))
	case Str:
		text, ok := digits(plainDigits(strings.TrimSpace(string(v))))
		if !ok {
			return nil
		}
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return nil
		}
		return NewInt(n)
	}
	return nil
}

// plainDigits writes the decimal digits of other scripts as Python reads them.
func plainDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.Is(unicode.Nd, r) {
			return r
		}
		zero := r // of its script: ten digits in a row, after no other digit or ten more
		for unicode.Is(unicode.Nd, zero-1) {
			zero--
		}
		return '0' + (r-zero)%10
	}, s)
}

// digits removes the underscores that Python allows between digits.
func digits(s string) (string, bool) {
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), s != ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func castFloat(v Value) Value {
	switch v := v.(type) {
	case Float:
		return v
	case Int, Bool, BigInt:
		f := asFloat(v)
		if math.IsInf(f, 0) {
			return nil
		}
		return Float(f)
	case Str:
		text, ok := digits(plainDigits(strings.TrimSpace(string(v))))
		if !ok || strings.ContainsAny(text, "xXpP") {
			return nil
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(f, 0) {
			return nil
		}
		return Float(f)
	}
	return nil
}
