package program

import "ordain.dev/ordain/compiler/types"

// call is `f(a, k=v, **d)`: a plug-in or a cast.
type Call struct {
	Written
	Name      string
	Cast      types.Primitive // a cast, unless plugin is set
	Plugin    *PluginInfo
	Args      []Expr
	Named     []Argument
	Splats    []Splat
	Parts     Root
	Namespace *Namespace
	names     *naming // what is in sight where it stands
	Slot      int
}

func (n *Call) layout(l *layouter) { n.Slot = l.next() }

// callParts evaluates the arguments of a call in one frame.
type CallParts struct{ *Call }

func (n CallParts) Each(do func(x Expr) *Error) *Error {
	for _, x := range n.Args {
		if err := do(x); err != nil {
			return err
		}
	}
	for _, a := range n.Named {
		if err := do(a.X.Expr); err != nil {
			return err
		}
	}
	for _, x := range n.Splats {
		if err := do(x.X); err != nil {
			return err
		}
	}
	return nil
}

func (n CallParts) layout(l *layouter) {
	_ = n.Each(func(x Expr) *Error {
		x.layout(l)
		return nil
	})
}

// construct is `C(k=v, **d)`.
type Construct struct {
	Written
	Info *EntityInfo
	// direct arguments must be known before the instance is made: those of
	// indexes. The others are assigned when it exists.
	Direct   []Argument
	Indirect []Argument
	Splats   []Splat
	Explicit []string // names of the arguments that are written, where there are splats
	Class    string   // as it is written, there too
	Lacks    *Lacking // nil: all that indexes want is in direct
	// converted: the instance stands for an object that a plug-in returned.
	Converted bool
}

// argument is `k = v` of a constructor or lookup.
type Argument struct {
	Name string
	// x has a frame of its own in an indirect argument of a constructor; other
	// arguments lie in the frame of the whole.
	X    Root
	Slot int // the position of the attribute in its instance
	// own: x stands in a scope that has the new instance as its variable.
	Own bool
	// known: the value is there before anything runs. x is a *literal, for an
	// attribute that is no relation, or the *ref of self, for a relation [1].
	Known bool
}

func (n *Construct) layout(l *layouter) {
	for _, a := range n.Direct {
		a.X.Expr.layout(l)
	}
	for _, x := range n.Splats {
		x.X.layout(l)
	}
	if n.Lacks != nil && n.Lacks.Left != nil {
		n.Lacks.Left.layout(l)
	}
}

// lookup is `C[k=v]`, or `x.rel[k=v]` when x is set.
type Lookup struct {
	Written
	X      Expr // short lookup: the instance
	Rel    string
	Info   *EntityInfo
	Named  []Argument
	Splats []Splat
	Parts  Root // of everything that must be known
	Slot   int
}

func (n *Lookup) layout(l *layouter) { n.Slot = l.next() }

// lookupParts evaluates all that a lookup needs, in one frame.
type LookupParts struct{ *Lookup }

func (n LookupParts) layout(l *layouter) {
	if n.X != nil {
		n.X.layout(l)
	}
	for _, a := range n.Named {
		a.X.Expr.layout(l)
	}
	for _, x := range n.Splats {
		x.X.layout(l)
	}
}

// lacking are attributes of indexes that a constructor has neither written nor
// as a default: one of several indexes as often as it is in them.
type Lacking struct {
	Names []string
	Left  Expr   // the instance on the left of the assignment that the constructor stands in; nil: none
	Attr  string // and its attribute
}

// splat is the d of `**d`.
type Splat struct {
	X     Expr
	Stars Place
}
