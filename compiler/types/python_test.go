package types

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// answer is a value as Python shows it: its class and its repr.
type answer struct{ T, V string }

func (a answer) value(t *testing.T) Value {
	switch a.T {
	case "bool":
		return Bool(a.V == "True")
	case "int":
		n, ok := new(big.Int).SetString(a.V, 10)
		if !ok {
			t.Fatalf("not an int: %s", a.V)
		}
		return NewInt(n)
	case "float":
		f, err := strconv.ParseFloat(a.V, 64)
		if err != nil && !math.IsInf(f, 0) {
			t.Fatal(err)
		}
		return Float(f)
	}
	s, err := unquote(a.V)
	if err != nil {
		t.Fatalf("not a string: %s", a.V)
	}
	return Str(s)
}

// unquote parses a Python string literal.
func unquote(s string) (string, error) {
	body := s[1 : len(s)-1]
	body = strings.ReplaceAll(strings.ReplaceAll(body, `\'`, `'`), `\x`, `\u00`)
	if s[0] == '\'' {
		body = strings.ReplaceAll(body, `"`, `\"`)
		body = strings.ReplaceAll(body, `\\"`, `\"`)
	}
	return strconv.Unquote(`"` + body + `"`)
}

// TestLikePython compares values with what Python 3 answered to the same questions;
// testdata/python.json has the questions and the answers.
func TestLikePython(t *testing.T) {
	data, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]json.RawMessage
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, row := range rows {
		var kind string
		read(t, row[0], &kind)
		seen[kind]++
		switch kind {
		case "op":
			var op string
			var a, b, want answer
			read(t, row[1], &op)
			read(t, row[2], &a)
			read(t, row[3], &b)
			read(t, row[4], &want)
			checkOperator(t, op, a, b, want)
		case "format":
			var spec string
			var v, want answer
			read(t, row[1], &spec)
			read(t, row[2], &v)
			read(t, row[3], &want)
			got, err := Format(v.value(t), spec)
			switch {
			case want.T == "error" && err == nil:
				t.Errorf("format(%s, %q) = %q, Python refuses: %s", v.V, spec, got, want.V)
			case want.T != "error" && err != nil:
				t.Errorf("format(%s, %q) fails: %v, Python gives %q", v.V, spec, err, want.V)
			case want.T != "error" && got != want.V:
				t.Errorf("format(%s, %q) = %q, Python gives %q", v.V, spec, got, want.V)
			}
		case "repr":
			var v answer
			var want string
			read(t, row[1], &v)
			read(t, row[2], &want)
			if got := Repr(v.value(t)); got != want {
				t.Errorf("repr = %s, Python gives %s", got, want)
			}
		case "regex":
			var pattern, text string
			var want bool
			read(t, row[1], &pattern)
			read(t, row[2], &text)
			read(t, row[3], &want)
			re, err := NewRegex(pattern)
			if err != nil {
				t.Errorf("%s: %v", pattern, err)
				continue
			}
			if got, err := re.Match(text); got != want || err != nil {
				t.Errorf("%s on %q: %v (%v), Python gives %v", pattern, text, got, err, want)
			}
		}
	}
	for _, kind := range []string{"op", "format", "repr", "regex"} {
		if seen[kind] < 20 {
			t.Errorf("only %d questions of kind %s", seen[kind], kind)
		}
	}
}

func read(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func checkOperator(t *testing.T, op string, a, b, want answer) {
	x, y := a.value(t), b.value(t)
	var got Value
	switch op {
	case "<", ">", "<=", ">=", "==":
		order, ok := Compare(x, y)
		truth := map[string]bool{
			"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0, "==": order == 0,
		}[op]
		got = Bool(ok && truth)
		if op == "==" && bool(got.(Bool)) != Equal(x, y) {
			t.Errorf("Compare and Equal differ on %s and %s", a.V, b.V)
		}
	default:
		var err error
		got, err = Arithmetic(op, x, y)
		if err != nil {
			var zero ZeroDivision
			kind := "OverflowError"
			if errors.As(err, &zero) {
				kind = "ZeroDivisionError"
			}
			if want.T != "error" || want.V != kind {
				t.Errorf("%s %s %s: %v, Python gives %s %s", a.V, op, b.V, err, want.T, want.V)
			}
			return
		}
	}
	if want.T == "error" {
		t.Errorf("%s %s %s = %s, Python raises %s", a.V, op, b.V, Repr(got), want.V)
		return
	}
	if op == "**" && want.T == "float" { // the last digit depends on the C library
		f, ok := got.(Float)
		w := float64(want.value(t).(Float))
		if !ok || math.Abs(float64(f)-w) > math.Abs(w)*1e-14 {
			t.Errorf("%s ** %s = %s, Python gives %s", a.V, b.V, Repr(got), want.V)
		}
		return
	}
	if PythonName(got) != want.T || Repr(got) != want.V {
		t.Errorf("%s %s %s = %s %s, Python gives %s %s", a.V, op, b.V, PythonName(got), Repr(got), want.T, want.V)
	}
}

func drawValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := 6
		if depth > 0 {
			kinds = 8
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return Null{}
		case 1:
			return Bool(rapid.Bool().Draw(t, "bool"))
		case 2:
			return Int(rapid.Int64().Draw(t, "int"))
		case 3:
			return NewInt(
				new(big.Int).Mul(big.NewInt(rapid.Int64().Draw(t, "a")), big.NewInt(rapid.Int64().Draw(t, "b"))),
			)
		case 4:
			return Float(rapid.Float64().Draw(t, "float"))
		case 6:
			return &List{Items: rapid.SliceOfN(drawValue(depth-1), 0, 3).Draw(t, "list")}
		case 7:
			d := &Dict{Values: map[string]Value{}}
			for _, k := range rapid.SliceOfNDistinct(rapid.StringN(0, 3, -1), 0, 3, rapid.ID[string]).Draw(t, "keys") {
				d.Keys = append(d.Keys, k)
				d.Values[k] = drawValue(depth-1).Draw(t, "value")
			}
			return d
		}
		return Str(rapid.String().Draw(t, "string"))
	})
}

// Equality is an equivalence, and a value without a mutable part equals itself.
func TestEqualIsAnEquivalence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawValue(2).Draw(t, "a"), drawValue(2).Draw(t, "b"), drawValue(2).Draw(t, "c")
		if !Equal(a, a) {
			t.Fatalf("%s does not equal itself", Repr(a))
		}
		if Equal(a, b) != Equal(b, a) {
			t.Fatalf("%s and %s: not symmetric", Repr(a), Repr(b))
		}
		if Equal(a, b) && Equal(b, c) && !Equal(a, c) {
			t.Fatalf("%s, %s, %s: not transitive", Repr(a), Repr(b), Repr(c))
		}
	})
}

// A number has one form, and its text reads back as the same number.
func TestNumbersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Float(rapid.Float64().Draw(t, "float"))
		if back, err := FloatT.Cast(Str(Text(f))); err != nil || !Equal(back, f) {
			t.Fatalf("%s reads back as %v, %v", Text(f), back, err)
		}
		n := NewInt(
			new(big.Int).Lsh(big.NewInt(rapid.Int64().Draw(t, "int")), uint(rapid.IntRange(0, 70).Draw(t, "shift"))),
		)
		back, err := IntType.Cast(Str(Text(n)))
		if err != nil || !Equal(back, n) || PythonName(back) != "int" {
			t.Fatalf("%s reads back as %v, %v", Text(n), back, err)
		}
		if _, big := back.(BigInt); big {
			if b := back.(BigInt); b.IsInt64() {
				t.Fatalf("%s has two forms", Text(n))
			}
		}
	})
}
