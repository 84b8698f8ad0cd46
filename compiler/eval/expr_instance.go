package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// startSet starts the assignment of an expression to an attribute. A list
// takes elements as they arrive.
func startSet(r *run, s *scope, x root, v *variable, stmt node) *Error {
	u := &setUnit{unit: unit{scope: s}, x: x.expr, target: v, stmt: stmt}
	var f frame
	var err *Error
	if v.kind == list {
		var report bool
		f, report, err = r.prepareGradual(x, s, u)
		u.report = report
	} else {
		f, err = r.prepare(x, s)
	}
	if err != nil {
		return err
	}
	v.promise()
	r.start(u, f)
	return nil
}

// startKnown starts the assignment of the known values that the arguments
// begin with and gives the others. One unit does for all of them: units that
// wait for nothing and follow each other run one after the other anyway.
func startKnown(r *run, s *scope, i *Instance, stmt node, arguments []argument) []argument {
	n := 1
	for n < len(arguments) && arguments[n].known {
		n++
	}
	u := &knownUnit{unit: unit{scope: s}, stmt: stmt, of: i, arguments: arguments[:n]}
	r.start(u, nil)
	return arguments[n:]
}

// knownUnit assigns known values to attributes of an instance.
type knownUnit struct {
	unit
	stmt      node
	of        *Instance
	arguments []argument
}

func (u *knownUnit) node() node              { return u.stmt }
func (u *knownUnit) blame(err *Error) *Error { return err.in(u.stmt) }

func (u *knownUnit) run(r *run) *Error {
	for n := range u.arguments {
		a := &u.arguments[n]
		if err := u.assign(r, a); err != nil {
			if more := u.arguments[n+1:]; len(more) > 0 {
				r.leave(func(r *run) *Error { startKnown(r, u.scope, u.of, u.stmt, more); return nil })
			}
			return attributeError(
				err.in(u.stmt).focused(a.x.expr.where()),
				u.of,
				a.name,
				u.stmt,
				u.stmt.where(),
			)
		}
	}
	return nil
}

func (u *knownUnit) assign(r *run, a *argument) *Error {
	slot := u.of.slot(a.slot)
	from := source{at: a.x.expr.where(), by: u.scope.by}
	if constant, is := a.x.expr.(*literal); is {
		return slot.set(r, constant.value, from)
	}
	self, err := r.variableOf(a.x.expr.(*ref), u.scope)
	if err != nil {
		return err
	}
	return slot.set(r, self.value, from)
}

// setUnit assigns the value of an expression to an attribute of an instance.
type setUnit struct {
	unit
	x      expr
	target *variable
	stmt   node
	report bool
}

func (u *setUnit) node() node              { return u.stmt }
func (u *setUnit) blame(err *Error) *Error { return err.in(u.stmt) }

func (u *setUnit) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		if err.Kind == "OptionalValueException" {
			return u.wrap(err.drawn(u.stmt))
		}
		return u.wrap(err)
	}
	at := u.x.where()
	if u.report {
		if err := inOrder(r, v, at, u); err != nil {
			return err
		}
	}
	if err := u.target.set(r, v, source{at: at, by: u.scope.by}); err != nil {
		return u.wrap(err)
	}
	u.target.fulfil(r)
	return nil
}

func (u *setUnit) wrap(err *Error) *Error {
	return attributeError(
		err.in(u.stmt).focused(u.x.where()),
		u.target.owner,
		u.target.name(),
		u.stmt,
		u.stmt.where(),
	)
}

func (u *setUnit) passive() bool { return true }

func (u *setUnit) receive(r *run, v types.Value, at, added *place) *Error {
	from := source{at: at, by: u.scope.by}
	if own := u.x.where(); added != nil {
		from.expr, from.reread = added, true
	} else if own != at {
		from.expr = own
	}
	if err := u.target.set(r, v, from); err != nil {
		return u.wrap(err)
	}
	return nil
}

// lookup is `C[k=v]`, or `x.rel[k=v]` when x is set.
type lookup struct {
	at
	x      expr // short lookup: the instance
	rel    string
	info   *entityInfo
	named  []argument
	splats []splat
	parts  root // of everything that must be known
	slot   int
}

func (n *lookup) layout(l *layouter) { n.slot = l.next() }

func (r *run) needLookup(n *lookup, s *scope, f frame) *Error {
	target := &variable{}
	f[n.slot] = target
	frame, err := r.prepare(n.parts, s)
	if err != nil {
		return err.in(n)
	}
	u := &lookupUnit{unit: unit{scope: s}, n: n, target: target}
	r.start(u, frame)
	return nil
}

// lookupParts evaluates all that a lookup needs, in one frame.
type lookupParts struct{ *lookup }

func (n lookupParts) layout(l *layouter) {
	if n.x != nil {
		n.x.layout(l)
	}
	for _, a := range n.named {
		a.x.expr.layout(l)
	}
	for _, x := range n.splats {
		x.x.layout(l)
	}
}

func (r *run) needLookupParts(n lookupParts, s *scope, f frame) *Error {
	for _, a := range n.named {
		if err := r.need(a.x.expr, s, f); err != nil {
			return err
		}
	}
	if n.x != nil {
		if err := r.need(n.x, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.splats {
		if err := r.need(x.x, s, f); err != nil {
			return err
		}
	}
	return nil
}

// lookupUnit waits for the key and then for an instance with it.
type lookupUnit struct {
	unit
	n      *lookup
	target *variable
}

func (u *lookupUnit) node() node              { return u.n }
func (u *lookupUnit) blame(err *Error) *Error { return err.claimed(u.n, u.n.where()) }

func (u *lookupUnit) run(r *run) *Error {
	n := u.n
	var values []given
	info := n.info
	if n.x != nil {
		of, err := r.eval(n.x, u.scope, u.frame)
		if err != nil {
			return err
		}
		instance, ok := of.(*Instance)
		if !ok {
			return typingError(
				"short index lookup is only possible one objects, %s is not an object",
				types.Text(of),
			).in(n)
		}
		attr := instance.entity.Attribute(n.rel)
		if attr == nil {
			e := typingError("short index lookup is only possible on relations, None is an attribute").in(n)
			e.Hint = suggest("attribute", n.rel, attributeNames(instance.entity))
			return e
		}
		if attr.End == nil {
			return typingError("short index lookup is only possible on relations, %s is an attribute", n.rel).in(n)
		}
		if attr.End.Inverse == nil {
			return typingError(
				"short index lookup is only possible on bi-drectional relations, %s.%s is unidirectional",
				attr.Entity.Name,
				n.rel,
			).in(n)
		}
		values = append(values, given{name: attr.End.Inverse.Name, value: instance})
		info = r.prog.info[attr.End.Target.Number]
	}
	for _, a := range n.named {
		v, err := r.eval(a.x.expr, u.scope, u.frame)
		if err != nil {
			return err
		}
		values = append(values, given{name: a.name, value: v})
	}
	for _, x := range n.splats {
		v, err := r.eval(x.x, u.scope, u.frame)
		if err != nil {
			return err
		}
		d, ok := v.(*types.Dict)
		if !ok {
			return notDict(x)
		}
		for _, k := range d.Keys {
			values = append(values, given{name: k, value: d.Values[k]})
		}
	}
	return r.lookup(info.entity, values, u.target, n)
}

// notDict refuses a `**` on something else.
func notDict(x splat) *Error {
	e := typingError("The ** operator can only be applied to dictionaries").coded(diag.WrongOperand)
	e.Stmt, e.at, e.stmtAt = "**"+syntax.RenderRepr(x.x.tree()), &x.stars, &x.stars
	return e
}
