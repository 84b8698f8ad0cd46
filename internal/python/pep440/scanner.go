package pep440

import (
	"strings"
	"unicode"
)

// SyntaxError is why a requirement cannot be read. It says so as Python's
// packaging library does, with the place below the text:
//
//	Expected semicolon (after name with no version specifier) or end
//	    std ~ 8
//	        ^
type SyntaxError struct {
	Message string
	Source  string
	// Start and End are where it is wrong, in characters.
	Start, End int
}

// Error gives the message, the text and the mark below it.
func (e *SyntaxError) Error() string {
	return e.Message + "\n    " + e.Source + "\n    " + strings.Repeat(
		" ",
		e.Start,
	) + strings.Repeat(
		"~",
		e.End-e.Start,
	) + "^"
}

// scanner reads a requirement from left to right. What fails panics with a
// *SyntaxError, which ParseRequirement catches.
type scanner struct {
	text  []rune
	pos   int
	depth int // of open parentheses in a marker
}

// fail ends the reading. start is where the fault begins; it ends here.
func (s *scanner) fail(message string, start int) {
	panic(&SyntaxError{Message: message, Source: string(s.text), Start: start, End: s.pos})
}

// at is the character at a place; 0 outside of the text.
func (s *scanner) at(i int) rune {
	if i < 0 || i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

func (s *scanner) ended() bool { return s.pos == len(s.text) }

// space skips blanks and tabs, and tells whether there were any.
func (s *scanner) space() bool {
	start := s.pos
	for s.at(s.pos) == ' ' || s.at(s.pos) == '\t' {
		s.pos++
	}
	return s.pos > start
}

// sign reads one character.
func (s *scanner) sign(c rune) bool {
	if s.ended() || s.text[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// word reads one of some words that stands alone.
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

// operator reads one of some signs, the longest first.
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
// between them; empty when there is none.
func (s *scanner) name() string {
	if !isLetterOrDigit(s.at(s.pos)) || s.pos > 0 && isWord(s.at(s.pos-1)) {
		return ""
	}
	end := s.pos
	for c := s.at(end); isLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; c = s.at(end) {
		end++
	}
	// It ends where a word does: not in signs, nor before a letter of another script.
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

// isWord is what a word consists of for Python's regular expressions.
func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c) }
