package eval

import (
	"cmp"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) startBlock(b *block, s *scope) *Error {
	return r.startFrom(b, 0, s)
}

func (r *run) startFrom(b *block, first int, s *scope) *Error {
	for i := first; i < len(b.stmts); i++ {
		st := b.stmts[i]
		if err := r.startStmt(st, s); err != nil {
			r.leave(func(r *run) *Error { return r.startFrom(b, i+1, s) })
			return led(err.in(st), s)
		}
	}
	return nil
}

// promiseUnit makes a promise as soon as the slot exists.
type promiseUnit struct {
	unit
	spec     *promiseSpec
	made     *variable
	fulfiled bool
}

func (u *promiseUnit) node() node { return u.spec.n }

func (u *promiseUnit) blame(err *Error) *Error { return err.drawn(u.spec.n) }

func (u *promiseUnit) run(r *run) *Error {
	of, err := r.eval(u.spec.of.expr, u.scope, u.frame)
	if err != nil && err.Kind == "OptionalValueException" {
		return nil // see passUnset
	}
	if err != nil {
		return err
	}
	v, err := slotOf(of, u.spec.of.expr, u.spec.attr, u.spec.n)
	if err != nil {
		return err
	}
	if v.owner == nil || u.fulfiled { // what is no instance is an error also where the branch was not taken
		return nil
	}
	u.made = v
	v.promise()
	return nil
}

func (u *promiseUnit) fulfil(r *run) {
	if u.fulfiled {
		return
	}
	u.fulfiled = true
	if u.made != nil {
		u.made.fulfil(r)
	}
}

func promiseAll(r *run, s *scope, specs []promiseSpec) ([]*promiseUnit, *Error) {
	if len(specs) == 0 {
		return nil, nil
	}
	units := make([]*promiseUnit, len(specs))
	for i := range specs {
		u := &promiseUnit{unit: unit{scope: s}, spec: &specs[i]}
		f, err := r.prepare(specs[i].of, s)
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

func (r *run) startAssign(n *assign, s *scope) *Error {
	if n.absent != nil {
		return new(*n.absent).in(n)
	}
	f, err := r.prepare(n.value, s)
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
	n *assign
}

func (u *assignUnit) node() node { return u.n }

func (u *assignUnit) blame(err *Error) *Error { return err.in(u.n) }

func (u *assignUnit) run(r *run) *Error {
	v, err := r.eval(u.n.value.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	vars := u.scope.vars
	if u.n.of != nil {
		vars = r.scopeOf(u.n.of).vars
	}
	return vars[u.n.index].set(r, v, source{at: u.n.value.expr.where(), by: u.scope.by})
}

func (r *run) startSetAttr(n *setAttr, s *scope) *Error {
	f, err := r.prepare(n.of, s)
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
	n *setAttr
}

func (u *setAttrUnit) node() node { return u.n }

func (u *setAttrUnit) blame(err *Error) *Error { return err.claimed(u.n, u.n.where()) }

func (u *setAttrUnit) run(r *run) *Error {
	n := u.n
	of, err := r.eval(n.of.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	instance, ok := of.(*Instance)
	if !ok {
		return typingError(
			"The object at %s is not an Entity but a %s with value %s",
			n.of.expr.String(),
			pythonClass(of),
			types.Text(of),
		)
	}
	v := instance.variable(n.attr)
	if v == nil {
		e := notFound("could not find attribute with name: %s in type %s", n.attr, instance.entity.Name)
		e.Hint = suggest("attribute", n.attr, attributeNames(instance.entity))
		return e
	}
	if n.extend && v.kind != list {
		return typingError("Can not use += on relations with multiplicity 1")
	}
	return startSet(r, u.scope, n.value, v, n)
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

func (r *run) startFor(n *forLoop, s *scope) *Error {
	promises, err := promiseAll(r, s, n.body.promises)
	if err != nil {
		return err
	}
	u := &forUnit{unit: unit{scope: s}, n: n, promises: promises}
	f, report, err := r.prepareGradual(n.iter, s, u)
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
	n        *forLoop
	promises []*promiseUnit
	report   bool
	heard    bool // an element came before the list was complete: then all of them do
}

func (u *forUnit) node() node { return u.n }

func (u *forUnit) blame(err *Error) *Error { return err.in(u.n) }

func (u *forUnit) passive() bool { return true }

func (u *forUnit) receive(r *run, v types.Value, at, from *place) *Error {
	u.heard = true
	return u.element(r, v, cmp.Or(from, at))
}

func (u *forUnit) element(r *run, v types.Value, at *place) *Error {
	if isUnknown(v) {
		return nil
	}
	s := r.inner(u.scope, len(u.n.body.vars), u.n.body.ns)
	s.vars[0].put(r, v, at)
	return r.startBlock(u.n.body, s)
}

func (u *forUnit) run(r *run) *Error {
	fulfilAll(r, u.promises)
	over, err := r.eval(u.n.iter.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(over) {
		return nil
	}
	l, ok := over.(*types.List)
	if !ok {
		if unheard(u.n.iter.expr, u.frame, u.report) { // it is received before anybody asks what it is
			if err := u.element(r, over, u.n.where()); err != nil {
				return err
			}
		}
		switch x := u.n.iter.expr.(type) {
		case *ref, *attrRef:
			return typingError("A for loop can only be applied to lists and relations. Hint: '%s' resolves to '%s'.", x, types.Text(over)).coded(diag.WrongOperand)
		}
		return typingError(
			"A for loop can only be applied to lists and relations. Hint: '%s' is not a list.",
			types.Text(over),
		).coded(diag.WrongOperand)
	}
	if u.heard {
		return nil
	}
	return u.elements(r, l.Items)
}

func (u *forUnit) elements(r *run, items []types.Value) *Error {
	for i, item := range items {
		if err := u.element(r, item, u.n.where()); err != nil {
			r.leave(func(r *run) *Error { return u.elements(r, items[i+1:]) })
			return err
		}
	}
	return nil
}

func (r *run) startIf(n *ifStmt, s *scope) *Error {
	promises, err := promiseAll(r, s, n.promises)
	if err != nil {
		return err
	}
	f, err := r.prepare(n.cond, s)
	if err != nil {
		return err
	}
	r.start(&ifUnit{unit: unit{scope: s}, n: n, promises: promises}, f)
	return nil
}

// ifUnit waits for the condition.
type ifUnit struct {
	unit
	n        *ifStmt
	promises []*promiseUnit
}

func (u *ifUnit) node() node { return u.n }

func (u *ifUnit) blame(err *Error) *Error { return err.in(u.n) }

func (u *ifUnit) run(r *run) *Error {
	fulfilAll(r, u.promises)
	cond, err := r.eval(u.n.cond.expr, u.scope, u.frame)
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
			"Invalid value `%s`: the condition for an if statement can only be a boolean expression",
			types.Text(cond),
		)
	}
	branch := u.n.then
	if !truth {
		branch = u.n.els
	}
	return r.startBlock(branch, r.inner(u.scope, len(branch.vars), branch.ns))
}

func (r *run) startExpr(n *bare, s *scope) (*evalUnit, *Error) {
	f, err := r.prepare(n.root, s)
	if err != nil {
		return nil, err
	}
	u := &evalUnit{unit: unit{scope: s}, x: n.root.expr}
	r.start(u, f)
	return u, nil
}

func (r *run) startAnnotations(n *annotations, s *scope) *Error {
	noted := notedRelation{ends: n.ends}
	for _, note := range n.notes {
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

// wrong lists the ends of relations with annotations that never got a value, or
// got none that is known.
func (n notedRelation) wrong() []*Error {
	var errs []*Error
	for _, end := range n.ends {
		for _, unit := range n.units {
			switch {
			case unit.pending > 0:
				e := fail("UnsetException", "Value not available")
				e.bare, e.about = true, unit.x.where()
				e.Hint = "an annotation of a relation needs a value: what it reads is never set"
				errs = append(errs, e)
			case isUnknown(unit.target.value):
				e := typingError("Relation annotation can not be Unknown")
				e.Stmt, e.at = end.Entity.Name+"."+end.Name, &end.At
				errs = append(errs, e)
			}
		}
	}
	return errs
}
