package eval

import (
	"cmp"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) startBlock(b *program.Block, s *scope) *Error {
	return r.startFrom(b, 0, s)
}

func (r *run) startFrom(b *program.Block, first int, s *scope) *Error {
	for i := first; i < len(b.Stmts); i++ {
		st := b.Stmts[i]
		if err := r.startStmt(st, s); err != nil {
			r.postpone(func(r *run) *Error { return r.startFrom(b, i+1, s) })
			return withOrigin(err.In(st), s)
		}
	}
	return nil
}

// promiseUnit makes a promise as soon as the slot exists.
type promiseUnit struct {
	unit
	spec      *program.PromiseSpec
	made      *variable
	fulfilled bool
}

func (u *promiseUnit) node() program.Node { return u.spec.Node }

func (u *promiseUnit) blame(err *Error) *Error { return err.Drawn(u.spec.Node) }

func (u *promiseUnit) run(r *run) *Error {
	of, err := r.eval(u.spec.Of.Expr, u.scope, u.frame)
	if err != nil && err.Kind == "OptionalValueException" {
		return nil // see program.AttrRef.Unset
	}
	if err != nil {
		return err
	}
	v, err := slotOf(of, u.spec.Of.Expr, u.spec.Attr, u.spec.Node)
	if err != nil {
		return err
	}
	if v.owner == nil || u.fulfilled { // a value that is no instance is an error even when the branch was not taken
		return nil
	}
	u.made = v
	v.promise()
	return nil
}

func (u *promiseUnit) fulfil(r *run) {
	if u.fulfilled {
		return
	}
	u.fulfilled = true
	if u.made != nil {
		u.made.fulfil(r)
	}
}

func promiseAll(r *run, s *scope, specs []program.PromiseSpec) ([]*promiseUnit, *Error) {
	if len(specs) == 0 {
		return nil, nil
	}
	units := make([]*promiseUnit, len(specs))
	for i := range specs {
		u := &promiseUnit{unit: unit{scope: s}, spec: &specs[i]}
		f, err := r.prepare(specs[i].Of, s)
		if err != nil {
			return nil, err
		}
		units[i] = u
		r.start(u, f)
	}
	return units, nil
}

func fulfilAll(r *run, units []*promiseUnit) {
	for _, u := range units {
		u.fulfil(r)
	}
}

func (r *run) startAssign(n *program.Assign, s *scope) *Error {
	if n.Absent != nil {
		return new(*n.Absent).In(n)
	}
	f, err := r.prepare(n.Value, s)
	if err != nil {
		return err
	}
	u := &assignUnit{unit: unit{scope: s}, n: n}
	r.start(u, f)
	return nil
}

// assignUnit sets a variable.
type assignUnit struct {
	unit
	n *program.Assign
}

func (u *assignUnit) node() program.Node { return u.n }

func (u *assignUnit) blame(err *Error) *Error { return err.In(u.n) }

func (u *assignUnit) run(r *run) *Error {
	v, err := r.eval(u.n.Value.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	vars := u.scope.vars
	if u.n.Of != nil {
		vars = r.scopeOf(u.n.Of).vars
	}
	return vars[u.n.Index].set(r, v, source{at: u.n.Value.Expr.Where(), by: u.scope.by})
}

func (r *run) startSetAttr(n *program.SetAttr, s *scope) *Error {
	f, err := r.prepare(n.Of, s)
	if err != nil {
		return err
	}
	u := &setAttrUnit{unit: unit{scope: s}, n: n}
	r.start(u, f)
	return nil
}

// setAttrUnit waits for the instance.
type setAttrUnit struct {
	unit
	n *program.SetAttr
}

func (u *setAttrUnit) node() program.Node { return u.n }

func (u *setAttrUnit) blame(err *Error) *Error { return err.Claimed(u.n, u.n.Where()) }

func (u *setAttrUnit) run(r *run) *Error {
	n := u.n
	of, err := r.eval(n.Of.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	instance, ok := of.(*Instance)
	if !ok {
		return program.TypingError("The object at %s is not an Entity but a %s with value %s", n.Of.Expr.String(),
			pythonClass(of), types.Text(of))
	}
	v := instance.variable(n.Attr)
	if v == nil {
		e := program.NotFound("could not find attribute with name: %s in type %s", n.Attr, instance.entity.Name)
		e.Hint = program.Suggest("attribute", n.Attr, program.AttributeNames(instance.entity))
		return e
	}
	if n.Extend && v.kind != list {
		return program.TypingError("Can not use += on relations with multiplicity 1")
	}
	return startSet(r, u.scope, n.Value, v, n)
}

// pythonClass is how Python prints the class of a value.
func pythonClass(v types.Value) string {
	switch v := v.(type) {
	case types.Null:
		return "<class 'inmanta.execute.util.NoneValue'>"
	case types.Unknown:
		return "<class 'inmanta.execute.util.Unknown'>"
	case *Instance:
		return "<class 'inmanta.execute.runtime.Instance'>"
	case *types.Object:
		return "<class '" + v.Class + "'>"
	}
	return "<class '" + types.PythonName(v) + "'>"
}

func (r *run) startFor(n *program.For, s *scope) *Error {
	promises, err := promiseAll(r, s, n.Body.Promises)
	if err != nil {
		return err
	}
	u := &forUnit{unit: unit{scope: s}, n: n, promises: promises}
	f, report, err := r.prepareGradual(n.Iter, s, u)
	if err != nil {
		return err
	}
	u.report = report
	r.start(u, f)
	return nil
}

// forUnit runs the body for each element as it arrives.
type forUnit struct {
	unit
	n        *program.For
	promises []*promiseUnit
	report   bool
	received bool // an element came before the list was complete, so that all of them come
}

func (u *forUnit) node() program.Node { return u.n }

func (u *forUnit) blame(err *Error) *Error { return err.In(u.n) }

func (u *forUnit) passive() bool { return true }

func (u *forUnit) receive(r *run, v types.Value, at, from *program.Place) *Error {
	u.received = true
	return u.element(r, v, cmp.Or(from, at))
}

func (u *forUnit) element(r *run, v types.Value, at *program.Place) *Error {
	if isUnknown(v) {
		return nil
	}
	s := r.inner(u.scope, len(u.n.Body.Vars), u.n.Body.Namespace)
	s.vars[0].put(r, v, at)
	return r.startBlock(u.n.Body, s)
}

func (u *forUnit) run(r *run) *Error {
	fulfilAll(r, u.promises)
	iterable, err := r.eval(u.n.Iter.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(iterable) {
		return nil
	}
	l, ok := iterable.(*types.List)
	if !ok {
		if notPassedOn(u.n.Iter.Expr, u.frame, u.report) { // the reference receives it before it looks at its type
			if err := u.element(r, iterable, u.n.Where()); err != nil {
				return err
			}
		}
		switch x := u.n.Iter.Expr.(type) {
		case *program.Ref, *program.AttrRef:
			return program.TypingError("A for loop can only be applied to lists and relations. Hint: '%s' "+
				"resolves to '%s'.", x, types.Text(iterable)).Coded(diag.WrongOperand)
		}
		return program.TypingError("A for loop can only be applied to lists and relations. Hint: '%s' is not a list.",
			types.Text(iterable)).Coded(diag.WrongOperand)
	}
	if u.received {
		return nil
	}
	return u.elements(r, l.Items)
}

func (u *forUnit) elements(r *run, items []types.Value) *Error {
	for i, item := range items {
		if err := u.element(r, item, u.n.Where()); err != nil {
			r.postpone(func(r *run) *Error { return u.elements(r, items[i+1:]) })
			return err
		}
	}
	return nil
}

func (r *run) startIf(n *program.If, s *scope) *Error {
	promises, err := promiseAll(r, s, n.Promises)
	if err != nil {
		return err
	}
	f, err := r.prepare(n.Cond, s)
	if err != nil {
		return err
	}
	r.start(&ifUnit{unit: unit{scope: s}, n: n, promises: promises}, f)
	return nil
}

// ifUnit waits for the condition.
type ifUnit struct {
	unit
	n        *program.If
	promises []*promiseUnit
}

func (u *ifUnit) node() program.Node { return u.n }

func (u *ifUnit) blame(err *Error) *Error { return err.In(u.n) }

func (u *ifUnit) run(r *run) *Error {
	fulfilAll(r, u.promises)
	cond, err := r.eval(u.n.Cond.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(cond) {
		return nil
	}
	truth, ok := cond.(types.Bool)
	if !ok {
		return noBool(cond, "Invalid value `%s`: the condition for an if statement can only be a boolean expression",
			types.Text(cond))
	}
	branch := u.n.Then
	if !truth {
		branch = u.n.Else
	}
	return r.startBlock(branch, r.inner(u.scope, len(branch.Vars), branch.Namespace))
}

func (r *run) startExpr(n *program.ExprStmt, s *scope) (*evalUnit, *Error) {
	f, err := r.prepare(n.Root, s)
	if err != nil {
		return nil, err
	}
	u := &evalUnit{unit: unit{scope: s}, x: n.Root.Expr}
	r.start(u, f)
	return u, nil
}

func (r *run) startAnnotations(n *program.Annotations, s *scope) *Error {
	noted := notedRelation{ends: n.Ends}
	for _, note := range n.Notes {
		unit, err := r.startExpr(note, s)
		if err != nil {
			return err
		}
		unit.target = &variable{}
		noted.units = append(noted.units, unit)
	}
	r.notes = append(r.notes, noted)
	return nil
}

// notedRelation has the annotations of a relation that are being evaluated.
type notedRelation struct {
	units []*evalUnit
	ends  []*types.Attribute
}

// errors returns errors for the ends of relations with annotations that have no
// value, or an unknown one.
func (n notedRelation) errors() []*Error {
	var errs []*Error
	for _, end := range n.ends {
		for _, unit := range n.units {
			switch {
			case unit.pending > 0:
				e := program.NewError("UnsetException", "Value not available")
				e.Bare, e.About = true, unit.x.Where()
				e.Hint = "an annotation of a relation needs a value: what it reads is never set"
				errs = append(errs, e)
			case isUnknown(unit.target.value):
				e := program.TypingError("Relation annotation can not be Unknown")
				e.Stmt, e.Place = end.Entity.Name+"."+end.Name, &end.At
				errs = append(errs, e)
			}
		}
	}
	return errs
}
