package pyregex

import (
	"strconv"
	"unicode/utf8"
)

// parser reads a pattern into a tree. Groups are numbered from 1.
type parser struct {
	source
	chars   Names // of characters
	flags   flags
	verbose bool // at this place; groups may change it
	depth   int

	closed      []bool // by group; there is no group 0
	widths      []width
	names       map[string]int // of groups
	wanted      map[int]int    // groups that conditions refer to, and where
	wantedOrder []int
	behind      int // number of groups where the look-behind began; -1 outside of one
}

// deepest is how deep groups may be nested. Python has such a limit too.
const deepest = 1000

func newParser(pattern string, chars Names) *parser {
	if !utf8.ValidString(pattern) {
		pattern = string([]rune(pattern))
	}
	return &parser{
		source: source{pattern: pattern, rest: pattern}, chars: chars,
		closed: []bool{true}, widths: []width{{}}, names: map[string]int{}, wanted: map[int]int{}, behind: -1,
	}
}

func (p *parser) groupCount() int { return len(p.closed) - 1 }

// pattern reads the whole pattern.
func (p *parser) pattern() sequence {
	p.advance()
	tree := p.alternatives(true)
	if p.flags&(ascii|uni) == ascii|uni {
		fail("ASCII and UNICODE flags are incompatible")
	}
	if p.flags&ascii == 0 {
		p.flags |= uni
	}
	if p.next != "" {
		p.fail(0, "unbalanced parenthesis")
	}
	for _, g := range p.wantedOrder {
		if g >= len(p.closed) {
			p.failAt(p.wanted[g], "invalid group reference %d", g)
		}
	}
	return tree
}

// alternatives reads sequences separated by bars. Flags for the whole pattern may be set only in the
// outermost.
func (p *parser) alternatives(outermost bool) sequence {
	if p.depth++; p.depth > deepest {
		fail("maximum recursion depth exceeded")
	}
	defer func() { p.depth-- }()
	items := []sequence{p.sequence(outermost)}
	for p.match("|") {
		items = append(items, p.sequence(false))
	}
	return branch(items)
}

// sequence reads up to a bar, a closing parenthesis or the end.
func (p *parser) sequence(first bool) sequence {
	var s sequence
	for p.next != "" && p.next != "|" && p.next != ")" {
		this := p.get()
		if p.verbose && p.skip(this) {
			continue
		}
		switch {
		case this.escape():
			s = append(s, p.escape(this))
		case this == "[":
			s = append(s, p.set())
		case this == ".":
			s = append(s, &node{kind: kAny, width: width{1, 1}})
		case this == "^":
			s = append(s, &node{kind: kAt, at: atStart})
		case this == "$":
			s = append(s, &node{kind: kAt, at: atEnd})
		case this == "(":
			if n := p.group(first && len(s) == 0); n != nil {
				s = append(s, n)
			}
		case this.in("*+?{"):
			s = p.repeat(s, this)
		default:
			s = append(s, literal(this.char()))
		}
	}
	return unbracketed(s)
}

// skip skips blanks and comments of a verbose pattern.
func (p *parser) skip(this token) bool {
	if this == "#" {
		for t := p.get(); t != "" && t != "\n"; t = p.get() {
		}
		return true
	}
	return this.in(" \t\n\r\v\f")
}

// repeat makes the last node of a sequence a repetition.
func (p *parser) repeat(s sequence, this token) sequence {
	here := p.at()
	lo, hi, ok := p.bounds(this)
	if !ok {
		return append(s, literal('{')) // it means itself
	}
	if len(s) == 0 || s[len(s)-1].kind == kAt {
		p.failAt(here-1, "nothing to repeat")
	}
	last := s[len(s)-1]
	if last.kind == kRepeat {
		p.failAt(here-1, "multiple repeat")
	}
	n := &node{kind: kRepeat, lo: lo, hi: hi, width: last.width.times(lo, hi), parts: []sequence{{last}}}
	if last.brackets() {
		n.parts = last.parts
	}
	switch {
	case p.match("?"):
		n.manner = lazy
	case p.match("+"):
		n.manner = possessive
	}
	s[len(s)-1] = n
	return s
}

// bounds reads the bounds of a repetition: * + ? or {n,m}. A brace without numbers is text.
func (p *parser) bounds(this token) (lo, hi int, ok bool) {
	switch this {
	case "?":
		return 0, 1, true
	case "*":
		return 0, unlimited, true
	case "+":
		return 1, unlimited, true
	}
	if p.next == "}" {
		return 0, 0, false
	}
	here := p.source
	from := p.while(len(p.rest)+1, digits)
	to := from
	if p.match(",") {
		to = p.while(len(p.rest)+1, digits)
	}
	if !p.match("}") {
		p.source = here
		return 0, 0, false
	}
	lo, hi = count(from, 0), count(to, unlimited)
	if hi < lo {
		p.failAt(here.at(), "min repeat greater than max repeat")
	}
	return lo, hi, true
}

func count(text string, none int) int {
	if text == "" {
		return none
	}
	n, err := strconv.Atoi(text)
	if err != nil || n >= unlimited {
		fail("the repetition number is too large")
	}
	return n
}
