package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// blame is in, or what becomes of an error without a place.
func blameBinary(n *binary, err *Error) *Error {
	if err == nil || !n.placeless || err.foreign || err.Stmt != "" {
		return err.in(n)
	}
	err.Kind, err.Hint, err.Message, err.foreign = "AssertionError", err.Message, "", true
	return err.in(n)
}

func (r *run) needBinary(n *binary, s *scope, f frame) *Error {
	if err := r.need(n.l, s, f); err != nil {
		return blameBinary(n, err)
	}
	return blameBinary(n, r.need(n.r, s, f))
}

func (r *run) evalBinary(n *binary, s *scope, f frame) (types.Value, *Error) {
	a, err := r.eval(n.l, s, f)
	if err != nil {
		return nil, err
	}
	b, err := r.eval(n.r, s, f)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "in":
		return r.contains(n, a, b)
	case "not in":
		if isUnknown(b) && !isUnknown(a) { // upstream does not get as far as its own message
			e := &Error{Kind: "AssertionError", Hint: "not in: the second operand is unknown", foreign: true}
			return nil, e.in(n)
		}
		v, err := r.contains(n, a, b)
		if in, ok := v.(types.Bool); ok {
			return !in, err
		}
		return v, err
	}
	if isUnknown(a) || isUnknown(b) {
		return r.unknown(), nil
	}
	switch n.op {
	case "==":
		return types.Bool(types.Equal(a, b)), nil
	case "!=":
		return types.Bool(!types.Equal(a, b)), nil
	case "<", ">", "<=", ">=":
		return compare(n, a, b)
	}
	v, err := arithmetic(n, a, b)
	switch result := v.(type) {
	case types.Str:
		err = r.overgrown(len(result))
	case types.BigInt:
		err = r.overgrown(result.BitLen())
	}
	return v, err
}

func compare(n *binary, a, b types.Value) (types.Value, *Error) {
	if _, ok := text(a); ok && n.op == "+" {
		return nil, typingError(
			"Can only concatenate str (not '%s' (%s)) to str",
			types.PythonName(b),
			types.Repr(b),
		).coded(diag.WrongOperand).
			in(n)
	}
	if !types.IsNumber(a) || !types.IsNumber(b) {
		return nil, typingError("Can only compare numbers.").coded(diag.WrongOperand).in(n)
	}
	order, ok := types.Compare(a, b)
	if !ok {
		return types.Bool(false), nil
	}
	switch n.op {
	case "<":
		return types.Bool(order < 0), nil
	case ">":
		return types.Bool(order > 0), nil
	case "<=":
		return types.Bool(order <= 0), nil
	}
	return types.Bool(order >= 0), nil
}

// operators names the operators as the reference does in its errors.
var operators = map[syntax.Op]string{
	"+": "plus", "-": "minus", "*": "multiplication", "/": "division", "%": "modulo", "**": "exponentiation",
}

func text(v types.Value) (string, bool) {
	s, is := types.Plain(v).(types.Str)
	return string(s), is
}

func arithmetic(n *binary, a, b types.Value) (types.Value, *Error) {
	if n.op == "+" {
		if x, ok := text(a); ok {
			if y, ok := text(b); ok {
				return types.Str(x + y), nil
			}
			return nil, typingError(
				"Can only concatenate str (not '%s' (%s)) to str",
				types.PythonName(b),
				types.Repr(b),
			).coded(diag.WrongOperand).
				in(n)
		}
	}
	if !types.IsNumber(a) || !types.IsNumber(b) {
		return nil, typingError("Unsupported operand type(s) for %s: '%s' (%s) and '%s' (%s)", operators[n.op],
			types.PythonName(a), types.Repr(a), types.PythonName(b), types.Repr(b)).coded(diag.WrongOperand).in(n)
	}
	v, err := types.Arithmetic(string(n.op), a, b)
	if err != nil {
		kind := "OverflowError"
		if _, zero := err.(types.ZeroDivision); zero {
			kind = "ZeroDivisionError"
		}
		e := &Error{Kind: kind, Message: err.Error(), foreign: true}
		return nil, e.in(n)
	}
	return v, nil
}

// contains is `a in b`. With something unknown in b the answer may be unknown.
func (r *run) contains(n *binary, a, b types.Value) (types.Value, *Error) {
	if isUnknown(a) {
		return r.unknown(), nil
	}
	switch b := b.(type) {
	case *types.List:
		open := false
		object, _ := a.(*types.Object) // which is in a list that holds it, equal to itself or not
		for _, item := range b.Items {
			if isUnknown(item) {
				open = true
			} else if object != nil && a == item || types.Equal(a, item) {
				return types.Bool(true), nil
			}
		}
		if open {
			return r.unknown(), nil
		}
		return types.Bool(false), nil
	case *types.Dict:
		k, ok := text(a)
		if !ok {
			switch a := a.(type) {
			case *types.List, *types.Dict:
				e := &Error{Kind: "TypeError", Message: fmt.Sprintf("unhashable type: '%s'", types.PythonName(a)), foreign: true}
				return nil, e.in(n)
			case *types.Object:
				if python, is := a.Hash().(types.PythonError); is {
					e := &Error{Kind: python.Class, Message: python.Text, foreign: true}
					return nil, e.in(n)
				}
			}
			return types.Bool(false), nil
		}
		_, have := b.Values[k]
		return types.Bool(have), nil
	}
	return nil, blameBinary(n,
		typingError("Operand two of 'in' can only be a list or dict (%s)", types.Text(b)).coded(diag.WrongOperand),
	)
}

func (r *run) evalMatching(n *matching, s *scope, f frame) (types.Value, *Error) {
	v, err := r.eval(n.text, s, f)
	if err != nil || isUnknown(v) {
		return v, err
	}
	text, ok := v.(types.Str)
	if !ok {
		return nil, fail(
			"TypingException",
			"Regex can only be match with strings. %s is of type %s",
			types.Text(v),
			pythonClass(v),
		).in(n)
	}
	yes, long := n.pattern.Match(string(text))
	if long != nil {
		e := runtimeError("the regular expression /%s/ takes too long: %s", n.source, long)
		return nil, e.in(n).hinted(slowRegex)
	}
	return types.Bool(yes), nil
}
