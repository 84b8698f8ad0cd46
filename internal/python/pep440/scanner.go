package pep440

import (
	"fmt"
	"unicode"
)

// syntaxError is why a requirement cannot be read. It travels as a panic from the
// scanner to ParseRequirement.
type syntaxError string

// scanner reads a requirement from left to right. Its methods panic with a
// syntaxError, which ParseRequirement catches.
type scanner struct {
	text  []rune
	pos   int
	depth int // of open parentheses in a marker
}

// fail ends the reading: at the current position, something else is expected.
func (s *scanner) fail(expected string) {
	panic(syntaxError(fmt.Sprintf("%q is not a requirement: expected %s at character %d",
		string(s.text), expected, s.pos+1)))
}

// at returns the character at an index, or 0 outside of the text.
func (s *scanner) at(i int) rune {
	if i < 0 || i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

func (s *scanner) ended() bool { return s.pos == len(s.text) }

// space skips blanks and tabs, and reports whether there were any.
func (s *scanner) space() bool {
	start := s.pos
	for s.at(s.pos) == ' ' || s.at(s.pos) == '\t' {
		s.pos++
	}
	return s.pos > start
}

// sign reads the character c, if it is next.
func (s *scanner) sign(c rune) bool {
	if s.ended() || s.text[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// word reads one of some words, if one is next and no letter follows it.
func (s *scanner) word(words ...string) string {
	if s.pos > 0 && isWord(s.at(s.pos-1)) {
		return ""
	}
	for _, w := range words {
		if s.startsWith(w) && !isWord(s.at(s.pos+len(w))) {
			s.pos += len(w)
			return w
		}
	}
	return ""
}

// operator reads one of some signs, of which the longer ones must come first.
func (s *scanner) operator(signs ...string) string {
	for _, o := range signs {
		if s.startsWith(o) {
			s.pos += len(o)
			return o
		}
	}
	return ""
}

func (s *scanner) startsWith(ascii string) bool {
	for i, c := range ascii {
		if s.at(s.pos+i) != c {
			return false
		}
	}
	return true
}

// name reads the name of a package or of an extra: letters, digits and signs
// between them. It returns an empty name when there is none.
func (s *scanner) name() string {
	if !isLetterOrDigit(s.at(s.pos)) || s.pos > 0 && isWord(s.at(s.pos-1)) {
		return ""
	}
	end := s.pos
	for c := s.at(end); isLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; c = s.at(end) {
		end++
	}
	// A name ends where a word does: not in a sign, nor before a letter of another script.
	for end > s.pos && isWord(s.at(end-1)) == isWord(s.at(end)) {
		end--
	}
	name := string(s.text[s.pos:end])
	s.pos = end
	return name
}

func isLetterOrDigit(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isWord reports whether a character is part of a word in Python's regular expressions.
func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c) }
