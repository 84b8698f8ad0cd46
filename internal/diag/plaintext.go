package diag

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainText makes text that may come from anywhere safe to show: names and lines of models,
// words of commits, the answer of a package index. A terminal obeys some characters instead of
// showing them, so an author who is not trusted could hide text or show text that is not there.
//
// Line breaks and tabs stay. Every other control character is replaced by one character, so
// that columns stay the same.
func PlainText(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(plainRune, s)
}

// PlainLine does the same and makes one line of the text: breaks and tabs become blanks.
func PlainLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return plainRune(r)
	}, s)
}

// plainRune returns a character, or another one in its place.
func plainRune(r rune) rune {
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
