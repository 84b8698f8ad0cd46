package eval

import (
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) needConditional(n *conditional, s *scope, f frame, c collector) *Error {
	target := &variable{}
	f[n.slot] = target
	frame, err := r.prepare(n.cond, s)
	if err != nil {
		return err
	}
	u := &conditionUnit{unit: unit{scope: s}, n: n, target: target, c: c}
	r.start(u, frame)
	return nil
}

// conditionUnit waits for the condition and then for the branch taken.
type conditionUnit struct {
	unit
	n      *conditional
	target *variable
	c      collector
}

func (u *conditionUnit) node() node { return u.n }

func (u *conditionUnit) blame(err *Error) *Error { return err.near(u.n) }

func (u *conditionUnit) run(r *run) *Error {
	cond, err := r.eval(u.n.cond.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(cond) && !(u.n.guarded && r.direct) {
		u.target.put(r, r.unknown(), &u.n.span)
		return nil
	}
	truth, ok := cond.(types.Bool)
	if !ok && u.n.guarded && r.direct {
		return typingError(
			"Invalid value `%s`: the guard condition for a list comprehension must be a boolean expression",
			types.Text(cond),
		).in(u.n).
			coded(diag.NoBoolean)
	}
	if !ok {
		return runtimeError(
			"Invalid value `%s`: the condition for a conditional expression must be a boolean expression",
			types.Text(cond),
		).in(u.n).
			coded(diag.NoBoolean)
	}
	branch := u.n.then
	if !truth {
		branch = u.n.els
	}
	f := newFrame(branch)
	report := false
	if u.c == nil {
		err = r.need(branch.expr, u.scope, f)
	} else {
		report, err = r.needGradual(branch.expr, u.scope, f, u.c)
	}
	if err != nil {
		return err
	}
	b := &branchUnit{unit: unit{scope: u.scope}, n: u.n, x: branch.expr, target: u.target}
	if report || u.c != nil && late(branch.expr) {
		b.c = u.c
	}
	r.start(b, f)
	return nil
}

// branchUnit evaluates the branch taken.
type branchUnit struct {
	unit
	n      *conditional
	x      expr
	target *variable
	c      collector
}

func (u *branchUnit) node() node { return u.n }

func (u *branchUnit) blame(err *Error) *Error { return err.drawn(u.n) }

func (u *branchUnit) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		return err
	}
	if u.c != nil && !told(u.x, u.frame) {
		if err := inOrder(r, v, u.x.where(), u.c); err != nil {
			return err
		}
	}
	u.target.put(r, v, &u.n.span)
	return nil
}

func (r *run) needLazy(n *lazy, s *scope, f frame) *Error {
	target := &variable{}
	f[n.slot] = target
	frame, err := r.prepare(n.left, s)
	if err != nil {
		return err
	}
	u := &lazyUnit{unit: unit{scope: s}, n: n, target: target}
	r.start(u, frame)
	return nil
}

// lazyUnit waits for the left side.
type lazyUnit struct {
	unit
	n      *lazy
	target *variable
}

func (u *lazyUnit) node() node { return u.n }

func (u *lazyUnit) blame(err *Error) *Error { return err.claimed(u.n, u.n.where()) }

func (u *lazyUnit) run(r *run) *Error {
	left, err := r.eval(u.n.left.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(left) && r.direct { // upstream it passes for a bool first
		e := &Error{
			Kind:    "AssertionError",
			foreign: true,
			Hint:    "an unknown value decides nothing in the condition of a typedef",
		}
		return e.in(u.n)
	}
	if isUnknown(left) { // the very same one
		u.target.put(r, left, &u.n.span)
		return nil
	}
	truth, ok := left.(types.Bool)
	if !ok {
		return noBool(left, "Invalid left hand value `%s`: `%s` expects a boolean", types.Text(left), u.n.op).in(u.n)
	}
	if u.n.decides(truth) {
		u.target.put(r, truth, &u.n.span)
		return nil
	}
	f, err := r.prepare(u.n.right, u.scope)
	if err != nil {
		return err
	}
	r.start(&lazyRight{evalUnit{unit: unit{scope: u.scope}, x: u.n.right.expr, target: u.target, stmt: u.n}, u.n.op}, f)
	return nil
}

// lazyRight takes what the right side gives, which has to be a bool too.
type lazyRight struct {
	evalUnit
	op string
}

func (u *lazyRight) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		return err
	}
	if _, ok := v.(types.Bool); !ok && !isUnknown(v) && r.direct {
		return noBool(v, "Invalid right hand value `%s`: `%s` expects a boolean", types.Text(v), u.op).in(u.stmt)
	} else if !ok && !isUnknown(v) {
		return noBool(v, "Invalid value '%s', expected bool", types.Text(v)).in(u.stmt)
	}
	return u.target.set(r, v, source{at: u.x.where(), by: u.scope.by})
}

// noBool refuses a value where a bool is needed: a reference, too, which has a
// value only when it is deployed.
func noBool(v types.Value, format string, args ...any) *Error {
	e := runtimeError(format, args...)
	if _, is := v.(*types.Reference); is {
		e.Kind = "UnexpectedReference"
	}
	return e.coded(diag.NoBoolean)
}

func (r *run) evalNot(n *not, s *scope, f frame) (types.Value, *Error) {
	v, err := r.eval(n.x, s, f)
	if err != nil {
		return nil, err
	}
	if isUnknown(v) { // another one
		return r.unknown(), nil
	}
	b, ok := v.(types.Bool)
	if !ok {
		return nil, noBool(v, "Invalid value `%s`: `not` expects a boolean", types.Text(v)).in(n)
	}
	return !b, nil
}
