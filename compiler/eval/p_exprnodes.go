package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// unusable stands for what a condition cannot use.
type unusable struct {
	at
	err *Error
}

func (n *unusable) layout(*layouter) {}

// literal is a constant.
type literal struct {
	at
	value types.Value
}

func (n *literal) layout(*layouter) {}

// refKind says where a variable is found.
type refKind uint8

const (
	refLocal  refKind = iota // in the scope depth levels up
	refSelf                  // self of the implementation
	refMember                // attribute of self, else at module level
	refModule                // at module level of a namespace
	refAbsent                // nowhere: an error when it is needed
)

// ref is a variable.
type ref struct {
	at
	name   string
	kind   refKind
	depth  int
	index  int
	ns     *namespace // refModule, and refMember's second choice
	absent *Error     // refAbsent, and refMember without a second choice
	slot   int
}

func (n *ref) layout(l *layouter) { n.slot = l.name(n.name) }

// attrRef is `x.a`.
type attrRef struct {
	at
	x    root
	attr string
	slot int
	// unset: where x is an optional relation without a value, so is this.
	unset bool
}

// passUnset says so of `x.a` and all before it. What a promise goes through may
// be not there: no error, as upstream, until its statement goes there too.
func passUnset(x expr) {
	for n, is := x.(*attrRef); is; n, is = n.x.expr.(*attrRef) {
		n.unset = true
	}
}

func (n *attrRef) layout(l *layouter) { n.slot = l.next() }

// listExpr is `[a, b]` of which something is no constant.
type listExpr struct {
	at
	items []root // each with a frame of its own, for the gradual case
	parts []expr
	slot  int // of the gathered list, in the gradual case
}

func (n *listExpr) layout(l *layouter) {
	n.slot = l.next()
	for _, item := range n.parts {
		item.layout(l)
	}
}

// dictEntry is one pair of a dict.
type dictEntry struct {
	key   string
	value expr
}

// dictExpr is `{"k": v}` of which something is no constant.
type dictExpr struct {
	at
	entries []dictEntry
}

func (n *dictExpr) layout(l *layouter) {
	for _, e := range n.entries {
		e.value.layout(l)
	}
}

// mapLookup is `d["k"]`.
type mapLookup struct {
	at
	x, key expr
}

func (n *mapLookup) layout(l *layouter) {
	n.x.layout(l)
	n.key.layout(l)
}

// comprehension is `[e for x in l if g]`; the guard is part of element and of
// unknown, which takes the place of element where x is unknown: the guard may
// still leave it out.
type comprehension struct {
	at
	element root // in a scope of its own with one variable
	unknown root // in the same
	iter    root
	ns      *namespace
	slot    int
}

// unknownElement takes the place of the element's expression for an unknown
// element: it is that very element, told like a literal.
type unknownElement struct{ at }

func (n *unknownElement) layout(*layouter) {}

// noElement is the other branch of a comprehension's guard. It takes its turn
// like a literal, which the order of what runs after it depends on.
type noElement struct{ at }

func (n *noElement) layout(*layouter) {}

func (n *comprehension) layout(l *layouter) { n.slot = l.next() }

// conditional is `c ? a : b`: the branch that is not taken is never needed.
type conditional struct {
	at
	cond, then, els root
	// guarded marks the condition of a comprehension: els is noElement.
	guarded bool
	slot    int
}

func (n *conditional) layout(l *layouter) { n.slot = l.next() }

// lazy is `and` or `or`: the right side is needed only when the left does not
// decide.
type lazy struct {
	at
	op          string
	left, right root
	slot        int
}

func (n *lazy) decides(b types.Bool) bool { return (n.op == "or") == bool(b) }

func (n *lazy) layout(l *layouter) { n.slot = l.next() }

// not negates.
type not struct {
	at
	x expr
}

func (n *not) layout(l *layouter) { n.x.layout(l) }

// binary is every other operator with two sides.
type binary struct {
	at
	op   syntax.Op
	l, r expr
	// placeless is set for the half of `a not in b` that the reference gives no
	// place: to report an error in it is an error of its own there.
	placeless bool
}

func (n *binary) layout(l *layouter) {
	n.l.layout(l)
	n.r.layout(l)
}

// isDefined is `x.y is defined` or `y is defined`.
type isDefined struct {
	at
	x    *root // nil: a variable
	v    *ref  // when x is nil
	attr string
	slot int
}

func (n *isDefined) layout(l *layouter) { n.slot = l.next() }

// matching is a regular expression as a part of another expression: whether the
// text that `self` is here begins with it.
type matching struct {
	at
	text    expr // self
	pattern *types.Regex
	source  string
}

func (n *matching) layout(l *layouter) { n.text.layout(l) }

// format is a string with {{ a.b }} in it.
type format struct {
	at
	text  string
	parts []formatPart
}

type formatPart struct {
	match string // the field as it is written
	x     expr
}

func (n *format) layout(l *layouter) {
	for _, p := range n.parts {
		p.x.layout(l)
	}
}

// fstring is f"…".
type fstring struct {
	at
	pieces []fpiece
}

// fpiece is literal text, or a field when x is set.
type fpiece struct {
	text       string
	field      string // as written
	isField    bool
	x          expr // nil for a field that the reference forgets
	conversion rune
	spec       []fpiece
}

func eachField(pieces []fpiece, do func(x expr) *Error) *Error {
	for _, p := range pieces {
		if p.x == nil {
			continue
		}
		if err := do(p.x); err != nil {
			return err
		}
		if err := eachField(p.spec, do); err != nil {
			return err
		}
	}
	return nil
}

func (n *fstring) layout(l *layouter) {
	_ = eachField(n.pieces, func(x expr) *Error {
		x.layout(l)
		return nil
	})
}
