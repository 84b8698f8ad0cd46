package pyregex

import (
	"strings"
	"unicode/utf8"
)

// unit is a test for one character. For those of ASCII the answer is a bit.
type unit struct {
	ascii [2]uint64
	wide  charset
}

// charset is a set of characters: of ranges and classes, or of all others.
type charset struct {
	fold    fold // how a character is folded before it is looked for
	negated bool
	items   []item
}

// item is a part of a charset.
type item struct {
	kind   itemKind
	lo, hi rune
}

type itemKind uint8

const (
	plainRange  itemKind = iota // lo to hi
	foldedRange                 // the lower-case letters of lo to hi, and those that equal them
	asciiRange                  // the lower-case letters of lo to hi, of ASCII only
	upperRange                  // lo to hi, as it is or in upper case
	word
	noWord
	digit
	noDigit
	space
	noSpace
	asciiWord
	asciiNoWord
	asciiDigit
	asciiNoDigit
	asciiSpace
	asciiNoSpace
)

// The upper-case letters of ASCII are bits 1 to 26 of the second number, and the lower-case letters 32
// bits above.
const capitalBits = (1<<26 - 1) << 1

func newUnit(set charset) *unit {
	u := &unit{wide: set}
	for _, i := range set.items {
		from, to := rune(0), rune(utf8.RuneSelf-1)
		if i.kind == plainRange {
			from, to = i.lo, min(i.hi, to)
		}
		for r := from; r <= to; r++ {
			if i.kind == plainRange || i.has(r) {
				u.add(r)
			}
		}
	}
	if set.fold != exact { // an upper-case letter counts as its lower-case letter
		u.ascii[1] = u.ascii[1]&^capitalBits | u.ascii[1]>>32&capitalBits
	}
	if set.negated {
		u.ascii[0], u.ascii[1] = ^u.ascii[0], ^u.ascii[1]
	}
	return u
}

func (u *unit) add(r rune) { u.ascii[r>>6] |= 1 << (r & 63) }

// at returns the length in bytes of the character at an offset if it matches; else 0.
func (u *unit) at(text string, p int) int {
	if p >= len(text) {
		return 0
	}
	c := text[p]
	if c < utf8.RuneSelf {
		return int(u.ascii[c>>6] >> (c & 63) & 1)
	}
	r, n := utf8.DecodeRuneInString(text[p:])
	if u.wide.has(r) {
		return n
	}
	return 0
}

func (s *charset) has(r rune) bool {
	r = s.fold.lower(r)
	for i := range s.items {
		if s.items[i].has(r) {
			return !s.negated
		}
	}
	return s.negated
}

func (i *item) has(r rune) bool {
	switch i.kind {
	case plainRange:
		return within(i.lo, i.hi, r)
	case foldedRange:
		return reaches(i.lo, i.hi, r)
	case asciiRange:
		return asciiReaches(i.lo, i.hi, r)
	case upperRange:
		return within(i.lo, i.hi, r) || within(i.lo, i.hi, upper(r))
	case word:
		return isWord(r)
	case noWord:
		return !isWord(r)
	case digit:
		return isDigit(r)
	case noDigit:
		return !isDigit(r)
	case space:
		return isSpace(r)
	case noSpace:
		return !isSpace(r)
	case asciiWord:
		return isASCIIWord(r)
	case asciiNoWord:
		return !isASCIIWord(r)
	case asciiDigit:
		return isASCIIDigit(r)
	case asciiNoDigit:
		return !isASCIIDigit(r)
	case asciiSpace:
		return isASCIISpace(r)
	default:
		return !isASCIISpace(r)
	}
}

// foldOf is the fold that flags ask for.
func foldOf(f flags) fold {
	switch {
	case f&ignoreCase == 0:
		return exact
	case f&uni == 0:
		return asciiFold
	}
	return uniFold
}

// unitOf makes the test of a node that matches one character.
func unitOf(n *node, f flags) *unit {
	switch n.kind {
	case kAny:
		if f&dotAll != 0 {
			return newUnit(charset{negated: true})
		}
		return newUnit(charset{negated: true, items: []item{{lo: '\n', hi: '\n'}}})
	case kSet:
		return newUnit(setOf(n, f))
	}
	set := charset{negated: n.kind == kNotLiteral}
	fold := foldOf(f)
	if !fold.cased(n.char) {
		set.items = []item{{lo: n.char, hi: n.char}}
		return newUnit(set)
	}
	set.fold = fold
	for _, r := range fold.equivalents(fold.lower(n.char)) {
		set.items = append(set.items, item{lo: r, hi: r})
	}
	return newUnit(set)
}

// setOf makes the test of a set. If none of its characters has case, Python does not fold characters of
// the text.
func setOf(n *node, f flags) charset {
	set := charset{negated: n.negated}
	fold := foldOf(f)
	for _, m := range n.members {
		if m.class != 0 {
			set.items = append(set.items, item{kind: classOf(m.class, f)})
			continue
		}
		if m.ranged && fold.casedIn(m.lo, m.hi) || !m.ranged && fold.cased(m.lo) {
			set.fold = fold
		}
		set.items = append(set.items, itemsOf(m, fold)...)
	}
	return set
}

// itemsOf converts a member of a set. Beyond the first 65,536 characters Python does not fold those of
// the pattern, so an upper-case letter there matches nothing unless it is in a range.
func itemsOf(m member, f fold) []item {
	const last = 0xffff
	if f == exact || !m.ranged && m.lo > last {
		return []item{{lo: m.lo, hi: m.hi}}
	}
	var items []item
	if m.lo <= last {
		items = []item{{kind: foldedRange, lo: m.lo, hi: min(m.hi, last)}}
		if f == asciiFold {
			items[0].kind = asciiRange
		}
	}
	if m.hi > last {
		items = append(items, item{kind: upperRange, lo: m.lo, hi: m.hi})
	}
	return items
}

func classOf(class byte, f flags) itemKind {
	kinds := [...]itemKind{word, noWord, digit, noDigit, space, noSpace}
	if f&uni == 0 {
		kinds = [...]itemKind{asciiWord, asciiNoWord, asciiDigit, asciiNoDigit, asciiSpace, asciiNoSpace}
	}
	return kinds[strings.IndexByte("wWdDsS", class)]
}
