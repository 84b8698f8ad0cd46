package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) needConditional(n *program.Conditional, s *scope, f frame, c collector) *Error {
	target := &variable{}
	f[n.Slot] = target
	frame, err := r.prepare(n.Cond, s)
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
	n      *program.Conditional
	target *variable
	c      collector
}

func (u *conditionUnit) node() program.Node { return u.n }

func (u *conditionUnit) blame(err *Error) *Error { return err.Near(u.n) }

func (u *conditionUnit) run(r *run) *Error {
	cond, err := r.eval(u.n.Cond.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(cond) && !(u.n.Guarded && r.direct) {
		u.target.put(r, r.unknown(), &u.n.Span)
		return nil
	}
	truth, ok := cond.(types.Bool)
	if !ok && u.n.Guarded && r.direct {
		return program.TypingError(
			"Invalid value `%s`: the guard condition for a list comprehension must be a boolean expression",
			types.Text(cond),
		).In(u.n).Coded(diag.NoBoolean)
	}
	if !ok {
		return program.RuntimeError(
			"Invalid value `%s`: the condition for a conditional expression must be a boolean expression",
			types.Text(cond),
		).In(u.n).Coded(diag.NoBoolean)
	}
	branch := u.n.Then
	if !truth {
		branch = u.n.Else
	}
	f := newFrame(branch)
	report := false
	if u.c == nil {
		err = r.need(branch.Expr, u.scope, f)
	} else {
		report, err = r.needGradual(branch.Expr, u.scope, f, u.c)
	}
	if err != nil {
		return err
	}
	b := &branchUnit{unit: unit{scope: u.scope}, n: u.n, x: branch.Expr, target: u.target}
	if report || u.c != nil && mayPassOn(branch.Expr) {
		b.c = u.c
	}
	r.start(b, f)
	return nil
}

// branchUnit evaluates the branch taken.
type branchUnit struct {
	unit
	n      *program.Conditional
	x      program.Expr
	target *variable
	c      collector
}

func (u *branchUnit) node() program.Node { return u.n }

func (u *branchUnit) blame(err *Error) *Error { return err.Drawn(u.n) }

func (u *branchUnit) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		return err
	}
	if u.c != nil && !passedOn(u.x, u.frame) {
		if err := inOrder(r, v, u.x.Where(), u.c); err != nil {
			return err
		}
	}
	u.target.put(r, v, &u.n.Span)
	return nil
}

func (r *run) needLogical(n *program.Logical, s *scope, f frame) *Error {
	target := &variable{}
	f[n.Slot] = target
	frame, err := r.prepare(n.Left, s)
	if err != nil {
		return err
	}
	u := &logicalUnit{unit: unit{scope: s}, n: n, target: target}
	r.start(u, frame)
	return nil
}

// logicalUnit waits for the left side.
type logicalUnit struct {
	unit
	n      *program.Logical
	target *variable
}

func (u *logicalUnit) node() program.Node { return u.n }

func (u *logicalUnit) blame(err *Error) *Error { return err.Claimed(u.n, u.n.Where()) }

func (u *logicalUnit) run(r *run) *Error {
	left, err := r.eval(u.n.Left.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(left) && r.direct { // the reference takes it for a bool at first
		e := &Error{
			Kind:    "AssertionError",
			Builtin: true,
			Hint:    "an unknown value decides nothing in the condition of a typedef",
		}
		return e.In(u.n)
	}
	if isUnknown(left) { // the result is the same unknown value
		u.target.put(r, left, &u.n.Span)
		return nil
	}
	truth, ok := left.(types.Bool)
	if !ok {
		return noBool(left, "Invalid left hand value `%s`: `%s` expects a boolean", types.Text(left), u.n.Op).In(u.n)
	}
	if u.n.Decides(truth) {
		u.target.put(r, truth, &u.n.Span)
		return nil
	}
	f, err := r.prepare(u.n.Right, u.scope)
	if err != nil {
		return err
	}
	r.start(&logicalRight{evalUnit{unit: unit{scope: u.scope}, x: u.n.Right.Expr, target: u.target, stmt: u.n}, u.n.Op},
		f)
	return nil
}

// logicalRight evaluates the right side, which has to be a bool too.
type logicalRight struct {
	evalUnit
	op string
}

func (u *logicalRight) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		return err
	}
	if _, ok := v.(types.Bool); !ok && !isUnknown(v) && r.direct {
		return noBool(v, "Invalid right hand value `%s`: `%s` expects a boolean", types.Text(v), u.op).In(u.stmt)
	} else if !ok && !isUnknown(v) {
		return noBool(v, "Invalid value '%s', expected bool", types.Text(v)).In(u.stmt)
	}
	return u.target.set(r, v, source{at: u.x.Where(), by: u.scope.by})
}

// noBool is the error for a value where a bool is needed. A reference has a value
// only when it is deployed.
func noBool(v types.Value, format string, args ...any) *Error {
	e := program.RuntimeError(format, args...)
	if _, is := v.(*types.Reference); is {
		e.Kind = "UnexpectedReference"
	}
	return e.Coded(diag.NoBoolean)
}

func (r *run) evalNot(n *program.Not, s *scope, f frame) (types.Value, *Error) {
	v, err := r.eval(n.X, s, f)
	if err != nil {
		return nil, err
	}
	if isUnknown(v) { // the result is a new unknown value
		return r.unknown(), nil
	}
	b, ok := v.(types.Bool)
	if !ok {
		return nil, noBool(v, "Invalid value `%s`: `not` expects a boolean", types.Text(v)).In(n)
	}
	return !b, nil
}
