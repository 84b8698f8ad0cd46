package pyyaml

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// anchor reads &name or *name.
func (s *scanner) anchor() token {
	t := token{kind: anchor, start: s.mark()}
	context := "while scanning an anchor"
	if s.peek(0) == '*' {
		t.kind, context = alias, "while scanning an alias"
	}
	s.forward(1)
	t.value = s.nameOf(context, t.start)
	if c := s.peek(0); !isBlankOrEnd(c) && !strings.ContainsRune("?:,]}%@`", c) {
		s.failName(context, t.start)
	}
	t.end = s.mark()
	return t
}

// tag reads !<name>, !handle!name, !name, or a single !.
func (s *scanner) tag() token {
	t := token{kind: tag, start: s.mark()}
	switch c := s.peek(1); {
	case c == '<':
		s.forward(2)
		t.value = s.tagURI("tag", t.start)
		if c := s.peek(0); c != '>' {
			s.fail("while parsing a tag", t.start, "expected '>', but found %s", quoted(c))
		}
		s.forward(1)
	case isBlankOrEnd(c):
		t.value = "!"
		s.forward(1)
	default:
		if s.hasHandle() {
			t.handle = s.tagHandle("tag", t.start)
		} else {
			t.handle = "!"
			s.forward(1)
		}
		t.value = s.tagURI("tag", t.start)
	}
	if c := s.peek(0); !isSpaceOrEnd(c) {
		s.fail("while scanning a tag", t.start, "expected ' ', but found %s", quoted(c))
	}
	t.end = s.mark()
	return t
}

// hasHandle: another ! comes before the next space.
func (s *scanner) hasHandle() bool {
	for n := 1; ; n++ {
		c := s.peek(n)
		if c == '!' || isSpaceOrEnd(c) {
			return c == '!'
		}
	}
}

// tagHandle reads ! or !name!.
func (s *scanner) tagHandle(of string, start Mark) string {
	if c := s.peek(0); c != '!' {
		s.fail("while scanning a "+of, start, "expected '!', but found %s", quoted(c))
	}
	n := 1
	if s.peek(n) != ' ' {
		for isNameChar(s.peek(n)) {
			n++
		}
		if c := s.peek(n); c != '!' {
			s.forward(n)
			s.fail("while scanning a "+of, start, "expected '!', but found %s", quoted(c))
		}
		n++
	}
	return s.take(n)
}

// tagURI reads the rest of a tag, or what a handle stands for.
func (s *scanner) tagURI(of string, start Mark) string {
	var text strings.Builder
	from, n := s.at, 0
	for {
		c := s.peek(n)
		if c != '%' && isURIChar(c) {
			n++
			continue
		}
		if n > 0 {
			text.WriteString(s.take(n))
			n = 0
		}
		if c != '%' {
			break
		}
		text.WriteString(s.uriEscapes(of, start))
	}
	if s.at == from {
		s.fail("while parsing a "+of, start, "expected URI, but found %s", quoted(s.peek(0)))
	}
	return text.String()
}

// uriEscapes reads %41%42, which must be UTF-8.
func (s *scanner) uriEscapes(of string, start Mark) string {
	at := s.mark()
	var data []byte
	for s.peek(0) == '%' {
		s.forward(1)
		for i := range 2 {
			if c := s.peek(i); !isHex(c) {
				s.fail(
					"while scanning a "+of,
					start,
					"expected URI escape sequence of 2 hexadecimal numbers, but found %s",
					quoted(c),
				)
			}
		}
		b, _ := strconv.ParseUint(s.take(2), 16, 8)
		data = append(data, byte(b))
	}
	if !utf8.Valid(data) {
		_, err := new(textFile).decode(data, true)
		panic(&Error{
			Class: ClassScanner, Name: s.name, Context: "while scanning a " + of, ContextMark: start,
			Problem: err.Problem, ProblemMark: at,
		})
	}
	return string(data)
}
