// Package pytext writes numbers and texts as Python does, for models, messages and exports. Characters
// are those of Python 3.13, Unicode 15.1.
package pytext

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote writes a text as Python's repr does: in single quotes, or in double quotes if that needs fewer
// escapes; characters that cannot be printed are escaped.
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

// ASCII escapes all characters that are not ASCII, as Python's ascii does.
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

// Decode returns the first character of a text. A surrogate, which Python's texts may have alone,
// counts as a character: it is in our texts as the three bytes of its number.
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

// Printable is str.isprintable of one character. Go has the tables of Unicode 15.0, to which it adds
// the new characters of 15.1: ideographs and five of their signs.
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
