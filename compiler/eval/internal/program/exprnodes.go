package program

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// unusable stands for what a condition cannot use.
type Unusable struct {
	Written
	Err *Error
}

func (n *Unusable) layout(*layouter) {}

// literal is a constant.
type Literal struct {
	Written
	Value types.Value
}

func (n *Literal) layout(*layouter) {}

// refKind says where a variable is found.
type refKind uint8

const (
	RefLocal  refKind = iota // in the scope depth levels up
	RefSelf                  // self of the implementation
	RefMember                // attribute of self, else at module level
	refModule                // at module level of a namespace
	refAbsent                // nowhere: an error when it is needed
)

// ref is a variable.
type Ref struct {
	Written
	Name      string
	Kind      refKind
	Depth     int
	Index     int
	Namespace *Namespace // refModule, and refMember's second choice
	Absent    *Error     // refAbsent, and refMember without a second choice
	Slot      int
}

func (n *Ref) layout(l *layouter) { n.Slot = l.name(n.Name) }

// attrRef is `x.a`.
type AttrRef struct {
	Written
	X    Root
	Attr string
	Slot int
	// unset: where x is an optional relation without a value, so is this.
	Unset bool
}

// passUnset says so of `x.a` and all before it. What a promise goes through may
// be not there: no error, as upstream, until its statement goes there too.
func passUnset(x Expr) {
	for n, is := x.(*AttrRef); is; n, is = n.X.Expr.(*AttrRef) {
		n.Unset = true
	}
}

func (n *AttrRef) layout(l *layouter) { n.Slot = l.next() }

// listExpr is `[a, b]` of which something is no constant.
type List struct {
	Written
	Items []Root // each with a frame of its own, for the gradual case
	Parts []Expr
	Slot  int // of the gathered list, in the gradual case
}

func (n *List) layout(l *layouter) {
	n.Slot = l.next()
	for _, item := range n.Parts {
		item.layout(l)
	}
}

// dictEntry is one pair of a dict.
type DictEntry struct {
	Key   string
	Value Expr
}

// dictExpr is `{"k": v}` of which something is no constant.
type Dict struct {
	Written
	Entries []DictEntry
}

func (n *Dict) layout(l *layouter) {
	for _, e := range n.Entries {
		e.Value.layout(l)
	}
}

// mapLookup is `d["k"]`.
type MapLookup struct {
	Written
	X, Key Expr
}

func (n *MapLookup) layout(l *layouter) {
	n.X.layout(l)
	n.Key.layout(l)
}

// comprehension is `[e for x in l if g]`; the guard is part of element and of
// unknown, which takes the place of element where x is unknown: the guard may
// still leave it out.
type Comprehension struct {
	Written
	Element   Root // in a scope of its own with one variable
	Unknown   Root // in the same
	Iter      Root
	Namespace *Namespace
	Slot      int
}

// unknownElement takes the place of the element's expression for an unknown
// element: it is that very element, told like a literal.
type UnknownElement struct{ Written }

func (n *UnknownElement) layout(*layouter) {}

// noElement is the other branch of a comprehension's guard. It takes its turn
// like a literal, which the order of what runs after it depends on.
type NoElement struct{ Written }

func (n *NoElement) layout(*layouter) {}

func (n *Comprehension) layout(l *layouter) { n.Slot = l.next() }

// conditional is `c ? a : b`: the branch that is not taken is never needed.
type Conditional struct {
	Written
	Cond, Then, Else Root
	// guarded marks the condition of a comprehension: els is noElement.
	Guarded bool
	Slot    int
}

func (n *Conditional) layout(l *layouter) { n.Slot = l.next() }

// lazy is `and` or `or`: the right side is needed only when the left does not
// decide.
type Logical struct {
	Written
	Op          string
	Left, Right Root
	Slot        int
}

func (n *Logical) Decides(b types.Bool) bool { return (n.Op == "or") == bool(b) }

func (n *Logical) layout(l *layouter) { n.Slot = l.next() }

// not negates.
type Not struct {
	Written
	X Expr
}

func (n *Not) layout(l *layouter) { n.X.layout(l) }

// binary is every other operator with two sides.
type Binary struct {
	Written
	Op          syntax.Op
	Left, Right Expr
	// placeless is set for the half of `a not in b` that the reference gives no
	// place: to report an error in it is an error of its own there.
	Placeless bool
}

func (n *Binary) layout(l *layouter) {
	n.Left.layout(l)
	n.Right.layout(l)
}

// isDefined is `x.y is defined` or `y is defined`.
type IsDefined struct {
	Written
	X    *Root // nil: a variable
	V    *Ref  // when x is nil
	Attr string
	Slot int
}

func (n *IsDefined) layout(l *layouter) { n.Slot = l.next() }

// matching is a regular expression as a part of another expression: whether the
// text that `self` is here begins with it.
type Matching struct {
	Written
	Text    Expr // self
	Pattern *types.Regex
	Source  string
}

func (n *Matching) layout(l *layouter) { n.Text.layout(l) }

// format is a string with {{ a.b }} in it.
type Format struct {
	Written
	Text  string
	Parts []formatPart
}

type formatPart struct {
	Match string // the field as it is written
	X     Expr
}

func (n *Format) layout(l *layouter) {
	for _, p := range n.Parts {
		p.X.layout(l)
	}
}

// fstring is f"…".
type Fstring struct {
	Written
	Pieces []Fpiece
}

// fpiece is literal text, or a field when x is set.
type Fpiece struct {
	Text       string
	Field      string // as written
	IsField    bool
	X          Expr // nil for a field that the reference forgets
	Conversion rune
	Spec       []Fpiece
}

func EachField(pieces []Fpiece, do func(x Expr) *Error) *Error {
	for _, p := range pieces {
		if p.X == nil {
			continue
		}
		if err := do(p.X); err != nil {
			return err
		}
		if err := EachField(p.Spec, do); err != nil {
			return err
		}
	}
	return nil
}

func (n *Fstring) layout(l *layouter) {
	_ = EachField(n.Pieces, func(x Expr) *Error {
		x.layout(l)
		return nil
	})
}
