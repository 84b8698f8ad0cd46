package pyregex

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// token is the unit in which Python reads a pattern: a character, or a backslash and the character
// after it. The zero token is the end.
type token string

func (t token) size() int { return size(string(t)) }

// char is the character of a token that is a plain character.
func (t token) char() rune {
	r, _ := utf8.DecodeRuneInString(string(t))
	return r
}

// escape reports whether the token is a backslash with a character.
func (t token) escape() bool { return t != "" && t[0] == '\\' }

// in reports whether the token is one plain character of a list.
func (t token) in(list string) bool { return t != "" && strings.Contains(list, string(t)) }

// source reads the tokens of a pattern, with one token of lookahead, as Python does: so the error for a
// backslash at the end precedes errors of the token before it.
type source struct {
	pattern string // well-formed
	rest    string // after next
	index   int    // of rest, in characters
	next    token
}

func (s *source) advance() {
	if s.rest == "" {
		s.next = ""
		return
	}
	_, n := utf8.DecodeRuneInString(s.rest)
	s.index++
	if s.rest[0] == '\\' {
		if n == len(s.rest) {
			s.failAt(s.index-1, "bad escape (end of pattern)")
		}
		_, more := utf8.DecodeRuneInString(s.rest[n:])
		n += more
		s.index++
	}
	s.next, s.rest = token(s.rest[:n]), s.rest[n:]
}

// at is the place of the next token.
func (s *source) at() int { return s.index - s.next.size() }

func (s *source) get() token {
	t := s.next
	s.advance()
	return t
}

// match reads the next token if it equals t.
func (s *source) match(t token) bool {
	if s.next != t {
		return false
	}
	s.advance()
	return true
}

// while reads at most n characters of a list.
func (s *source) while(n int, list string) string {
	var b strings.Builder
	for ; n > 0 && s.next.in(list); n-- {
		b.WriteString(string(s.get()))
	}
	return b.String()
}

// until reads a name and the token that ends it.
func (s *source) until(end token, what string) string {
	var name strings.Builder
	for {
		t := s.get()
		switch {
		case t == "" && name.Len() == 0:
			s.fail(0, "missing %s", what)
		case t == "":
			s.fail(size(name.String()), "missing %s, unterminated name", end)
		case t == end && name.Len() == 0:
			s.fail(1, "missing %s", what)
		case t == end:
			return name.String()
		}
		name.WriteString(string(t))
	}
}

// fail reports an error some characters before the next token.
func (s *source) fail(back int, format string, args ...any) {
	s.failAt(s.at()-back, format, args...)
}

func (s *source) failAt(at int, format string, args ...any) {
	message := fmt.Sprintf(format, args...) + fmt.Sprintf(" at position %d", at)
	line, column, several := 1, at+1, false
	i := 0
	for _, r := range s.pattern {
		if r == '\n' {
			if several = true; i < at {
				line, column = line+1, at-i
			}
		}
		i++
	}
	if several {
		message += fmt.Sprintf(" (line %d, column %d)", line, column)
	}
	fail(message)
}

// fail ends the compilation with a message; Compile returns it.
func fail(message string) { panic(&Error{message}) }

func size(s string) int { return utf8.RuneCountInString(s) }
