package eval

import (
	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

func (r *run) needIsDefined(n *program.IsDefined, s *scope, f frame) *Error {
	target := &variable{}
	f[n.Slot] = target
	u := &definedHook{unit: unit{scope: s}, n: n, target: target}
	if n.X == nil {
		v, err := r.variableOf(n.V, s)
		if err != nil {
			return err
		}
		return u.watch(r, v)
	}
	frame, err := r.prepare(*n.X, s)
	if err != nil {
		return err
	}
	r.start(u, frame)
	return nil
}

// definedHook waits for the instance of `x.y is defined`.
type definedHook struct {
	unit
	n      *program.IsDefined
	target *variable
}

func (u *definedHook) node() program.Node { return u.n }

func (u *definedHook) blame(err *Error) *Error { return err.Drawn(u.n) }

func (u *definedHook) run(r *run) *Error {
	of, err := r.eval(u.n.X.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	v, err := slotOf(of, u.n.X.Expr, u.n.Attr, u.n)
	if err != nil {
		return err
	}
	return u.watch(r, v)
}

// watch sets the result as soon as there is a first element, or when there will be
// none.
func (u *definedHook) watch(r *run, v *variable) *Error {
	if v.ready() {
		return u.answer(r, v)
	}
	w := &definedUnit{unit: unit{scope: u.scope}, n: u.n, watched: v, target: u.target}
	if err := v.listen(r, w, &w.n.Span); err != nil {
		return err
	}
	w.listening = true
	r.start(w, frame{v})
	return nil
}

func (u *definedHook) answer(r *run, v *variable) *Error {
	return setDefined(r, u.target, defined(v), &u.n.Span)
}

func setDefined(r *run, target *variable, value types.Value, at *program.Place) *Error {
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

// definedUnit sets false when the list is frozen empty. As a collector it sets true
// at the first element.
type definedUnit struct {
	unit
	n       *program.IsDefined
	watched *variable
	target  *variable
	// listening is set from when the unit listens to the list until an element is
	// added. After that the unit is not blocked any more. As in the reference, the
	// elements that were there before do not count.
	listening bool
}

func (u *definedUnit) node() program.Node { return u.n }

func (u *definedUnit) blame(err *Error) *Error { return err.Near(u.n) }

func (u *definedUnit) run(r *run) *Error {
	if u.target.has {
		return nil
	}
	return setDefined(r, u.target, defined(u.watched), &u.n.Span)
}

func (u *definedUnit) passive() bool { return false }

func (u *definedUnit) receive(r *run, v types.Value, _, _ *program.Place) *Error {
	if isUnknown(v) {
		return nil
	}
	if !u.target.has {
		u.target.put(r, types.Bool(true), &u.n.Span)
	}
	if watched := u.watched.target(); u.listening && watched.kind == list {
		u.listening = false
		if l := watched.gathering.listeners; l != nil { // nil: the element made the list complete
			l.passive++
		}
	}
	return nil
}
