package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// blame is in, or what becomes of an error without a place.
func blameBinary(n *program.Binary, err *program.Error) *program.Error {
	if err == nil || !n.Placeless || err.Builtin || err.Stmt != "" {
		return err.In(n)
	}
	err.Kind, err.Hint, err.Message, err.Builtin = "AssertionError", err.Message, "", true
	return err.In(n)
}

func (r *run) needBinary(n *program.Binary, s *scope, f frame) *program.Error {
	if err := r.need(n.Left, s, f); err != nil {
		return blameBinary(n, err)
	}
	return blameBinary(n, r.need(n.Right, s, f))
}

func (r *run) evalBinary(n *program.Binary, s *scope, f frame) (types.Value, *program.Error) {
	a, err := r.eval(n.Left, s, f)
	if err != nil {
		return nil, err
	}
	b, err := r.eval(n.Right, s, f)
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case "in":
		return r.contains(n, a, b)
	case "not in":
		if isUnknown(b) && !isUnknown(a) { // in the reference does not get as far as its own message
			e := &program.Error{Kind: "AssertionError", Hint: "not in: the second operand is unknown", Builtin: true}
			return nil, e.In(n)
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
	switch n.Op {
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

func compare(n *program.Binary, a, b types.Value) (types.Value, *program.Error) {
	if _, ok := text(a); ok && n.Op == "+" {
		return nil, program.TypingError(
			"Can only concatenate str (not '%s' (%s)) to str",
			types.PythonName(b),
			types.Repr(b),
		).Coded(diag.WrongOperand).
			In(n)
	}
	if !types.IsNumber(a) || !types.IsNumber(b) {
		return nil, program.TypingError("Can only compare numbers.").Coded(diag.WrongOperand).In(n)
	}
	order, ok := types.Compare(a, b)
	if !ok {
		return types.Bool(false), nil
	}
	switch n.Op {
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

func arithmetic(n *program.Binary, a, b types.Value) (types.Value, *program.Error) {
	if n.Op == "+" {
		if x, ok := text(a); ok {
			if y, ok := text(b); ok {
				return types.Str(x + y), nil
			}
			return nil, program.TypingError(
				"Can only concatenate str (not '%s' (%s)) to str",
				types.PythonName(b),
				types.Repr(b),
			).Coded(diag.WrongOperand).
				In(n)
		}
	}
	if !types.IsNumber(a) || !types.IsNumber(b) {
		return nil, program.TypingError("Unsupported operand type(s) for %s: '%s' (%s) and '%s' (%s)", operators[n.Op],
			types.PythonName(a), types.Repr(a), types.PythonName(b), types.Repr(b)).Coded(diag.WrongOperand).In(n)
	}
	v, err := types.Arithmetic(string(n.Op), a, b)
	if err != nil {
		kind := "OverflowError"
		if _, zero := err.(types.ZeroDivision); zero {
			kind = "ZeroDivisionError"
		}
		e := &program.Error{Kind: kind, Message: err.Error(), Builtin: true}
		return nil, e.In(n)
	}
	return v, nil
}

// contains is `a in b`. With something unknown in b the answer may be unknown.
func (r *run) contains(n *program.Binary, a, b types.Value) (types.Value, *program.Error) {
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
				e := &program.Error{Kind: "TypeError", Message: fmt.Sprintf("unhashable type: '%s'", types.PythonName(a)), Builtin: true}
				return nil, e.In(n)
			case *types.Object:
				if python, is := a.Hash().(types.PythonError); is {
					e := &program.Error{Kind: python.Class, Message: python.Text, Builtin: true}
					return nil, e.In(n)
				}
			}
			return types.Bool(false), nil
		}
		_, have := b.Values[k]
		return types.Bool(have), nil
	}
	return nil, blameBinary(n,
		program.TypingError("Operand two of 'in' can only be a list or dict (%s)", types.Text(b)).Coded(diag.WrongOperand),
	)
}

func (r *run) evalMatching(n *program.Matching, s *scope, f frame) (types.Value, *program.Error) {
	v, err := r.eval(n.Text, s, f)
	if err != nil || isUnknown(v) {
		return v, err
	}
	text, ok := v.(types.Str)
	if !ok {
		return nil, program.NewError(
			"TypingException",
			"Regex can only be match with strings. %s is of type %s",
			types.Text(v),
			pythonClass(v),
		).In(n)
	}
	yes, long := n.Pattern.Match(string(text))
	if long != nil {
		e := program.RuntimeError("the regular expression /%s/ takes too long: %s", n.Source, long)
		return nil, e.In(n).Hinted(program.SlowRegex)
	}
	return types.Bool(yes), nil
}
