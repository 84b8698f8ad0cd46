package program

import "ordain.dev/ordain/compiler/types"

// Call is `f(a, k=v, **d)`: a plug-in or a cast.
type Call struct {
	Written
	Name      string
	Cast      types.Primitive // the type of a cast, unless Plugin is set
	Plugin    *PluginInfo
	Args      []Expr
	Named     []Argument
	Splats    []Splat
	Parts     Root
	Namespace *Namespace
	names     *naming // the names that are visible where it stands
	Slot      int
}

func (n *Call) layout(l *layouter) { n.Slot = l.next() }

// CallParts stands for the arguments of a call, which are evaluated in one frame.
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

// Construct is `C(k=v, **d)`.
type Construct struct {
	Written
	Info *EntityInfo
	// Direct arguments must be known before the instance is made: those of indexes.
	// The others are assigned when it exists: Defaults first, and then Indirect.
	// Defaults are those of the entity, for all constructors that replace none of
	// them; a constructor that does has them in Indirect.
	Direct   []Argument
	Defaults []Argument
	Indirect []Argument
	Splats   []Splat
	Explicit []string // names of the written arguments, where there are splats
	Class    string   // the name as it is written, where there are splats
	Lacks    *Lacking // nil when Direct has all that indexes need
	// Converted is set when the instance stands for an object that a plug-in
	// returned.
	Converted bool
}

// Argument is `k = v` of a constructor or lookup.
type Argument struct {
	Name string
	// X has a frame of its own in an indirect argument of a constructor. Other
	// arguments lie in the frame of the whole expression.
	X    Root
	Slot int // the position of the attribute in its instance
	// Own is set when X stands in a scope that has the new instance as its variable.
	Own bool
	// Known is set when the value is there before anything runs: X is a *Literal,
	// for an attribute that is no relation, or the *Ref of self, for a relation [1].
	Known bool
}

func (a Argument) sameName(other Argument) bool { return a.Name == other.Name }

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

// Lookup is `C[k=v]`, or `x.rel[k=v]` when x is set.
type Lookup struct {
	Written
	X      Expr // the instance of a short lookup
	Rel    string
	Info   *EntityInfo
	Named  []Argument
	Splats []Splat
	Parts  Root // everything that must be known first
	Slot   int
}

func (n *Lookup) layout(l *layouter) { n.Slot = l.next() }

// LookupParts stands for all that a lookup needs, which is evaluated in one frame.
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

// Lacking has the attributes of indexes that a constructor does not set and that
// have no default; one of several indexes as often as it is in them.
type Lacking struct {
	Names []string
	Left  Expr   // the instance on the left side of the assignment around the constructor; nil: none
	Attr  string // and its attribute
}

// Splat is the d of `**d`.
type Splat struct {
	X     Expr
	Stars Place
}
