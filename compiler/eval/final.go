package eval

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
)

// complete lists what an instance lacks in the end.
func (r *run) complete(i *Instance) []*Error {
	var errs []*Error
	if len(i.impls) == 0 {
		e := runtimeError(
			"Unable to select implementation for entity %s",
			i.entity.Short(),
		).coded(diag.NoImplementation)
		e.Stmt, e.at = i.Text(), i.lastAt()
		e.Hint = fmt.Sprintf("add `implement %s using std::none`, or an implementation of your own", i.entity.Short())
		errs = append(errs, ofInstance(e, i))
	}
	for n := range i.slots {
		v := &i.slots[n]
		if v.has || v.kind == option && v.gathering.promises <= 0 || v.attr.Name == "self" {
			continue
		}
		if e := incomplete(i, v); e != nil {
			errs = append(errs, e)
		}
	}
	return errs
}

func incomplete(i *Instance, v *variable) *Error {
	var e *Error
	if v.kind == list && len(v.gathering.list.Items) >= v.attr.End.Low && v.gathering.promises <= 0 {
		return nil
	}
	if v.kind == list && v.attr.End.Multi() {
		e = fail(
			"UnsetException",
			"The object %s is not complete: attribute %s (%s) requires %d values but only %d are set",
			i.Text(),
			v.attr.Name,
			v.attr.At,
			v.attr.End.Low,
			len(v.gathering.list.Items),
		)
	} else {
		e = fail("UnsetException", "The object %s is not complete: attribute %s (%s) is not set", i.Text(), v.attr.Name, v.attr.At)
		e.Hint = fmt.Sprintf("give %s a value where %s is made, at %s", v.attr.Name, i.entity.Short(), short(i.at))
	}
	e.bare, e.Importance, e.about, e.topic = true, 8, i.at, v.attr.Name
	e.subject = assignment{slot: v}
	return ofInstance(e, i)
}

// stuck reports the units that never got what they wait for.
func (r *run) stuck() *Error {
	var first waiter
	var names []string
	var at node
	for _, w := range r.waiting.all() {
		if first == nil {
			first = w
		}
		if helper(w) {
			continue
		}
		if at == nil {
			at = waitsFor(w)
		}
		names = append(names, syntax.RenderRepr(waitsFor(w).tree()))
	}
	if first == nil {
		return nil
	}
	e := runtimeError("not all statements executed: [%s]", strings.Join(names, ", ")).coded(diag.NeverRan)
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
	return e.in(at)
}

// helper tells the units that only serve a statement, which waits as well.
func helper(w waiter) bool {
	switch w.(type) {
	case *attrHook, *conditionUnit, *branchUnit, *comprehensionUnit, *comprehensionEnd, *definedHook, *definedUnit, *promiseUnit, *lazyUnit, *lookupUnit, *setAttrUnit:
		return true
	}
	return false
}

// waitsFor is what a unit would compute: an expression, where it has one.
func waitsFor(w waiter) node {
	switch w := w.(type) {
	case *assignUnit:
		return w.n.value.expr
	case *setUnit:
		return w.x
	case *evalUnit:
		return w.x
	case *lazyRight:
		return w.x
	}
	return w.node()
}
