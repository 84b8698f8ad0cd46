// Package plaintext makes text of foreign origin fit to be shown: names and
// lines of models, words of commits, what a package index answered. A terminal
// obeys some characters instead of showing them, and an author who is not
// trusted could have it hide what is there or show what is not.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lines keeps line breaks and tabs. What is replaced is replaced character by
// character, so that columns stay what they are.
func Lines(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if harmless(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s { // a byte that is no UTF-8 is one RuneError
		b.WriteRune(shown(r))
	}
	return b.String()
}

// Line gives one line: breaks and tabs become blanks.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return shown(r)
	}, s)
}

// harmless tells the text that most texts are: printable ASCII.
func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// shown gives a character, or what stands for it.
func shown(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return '␀' + r // the picture of this control character
	case r == 0x7f:
		return '␡'
	case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
		// Changing the direction of writing makes a line read as another one.
		return utf8.RuneError
	}
	return r
}
