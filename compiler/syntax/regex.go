package syntax

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// checkRegex says what Python's re module finds wrong with a pattern, in its
// words; nothing when it compiles. Only the syntax counts here: whether the
// look-behind has a fixed width is part of it.
func checkRegex(pattern string) (problem string) {
	p := &regexParser{src: []rune(pattern), closed: []bool{true}, widths: []width{{}}, names: map[string]int{}, wanted: map[int]int{}, behind: -1}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(regexProblem)
			if !ok {
				panic(r)
			}
			problem = string(e)
		}
	}()
	p.alternatives(true)
	if p.pos < len(p.src) {
		p.fail(0, "unbalanced parenthesis")
	}
	for _, g := range p.wantedOrder {
		if g >= len(p.closed) {
			p.failAt(p.wanted[g], "invalid group reference %d", g)
		}
	}
	if p.variable {
		return "look-behind requires fixed-width pattern"
	}
	return ""
}

type regexProblem string

// width is how many characters a piece matches, at least and at most.
type width struct{ lo, hi int }

const unlimited = 1<<32 - 1

func (w width) plus(v width) width {
	return width{min(w.lo+v.lo, unlimited), min(w.hi+v.hi, unlimited)}
}

func (w width) times(lo, hi int) width {
	mul := func(a, b int) int {
		if a == 0 || b == 0 {
			return 0
		}
		if a > unlimited/b {
			return unlimited
		}
		return a * b
	}
	return width{mul(w.lo, lo), mul(w.hi, hi)}
}

// piece is what a repetition may follow, or not.
type piece uint8

const (
	noPiece piece = iota
	plainPiece
	anchorPiece // ^ $ \b: cannot be repeated
	repeatPiece // x*: cannot be repeated again
)

// regexParser reads a pattern as Python does. Groups are numbered from 1.
type regexParser struct {
	src         []rune
	pos         int
	closed      []bool
	widths      []width
	names       map[string]int
	wanted      map[int]int // groups that conditions name, and where
	wantedOrder []int
	behind      int // groups that existed where the look-behind began; -1 outside
	verbose     bool
	variable    bool // a look-behind without a fixed width
}

func (p *regexParser) failAt(pos int, format string, args ...any) {
	panic(regexProblem(fmt.Sprintf(format, args...) + " at position " + strconv.Itoa(pos)))
}

// fail places the problem some characters before what is read next.
func (p *regexParser) fail(back int, format string, args ...any) {
	p.failAt(p.pos-back, format, args...)
}

// peek gives the next unit: a character, or a backslash and the one after it.
func (p *regexParser) peek() string {
	if p.pos >= len(p.src) {
		return ""
	}
	if p.src[p.pos] != '\\' {
		return string(p.src[p.pos])
	}
	if p.pos+1 == len(p.src) {
		p.failAt(p.pos, "bad escape (end of pattern)")
	}
	return string(p.src[p.pos : p.pos+2])
}

func (p *regexParser) get() string {
	s := p.peek()
	p.pos += len([]rune(s))
	return s
}

func (p *regexParser) match(s string) bool {
	if p.peek() != s {
		return false
	}
	p.get()
	return true
}

func (p *regexParser) getWhile(n int, set string) string {
	var b strings.Builder
	for ; n > 0; n-- {
		c := p.peek()
		if c == "" || !strings.Contains(set, c) {
			break
		}
		b.WriteString(p.get())
	}
	return b.String()
}

func (p *regexParser) getUntil(end, what string) string {
	result := ""
	for {
		c := p.get()
		switch {
		case c == "" && result == "":
			p.fail(0, "missing %s", what)
		case c == "":
			p.fail(len([]rune(result)), "missing %s, unterminated name", end)
		case c == end && result == "":
			p.fail(1, "missing %s", what)
		case c == end:
			return result
		}
		result += c
	}
}

func (p *regexParser) alternatives(first bool) width {
	w := p.sequence(first)
	for p.match("|") {
		v := p.sequence(false)
		w = width{min(w.lo, v.lo), max(w.hi, v.hi)}
	}
	return w
}

// sequence reads up to a bar, a closing parenthesis or the end.
func (p *regexParser) sequence(first bool) width {
	var total, last width
	kind := noPiece
	add := func(k piece, w width) {
		total = total.plus(w)
		kind, last = k, w
	}
	for {
		this := p.peek()
		if this == "" || this == "|" || this == ")" {
			return total
		}
		p.get()
		if p.verbose {
			if this == "#" {
				for c := p.get(); c != "" && c != "\n"; c = p.get() {
				}
				continue
			}
			if unicode.IsSpace([]rune(this)[0]) {
				continue
			}
		}
		one := width{1, 1}
		switch {
		case this[0] == '\\':
			k, w := p.escape(this)
			add(k, w)
		case this == "[":
			p.set()
			add(plainPiece, one)
		case this == "^" || this == "$":
			add(anchorPiece, width{})
		case this == "(":
			k, w := p.group(first && kind == noPiece)
			if k != noPiece {
				add(k, w)
			}
		case strings.Contains("*+?{", this):
			here := p.pos
			lo, hi, ok := p.bounds(this)
			if !ok {
				add(plainPiece, one) // a brace that stands for itself
				continue
			}
			switch kind {
			case noPiece, anchorPiece:
				p.failAt(here-1, "nothing to repeat")
			case repeatPiece:
				p.failAt(here-1, "multiple repeat")
			}
			if !p.match("?") {
				p.match("+")
			}
			repeated := last.times(lo, hi)
			total = width{total.lo - last.lo + repeated.lo, min(total.hi-last.hi+repeated.hi, unlimited)}
			kind, last = repeatPiece, repeated
		default:
			add(plainPiece, one)
		}
	}
}

// bounds reads how often: * + ? or {n,m}. A brace without numbers is text.
func (p *regexParser) bounds(this string) (lo, hi int, ok bool) {
	switch this {
	case "?":
		return 0, 1, true
	case "*":
		return 0, unlimited, true
	case "+":
		return 1, unlimited, true
	}
	here := p.pos
	if p.peek() == "}" {
		return 0, 0, false
	}
	const digits = "0123456789"
	from := p.getWhile(len(p.src), digits)
	to := from
	if p.match(",") {
		to = p.getWhile(len(p.src), digits)
	}
	if !p.match("}") {
		p.pos = here
		return 0, 0, false
	}
	lo, hi = p.count(from, 0), p.count(to, unlimited)
	if hi < lo {
		p.failAt(here, "min repeat greater than max repeat")
	}
	return lo, hi, true
}

func (p *regexParser) count(text string, none int) int {
	if text == "" {
		return none
	}
	n, err := strconv.Atoi(text)
	if err != nil || n >= unlimited {
		panic(regexProblem("the repetition number is too large"))
	}
	return n
}

const (
	octal   = "01234567"
	hexa    = "0123456789abcdefABCDEF"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// escape reads what a backslash begins outside a set.
func (p *regexParser) escape(this string) (piece, width) {
	c := this[1:]
	switch {
	case strings.Contains("AbBZ", c):
		return anchorPiece, width{}
	case strings.Contains("dDsSwWafnrtv\\", c):
		return plainPiece, width{1, 1}
	case c == "0":
		p.getWhile(2, octal)
		return plainPiece, width{1, 1}
	case strings.Contains("123456789", c):
		return p.backReference(this)
	}
	p.character(this)
	return plainPiece, width{1, 1}
}

// character reads an escape for one character and gives it.
func (p *regexParser) character(this string) rune {
	hexadecimal := func(n int) rune {
		text := this + p.getWhile(n, hexa)
		if len(text) != n+2 {
			p.fail(len(text), "incomplete escape %s", text)
		}
		v, _ := strconv.ParseUint(text[2:], 16, 32)
		if v > unicode.MaxRune {
			p.fail(len(text), "bad escape %s", text)
		}
		return rune(v)
	}
	switch c := this[1:]; {
	case c == "x":
		return hexadecimal(2)
	case c == "u":
		return hexadecimal(4)
	case c == "U":
		return hexadecimal(8)
	case c == "N":
		if !p.match("{") {
			p.fail(0, "missing {")
		}
		name := p.getUntil("}", "character name")
		r, ok := NamedRune(name)
		if !ok {
			p.fail(len([]rune(name))+4, "undefined character name %s", PyRepr(name))
		}
		return r
	case strings.Contains(letters, c):
		p.fail(2, "bad escape %s", this)
	}
	return []rune(this)[1]
}

// backReference reads \1 to \99, or an octal character of three digits.
func (p *regexParser) backReference(this string) (piece, width) {
	digits := this[1:] + p.getWhile(1, "0123456789")
	if len(digits) == 2 && strings.Contains(octal, digits[:1]) && strings.Contains(octal, digits[1:]) {
		if more := p.getWhile(1, octal); more != "" {
			digits += more
			if n, _ := strconv.ParseInt(digits, 8, 32); n > 0o377 {
				p.fail(len(digits)+1, "octal escape value \\%s outside of range 0-0o377", digits)
			}
			return plainPiece, width{1, 1}
		}
	}
	n, _ := strconv.Atoi(digits)
	if n >= len(p.closed) {
		p.fail(len(digits), "invalid group reference %d", n)
	}
	if !p.closed[n] {
		p.fail(len(digits)+1, "cannot refer to an open group")
	}
	p.lookBehindGroup(n)
	return plainPiece, p.widths[n]
}

func (p *regexParser) lookBehindGroup(n int) {
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

// set reads […].
func (p *regexParser) set() {
	here := p.pos - 1
	p.match("^")
	for empty := true; ; empty = false {
		this := p.get()
		if this == "" {
			p.failAt(here, "unterminated character set")
		}
		if this == "]" && !empty {
			return
		}
		lo, single := p.member(this)
		if !p.match("-") {
			continue
		}
		that := p.get()
		if that == "" {
			p.failAt(here, "unterminated character set")
		}
		if that == "]" {
			return
		}
		hi, singleToo := p.member(that)
		if !single || !singleToo || hi < lo {
			p.fail(len([]rune(this))+1+len([]rune(that)), "bad character range %s-%s", this, that)
		}
	}
}

// member reads one character of a set; single is false for a class such as \d.
func (p *regexParser) member(this string) (r rune, single bool) {
	if this[0] != '\\' {
		return []rune(this)[0], true
	}
	c := this[1:]
	if i := strings.Index("abfnrtv", c); i >= 0 {
		return []rune("\a\b\f\n\r\t\v")[i], true
	}
	switch {
	case strings.Contains("dDsSwW", c):
		return 0, false
	case strings.Contains(octal, c):
		digits := c + p.getWhile(2, octal)
		n, _ := strconv.ParseInt(digits, 8, 32)
		if n > 0o377 {
			p.fail(len(digits)+1, "octal escape value \\%s outside of range 0-0o377", digits)
		}
		return rune(n), true
	case c == "8" || c == "9":
		p.fail(2, "bad escape %s", this)
	}
	return p.character(this), true
}

// group reads what follows an opening parenthesis, up to the closing one.
func (p *regexParser) group(first bool) (piece, width) {
	start := p.pos - 1
	capture, name := true, ""
	verbose := p.verbose
	if p.match("?") {
		switch char := p.option(); {
		case char == "P":
			switch {
			case p.match("<"):
				name = p.groupName(">")
			case p.match("="):
				return p.namedReference()
			default:
				c := p.option()
				p.fail(len([]rune(c))+2, "unknown extension ?P%s", c)
			}
		case char == ":" || char == ">":
			capture = false
		case char == "#":
			for c := p.get(); c != ")"; c = p.get() {
				if c == "" {
					p.failAt(start, "missing ), unterminated comment")
				}
			}
			return noPiece, width{}
		case strings.Contains("=!<", char):
			p.look(char, start)
			return plainPiece, width{}
		case char == "(":
			return plainPiece, p.condition(start)
		case strings.Contains(flags, char) || char == "-":
			if p.flags(char) {
				if !first {
					p.failAt(start, "global flags not at the start of the expression")
				}
				return noPiece, width{}
			}
			capture = false
		default:
			p.fail(len([]rune(char))+1, "unknown extension ?%s", char)
		}
	}
	n := 0
	if capture {
		n = len(p.closed)
		if name != "" {
			if was, ok := p.names[name]; ok {
				p.fail(len([]rune(name))+1, "redefinition of group name %s as group %d; was group %d", PyRepr(name), n, was)
			}
			p.names[name] = n
		}
		p.closed = append(p.closed, false)
		p.widths = append(p.widths, width{})
	}
	w := p.alternatives(false)
	p.verbose = verbose
	p.close(start)
	if capture {
		p.closed[n], p.widths[n] = true, w
	}
	return plainPiece, w
}

// option reads the character that says what kind of group it is.
func (p *regexParser) option() string {
	c := p.get()
	if c == "" {
		p.fail(0, "unexpected end of pattern")
	}
	return c
}

func (p *regexParser) close(start int) {
	if !p.match(")") {
		p.failAt(start, "missing ), unterminated subpattern")
	}
}

func (p *regexParser) groupName(end string) string {
	name := p.getUntil(end, "group name")
	p.checkName(name)
	return name
}

func (p *regexParser) checkName(name string) {
	for i, c := range name {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			p.fail(len([]rune(name))+1, "bad character in group name %s", PyRepr(name))
		}
	}
}

func (p *regexParser) named(name string) int {
	n, ok := p.names[name]
	if !ok {
		p.fail(len([]rune(name))+1, "unknown group name %s", PyRepr(name))
	}
	return n
}

func (p *regexParser) namedReference() (piece, width) {
	name := p.groupName(")")
	n := p.named(name)
	if !p.closed[n] {
		p.fail(len([]rune(name))+1, "cannot refer to an open group")
	}
	p.lookBehindGroup(n)
	return plainPiece, p.widths[n]
}

// look reads a look-ahead or look-behind.
func (p *regexParser) look(char string, start int) {
	behind := p.behind
	back := char == "<"
	if back {
		if char = p.option(); char != "=" && char != "!" {
			p.fail(len([]rune(char))+2, "unknown extension ?<%s", char)
		}
		if p.behind < 0 {
			p.behind = len(p.closed)
		}
	}
	w := p.alternatives(false)
	p.behind = behind
	p.close(start)
	if back && w.lo != w.hi {
		p.variable = true
	}
}

// condition reads (?(name)yes|no).
func (p *regexParser) condition(start int) width {
	name := p.getUntil(")", "group name")
	size := len([]rune(name)) + 1
	var n int
	if strings.Trim(name, "0123456789") != "" {
		p.checkName(name)
		n = p.named(name)
	} else {
		n, _ = strconv.Atoi(name)
		if n == 0 {
			p.fail(size, "bad group number")
		}
		if _, ok := p.wanted[n]; !ok {
			p.wanted[n] = p.pos - size
			p.wantedOrder = append(p.wantedOrder, n)
		}
	}
	p.lookBehindGroup(n)
	yes := p.sequence(false)
	no := width{}
	if p.match("|") {
		no = p.sequence(false)
		if p.peek() == "|" {
			p.fail(0, "conditional backref with more than two branches")
		}
	}
	p.close(start)
	return width{min(yes.lo, no.lo), max(yes.hi, no.hi)}
}

const flags = "iLmsxau"

// flags reads (?i) or (?i-x:. It reports whether they are for the whole pattern.
func (p *regexParser) flags(char string) bool {
	on, off := "", ""
	next := func(missing string, ends string) string {
		c := p.get()
		if c == "" {
			p.fail(0, "missing %s", missing)
		}
		if !strings.Contains(ends, c) && !strings.Contains(flags, c) {
			if slices.ContainsFunc([]rune(c), unicode.IsLetter) && len([]rune(c)) == 1 {
				p.fail(1, "unknown flag")
			}
			p.fail(len([]rune(c)), "missing %s", missing)
		}
		return c
	}
	for char != "-" && !strings.Contains("):", char) {
		if char == "L" {
			p.fail(0, "bad inline flags: cannot use 'L' flag with a str pattern")
		}
		on += char
		if strings.Contains(on, "a") && strings.Contains(on, "u") && strings.Contains("au", char) {
			p.fail(0, "bad inline flags: flags 'a', 'u' and 'L' are incompatible")
		}
		char = next("-, : or )", ")-:")
	}
	if char == ")" {
		p.verbose = p.verbose || strings.Contains(on, "x")
		return true
	}
	if char == "-" {
		for char = next("flag", ""); char != ":"; char = next(":", ":") {
			if strings.Contains("auL", char) {
				p.fail(0, "bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
			}
			off += char
		}
	}
	if strings.ContainsAny(on, off) {
		p.fail(1, "bad inline flags: flag turned on and off")
	}
	p.verbose = (p.verbose || strings.Contains(on, "x")) && !strings.Contains(off, "x")
	return false
}
