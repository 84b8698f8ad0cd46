package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// startImplements starts implement statements for an instance. Those of a namespace
// share the scope of their conditions. When one fails, it returns the others too.
func (r *run) startImplements(statements []*program.Implement, i *Instance) ([]*program.Implement, *Error) {
	var s *scope
	for k, n := range statements {
		if n.Idle() {
			for _, impl := range n.Using {
				i.addImplementation(impl)
			}
			continue
		}
		if s == nil || s.ns != n.Info.Namespace {
			s = &scope{self: i, ns: n.Info.Namespace, up: r.scopeOf(n.Info.Namespace)}
		}
		if err := r.startImplement(n, i, s); err != nil {
			return statements[k+1:], err
		}
	}
	return nil, nil
}

func (r *run) startImplement(n *program.Implement, i *Instance, s *scope) *Error {
	u := &implementUnit{unit: unit{scope: s}, n: n, i: i}
	f, err := r.prepare(n.When, s)
	if err != nil {
		return ofInstance(err.Drawn(n), i)
	}
	r.start(u, f)
	return nil
}

// implementUnit waits for the condition of an implement statement.
type implementUnit struct {
	unit
	n *program.Implement
	i *Instance
}

func (u *implementUnit) node() program.Node { return u.n }

func (u *implementUnit) blame(err *Error) *Error { return err.In(u.n) }

func (u *implementUnit) run(r *run) *Error {
	cond, err := r.eval(u.n.When.Expr, u.scope, u.frame)
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
	return u.use(r, u.n.Using)
}

func (u *implementUnit) use(r *run, using []*program.Implementation) *Error {
	for n, impl := range using {
		if !u.i.addImplementation(impl) || len(impl.Body.Stmts) == 0 {
			continue
		}
		s := &scope{
			vars: make([]variable, len(impl.Body.Vars)), up: r.scopeOf(impl.Namespace), self: u.i, ns: impl.Namespace,
			by: &origin{instance: u.i, impl: impl, selected: u.n, depth: u.i.made.level() + 1},
		}
		if err := r.startBlock(impl.Body, s); err != nil {
			r.postpone(func(r *run) *Error { return u.use(r, using[n+1:]) })
			return err
		}
	}
	return nil
}

// addImplementation adds an implementation to those of the instance, and reports
// whether it is new.
func (i *Instance) addImplementation(impl *program.Implementation) bool {
	if slices.Contains(i.impls, impl) {
		return false
	}
	i.impls = append(i.impls, impl)
	return true
}
