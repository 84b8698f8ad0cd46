package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/types"
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

func (u *knownUnit) node() node { return u.stmt }

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

func (u *setUnit) node() node { return u.stmt }

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

// attributeError wraps an error of setting an attribute, unless it comes from
// the other end of the relation and is wrapped already.
func attributeError(cause *Error, of *Instance, attribute string, stmt fmt.Stringer, at *place) *Error {
	if cause.Kind != "AttributeException" || cause.foreign || cause.final {
		return wrapAttribute(cause, of, attribute, stmt, at)
	}
	inner := cause
	for len(inner.Causes) > 0 && inner.Kind == "AttributeException" {
		inner = inner.Causes[0]
	}
	inner.located(stmt, at)
	return cause
}

// wrapAttribute wraps an error of setting an attribute. An error that passes
// both ends of a relation is wrapped at each.
func wrapAttribute(cause *Error, of *Instance, attribute string, stmt fmt.Stringer, at *place) *Error {
	if cause.foreign || cause.final {
		return cause // no CompilerException, so the reference does not wrap it
	}
	e := fail("AttributeException", "Could not set attribute `%s` on instance `%s`", attribute, of.Text())
	e.Causes = []*Error{cause}
	e.Hint, e.hint, e.focus, e.related = cause.Hint, cause.hint, cause.focus, cause.related
	e.Expected, e.Found = cause.Expected, cause.Found
	e.Importance = cause.Importance
	e.Stmt, e.at, e.stmtAt = stmt.String(), at, at
	return e
}
