package pyyaml

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoted reads a scalar in quotes. Its lines may be indented as they like.
func (s *scanner) quoted() token {
	t := token{kind: scalar, start: s.mark(), style: SingleQuoted}
	quote := s.peek(0)
	if quote == '"' {
		t.style = DoubleQuoted
	}
	s.forward(1)
	var text strings.Builder
	s.quotedWord(&text, quote, t.start)
	for s.peek(0) != quote {
		s.quotedSpaces(&text, t.start)
		s.quotedWord(&text, quote, t.start)
	}
	s.forward(1)
	t.end, t.value = s.mark(), text.String()
	return t
}

// quotedWord reads to the next blank, or to the quote that ends the scalar.
func (s *scanner) quotedWord(text *strings.Builder, quote rune, start Mark) {
	for {
		n := 0
		for c := s.peek(0); c != '\'' && c != '"' && c != '\\' && !isBlankOrEnd(c); c = s.peek(n) {
			n++
		}
		if n > 0 {
			text.WriteString(s.take(n))
		}
		switch c := s.peek(0); {
		case quote == '\'' && c == '\'' && s.peek(1) == '\'':
			text.WriteByte('\'')
			s.forward(2)
		case quote == '"' && c == '\'', quote == '\'' && (c == '"' || c == '\\'):
			text.WriteRune(c)
			s.forward(1)
		case quote == '"' && c == '\\':
			s.forward(1)
			s.escape(text, start)
		default:
			return
		}
	}
}

// escapes are the characters that a backslash makes others of.
var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '\\': '\\', '/': '/', 'N': nextLine, '_': 0xa0, 'L': lineSeparator, 'P': paragraphSeparator,
}

// escape reads what follows a backslash.
func (s *scanner) escape(text *strings.Builder, start Mark) {
	const reading = "while scanning a double-quoted scalar"
	c := s.peek(0)
	if r, ok := escapes[c]; ok {
		text.WriteRune(r)
		s.forward(1)
		return
	}
	digits := 0
	switch {
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case isBreak(c):
		s.lineBreak()
		s.quotedBreaks(text, start)
		return
	default:
		s.fail(reading, start, "found unknown escape character %s", quoted(c))
	}
	s.forward(1)
	for i := range digits {
		if c := s.peek(i); !isHex(c) {
			s.fail(
				reading,
				start,
				"expected escape sequence of %d hexadecimal numbers, but found %s",
				digits,
				quoted(c),
			)
		}
	}
	at := s.mark()
	s.need(digits)
	code, err := strconv.ParseUint(string(s.chars[s.at:s.at+digits]), 16, 32)
	if err != nil || code > utf8.MaxRune {
		panic(&Error{Class: ClassValue, Name: s.name, Problem: "chr() arg not in range(0x110000)", ProblemMark: at})
	}
	text.WriteString(encoded(rune(code)))
	s.forward(digits)
}

// encoded gives a character in UTF-8. Half of one, which Python's texts may
// hold, gets the three bytes that it would have: no text has them otherwise.
func encoded(r rune) string {
	if r < 0xd800 || r > 0xdfff {
		return string(r)
	}
	return string([]byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
}

// quotedSpaces reads the blanks between two words.
func (s *scanner) quotedSpaces(text *strings.Builder, start Mark) {
	n := 0
	for isSpaceOrTab(s.peek(n)) {
		n++
	}
	spaces := s.take(n)
	if s.peek(0) == end {
		s.fail("while scanning a quoted scalar", start, "found unexpected end of stream")
	}
	first := s.lineBreak()
	if first == "" {
		text.WriteString(spaces)
		return
	}
	var breaks strings.Builder
	s.quotedBreaks(&breaks, start)
	text.WriteString(folded(first, breaks.String()))
}

// quotedBreaks reads empty lines, and the blanks that the next one begins with.
func (s *scanner) quotedBreaks(text *strings.Builder, start Mark) {
	for {
		if s.separator() {
			s.fail("while scanning a quoted scalar", start, "found unexpected document separator")
		}
		for isSpaceOrTab(s.peek(0)) {
			s.forward(1)
		}
		b := s.lineBreak()
		if b == "" {
			return
		}
		text.WriteString(b)
	}
}
