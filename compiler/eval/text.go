package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/pytext"
)

// fill replaces the fields by their values, one after the other in the whole
// text. As in the reference, a value may bring along a field that is replaced later.
func fillFields(n *format, values []string) string {
	text := n.text
	for k, p := range n.parts {
		text = strings.ReplaceAll(text, p.match, values[k])
	}
	return text
}

func (r *run) needFormat(n *format, s *scope, f frame) *Error {
	for _, p := range n.parts {
		if err := r.need(p.x, s, f); err != nil {
			return err.in(n)
		}
	}
	return nil
}

func (r *run) evalFormat(n *format, s *scope, f frame) (types.Value, *Error) {
	values := make([]string, 0, len(n.parts))
	for _, p := range n.parts {
		v, err := r.eval(p.x, s, f)
		if err != nil {
			return nil, err
		}
		if isUnknown(v) {
			return r.unknown(), nil
		}
		if err := noReference(v, p.match, n); err != nil {
			return nil, err
		}
		text, python := types.Interpolated(v)
		if python != nil {
			return nil, pythonError(python).in(n)
		}
		values = append(values, text)
	}
	text := fillFields(n, values)
	if err := r.overgrown(len(text)); err != nil {
		return nil, err
	}
	return types.Str(text), nil
}

// pythonError is what package types says Python would raise.
func pythonError(err error) *Error {
	e := &Error{Kind: "ValueError", Message: err.Error(), foreign: true}
	if python, is := err.(types.PythonError); is {
		e.Kind = python.Class
	}
	return e
}

func noReference(v types.Value, field string, n node) *Error {
	if _, is := v.(*types.Reference); !is {
		return nil
	}
	e := fail(
		"UnexpectedReference",
		"Encountered reference in string format for variable `%s`. This is not supported.",
		field,
	)
	e.Hint = "the value is known only when it is deployed; pass the reference itself to the attribute"
	return e.in(n)
}

func (r *run) needFString(n *fstring, s *scope, f frame) *Error {
	return eachField(n.pieces, func(x expr) *Error { return r.need(x, s, f) }).in(n)
}

func (r *run) evalFString(n *fstring, s *scope, f frame) (types.Value, *Error) {
	open := false
	err := eachField(n.pieces, func(x expr) *Error {
		if open { // the reference looks no further
			return nil
		}
		v, err := r.eval(x, s, f)
		if err != nil {
			return err
		}
		open = isUnknown(v)
		if _, python := types.Whole(v); python != nil {
			return pythonError(python).in(n)
		}
		return noReference(v, x.String(), n)
	})
	if err != nil {
		return nil, err
	}
	if open {
		return r.unknown(), nil
	}
	b, err := r.renderFString(n, nil, s, f, n.pieces)
	if err != nil {
		return nil, err
	}
	if err := r.overgrown(len(b)); err != nil {
		return nil, err
	}
	return types.Str(b), nil
}

// render appends what pieces give.
func (r *run) renderFString(n *fstring, b []byte, s *scope, f frame, pieces []fpiece) ([]byte, *Error) {
	for i := range pieces {
		p := &pieces[i]
		if !p.isField {
			b = append(b, p.text...)
			continue
		}
		if p.x == nil && (p.field == "" || p.field == "0") {
			return nil, runtimeError(
				"f-strings do not support positional substitutions via '{}', use variable or attribute keys instead",
			).in(n)
		}
		if p.x == nil {
			return nil, runtimeError("Invalid key in f-string: '%s'", pytext.Quote(p.field)).in(n)
		}
		v, err := r.eval(p.x, s, f)
		if err != nil {
			return nil, err
		}
		spec := ""
		if p.spec != nil {
			own, err := r.renderFString(n, nil, s, f, p.spec)
			if err != nil {
				return nil, err
			}
			spec = string(own)
		}
		text, err := formatField(n, v, p.conversion, spec)
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	return b, nil
}

// format is what a field of an f-string makes of its value.
func formatField(n *fstring, v types.Value, conversion rune, spec string) (string, *Error) {
	v, _ = types.Whole(v) // eval has looked at the error
	switch conversion {
	case 0:
	case 'r', 'a', 's':
		text, err := types.Printed(v, conversion != 's')
		if err != nil {
			return "", runtimeError("Invalid f-string: %s", err).in(n)
		}
		if conversion == 'a' {
			text = pytext.ASCII(text)
		}
		v = types.Str(text)
	default:
		return "", runtimeError("Invalid f-string: Unknown conversion specifier %c", conversion).in(n)
	}
	text, err := types.Format(v, spec)
	python, foreign := err.(types.PythonError)
	switch {
	case foreign && python.Class == "KeyError":
		return "", runtimeError("Invalid key in f-string: '%s'", python.Text).in(n)
	case foreign && python.Class != "ValueError":
		e := &Error{Kind: python.Class, Message: python.Text, foreign: true}
		return "", e.in(n)
	case err != nil:
		return "", runtimeError("Invalid f-string: %s", err).in(n)
	}
	return text, nil
}
