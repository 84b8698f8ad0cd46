package eval

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
)

// missingIn returns the errors for what an instance lacks in the end.
func (r *run) missingIn(i *Instance) []*Error {
	var errs []*Error
	if len(i.impls) == 0 {
		e := program.RuntimeError("Unable to select implementation for entity %s",
			i.entity.Short()).Coded(diag.NoImplementation)
		e.Stmt, e.Place = i.Text(), i.lastAt()
		e.Hint = fmt.Sprintf("add `implement %s using std::none`, or an implementation of your own", i.entity.Short())
		errs = append(errs, ofInstance(e, i))
	}
	for n := range i.slots {
		v := &i.slots[n]
		if v.has || v.kind == option && v.gathering.promises <= 0 || v.attr.Name == "self" {
			continue
		}
		if e := missingError(i, v); e != nil {
			errs = append(errs, e)
		}
	}
	return errs
}

func missingError(i *Instance, v *variable) *Error {
	var e *Error
	if v.kind == list && len(v.gathering.list.Items) >= v.attr.End.Low && v.gathering.promises <= 0 {
		return nil
	}
	if v.kind == list && v.attr.End.Multi() {
		e = program.NewError("UnsetException",
			"The object %s is not complete: attribute %s (%s) requires %d values but only %d are set", i.Text(),
			v.attr.Name, v.attr.At, v.attr.End.Low, len(v.gathering.list.Items))
	} else {
		e = program.NewError(
			"UnsetException",
			"The object %s is not complete: attribute %s (%s) is not set",
			i.Text(), v.attr.Name, v.attr.At,
		)
		e.Hint = fmt.Sprintf(
			"give %s a value where %s is made, at %s",
			v.attr.Name, i.entity.Short(), program.Short(i.at),
		)
	}
	e.Bare, e.Importance, e.About, e.Topic = true, 8, i.at, v.attr.Name
	e.Subject = assignment{slot: v}
	return ofInstance(e, i)
}

// neverRan returns an error for the units that never got what they wait for.
func (r *run) neverRan() *Error {
	var first waiter
	var names []string
	var at program.Node
	for _, w := range r.waiting.all() {
		if first == nil {
			first = w
		}
		if isHelper(w) {
			continue
		}
		if at == nil {
			at = waitsFor(w)
		}
		names = append(names, syntax.RenderRepr(waitsFor(w).Tree()))
	}
	if first == nil {
		return nil
	}
	e := program.RuntimeError("not all statements executed: [%s]", strings.Join(names, ", ")).Coded(diag.NeverRan)
	e.Hint = "they wait for each other, or for a value that nothing sets"
	if r.emitter != "" {
		e.Hint = fmt.Sprintf(
			"plug-in %s has emits_statements=True: what it gives is thrown away, and whatever needs it never runs",
			r.emitter,
		)
	}
	if at == nil {
		at = waitsFor(first)
	}
	return e.In(at)
}

// isHelper reports whether a unit only serves a statement that waits as well.
func isHelper(w waiter) bool {
	switch w.(type) {
	case *attrHook, *conditionUnit, *branchUnit, *comprehensionUnit, *comprehensionEnd, *definedHook,
		*definedUnit, *promiseUnit, *logicalUnit, *lookupUnit, *setAttrUnit:
		return true
	}
	return false
}

// waitsFor returns what a unit would compute: its expression, if it has one.
func waitsFor(w waiter) program.Node {
	switch w := w.(type) {
	case *assignUnit:
		return w.n.Value.Expr
	case *setUnit:
		return w.x
	case *evalUnit:
		return w.x
	case *logicalRight:
		return w.x
	}
	return w.node()
}
