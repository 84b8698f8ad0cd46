package pyregex

import (
	"strconv"
	"strings"
	"unicode"

	"ordain.dev/ordain/internal/python/pytext"
)

const (
	digits  = "0123456789"
	octal   = "01234567"
	hexa    = "0123456789abcdefABCDEF"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	classes = "dDsSwW"
)

var places = map[byte]place{'A': atTextStart, 'Z': atTextEnd, 'b': atWordEdge, 'B': atNoWordEdge}

// escape reads an escape outside of a set.
func (p *parser) escape(this token) *node {
	c := string(this[1:])
	if at, ok := places[c[0]]; ok {
		return &node{kind: kAt, at: at}
	}
	if strings.Contains(classes, c) {
		return set([]member{{class: c[0]}}, false)
	}
	if c != "0" && strings.Contains(digits, c) {
		return p.backReference(this)
	}
	return literal(p.character(this))
}

// character reads an escape for one character.
func (p *parser) character(this token) rune {
	c := string(this[1:])
	if i := strings.Index("abfnrtv", c); i >= 0 {
		return rune("\a\b\f\n\r\t\v"[i])
	}
	switch {
	case c == "x":
		return p.hexadecimal(this, 2)
	case c == "u":
		return p.hexadecimal(this, 4)
	case c == "U":
		return p.hexadecimal(this, 8)
	case c == "N":
		if !p.match("{") {
			p.fail(0, "missing {")
		}
		name := p.until("}", "character name")
		r, ok := p.chars(name)
		if !ok {
			p.fail(size(name)+4, "undefined character name %s", pytext.Quote(name))
		}
		return r
	case c == "0":
		n, _ := strconv.ParseInt(c+p.while(2, octal), 8, 32)
		return rune(n)
	case strings.Contains(letters, c):
		p.fail(2, "bad escape %s", this)
	}
	return token(c).char()
}

func (p *parser) hexadecimal(this token, n int) rune {
	text := string(this) + p.while(n, hexa)
	if len(text) != n+2 {
		p.fail(len(text), "incomplete escape %s", text)
	}
	v, _ := strconv.ParseUint(text[2:], 16, 32)
	if v > unicode.MaxRune {
		p.fail(len(text), "bad escape %s", text)
	}
	return rune(v)
}

// backReference reads \1 to \99, or an octal character of three digits.
func (p *parser) backReference(this token) *node {
	number := string(this[1:]) + p.while(1, digits)
	if len(number) == 2 && strings.Trim(number, octal) == "" && p.next.in(octal) {
		return literal(p.octal(number + string(p.get())))
	}
	n, _ := strconv.Atoi(number)
	if n >= len(p.closed) {
		p.fail(len(number), "invalid group reference %d", n)
	}
	return p.reference(n, len(number)+1)
}

// reference is a reference to a group; size is its length in the pattern.
func (p *parser) reference(n, size int) *node {
	if !p.closed[n] {
		p.fail(size, "cannot refer to an open group")
	}
	p.checkBehind(n)
	return &node{kind: kRef, group: n, width: p.widths[n]}
}

func (p *parser) octal(number string) rune {
	n, _ := strconv.ParseInt(number, 8, 32)
	if n > 0o377 {
		p.fail(len(number)+1, "octal escape value \\%s outside of range 0-0o377", number)
	}
	return rune(n)
}
