package eval

import "ordain.dev/ordain/compiler/types"

// variableOf finds the variable that a name stands for.
func (r *run) variableOf(n *ref, s *scope) (*variable, *Error) {
	switch n.kind {
	case refLocal, refSelf, refMember:
		for range n.depth {
			s = s.up
		}
	}
	switch n.kind {
	case refLocal:
		return &s.vars[n.index], nil
	case refSelf:
		return &s.self.self, nil
	case refMember:
		if v := s.self.variable(n.name); v != nil {
			return v, nil
		}
	}
	if n.absent != nil {
		e := *n.absent
		return nil, &e
	}
	return &r.scopeOf(n.ns).vars[n.index], nil
}

func (r *run) needRef(n *ref, s *scope, f frame) *Error {
	v, err := r.variableOf(n, s)
	if err != nil {
		return err
	}
	f[n.slot] = v
	return nil
}

func (r *run) needGradualRef(n *ref, s *scope, f frame, c collector) (bool, *Error) {
	if err := r.need(n, s, f); err != nil {
		return false, err
	}
	v := f[n.slot]
	if err := v.listen(r, c, &n.span); err != nil {
		return false, err
	}
	return !v.passesOn(), nil
}

func (r *run) needAttrRef(n *attrRef, s *scope, f frame, c collector) *Error {
	if of, is := n.x.expr.(*ref); is && of.kind == refSelf && c == nil {
		if r.ofSelf[n] == nil {
			r.ofSelf[n] = &variable{kind: ofSelf, pending: &pending{attribute: n}}
		}
		f[n.slot] = r.ofSelf[n]
		return nil
	}
	u := &attrHook{unit: unit{scope: s}, n: n, c: c, target: variable{kind: proxy}}
	f[n.slot] = &u.target
	frame, err := r.prepare(n.x, s)
	if err != nil {
		return err
	}
	r.start(u, frame)
	return nil
}

// late tells that only when it is evaluated it is known whether an expression
// has told its collector: `x.a` does, where a is a relation to many.
func late(x expr) bool {
	_, is := x.(*attrRef)
	return is
}

// told tells whether it has; if not, who evaluates the expression is to tell.
func told(x expr, f frame) bool {
	n, is := x.(*attrRef)
	return is && f[n.slot].passesOn()
}

// unheard tells whether a collector has yet to receive the value of an
// expression, now that it is known.
func unheard(x expr, f frame, report bool) bool { return report || late(x) && !told(x, f) }

// attrHook waits for the instance of `x.a` and then connects its slot.
type attrHook struct {
	unit
	n      *attrRef
	target variable // a proxy
	c      collector
}

func (u *attrHook) node() node { return u.n }

func (u *attrHook) blame(err *Error) *Error { return err.drawn(u.n) }

func (u *attrHook) run(r *run) *Error {
	v, err := r.slotOfRef(u.n, u.scope, u.frame)
	if err != nil && u.n.unset && err.Kind == "OptionalValueException" && len(u.frame) == 1 {
		u.target.connect(r, u.frame[0].target())
		return nil
	}
	if err != nil {
		return err
	}
	if u.c != nil {
		if err := v.listen(r, u.c, &u.n.span); err != nil {
			return err
		}
	}
	u.target.connect(r, v)
	return nil
}

// slotOfRef finds the slot of `x.a`. As in the reference, what is unknown has no
// attributes.
func (r *run) slotOfRef(n *attrRef, s *scope, f frame) (*variable, *Error) {
	of, err := r.eval(n.x.expr, s, f)
	if err != nil {
		return nil, err
	}
	return slotOf(of, n.x.expr, n.attr, n)
}

func slotOf(of types.Value, x expr, attr string, n node) (*variable, *Error) {
	switch of := of.(type) {
	case *Instance:
		if v := of.variable(attr); v != nil {
			return v, nil
		}
		e := notFound("could not find attribute with name: %s in type %s", attr, of.entity.Name)
		e.Hint = suggest("attribute", attr, attributeNames(of.entity))
		return nil, e.in(n)
	case *types.List:
		return nil, runtimeError("can not get attribute %s, %s is not an entity but a list", attr, types.Text(of)).in(n)
	default:
		return nil, runtimeError("can not get attribute %s, %s is not an entity but a %s with value '%s'", attr, x.String(), types.PythonName(of), types.Text(of)).in(n)
	}
}
