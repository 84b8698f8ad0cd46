package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

func (r *run) startImplement(n *implement, i *Instance) *Error {
	if n.idle() {
		for _, impl := range n.using {
			i.addImplementation(impl)
		}
		return nil
	}
	s := &scope{self: i, ns: n.info.ns, up: r.scopeOf(n.info.ns)}
	u := &implementUnit{unit: unit{scope: s}, n: n, i: i}
	f, err := r.prepare(n.when, u.scope)
	if err != nil {
		return ofInstance(err.drawn(n), i)
	}
	r.start(u, f)
	return nil
}

// implementUnit waits for the condition of an implement statement.
type implementUnit struct {
	unit
	n *implement
	i *Instance
}

func (u *implementUnit) node() node { return u.n }

func (u *implementUnit) blame(err *Error) *Error { return err.in(u.n) }

func (u *implementUnit) run(r *run) *Error {
	cond, err := r.eval(u.n.when.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(cond) {
		return nil
	}
	truth, ok := cond.(types.Bool)
	if !ok {
		return noBool(
			cond,
			"Invalid value `%s`: the condition for a conditional implementation can only be a boolean expression",
			types.Text(cond),
		)
	}
	if !truth {
		return nil
	}
	return u.use(r, u.n.using)
}

func (u *implementUnit) use(r *run, using []*implementation) *Error {
	for n, impl := range using {
		if !u.i.addImplementation(impl) || len(impl.body.stmts) == 0 {
			continue
		}
		s := &scope{
			vars: make([]variable, len(impl.body.vars)), up: r.scopeOf(impl.ns), self: u.i, ns: impl.ns,
			by: &origin{instance: u.i, impl: impl, selected: u.n, depth: u.i.made.level() + 1},
		}
		if err := r.startBlock(impl.body, s); err != nil {
			r.leave(func(r *run) *Error { return u.use(r, using[n+1:]) })
			return err
		}
	}
	return nil
}

// addImplementation notes that an implementation is one of the instance's, and
// reports whether it is new.
func (i *Instance) addImplementation(impl *implementation) bool {
	if slices.Contains(i.impls, impl) {
		return false
	}
	i.impls = append(i.impls, impl)
	return true
}
