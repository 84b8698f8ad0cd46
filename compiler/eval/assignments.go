package eval

import (
	"fmt"
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// startSet starts the assignment of an expression to an attribute. A list takes the
// elements as they arrive.
func startSet(r *run, s *scope, x program.Root, v *variable, stmt program.Node) *Error {
	u := &setUnit{unit: unit{scope: s}, x: x.Expr, target: v, stmt: stmt}
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

// startKnown starts the assignment of the defaults and of the known values at the
// beginning of the arguments, and returns the other arguments. One unit is enough for
// all of them, since units that wait for nothing and follow each other would run one
// after the other anyway.
func startKnown(
	r *run,
	s *scope,
	i *Instance,
	stmt program.Node,
	defaults []program.Argument,
	arguments []program.Argument,
) []program.Argument {
	n := slices.IndexFunc(arguments, func(a program.Argument) bool { return !a.Known })
	if n < 0 {
		n = len(arguments)
	}
	if n > 0 || len(defaults) > 0 {
		u := &knownUnit{unit: unit{scope: s}, stmt: stmt, of: i, defaults: defaults, arguments: arguments[:n]}
		r.start(u, nil)
	}
	return arguments[n:]
}

// knownUnit assigns known values to attributes of an instance.
type knownUnit struct {
	unit
	stmt      program.Node
	of        *Instance
	defaults  []program.Argument // they come before arguments
	arguments []program.Argument
}

func (u *knownUnit) node() program.Node { return u.stmt }

func (u *knownUnit) blame(err *Error) *Error { return err.In(u.stmt) }

func (u *knownUnit) run(r *run) *Error {
	for n := range u.defaults {
		if err := u.assign(r, &u.defaults[n]); err != nil {
			u.postpone(r, u.defaults[n+1:], u.arguments)
			return err
		}
	}
	for n := range u.arguments {
		if err := u.assign(r, &u.arguments[n]); err != nil {
			u.postpone(r, nil, u.arguments[n+1:])
			return err
		}
	}
	return nil
}

// postpone leaves the other values for later when one cannot be assigned.
func (u *knownUnit) postpone(r *run, defaults, arguments []program.Argument) {
	if len(defaults)+len(arguments) > 0 {
		r.postpone(func(r *run) *Error {
			startKnown(r, u.scope, u.of, u.stmt, defaults, arguments)
			return nil
		})
	}
}

func (u *knownUnit) assign(r *run, a *program.Argument) *Error {
	err := u.set(r, a)
	if err == nil {
		return nil
	}
	return attributeError(err.In(u.stmt).Focused(a.X.Expr.Where()), u.of, a.Name, u.stmt, u.stmt.Where())
}

func (u *knownUnit) set(r *run, a *program.Argument) *Error {
	slot := u.of.slot(a.Slot)
	from := source{at: a.X.Expr.Where(), by: u.scope.by}
	if constant, is := a.X.Expr.(*program.Literal); is {
		return slot.set(r, constant.Value, from)
	}
	self, err := r.variableOf(a.X.Expr.(*program.Ref), u.scope)
	if err != nil {
		return err
	}
	return slot.set(r, self.value, from)
}

// setUnit assigns the value of an expression to an attribute of an instance.
type setUnit struct {
	unit
	x      program.Expr
	target *variable
	stmt   program.Node
	report bool
}

func (u *setUnit) node() program.Node { return u.stmt }

func (u *setUnit) blame(err *Error) *Error { return err.In(u.stmt) }

func (u *setUnit) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		if err.Kind == "OptionalValueException" {
			return u.wrap(err.Drawn(u.stmt))
		}
		return u.wrap(err)
	}
	at := u.x.Where()
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
	return attributeError(err.In(u.stmt).Focused(u.x.Where()), u.target.owner, u.target.name(), u.stmt, u.stmt.Where())
}

func (u *setUnit) passive() bool { return true }

func (u *setUnit) receive(r *run, v types.Value, at, added *program.Place) *Error {
	from := source{at: at, by: u.scope.by}
	if own := u.x.Where(); added != nil {
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
func attributeError(cause *Error, of *Instance, attribute string, stmt fmt.Stringer, at *program.Place) *Error {
	if cause.Kind != "AttributeException" || cause.Builtin || cause.Final {
		return wrapAttribute(cause, of, attribute, stmt, at)
	}
	inner := cause
	for len(inner.Causes) > 0 && inner.Kind == "AttributeException" {
		inner = inner.Causes[0]
	}
	inner.Located(stmt, at)
	return cause
}

// wrapAttribute wraps an error of setting an attribute. An error that passes
// both ends of a relation is wrapped at each.
func wrapAttribute(cause *Error, of *Instance, attribute string, stmt fmt.Stringer, at *program.Place) *Error {
	if cause.Builtin || cause.Final {
		return cause // no CompilerException, so the reference does not wrap it
	}
	e := program.NewError("AttributeException", "Could not set attribute `%s` on instance `%s`", attribute, of.Text())
	e.Causes = []*Error{cause}
	e.Hint, e.MakeHint, e.Focus, e.Related = cause.Hint, cause.MakeHint, cause.Focus, cause.Related
	e.Expected, e.Found = cause.Expected, cause.Found
	e.Importance = cause.Importance
	e.Stmt, e.Place, e.StmtAt = stmt.String(), at, at
	return e
}
