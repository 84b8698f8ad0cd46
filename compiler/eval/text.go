package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/pytext"
)

// fillFields replaces the fields by their values, one after the other in the whole
// text. As in the reference, a value may bring along a field that is replaced later.
func fillFields(n *program.Format, values []string) string {
	text := n.Text
	for k, p := range n.Parts {
		text = strings.ReplaceAll(text, p.Match, values[k])
	}
	return text
}

func (r *run) needFormat(n *program.Format, s *scope, f frame) *Error {
	for _, p := range n.Parts {
		if err := r.need(p.X, s, f); err != nil {
			return err.In(n)
		}
	}
	return nil
}

func (r *run) evalFormat(n *program.Format, s *scope, f frame) (types.Value, *Error) {
	values := make([]string, 0, len(n.Parts))
	for _, p := range n.Parts {
		v, err := r.eval(p.X, s, f)
		if err != nil {
			return nil, err
		}
		if isUnknown(v) {
			return r.unknown(), nil
		}
		if err := noReference(v, p.Match, n); err != nil {
			return nil, err
		}
		text, python := types.Interpolated(v)
		if python != nil {
			return nil, pythonError(python).In(n)
		}
		values = append(values, text)
	}
	text := fillFields(n, values)
	if err := r.overgrown(len(text)); err != nil {
		return nil, err
	}
	return types.Str(text), nil
}

// pythonError is the error for an exception that Python would raise, as package
// types reports it.
func pythonError(err error) *Error {
	e := &Error{Kind: "ValueError", Message: err.Error(), Builtin: true}
	if python, is := err.(types.PythonError); is {
		e.Kind = python.Class
	}
	return e
}

func noReference(v types.Value, field string, n program.Node) *Error {
	if _, is := v.(*types.Reference); !is {
		return nil
	}
	e := program.NewError("UnexpectedReference",
		"Encountered reference in string format for variable `%s`. This is not supported.", field)
	e.Hint = "the value is known only when it is deployed; pass the reference itself to the attribute"
	return e.In(n)
}

func (r *run) needFString(n *program.FString, s *scope, f frame) *Error {
	return program.EachField(n.Pieces, func(x program.Expr) *Error { return r.need(x, s, f) }).In(n)
}

func (r *run) evalFString(n *program.FString, s *scope, f frame) (types.Value, *Error) {
	open := false
	err := program.EachField(n.Pieces, func(x program.Expr) *Error {
		if open { // the reference stops here
			return nil
		}
		v, err := r.eval(x, s, f)
		if err != nil {
			return err
		}
		open = isUnknown(v)
		if _, python := types.Whole(v); python != nil {
			return pythonError(python).In(n)
		}
		return noReference(v, x.String(), n)
	})
	if err != nil {
		return nil, err
	}
	if open {
		return r.unknown(), nil
	}
	b, err := r.renderFString(n, nil, s, f, n.Pieces)
	if err != nil {
		return nil, err
	}
	if err := r.overgrown(len(b)); err != nil {
		return nil, err
	}
	return types.Str(b), nil
}

// renderFString appends the text of pieces.
func (r *run) renderFString(n *program.FString, b []byte, s *scope, f frame, pieces []program.FPiece) ([]byte, *Error) {
	for i := range pieces {
		p := &pieces[i]
		if !p.IsField {
			b = append(b, p.Text...)
			continue
		}
		if p.X == nil && (p.Field == "" || p.Field == "0") {
			return nil, program.RuntimeError(
				"f-strings do not support positional substitutions via '{}', use variable or attribute keys instead",
			).In(n)
		}
		if p.X == nil {
			return nil, program.RuntimeError("Invalid key in f-string: '%s'", pytext.Quote(p.Field)).In(n)
		}
		v, err := r.eval(p.X, s, f)
		if err != nil {
			return nil, err
		}
		spec := ""
		if p.Spec != nil {
			own, err := r.renderFString(n, nil, s, f, p.Spec)
			if err != nil {
				return nil, err
			}
			spec = string(own)
		}
		text, err := formatField(n, v, p.Conversion, spec)
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	return b, nil
}

// formatField returns the text of a field of an f-string.
func formatField(n *program.FString, v types.Value, conversion rune, spec string) (string, *Error) {
	v, _ = types.Whole(v) // evalFString has reported the error
	switch conversion {
	case 0:
	case 'r', 'a', 's':
		text, err := types.Printed(v, conversion != 's')
		if err != nil {
			return "", program.RuntimeError("Invalid f-string: %s", err).In(n)
		}
		if conversion == 'a' {
			text = pytext.ASCII(text)
		}
		v = types.Str(text)
	default:
		return "", program.RuntimeError("Invalid f-string: Unknown conversion specifier %c", conversion).In(n)
	}
	text, err := types.Format(v, spec)
	python, foreign := err.(types.PythonError)
	switch {
	case foreign && python.Class == "KeyError":
		return "", program.RuntimeError("Invalid key in f-string: '%s'", python.Text).In(n)
	case foreign && python.Class != "ValueError":
		e := &Error{Kind: python.Class, Message: python.Text, Builtin: true}
		return "", e.In(n)
	case err != nil:
		return "", program.RuntimeError("Invalid f-string: %s", err).In(n)
	}
	return text, nil
}
