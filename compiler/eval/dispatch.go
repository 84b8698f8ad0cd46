package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/types"
)

// An expression is evaluated in two steps, with any amount of time in between:
//
//	need   finds or makes the variables that must have a value first
//	eval   computes the value, once they all have one
//
// Between the two, the variables lie in the frame of the expression, in which
// every node has its place.

// need fills the frame of an expression and starts the units that compute its
// variables.
func (r *run) need(x expr, s *scope, f frame) *Error {
	switch n := x.(type) {
	case *literal, *unusable, *unknownElement, *noElement:
		return nil
	case *ref:
		return r.needRef(n, s, f)
	case *attrRef:
		return r.needAttrRef(n, s, f, nil)
	case *listExpr:
		return r.needList(n, s, f)
	case *dictExpr:
		return r.needDict(n, s, f)
	case *mapLookup:
		return r.needMapLookup(n, s, f)
	case *construct:
		return r.needConstruct(n, s, f)
	case *lookup:
		return r.needLookup(n, s, f)
	case lookupParts:
		return r.needLookupParts(n, s, f)
	case *call:
		return r.needCall(n, s, f)
	case callParts:
		return n.each(func(x expr) *Error { return r.need(x, s, f) })
	case *conditional:
		return r.needConditional(n, s, f, nil)
	case *lazy:
		return r.needLazy(n, s, f)
	case *not:
		return r.need(n.x, s, f).in(n)
	case *binary:
		return r.needBinary(n, s, f)
	case *isDefined:
		return r.needIsDefined(n, s, f)
	case *matching:
		return r.need(n.text, s, f).in(n)
	case *format:
		return r.needFormat(n, s, f)
	case *fstring:
		return r.needFString(n, s, f)
	case *comprehension:
		return r.needComprehension(n, s, f)
	}
	panic(fmt.Sprintf("no way to evaluate a %T", x))
}

// needGradual is need for an expression that feeds a list: the elements that are
// known early go to c. It reports whether the value of eval has to be given to c as
// well.
func (r *run) needGradual(x expr, s *scope, f frame, c collector) (bool, *Error) {
	switch n := x.(type) {
	case *noElement:
		return false, nil
	case *ref:
		return r.needGradualRef(n, s, f, c)
	case *attrRef:
		return false, r.needAttrRef(n, s, f, c)
	case *listExpr:
		return r.needGradualList(n, s, f, c)
	case *conditional:
		return false, r.needConditional(n, s, f, c)
	case *comprehension:
		return r.needGradualComprehension(n, s, f, c)
	}
	return true, r.need(x, s, f)
}

// eval computes the value of an expression whose variables all have theirs.
func (r *run) eval(x expr, s *scope, f frame) (types.Value, *Error) {
	switch n := x.(type) {
	case *literal:
		return n.value, nil
	case *unusable:
		err := *n.err // a copy, since places are filled in
		return nil, &err
	case *unknownElement:
		return s.vars[0].get()
	case *noElement:
		return skipped, nil
	case *ref:
		return f[n.slot].get()
	case *attrRef:
		return f[n.slot].get()
	case *lookup:
		return f[n.slot].get()
	case *call:
		return f[n.slot].get()
	case *conditional:
		return f[n.slot].get()
	case *lazy:
		return f[n.slot].get()
	case *isDefined:
		return f[n.slot].get()
	case *comprehension:
		return f[n.slot].get()
	case *listExpr:
		return r.evalList(n, s, f)
	case *dictExpr:
		return r.evalDict(n, s, f)
	case *mapLookup:
		return r.evalMapLookup(n, s, f)
	case *construct:
		return r.evalConstruct(n, s, f)
	case *not:
		return r.evalNot(n, s, f)
	case *binary:
		return r.evalBinary(n, s, f)
	case *matching:
		return r.evalMatching(n, s, f)
	case *format:
		return r.evalFormat(n, s, f)
	case *fstring:
		return r.evalFString(n, s, f)
	}
	panic(fmt.Sprintf("no way to evaluate a %T", x))
}

// prepare makes the frame of an expression and fills it.
func (r *run) prepare(x root, s *scope) (frame, *Error) {
	f := newFrame(x)
	return f, r.need(x.expr, s, f)
}

func (r *run) prepareGradual(x root, s *scope, c collector) (frame, bool, *Error) {
	f := newFrame(x)
	report, err := r.needGradual(x.expr, s, f, c)
	return f, report, err
}

func newFrame(x root) frame {
	if x.size == 0 {
		return nil
	}
	return make(frame, x.size)
}

// startStmt begins the execution of a statement in a scope.
func (r *run) startStmt(st stmt, s *scope) *Error {
	switch n := st.(type) {
	case *assign:
		return r.startAssign(n, s)
	case *setAttr:
		return r.startSetAttr(n, s)
	case *forLoop:
		return r.startFor(n, s)
	case *ifStmt:
		return r.startIf(n, s)
	case *bare:
		_, err := r.startExpr(n, s)
		return err
	case *annotations:
		return r.startAnnotations(n, s)
	}
	panic(fmt.Sprintf("no way to run a %T", st))
}
