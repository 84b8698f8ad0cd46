package types

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// Cast converts a value to one of a primitive type, as `int(x)` and the like do.
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
		text, err := Printed(v, false)
		return Str(text), err
	case o != nil && o.Base == nil:
		result, err = o.cast(p)
	case p == BoolT:
		return Bool(Truth(v)), nil
	default:
		result, err = castNumber(p, Plain(v))
	}
	if result == nil && err == nil {
		var text string
		if text, err = Printed(v, false); err == nil {
			err = fmt.Errorf("Failed to cast '%s' to %s", text, p)
		}
	}
	return result, err
}

// castNumber converts a number or a text to a number. It returns nil for what Python
// rejects with a ValueError, since Cast has its own words for that.
func castNumber(p Primitive, v Value) (Value, error) {
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

func castInt(v Value) (Value, error) {
	switch v := v.(type) {
	case Int, BigInt:
		return v, nil
	case Bool:
		return NewInt(asBig(v)), nil
	case Float:
		if math.IsNaN(float64(v)) {
			return nil, nil
		}
		if err := notFinite(float64(v)); err != nil {
			return nil, err
		}
		return floatToInt(math.Trunc(float64(v))), nil
	case Str:
		text, ok := digits(plainDigits(strings.TrimSpace(string(v))))
		if !ok || len(strings.TrimLeft(text, "+-")) > maxDigits {
			return nil, nil
		}
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return nil, nil
		}
		return NewInt(n), nil
	}
	return nil, nil
}

// plainDigits replaces the decimal digits of other scripts as Python reads them.
func plainDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.Is(unicode.Nd, r) {
			return r
		}
		zero := r // the zero of its script: ten digits in a row, after something else than a digit or after ten more
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

func castFloat(v Value) (Value, error) {
	switch v := v.(type) {
	case Float:
		return v, nil
	case Int, Bool, BigInt:
		f, err := asFloat(v)
		if err != nil {
			return nil, PythonError{"OverflowError", err.Error()}
		}
		return Float(f), nil
	case Str:
		text, ok := digits(plainDigits(strings.TrimSpace(string(v))))
		if !ok || strings.ContainsAny(text, "xXpP") {
			return nil, nil
		}
		if (text[0] == '+' || text[0] == '-') && strings.EqualFold(text[1:], "nan") {
			text = text[1:] // Python does not show the sign of a nan
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(f, 0) {
			return nil, nil
		}
		return result(f), nil
	}
	return nil, nil
}
