package eval

import (
	"cmp"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// skippedElement is the value of a NoElement.
type skippedElement struct{ types.IsValue }

var skipped = skippedElement{}

func (r *run) needComprehension(n *program.Comprehension, s *scope, f frame) *Error {
	target := &variable{}
	f[n.Slot] = target
	frame, err := r.prepare(n.Iter, s)
	if err != nil {
		return err
	}
	r.start(&comprehensionUnit{unit: unit{scope: s}, n: n, target: target}, frame)
	return nil
}

// needGradualComprehension evaluates elements as they arrive. The list itself is
// complete only when the iterable is.
func (r *run) needGradualComprehension(n *program.Comprehension, s *scope, f frame, c collector) (bool, *Error) {
	target := &variable{}
	f[n.Slot] = target
	u := &comprehensionUnit{unit: unit{scope: s}, n: n, target: target, c: c}
	frame, report, err := r.prepareGradual(n.Iter, s, u)
	if err != nil {
		return false, err
	}
	u.report = report
	r.start(u, frame)
	return false, nil
}

// comprehensionUnit waits for the iterable and collects the elements.
type comprehensionUnit struct {
	unit
	n       *program.Comprehension
	target  *variable
	c       collector // gets the elements in the gradual case
	report  bool
	results []*variable
}

func (u *comprehensionUnit) node() program.Node { return u.n }

func (u *comprehensionUnit) blame(err *Error) *Error { return err.Drawn(u.n) }

func (u *comprehensionUnit) passive() bool { return u.c != nil && u.c.passive() }

// receive starts the evaluation of one element.
func (u *comprehensionUnit) receive(r *run, v types.Value, at, from *program.Place) *Error {
	return u.element(r, v, cmp.Or(from, at))
}

func (u *comprehensionUnit) element(r *run, v types.Value, at *program.Place) *Error {
	s := r.inner(u.scope, 1, u.n.Namespace)
	s.vars[0].kind = element
	s.vars[0].put(r, v, at)
	result := &variable{}
	u.results = append(u.results, result)
	x := u.n.Element
	if isUnknown(v) && !r.direct { // the condition of a typedef treats it like any other
		x = u.n.Unknown
	}
	f := newFrame(x)
	e := &evalUnit{unit: unit{scope: s}, x: x.Expr, target: result}
	if u.c == nil {
		if err := r.need(x.Expr, s, f); err != nil {
			return err
		}
	} else {
		report, err := r.needGradual(x.Expr, s, f, u.c)
		if err != nil {
			return err
		}
		if report || mayPassOn(x.Expr) {
			e.c = u.c
		}
	}
	r.start(e, f)
	return nil
}

func (u *comprehensionUnit) run(r *run) *Error {
	iterable, err := r.eval(u.n.Iter.Expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(iterable) && r.direct {
		u.target.put(r, r.unknown(), &u.n.Span)
		return nil
	}
	l, ok := iterable.(*types.List)
	if isUnknown(iterable) {
		l, ok = &types.List{Items: []types.Value{iterable}}, true
	}
	if !ok && r.direct {
		return program.TypingError(
			"A list comprehension in a direct execute context can only be applied to lists, got %s",
			types.PythonName(iterable),
		).Coded(diag.WrongOperand).In(u.n)
	}
	if !ok {
		if u.c != nil &&
			notPassedOn(u.n.Iter.Expr, u.frame, u.report) { // the reference receives it before it looks at its type
			if err := u.element(r, iterable, u.n.Iter.Expr.Where()); err != nil {
				return err
			}
		}
		return program.TypingError("A list comprehension can only be applied to lists and relations, got %s",
			types.PythonName(iterable)).Coded(diag.WrongOperand).In(u.n)
	}
	if received := len(u.results); received == 0 {
		for _, item := range l.Items {
			if err := u.element(r, item, u.n.Iter.Expr.Where()); err != nil {
				return err
			}
		}
	} else if received != len(l.Items) && !isUnknown(iterable) { // `[x.a, x.a]` passes the elements of x.a on once
		return program.NewError("InvalidCompilerState", "Invalid compiler state, this likely indicates a bug in "+
			"the compiler. Details: list comprehension helper received some but not all values gradually",
		).In(u.n).Hinted("the same relation stands in the list twice, and got elements later: name it once")
	}
	f := make(frame, len(u.results))
	copy(f, u.results)
	r.start(&comprehensionEnd{unit: unit{scope: u.scope}, n: u.n, target: u.target}, f)
	return nil
}

// comprehensionEnd waits for all elements.
type comprehensionEnd struct {
	unit
	n      *program.Comprehension
	target *variable
}

func (u *comprehensionEnd) node() program.Node { return u.n }

func (u *comprehensionEnd) blame(err *Error) *Error { return err.Drawn(u.n) }

func (u *comprehensionEnd) run(r *run) *Error {
	items := make([]types.Value, 0, len(u.frame))
	for _, v := range u.frame {
		item, err := v.get()
		if err != nil {
			return err
		}
		switch item := item.(type) {
		case skippedElement:
		case *types.List:
			if r.direct { // lists stay nested there
				items = append(items, item)
				continue
			}
			items = append(items, item.Items...)
		default:
			items = append(items, item)
		}
	}
	u.target.put(r, &types.List{Items: items}, &u.n.Span)
	return nil
}
