package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/types"
)

// format is a string with {{ a.b }} in it.
type format struct {
	at
	text  string
	parts []formatPart
}

type formatPart struct {
	match string
	x     expr
}

func (n *format) layout(l *layouter) {
	for _, p := range n.parts {
		p.x.layout(l)
	}
}

func (n *format) need(r *run, s *scope, f frame) *Error {
	for _, p := range n.parts {
		if err := p.x.need(r, s, f); err != nil {
			return err.in(n)
		}
	}
	return nil
}

func (n *format) needGradual(r *run, s *scope, f frame, _ collector) (bool, *Error) {
	return true, n.need(r, s, f)
}

// eval replaces one field after the other in the whole text, so that a value
// may bring along a field that comes later: as the reference does.
func (n *format) eval(r *run, s *scope, f frame) (types.Value, *Error) {
	text := n.text
	for _, p := range n.parts {
		v, err := p.x.eval(r, s, f)
		if err != nil {
			return nil, err
		}
		if isUnknown(v) {
			return unknown, nil
		}
		if err := noReference(v, p.match, n); err != nil {
			return nil, err
		}
		text = strings.ReplaceAll(text, p.match, types.Interpolated(v))
	}
	return types.Str(text), nil
}

func noReference(v types.Value, field string, n node) *Error {
	if _, is := v.(*types.Reference); !is {
		return nil
	}
	e := fail("UnexpectedReference", "Encountered reference in string format for variable `%s`. This is not supported.", field)
	e.Hint = "the value is known only when it is deployed; pass the reference itself to the attribute"
	return e.in(n)
}

// fstring is f"…".
type fstring struct {
	at
	pieces []fpiece
}

// fpiece is literal text, or a field when x is set.
type fpiece struct {
	text       string
	field      string // as written
	isField    bool
	x          expr // nil for a field that the reference forgets
	conversion rune
	spec       []fpiece
}

func eachField(pieces []fpiece, do func(x expr) *Error) *Error {
	for _, p := range pieces {
		if p.x == nil {
			continue
		}
		if err := do(p.x); err != nil {
			return err
		}
		if err := eachField(p.spec, do); err != nil {
			return err
		}
	}
	return nil
}

func (n *fstring) layout(l *layouter) {
	_ = eachField(n.pieces, func(x expr) *Error {
		x.layout(l)
		return nil
	})
}

func (n *fstring) need(r *run, s *scope, f frame) *Error {
	return eachField(n.pieces, func(x expr) *Error { return x.need(r, s, f) }).in(n)
}

func (n *fstring) needGradual(r *run, s *scope, f frame, _ collector) (bool, *Error) {
	return true, n.need(r, s, f)
}

func (n *fstring) eval(r *run, s *scope, f frame) (types.Value, *Error) {
	open := false
	err := eachField(n.pieces, func(x expr) *Error {
		v, err := x.eval(r, s, f)
		if err == nil && isUnknown(v) {
			open = true
		}
		if err != nil {
			return err
		}
		return noReference(v, x.String(), n)
	})
	if err != nil {
		return nil, err
	}
	if open {
		return unknown, nil
	}
	text, err := n.render(r, s, f, n.pieces)
	if err != nil {
		return nil, err
	}
	return types.Str(text), nil
}

func (n *fstring) render(r *run, s *scope, f frame, pieces []fpiece) (string, *Error) {
	var b strings.Builder
	for _, p := range pieces {
		if !p.isField {
			b.WriteString(p.text)
			continue
		}
		if p.x == nil {
			return "", runtimeError("Invalid key in f-string: '%s'", types.Quote(p.field)).in(n)
		}
		v, err := p.x.eval(r, s, f)
		if err != nil {
			return "", err
		}
		spec, err := n.render(r, s, f, p.spec)
		if err != nil {
			return "", err
		}
		v = types.Whole(v)
		switch p.conversion {
		case 0:
		case 'r':
			v = types.Str(types.Repr(v))
		case 'a':
			v = types.Str(types.ASCII(types.Repr(v)))
		case 's':
			v = types.Str(types.Text(v))
		default:
			return "", runtimeError("Invalid f-string: Unknown conversion specifier %c", p.conversion).in(n)
		}
		text, bad := types.Format(v, spec)
		if python, is := bad.(types.PythonError); is {
			e := &Error{Kind: python.Class, Message: python.Text, foreign: true}
			return "", e.in(n)
		}
		if bad != nil {
			return "", runtimeError("Invalid f-string: %s", bad).in(n)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
