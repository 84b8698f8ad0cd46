package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// conditional is `c ? a : b`: the branch that is not taken is never needed.
type conditional struct {
	at
	cond, then, els root
	// guarded marks the condition of a comprehension: els is noElement.
	guarded bool
	slot    int
}

func (n *conditional) layout(l *layouter) { n.slot = l.next() }

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

func (u *conditionUnit) node() node              { return u.n }
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

func (u *branchUnit) node() node              { return u.n }
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

// lazy is `and` or `or`: the right side is needed only when the left does not
// decide.
type lazy struct {
	at
	op          string
	left, right root
	slot        int
}

func (n *lazy) decides(b types.Bool) bool { return (n.op == "or") == bool(b) }

func (n *lazy) layout(l *layouter) { n.slot = l.next() }

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

func (u *lazyUnit) node() node              { return u.n }
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

// not negates.
type not struct {
	at
	x expr
}

func (n *not) layout(l *layouter) { n.x.layout(l) }

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

// binary is every other operator with two sides.
type binary struct {
	at
	op   syntax.Op
	l, r expr
	// placeless is set for the half of `a not in b` that the reference gives no
	// place: to report an error in it is an error of its own there.
	placeless bool
}

// blame is in, or what becomes of an error without a place.
func blameBinary(n *binary, err *Error) *Error {
	if err == nil || !n.placeless || err.foreign || err.Stmt != "" {
		return err.in(n)
	}
	err.Kind, err.Hint, err.Message, err.foreign = "AssertionError", err.Message, "", true
	return err.in(n)
}

func (n *binary) layout(l *layouter) {
	n.l.layout(l)
	n.r.layout(l)
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

// isDefined is `x.y is defined` or `y is defined`.
type isDefined struct {
	at
	x    *root // nil: a variable
	v    *ref  // when x is nil
	attr string
	slot int
}

func (n *isDefined) layout(l *layouter) { n.slot = l.next() }

func (r *run) needIsDefined(n *isDefined, s *scope, f frame) *Error {
	target := &variable{}
	f[n.slot] = target
	u := &definedHook{unit: unit{scope: s}, n: n, target: target}
	if n.x == nil {
		v, err := r.variableOf(n.v, s)
		if err != nil {
			return err
		}
		return u.watch(r, v)
	}
	frame, err := r.prepare(*n.x, s)
	if err != nil {
		return err
	}
	r.start(u, frame)
	return nil
}

// definedHook waits for the instance of `x.y is defined`.
type definedHook struct {
	unit
	n      *isDefined
	target *variable
}

func (u *definedHook) node() node              { return u.n }
func (u *definedHook) blame(err *Error) *Error { return err.drawn(u.n) }

func (u *definedHook) run(r *run) *Error {
	of, err := r.eval(u.n.x.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	v, err := slotOf(of, u.n.x.expr, u.n.attr, u.n)
	if err != nil {
		return err
	}
	return u.watch(r, v)
}

// watch answers as soon as there is a first element, or when there will be none.
func (u *definedHook) watch(r *run, v *variable) *Error {
	if v.ready() {
		return u.answer(r, v)
	}
	w := &definedUnit{unit: unit{scope: u.scope}, n: u.n, watched: v, target: u.target}
	if err := v.listen(r, w, &w.n.span); err != nil {
		return err
	}
	w.listening = true
	r.start(w, frame{v})
	return nil
}

func (u *definedHook) answer(r *run, v *variable) *Error {
	return setDefined(r, u.target, defined(v), &u.n.span)
}

func setDefined(r *run, target *variable, value types.Value, at *place) *Error {
	if isUnknown(value) {
		value = r.unknown()
	}
	if !target.has {
		target.put(r, value, at)
	}
	return nil
}

func defined(v *variable) types.Value {
	value, _ := v.peek()
	switch value := value.(type) {
	case types.Null:
		return types.Bool(false)
	case types.Unknown:
		return unknown
	case *types.List:
		for _, item := range value.Items {
			if !isUnknown(item) {
				return types.Bool(true)
			}
		}
		if len(value.Items) > 0 {
			return unknown
		}
		return types.Bool(false)
	}
	return types.Bool(true)
}

// definedUnit answers false when the list is frozen empty; as a collector it
// answers true on the first element.
type definedUnit struct {
	unit
	n       *isDefined
	watched *variable
	target  *variable
	// listening is set from when the list knows of it until an element is added:
	// after that it is not blocked any more, though the elements that were there
	// before do not count, as upstream.
	listening bool
}

func (u *definedUnit) node() node              { return u.n }
func (u *definedUnit) blame(err *Error) *Error { return err.near(u.n) }

func (u *definedUnit) run(r *run) *Error {
	if u.target.has {
		return nil
	}
	return setDefined(r, u.target, defined(u.watched), &u.n.span)
}

func (u *definedUnit) passive() bool { return false }

func (u *definedUnit) receive(r *run, v types.Value, _, _ *place) *Error {
	if isUnknown(v) {
		return nil
	}
	if !u.target.has {
		u.target.put(r, types.Bool(true), &u.n.span)
	}
	if u.listening && u.watched.target().kind == list {
		u.listening = false
		u.watched.target().gathering.passive++
	}
	return nil
}
