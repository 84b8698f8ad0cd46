package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// blameBinary sets the place of an error, or turns it into the error that the
// reference raises for lack of a place.
func blameBinary(n *program.Binary, err *Error) *Error {
	if err == nil || !n.Placeless || err.Builtin || err.Stmt != "" {
		return err.In(n)
	}
	err.Kind, err.Hint, err.Message, err.Builtin = "AssertionError", err.Message, "", true
	return err.In(n)
}

func (r *run) needBinary(n *program.Binary, s *scope, f frame) *Error {
	if err := r.need(n.Left, s, f); err != nil {
		return blameBinary(n, err)
	}
	return blameBinary(n, r.need(n.Right, s, f))
}

func (r *run) evalBinary(n *program.Binary, s *scope, f frame) (types.Value, *Error) {
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
		if isUnknown(b) && !isUnknown(a) { // the reference does not get as far as its own message
			e := &Error{Kind: "AssertionError", Hint: "not in: the second operand is unknown", Builtin: true}
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

func compare(n *program.Binary, a, b types.Value) (types.Value, *Error) {
	if _, ok := text(a); ok && n.Op == "+" {
		return nil, program.TypingError("Can only concatenate str (not '%s' (%s)) to str", types.PythonName(b),
			types.Repr(b)).Coded(diag.WrongOperand).In(n)
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

// operators has the names of the operators in the errors of the reference.
var operators = map[syntax.Op]string{
	"+": "plus", "-": "minus", "*": "multiplication", "/": "division", "%": "modulo", "**": "exponentiation",
}

func text(v types.Value) (string, bool) {
	s, is := types.Plain(v).(types.Str)
	return string(s), is
}

func arithmetic(n *program.Binary, a, b types.Value) (types.Value, *Error) {
	if n.Op == "+" {
		if x, ok := text(a); ok {
			if y, ok := text(b); ok {
				return types.Str(x + y), nil
			}
			return nil, program.TypingError("Can only concatenate str (not '%s' (%s)) to str", types.PythonName(b),
				types.Repr(b)).Coded(diag.WrongOperand).In(n)
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
		e := &Error{Kind: kind, Message: err.Error(), Builtin: true}
		return nil, e.In(n)
	}
	return v, nil
}

// contains is `a in b`. The result may be unknown when something in b is.
func (r *run) contains(n *program.Binary, a, b types.Value) (types.Value, *Error) {
	if isUnknown(a) {
		return r.unknown(), nil
	}
	switch b := b.(type) {
	case *types.List:
		open := false
		object, _ := a.(*types.Object) // an object is in a list that has it, even if it is not equal to itself
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
				message := fmt.Sprintf("unhashable type: '%s'", types.PythonName(a))
				e := &Error{Kind: "TypeError", Message: message, Builtin: true}
				return nil, e.In(n)
			case *types.Object:
				if python, is := a.Hash().(types.PythonError); is {
					e := &Error{Kind: python.Class, Message: python.Text, Builtin: true}
					return nil, e.In(n)
				}
			}
			return types.Bool(false), nil
		}
		_, have := b.Values[k]
		return types.Bool(have), nil
	}
	e := program.TypingError("Operand two of 'in' can only be a list or dict (%s)", types.Text(b))
	return nil, blameBinary(n, e.Coded(diag.WrongOperand))
}

func (r *run) evalMatching(n *program.Matching, s *scope, f frame) (types.Value, *Error) {
	v, err := r.eval(n.Text, s, f)
	if err != nil || isUnknown(v) {
		return v, err
	}
	text, ok := v.(types.Str)
	if !ok {
		return nil, program.NewError("TypingException", "Regex can only be match with strings. %s is of type %s",
			types.Text(v), pythonClass(v)).In(n)
	}
	yes, long := n.Pattern.Match(string(text))
	if long != nil {
		e := program.RuntimeError("the regular expression /%s/ takes too long: %s", n.Source, long)
		return nil, e.In(n).Hinted(program.SlowRegex)
	}
	return types.Bool(yes), nil
}
