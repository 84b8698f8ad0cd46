package pyregex

import (
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// flags are those that a pattern can set for itself.
type flags uint8

const (
	ignoreCase flags = 1 << iota
	multiLine
	dotAll
	verbose
	ascii
	uni
)

const flagLetters = "iLmsxau"

var flagOf = map[token]flags{"i": ignoreCase, "m": multiLine, "s": dotAll, "x": verbose, "a": ascii, "u": uni}

// with returns the flags inside of a group that changes them.
func (f flags) with(add, del flags) flags {
	if add&(ascii|uni) != 0 {
		f &^= ascii | uni
	}
	return (f | add) &^ del
}

// group reads what follows an opening parenthesis, up to the closing one. It returns nil for comments
// and for flags of the whole pattern.
func (p *parser) group(first bool) *node {
	start := p.at() - 1
	n := &node{kind: kGroup}
	capture, name := true, ""
	if p.match("?") {
		capture = false
		switch char := p.option(); {
		case char == "P":
			switch {
			case p.match("<"):
				capture, name = true, p.groupName(">")
			case p.match("="):
				return p.namedReference()
			default:
				c := p.option()
				p.fail(c.size()+2, "unknown extension ?P%s", c)
			}
		case char == ":":
		case char == ">":
			n.kind = kAtomic
		case char == "#":
			p.comment(start)
			return nil
		case char.in("=!<"):
			return p.look(char, start)
		case char == "(":
			return p.condition(start)
		case char == "-" || char.in(flagLetters):
			var whole bool
			if n.add, n.del, whole = p.inlineFlags(char); whole {
				if !first {
					p.failAt(start, "global flags not at the start of the expression")
				}
				p.flags |= n.add
				p.verbose = p.flags&verbose != 0
				return nil
			}
		default:
			p.fail(char.size()+1, "unknown extension ?%s", char)
		}
	}
	if capture {
		n.group = p.open(name)
	}
	before := p.verbose
	p.verbose = (p.verbose || n.add&verbose != 0) && n.del&verbose == 0
	inner := p.alternatives(false)
	p.verbose = before
	p.close(start)
	n.parts, n.width = []sequence{inner}, inner.width()
	if capture {
		p.closed[n.group], p.widths[n.group] = true, n.width
	}
	return n
}

// option reads the character that says what kind of group it is.
func (p *parser) option() token {
	t := p.get()
	if t == "" {
		p.fail(0, "unexpected end of pattern")
	}
	return t
}

// open numbers a group.
func (p *parser) open(name string) int {
	n := len(p.closed)
	if name != "" {
		if was, ok := p.names[name]; ok {
			p.fail(size(name)+1, "redefinition of group name %s as group %d; was group %d", pytext.Quote(name), n, was)
		}
		p.names[name] = n
	}
	p.closed = append(p.closed, false)
	p.widths = append(p.widths, width{})
	return n
}

func (p *parser) close(start int) {
	if !p.match(")") {
		p.failAt(start, "missing ), unterminated subpattern")
	}
}

func (p *parser) comment(start int) {
	for {
		if p.next == "" {
			p.failAt(start, "missing ), unterminated comment")
		}
		if p.get() == ")" {
			return
		}
	}
}

func (p *parser) groupName(end token) string {
	name := p.until(end, "group name")
	p.checkName(name)
	return name
}

func (p *parser) checkName(name string) {
	if !isIdentifier(name) {
		p.fail(size(name)+1, "bad character in group name %s", pytext.Quote(name))
	}
}

func (p *parser) named(name string) int {
	n, ok := p.names[name]
	if !ok {
		p.fail(size(name)+1, "unknown group name %s", pytext.Quote(name))
	}
	return n
}

func (p *parser) namedReference() *node {
	name := p.groupName(")")
	return p.reference(p.named(name), size(name)+1)
}

// checkBehind refuses a reference in a look-behind to a group that does not end before it.
func (p *parser) checkBehind(n int) {
	if p.behind < 0 {
		return
	}
	if n >= len(p.closed) || !p.closed[n] {
		p.fail(0, "cannot refer to an open group")
	}
	if n >= p.behind {
		p.fail(0, "cannot refer to group defined in the same lookbehind subpattern")
	}
}

// look reads a look-ahead or look-behind.
func (p *parser) look(char token, start int) *node {
	n := &node{kind: kLook}
	before := p.behind
	if char == "<" {
		n.behind = true
		if char = p.option(); !char.in("=!") {
			p.fail(char.size()+2, "unknown extension ?<%s", char)
		}
		if p.behind < 0 {
			p.behind = len(p.closed)
		}
	}
	inner := p.alternatives(false)
	p.behind = before
	p.close(start)
	n.negated = char == "!"
	n.parts = []sequence{inner}
	if n.negated && len(inner) == 0 {
		return &node{kind: kNever}
	}
	return n
}

// condition reads (?(name)yes|no).
func (p *parser) condition(start int) *node {
	n := &node{kind: kCondition, group: p.conditionGroup()}
	p.checkBehind(n.group)
	if p.depth++; p.depth > deepest {
		fail("maximum recursion depth exceeded")
	}
	yes := p.sequence(false)
	n.parts, n.width = []sequence{yes}, yes.width()
	n.width.lo = 0
	if p.match("|") {
		no := p.sequence(false)
		if p.next == "|" {
			p.fail(0, "conditional backref with more than two branches")
		}
		n.parts = append(n.parts, no)
		n.width = width{min(yes.width().lo, no.width().lo), max(yes.width().hi, no.width().hi)}
	}
	p.depth--
	p.close(start)
	return n
}

func (p *parser) conditionGroup() int {
	name := p.until(")", "group name")
	if strings.Trim(name, digits) != "" {
		p.checkName(name)
		return p.named(name)
	}
	const most = 1 << 30 // groups
	size := size(name) + 1
	n := 0
	for _, digit := range name {
		n = min(n*10+int(digit-'0'), most)
	}
	if n == 0 {
		p.fail(size, "bad group number")
	}
	if n >= most-1 {
		p.fail(size, "invalid group reference %s", strings.TrimLeft(name, "0"))
	}
	if _, ok := p.wanted[n]; !ok {
		p.wanted[n] = p.at() - size
		p.wantedOrder = append(p.wantedOrder, n)
	}
	return n
}

// inlineFlags reads (?i) or (?i-x:, and reports whether it is for the whole pattern.
func (p *parser) inlineFlags(char token) (add, del flags, whole bool) {
	next := func(ends, missing string) token {
		t := p.get()
		switch {
		case t == "":
			p.fail(0, "missing %s", missing)
		case t.in(ends) || t.in(flagLetters):
		case isAlpha(string(t)):
			p.fail(1, "unknown flag")
		default:
			p.fail(t.size(), "missing %s", missing)
		}
		return t
	}
	for ; !char.in(")-:"); char = next(")-:", "-, : or )") {
		if char == "L" {
			p.fail(0, "bad inline flags: cannot use 'L' flag with a str pattern")
		}
		add |= flagOf[char]
		if char.in("au") && add&(ascii|uni) == ascii|uni {
			p.fail(0, "bad inline flags: flags 'a', 'u' and 'L' are incompatible")
		}
	}
	if char == ")" {
		return add, 0, true
	}
	if char == "-" {
		for char = next("", "flag"); char != ":"; char = next(":", ":") {
			if char.in("auL") {
				p.fail(0, "bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
			}
			del |= flagOf[char]
		}
	}
	if add&del != 0 {
		p.fail(1, "bad inline flags: flag turned on and off")
	}
	return add, del, false
}
