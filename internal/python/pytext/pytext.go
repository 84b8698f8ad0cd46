// Package pytext writes numbers and texts as Python does: models, messages and
// exports show them so. Characters are those of Python 3.13, Unicode 15.1.
package pytext

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote writes a text as Python's repr does: in single quotes, or in double
// ones where that needs fewer escapes; what cannot be printed is escaped.
func Quote(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteRune(quote)
	for s != "" {
		r, size := Decode(s)
		s = s[size:]
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case Printable(r):
			b.WriteRune(r)
		default:
			escape(&b, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// ASCII escapes what is not ASCII, as Python's ascii does.
func ASCII(s string) string {
	var b strings.Builder
	for s != "" {
		r, size := Decode(s)
		s = s[size:]
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			escape(&b, r)
		}
	}
	return b.String()
}

// Decode returns the first character of a text. Half of a character, which texts of
// Python may hold, is one too: ours have it as the three bytes of its number.
func Decode(s string) (r rune, size int) {
	if len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return utf8.DecodeRuneInString(s)
}

func escape(b *strings.Builder, r rune) {
	switch {
	case r <= 0xff:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// Printable is str.isprintable of one character. What is new in Unicode 15.1,
// ideographs and five signs of them, is added to Go's tables of 15.0.
func Printable(r rune) bool {
	return unicode.IsPrint(r) || 0x2ebf0 <= r && r <= 0x2ee5d || 0x2ffc <= r && r <= 0x2fff || r == 0x31ef
}

// Space is str.isspace of one character.
func Space(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// Float writes a float as Python does: the shortest digits that read back the
// same, with an exponent below 1e-4 and from 1e16 on, otherwise with a point.
func Float(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
