package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// variableOf finds the variable that a name stands for.
func (r *run) variableOf(n *program.Ref, s *scope) (*variable, *Error) {
	switch n.Kind {
	case program.RefLocal, program.RefSelf, program.RefMember:
		for range n.Depth {
			s = s.up
		}
	}
	switch n.Kind {
	case program.RefLocal:
		return &s.vars[n.Index], nil
	case program.RefSelf:
		return &s.self.self, nil
	case program.RefMember:
		if v := s.self.variable(n.Name); v != nil {
			return v, nil
		}
	}
	if n.Absent != nil {
		e := *n.Absent
		return nil, &e
	}
	return &r.scopeOf(n.Namespace).vars[n.Index], nil
}

func (r *run) needRef(n *program.Ref, s *scope, f frame) *Error {
	v, err := r.variableOf(n, s)
	if err != nil {
		return err
	}
	f[n.Slot] = v
	return nil
}

func (r *run) needGradualRef(n *program.Ref, s *scope, f frame, c collector) (bool, *Error) {
	if err := r.need(n, s, f); err != nil {
		return false, err
	}
	v := f[n.Slot]
	if err := v.listen(r, c, &n.Span); err != nil {
		return false, err
	}
	return !v.passesOn(), nil
}

func (r *run) needAttrRef(n *program.AttrRef, s *scope, f frame, c collector) *Error {
	if of, is := n.X.Expr.(*program.Ref); is && of.Kind == program.RefSelf && c == nil {
		if r.ofSelf[n] == nil {
			r.ofSelf[n] = &variable{kind: ofSelf, pending: &pending{attribute: n}}
		}
		f[n.Slot] = r.ofSelf[n]
		return nil
	}
	u := &attrHook{unit: unit{scope: s}, n: n, c: c, target: variable{kind: proxy}}
	f[n.Slot] = &u.target
	frame, err := r.prepare(n.X, s)
	if err != nil {
		return err
	}
	r.start(u, frame)
	return nil
}

// mayPassOn reports whether only the evaluation of an expression shows if it passed
// its elements on to a collector. `x.a` did when a is a relation with several
// elements.
func mayPassOn(x program.Expr) bool {
	_, is := x.(*program.AttrRef)
	return is
}

// passedOn reports whether `x.a` did that. If it did not, the unit that evaluates
// the expression has to.
func passedOn(x program.Expr, f frame) bool {
	n, is := x.(*program.AttrRef)
	return is && f[n.Slot].passesOn()
}

// notPassedOn reports whether a collector has yet to receive the value of an
// expression that is known now.
func notPassedOn(x program.Expr, f frame, report bool) bool {
	return report || mayPassOn(x) && !passedOn(x, f)
}

// attrHook waits for the instance of `x.a` and then connects its slot.
type attrHook struct {
	unit
	n      *program.AttrRef
	target variable // a proxy
	c      collector
}

func (u *attrHook) node() program.Node { return u.n }

func (u *attrHook) blame(err *Error) *Error { return err.Drawn(u.n) }

func (u *attrHook) run(r *run) *Error {
	v, err := r.slotOfRef(u.n, u.scope, u.frame)
	if err != nil && u.n.Unset && err.Kind == "OptionalValueException" && len(u.frame) == 1 {
		u.target.connect(r, u.frame[0].target())
		return nil
	}
	if err != nil {
		return err
	}
	if u.c != nil {
		if err := v.listen(r, u.c, &u.n.Span); err != nil {
			return err
		}
	}
	u.target.connect(r, v)
	return nil
}

// slotOfRef finds the slot of `x.a`. As in the reference, what is unknown has no
// attributes.
func (r *run) slotOfRef(n *program.AttrRef, s *scope, f frame) (*variable, *Error) {
	of, err := r.eval(n.X.Expr, s, f)
	if err != nil {
		return nil, err
	}
	return slotOf(of, n.X.Expr, n.Attr, n)
}

func slotOf(of types.Value, x program.Expr, attr string, n program.Node) (*variable, *Error) {
	switch of := of.(type) {
	case *Instance:
		if v := of.variable(attr); v != nil {
			return v, nil
		}
		e := program.NotFound("could not find attribute with name: %s in type %s", attr, of.entity.Name)
		e.Hint = program.Suggest("attribute", attr, program.AttributeNames(of.entity))
		return nil, e.In(n)
	case *types.List:
		return nil, program.RuntimeError(
			"can not get attribute %s, %s is not an entity but a list",
			attr, types.Text(of),
		).In(n)
	default:
		return nil, program.RuntimeError(
			"can not get attribute %s, %s is not an entity but a %s with value '%s'",
			attr, x.String(), types.PythonName(of), types.Text(of),
		).In(n)
	}
}
