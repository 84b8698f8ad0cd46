package pyregex

import "slices"

// kind says what a node matches.
type kind uint8

const (
	kLiteral kind = iota
	kNotLiteral
	kAny
	kSet
	kAt        // an assertion: ^ $ \b
	kRef       // what a group has matched
	kGroup     // with a number, with flags, or only brackets
	kBranch    // one of several
	kCondition // (?(1)yes|no)
	kRepeat
	kAtomic
	kLook // ahead or behind
	kNever
)

// sequence is nodes that follow each other.
type sequence []*node

// node is one part of a pattern. Its kind decides which fields have a meaning.
type node struct {
	kind    kind
	char    rune       // kLiteral, kNotLiteral
	members []member   // kSet
	negated bool       // kSet, kLook
	at      place      // kAt
	group   int        // kRef, kCondition, kGroup (0: has no number)
	add     flags      // kGroup
	del     flags      // kGroup
	lo, hi  int        // kRepeat; hi may be unlimited
	manner  manner     // kRepeat
	behind  bool       // kLook
	parts   []sequence // its parts; kCondition: yes, and no if there is one
	width   width
}

// manner says whether a repetition is greedy, lazy or possessive.
type manner uint8

const (
	greedy manner = iota
	lazy
	possessive
)

// place is the assertion of kAt.
type place uint8

const (
	atStart place = iota
	atEnd
	atTextStart
	atTextEnd
	atWordEdge
	atNoWordEdge
)

// member is one item of a set: a range of characters, or a class such as \d.
type member struct {
	lo, hi rune
	class  byte // one of "dDsSwW"; 0: the range
	ranged bool // written as a range, even if of one character
}

// width is the smallest and the largest number of characters that something matches.
type width struct{ lo, hi int }

const (
	unlimited = 1<<32 - 1 // the number of repetitions that means any number
	widest    = 1 << 61
)

func (w width) plus(v width) width {
	return width{min(w.lo+v.lo, widest), min(w.hi+v.hi, widest)}
}

func (w width) times(lo, hi int) width {
	if hi == unlimited {
		hi = widest
	}
	return width{product(w.lo, lo), product(w.hi, hi)}
}

func product(a, b int) int {
	if a != 0 && b > widest/a {
		return widest
	}
	return a * b
}

func (s sequence) width() width {
	var w width
	for _, n := range s {
		w = w.plus(n.width)
	}
	return w
}

func literal(r rune) *node { return &node{kind: kLiteral, char: r, width: width{1, 1}} }

func set(members []member, negated bool) *node {
	return &node{kind: kSet, members: unique(members), negated: negated, width: width{1, 1}}
}

func unique(members []member) []member {
	var kept []member
	for _, m := range members {
		if !slices.Contains(kept, m) {
			kept = append(kept, m)
		}
	}
	return kept
}

// brackets reports whether the node is a group that is mere brackets.
func (n *node) brackets() bool {
	return n.kind == kGroup && n.group == 0 && n.add == 0 && n.del == 0
}

// unbracketed replaces groups that are mere brackets by their parts.
func unbracketed(s sequence) sequence {
	if !slices.ContainsFunc(s, (*node).brackets) {
		return s
	}
	var flat sequence
	for _, n := range s {
		if n.brackets() {
			flat = append(flat, n.parts[0]...)
		} else {
			flat = append(flat, n)
		}
	}
	return flat
}

// simple reports whether the sequence always matches one character. Python repeats such sequences in
// another way, also inside of groups that only set flags.
func (s sequence) simple() bool {
	if len(s) != 1 {
		return false
	}
	switch n := s[0]; n.kind {
	case kLiteral, kNotLiteral, kAny, kSet:
		return true
	case kGroup:
		return n.group == 0 && n.parts[0].simple()
	}
	return false
}

// same reports whether Python takes two nodes for equal: those with parts never are.
func same(a, b *node) bool {
	return len(a.parts) == 0 && len(b.parts) == 0 && a.kind == b.kind && a.char == b.char && a.negated == b.negated &&
		a.at == b.at && a.group == b.group && slices.Equal(a.members, b.members)
}

// branch makes one sequence of alternatives. A common beginning of all is put before them, and
// alternatives of one character each become a set.
func branch(items []sequence) sequence {
	if len(items) == 1 {
		return items[0]
	}
	var out sequence
	for commonStart(items) {
		out = append(out, items[0][0])
		for i := range items {
			items[i] = items[i][1:]
		}
	}
	if members, ok := oneOf(items); ok {
		return append(out, set(members, false))
	}
	n := &node{kind: kBranch, parts: items, width: items[0].width()}
	for _, item := range items[1:] {
		w := item.width()
		n.width = width{min(n.width.lo, w.lo), max(n.width.hi, w.hi)}
	}
	return append(out, n)
}

func commonStart(items []sequence) bool {
	for _, item := range items {
		if len(item) == 0 || !same(item[0], items[0][0]) {
			return false
		}
	}
	return true
}

func oneOf(items []sequence) ([]member, bool) {
	var members []member
	for _, item := range items {
		if len(item) != 1 {
			return nil, false
		}
		switch n := item[0]; {
		case n.kind == kLiteral:
			members = append(members, member{lo: n.char, hi: n.char})
		case n.kind == kSet && !n.negated:
			members = append(members, n.members...)
		default:
			return nil, false
		}
	}
	return members, true
}
