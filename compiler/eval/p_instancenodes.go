package eval

import "ordain.dev/ordain/compiler/types"

// call is `f(a, k=v, **d)`: a plug-in or a cast.
type call struct {
	at
	name   string
	cast   types.Primitive // a cast, unless plugin is set
	plugin *pluginInfo
	args   []expr
	named  []argument
	splats []splat
	parts  root
	ns     *namespace
	names  *naming // what is in sight where it stands
	slot   int
}

func (n *call) layout(l *layouter) { n.slot = l.next() }

// callParts evaluates the arguments of a call in one frame.
type callParts struct{ *call }

func (n callParts) each(do func(x expr) *Error) *Error {
	for _, x := range n.args {
		if err := do(x); err != nil {
			return err
		}
	}
	for _, a := range n.named {
		if err := do(a.x.expr); err != nil {
			return err
		}
	}
	for _, x := range n.splats {
		if err := do(x.x); err != nil {
			return err
		}
	}
	return nil
}

func (n callParts) layout(l *layouter) {
	_ = n.each(func(x expr) *Error {
		x.layout(l)
		return nil
	})
}

// construct is `C(k=v, **d)`.
type construct struct {
	at
	info *entityInfo
	// direct arguments must be known before the instance is made: those of
	// indexes. The others are assigned when it exists.
	direct   []argument
	indirect []argument
	splats   []splat
	explicit []string // names of the arguments that are written, where there are splats
	class    string   // as it is written, there too
	lacks    *lacking // nil: all that indexes want is in direct
	// converted: the instance stands for an object that a plug-in returned.
	converted bool
}

// argument is `k = v` of a constructor or lookup.
type argument struct {
	name string
	// x has a frame of its own in an indirect argument of a constructor; other
	// arguments lie in the frame of the whole.
	x    root
	slot int // the position of the attribute in its instance
	// own: x stands in a scope that has the new instance as its variable.
	own bool
	// known: the value is there before anything runs. x is a *literal, for an
	// attribute that is no relation, or the *ref of self, for a relation [1].
	known bool
}

func (n *construct) layout(l *layouter) {
	for _, a := range n.direct {
		a.x.expr.layout(l)
	}
	for _, x := range n.splats {
		x.x.layout(l)
	}
	if n.lacks != nil && n.lacks.left != nil {
		n.lacks.left.layout(l)
	}
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

// lacking are attributes of indexes that a constructor has neither written nor
// as a default: one of several indexes as often as it is in them.
type lacking struct {
	names []string
	left  expr   // the instance on the left of the assignment that the constructor stands in; nil: none
	attr  string // and its attribute
}

// splat is the d of `**d`.
type splat struct {
	x     expr
	stars place
}
