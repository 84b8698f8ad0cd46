package pyyaml

import "strings"

// beginsPlain tells whether a scalar without quotes begins with a character that
// begins nothing else.
func (s *scanner) beginsPlain(c rune) bool {
	switch c {
	case '-':
		return !isBlankOrEnd(s.peek(1))
	case '?', ':':
		return !isBlankOrEnd(s.peek(1)) && s.flow == 0
	}
	return !isBlankOrEnd(c) && !strings.ContainsRune(",[]{}#&*!|>'\"%@`", c)
}

// plain reads a scalar without quotes, which may go on in lines that are
// indented more than the collection around it. It ends at a tab.
func (s *scanner) plain() token {
	t := token{kind: scalar, start: s.mark(), end: s.mark()}
	var text strings.Builder
	spaces := ""
	for s.peek(0) != '#' {
		n := s.plainLength()
		if n == 0 {
			break
		}
		s.mayKey = false
		text.WriteString(spaces)
		text.WriteString(s.take(n))
		t.end = s.mark()
		spaces = s.plainSpaces()
		if spaces == "" || s.flow == 0 && s.column-1 <= s.indent {
			break
		}
	}
	t.value = text.String()
	return t
}

// plainLength counts the characters to the next blank, or to what ends the scalar.
func (s *scanner) plainLength() int {
	for n := 0; ; n++ {
		switch c := s.peek(n); {
		case isBlankOrEnd(c):
			return n
		case c == ':':
			if after := s.peek(n + 1); isBlankOrEnd(after) || s.flow != 0 && strings.ContainsRune(",[]{}", after) {
				return n
			}
		case s.flow != 0 && strings.ContainsRune(",?[]{}", c):
			return n
		}
	}
}

// plainSpaces gives what the blanks between two words mean; nothing where a
// document ends or begins.
func (s *scanner) plainSpaces() string {
	n := 0
	for s.peek(n) == ' ' {
		n++
	}
	spaces := s.take(n)
	first := s.lineBreak()
	if first == "" {
		return spaces
	}
	s.mayKey = true
	var breaks strings.Builder
	for lines := true; lines; {
		if s.separator() {
			return ""
		}
		s.skip(' ')
		b := s.lineBreak()
		breaks.WriteString(b)
		lines = b != ""
	}
	return folded(first, breaks.String())
}

// folded is what ends of lines mean between two words: one alone is a space.
func folded(first, others string) string {
	switch {
	case first != "\n":
		return first + others
	case others == "":
		return " "
	}
	return others
}
