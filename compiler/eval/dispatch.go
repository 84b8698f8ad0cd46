package eval

import (
	"fmt"

	"ordain.dev/ordain/compiler/eval/internal/program"
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
func (r *run) need(x program.Expr, s *scope, f frame) *Error {
	switch n := x.(type) {
	case *program.Literal, *program.Unusable, *program.UnknownElement, *program.NoElement:
		return nil
	case *program.Ref:
		return r.needRef(n, s, f)
	case *program.AttrRef:
		return r.needAttrRef(n, s, f, nil)
	case *program.List:
		return r.needList(n, s, f)
	case *program.Dict:
		return r.needDict(n, s, f)
	case *program.MapLookup:
		return r.needMapLookup(n, s, f)
	case *program.Construct:
		return r.needConstruct(n, s, f)
	case *program.Lookup:
		return r.needLookup(n, s, f)
	case program.LookupParts:
		return r.needLookupParts(n, s, f)
	case *program.Call:
		return r.needCall(n, s, f)
	case program.CallParts:
		return n.Each(func(x program.Expr) *Error { return r.need(x, s, f) })
	case *program.Conditional:
		return r.needConditional(n, s, f, nil)
	case *program.Logical:
		return r.needLogical(n, s, f)
	case *program.Not:
		return r.need(n.X, s, f).In(n)
	case *program.Binary:
		return r.needBinary(n, s, f)
	case *program.IsDefined:
		return r.needIsDefined(n, s, f)
	case *program.Matching:
		return r.need(n.Text, s, f).In(n)
	case *program.Format:
		return r.needFormat(n, s, f)
	case *program.FString:
		return r.needFString(n, s, f)
	case *program.Comprehension:
		return r.needComprehension(n, s, f)
	}
	panic(fmt.Sprintf("no way to evaluate a %T", x))
}

// needGradual is need for an expression that feeds a list: the elements that are
// known early go to c. It reports whether the value of eval has to be given to c as
// well.
func (r *run) needGradual(x program.Expr, s *scope, f frame, c collector) (bool, *Error) {
	switch n := x.(type) {
	case *program.NoElement:
		return false, nil
	case *program.Ref:
		return r.needGradualRef(n, s, f, c)
	case *program.AttrRef:
		return false, r.needAttrRef(n, s, f, c)
	case *program.List:
		return r.needGradualList(n, s, f, c)
	case *program.Conditional:
		return false, r.needConditional(n, s, f, c)
	case *program.Comprehension:
		return r.needGradualComprehension(n, s, f, c)
	}
	return true, r.need(x, s, f)
}

// eval computes the value of an expression whose variables all have theirs.
func (r *run) eval(x program.Expr, s *scope, f frame) (types.Value, *Error) {
	switch n := x.(type) {
	case *program.Literal:
		return n.Value, nil
	case *program.Unusable:
		err := *n.Err // a copy, since places are filled in
		return nil, &err
	case *program.UnknownElement:
		return s.vars[0].get()
	case *program.NoElement:
		return skipped, nil
	case *program.Ref:
		return f[n.Slot].get()
	case *program.AttrRef:
		return f[n.Slot].get()
	case *program.Lookup:
		return f[n.Slot].get()
	case *program.Call:
		return f[n.Slot].get()
	case *program.Conditional:
		return f[n.Slot].get()
	case *program.Logical:
		return f[n.Slot].get()
	case *program.IsDefined:
		return f[n.Slot].get()
	case *program.Comprehension:
		return f[n.Slot].get()
	case *program.List:
		return r.evalList(n, s, f)
	case *program.Dict:
		return r.evalDict(n, s, f)
	case *program.MapLookup:
		return r.evalMapLookup(n, s, f)
	case *program.Construct:
		return r.evalConstruct(n, s, f)
	case *program.Not:
		return r.evalNot(n, s, f)
	case *program.Binary:
		return r.evalBinary(n, s, f)
	case *program.Matching:
		return r.evalMatching(n, s, f)
	case *program.Format:
		return r.evalFormat(n, s, f)
	case *program.FString:
		return r.evalFString(n, s, f)
	}
	panic(fmt.Sprintf("no way to evaluate a %T", x))
}

// prepare makes the frame of an expression and fills it.
func (r *run) prepare(x program.Root, s *scope) (frame, *Error) {
	f := newFrame(x)
	return f, r.need(x.Expr, s, f)
}

func (r *run) prepareGradual(x program.Root, s *scope, c collector) (frame, bool, *Error) {
	f := newFrame(x)
	report, err := r.needGradual(x.Expr, s, f, c)
	return f, report, err
}

func newFrame(x program.Root) frame {
	if x.Size == 0 {
		return nil
	}
	return make(frame, x.Size)
}

// startStmt begins the execution of a statement in a scope.
func (r *run) startStmt(st program.Stmt, s *scope) *Error {
	switch n := st.(type) {
	case *program.Assign:
		return r.startAssign(n, s)
	case *program.SetAttr:
		return r.startSetAttr(n, s)
	case *program.For:
		return r.startFor(n, s)
	case *program.If:
		return r.startIf(n, s)
	case *program.ExprStmt:
		_, err := r.startExpr(n, s)
		return err
	case *program.Annotations:
		return r.startAnnotations(n, s)
	}
	panic(fmt.Sprintf("no way to run a %T", st))
}
