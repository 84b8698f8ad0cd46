package program

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Unusable stands for an expression that cannot be used in the condition of a
// typedef.
type Unusable struct {
	Written
	Err *Error
}

func (n *Unusable) layout(*layouter) {}

// Literal is a constant.
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
	refAbsent                // nowhere, which is an error when it is needed
)

// Ref is a variable.
type Ref struct {
	Written
	Name      string
	Kind      refKind
	Depth     int
	Index     int
	Namespace *Namespace // of refModule, and the second choice of refMember
	Absent    *Error     // of refAbsent, and of refMember without a second choice
	Slot      int
}

func (n *Ref) layout(l *layouter) { n.Slot = l.name(n.Name) }

// AttrRef is `x.a`.
type AttrRef struct {
	Written
	X    Root
	Attr string
	Slot int
	// Unset means that the value is unset, and no error, when x is an optional
	// relation without a value.
	Unset bool
}

// passUnset sets Unset of `x.a` and all before it. As in the reference, a promise
// may go through what is not there: that is an error only when the statement runs.
func passUnset(x Expr) {
	for n, is := x.(*AttrRef); is; n, is = n.X.Expr.(*AttrRef) {
		n.Unset = true
	}
}

func (n *AttrRef) layout(l *layouter) { n.Slot = l.next() }

// List is `[a, b]` of which something is no constant.
type List struct {
	Written
	Items []Root // each in a frame of its own, for the gradual case
	Parts []Expr
	Slot  int // that of the gathered list, in the gradual case
}

func (n *List) layout(l *layouter) {
	n.Slot = l.next()
	for _, item := range n.Parts {
		item.layout(l)
	}
}

// DictEntry is one pair of a dict.
type DictEntry struct {
	Key   string
	Value Expr
}

// Dict is `{"k": v}` of which something is no constant.
type Dict struct {
	Written
	Entries []DictEntry
}

func (n *Dict) layout(l *layouter) {
	for _, e := range n.Entries {
		e.Value.layout(l)
	}
}

// MapLookup is `d["k"]`.
type MapLookup struct {
	Written
	X, Key Expr
}

func (n *MapLookup) layout(l *layouter) {
	n.X.layout(l)
	n.Key.layout(l)
}

// Comprehension is `[e for x in l if g]`. The guard is part of Element and of
// Unknown, which replaces Element when x is unknown: the guard may still leave it
// out.
type Comprehension struct {
	Written
	Element   Root // in a scope of its own with one variable
	Unknown   Root // in the same
	Iter      Root
	Namespace *Namespace
	Slot      int
}

// UnknownElement replaces the expression of an unknown element: its value is that
// element.
type UnknownElement struct{ Written }

func (n *UnknownElement) layout(*layouter) {}

// NoElement is the other branch of a comprehension's guard. It takes its turn like a
// literal, since the order of what runs after it depends on that.
type NoElement struct{ Written }

func (n *NoElement) layout(*layouter) {}

func (n *Comprehension) layout(l *layouter) { n.Slot = l.next() }

// Conditional is `c ? a : b`: the branch that is not taken is never needed.
type Conditional struct {
	Written
	Cond, Then, Else Root
	// Guarded marks the guard of a comprehension: Else is a NoElement.
	Guarded bool
	Slot    int
}

func (n *Conditional) layout(l *layouter) { n.Slot = l.next() }

// Logical is `and` or `or`. The right side is needed only when the left side does
// not decide.
type Logical struct {
	Written
	Op          string
	Left, Right Root
	Slot        int
}

func (n *Logical) Decides(b types.Bool) bool { return (n.Op == "or") == bool(b) }

func (n *Logical) layout(l *layouter) { n.Slot = l.next() }

// Not is `not x`.
type Not struct {
	Written
	X Expr
}

func (n *Not) layout(l *layouter) { n.X.layout(l) }

// Binary is any other operator with two sides.
type Binary struct {
	Written
	Op          syntax.Op
	Left, Right Expr
	// Placeless is set for the half of `a not in b` to which the reference gives no
	// place, so that reporting an error in it fails there.
	Placeless bool
}

func (n *Binary) layout(l *layouter) {
	n.Left.layout(l)
	n.Right.layout(l)
}

// IsDefined is `x.y is defined` or `y is defined`.
type IsDefined struct {
	Written
	X    *Root // nil: a variable
	V    *Ref  // when x is nil
	Attr string
	Slot int
}

func (n *IsDefined) layout(l *layouter) { n.Slot = l.next() }

// Matching is a regular expression inside another expression. It is true when the
// text in self begins with a match.
type Matching struct {
	Written
	Text    Expr // self
	Pattern *types.Regex
	Source  string
}

func (n *Matching) layout(l *layouter) { n.Text.layout(l) }

// Format is a string with {{ a.b }} in it.
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

// FString is f"…".
type FString struct {
	Written
	Pieces []FPiece
}

// FPiece is literal text, or a field when IsField is set.
type FPiece struct {
	Text       string
	Field      string // as it is written
	IsField    bool
	X          Expr // nil for a field that the reference forgets
	Conversion rune
	Spec       []FPiece
}

func EachField(pieces []FPiece, do func(x Expr) *Error) *Error {
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

func (n *FString) layout(l *layouter) {
	_ = EachField(n.Pieces, func(x Expr) *Error {
		x.layout(l)
		return nil
	})
}
