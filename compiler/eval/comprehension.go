package eval

import (
	"cmp"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// skippedElement is what noElement gives.
type skippedElement struct{ types.IsValue }

var skipped = skippedElement{}

func (r *run) needComprehension(n *comprehension, s *scope, f frame) *Error {
	target := &variable{}
	f[n.slot] = target
	frame, err := r.prepare(n.iter, s)
	if err != nil {
		return err
	}
	r.start(&comprehensionUnit{unit: unit{scope: s}, n: n, target: target}, frame)
	return nil
}

// needGradual evaluates elements as they arrive; the list itself is complete
// only when the iterable is.
func (r *run) needGradualComprehension(n *comprehension, s *scope, f frame, c collector) (bool, *Error) {
	target := &variable{}
	f[n.slot] = target
	u := &comprehensionUnit{unit: unit{scope: s}, n: n, target: target, c: c}
	frame, report, err := r.prepareGradual(n.iter, s, u)
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
	n       *comprehension
	target  *variable
	c       collector // of the elements, in the gradual case
	report  bool
	results []*variable
}

func (u *comprehensionUnit) node() node { return u.n }

func (u *comprehensionUnit) blame(err *Error) *Error { return err.drawn(u.n) }

func (u *comprehensionUnit) passive() bool { return u.c != nil && u.c.passive() }

// receive starts the evaluation of one element.
func (u *comprehensionUnit) receive(r *run, v types.Value, at, from *place) *Error {
	return u.element(r, v, cmp.Or(from, at))
}

func (u *comprehensionUnit) element(r *run, v types.Value, at *place) *Error {
	s := r.inner(u.scope, 1, u.n.ns)
	s.vars[0].kind = element
	s.vars[0].put(r, v, at)
	result := &variable{}
	u.results = append(u.results, result)
	x := u.n.element
	if isUnknown(v) && !r.direct { // the condition of a typedef looks at it as at any other
		x = u.n.unknown
	}
	f := newFrame(x)
	e := &evalUnit{unit: unit{scope: s}, x: x.expr, target: result}
	if u.c == nil {
		if err := r.need(x.expr, s, f); err != nil {
			return err
		}
	} else {
		report, err := r.needGradual(x.expr, s, f, u.c)
		if err != nil {
			return err
		}
		if report || late(x.expr) {
			e.c = u.c
		}
	}
	r.start(e, f)
	return nil
}

func (u *comprehensionUnit) run(r *run) *Error {
	over, err := r.eval(u.n.iter.expr, u.scope, u.frame)
	if err != nil {
		return err
	}
	if isUnknown(over) && r.direct {
		u.target.put(r, r.unknown(), &u.n.span)
		return nil
	}
	l, ok := over.(*types.List)
	if isUnknown(over) {
		l, ok = &types.List{Items: []types.Value{over}}, true
	}
	if !ok && r.direct {
		return typingError(
			"A list comprehension in a direct execute context can only be applied to lists, got %s",
			types.PythonName(over),
		).coded(diag.WrongOperand).
			in(u.n)
	}
	if !ok {
		if u.c != nil && unheard(u.n.iter.expr, u.frame, u.report) { // it is received before anybody asks what it is
			if err := u.element(r, over, u.n.iter.expr.where()); err != nil {
				return err
			}
		}
		return typingError(
			"A list comprehension can only be applied to lists and relations, got %s",
			types.PythonName(over),
		).coded(diag.WrongOperand).
			in(u.n)
	}
	if heard := len(u.results); heard == 0 {
		for _, item := range l.Items {
			if err := u.element(r, item, u.n.iter.expr.where()); err != nil {
				return err
			}
		}
	} else if heard != len(l.Items) && !isUnknown(over) { // `[x.a, x.a]` tells what is in x.a once
		return fail("InvalidCompilerState", "Invalid compiler state, this likely indicates a bug in the compiler. Details: list comprehension helper received some but not all values gradually").
			in(u.n).hinted("the same relation stands in the list twice, and got elements later: name it once")
	}
	f := make(frame, len(u.results))
	copy(f, u.results)
	r.start(&comprehensionEnd{unit: unit{scope: u.scope}, n: u.n, target: u.target}, f)
	return nil
}

// comprehensionEnd waits for all elements.
type comprehensionEnd struct {
	unit
	n      *comprehension
	target *variable
}

func (u *comprehensionEnd) node() node { return u.n }

func (u *comprehensionEnd) blame(err *Error) *Error { return err.drawn(u.n) }

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
			if r.direct { // where it stays one
				items = append(items, item)
				continue
			}
			items = append(items, item.Items...)
		default:
			items = append(items, item)
		}
	}
	u.target.put(r, &types.List{Items: items}, &u.n.span)
	return nil
}
