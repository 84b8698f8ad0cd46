package syntax

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// decode decodes the escapes of a string as Python's unicode_escape does with the UTF-8 bytes of
// a text: a byte above 127 becomes the Latin-1 character of that number, so "é" becomes "Ã©".
// Models depend on that; raw strings are for other text. An unknown escape stays as it is and
// causes a warning.
func (s *scanner) decode(from, to int, warning string) string {
	raw := s.text[from:to]
	plain := true
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return raw
	}
	out := make([]byte, 0, len(raw)+8)
	unknown := false
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			out = utf8.AppendRune(out, rune(c))
			i++
			continue
		}
		if i+1 == len(raw) {
			s.badEscape(i, i, "\\ at end of string")
			return ""
		}
		r, n, problem := escape(raw[i+1:])
		switch {
		case problem != "":
			s.badEscape(i, i+n, problem)
			return ""
		case n == 0:
			unknown = true
			out = append(out, '\\')
			i++
		case r < 0: // backslash, newline: both vanish
			i += 1 + n
		default:
			i += 1 + n
			if low, m := surrogate(raw[i:]); utf16.DecodeRune(r, low) != utf8.RuneError {
				r = utf16.DecodeRune(r, low)
				i += m
			}
			out = utf8.AppendRune(out, r)
		}
	}
	if unknown {
		at := s.place(s.pos)
		s.warnings = append(s.warnings, Warning{
			Kind: KindWarning, Message: warning,
			At: Span{File: s.file, Start: Pos{s.line, at.Col}, End: Pos{s.line, at.Col}, Coarse: true},
		})
	}
	return string(out)
}

// surrogate reads an escape that is half of a character, as in "\ud83d\ude00". Python keeps the
// halves, but a reader of the JSON that it writes sees the whole character. A half alone cannot
// be in a Go string of UTF-8: it becomes U+FFFD.
func surrogate(b string) (half rune, bytes int) {
	if len(b) < 2 || b[0] != '\\' || b[1] != 'u' && b[1] != 'U' {
		return 0, 0
	}
	half, n, _ := escape(b[1:])
	return half, 1 + n
}

// escape reads what follows a backslash. It returns the character, negative for none, and how
// many bytes the escape has, 0 for an unknown one.
func escape(b string) (r rune, n int, problem string) {
	switch b[0] {
	case '\n':
		return -1, 1, ""
	case '\\', '\'', '"':
		return rune(b[0]), 1, ""
	case 'a':
		return '\a', 1, ""
	case 'b':
		return '\b', 1, ""
	case 'f':
		return '\f', 1, ""
	case 'n':
		return '\n', 1, ""
	case 'r':
		return '\r', 1, ""
	case 't':
		return '\t', 1, ""
	case 'v':
		return '\v', 1, ""
	case 'x':
		return hexEscape(b, 2, "truncated \\xXX escape")
	case 'u':
		return hexEscape(b, 4, "truncated \\uXXXX escape")
	case 'U':
		return hexEscape(b, 8, "truncated \\UXXXXXXXX escape")
	case 'N':
		return namedEscape(b)
	}
	for n < 3 && n < len(b) && b[n] >= '0' && b[n] <= '7' {
		r = r<<3 | rune(b[n]-'0')
		n++
	}
	return r, n, ""
}

func hexEscape(b string, digits int, problem string) (rune, int, string) {
	have := 0
	for have < digits && 1+have < len(b) && isHex(b[1+have]) {
		have++
	}
	if have < digits {
		return 0, 1 + have, problem
	}
	v, err := strconv.ParseUint(b[1:1+digits], 16, 32)
	if err != nil || v > 0x10ffff {
		return 0, 1 + digits, "illegal Unicode character"
	}
	return rune(v), 1 + digits, ""
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// badEscape reports an escape for which the reference raises an error of Python itself.
func (s *scanner) badEscape(from, to int, problem string) {
	where := "position " + strconv.Itoa(from)
	if to > from {
		where = "bytes in position " + strconv.Itoa(from) + "-" + strconv.Itoa(to)
		problem = where + ": " + problem
	} else {
		problem = "byte 0x5c in " + where + ": " + problem
	}
	at := s.place(s.pos)
	s.fail(&Error{
		Kind: KindDecode, Message: "'unicodeescape' codec can't decode " + problem,
		At:   s.spanOf(at, at),
		Hint: "write \\\\ for a backslash, or use a raw string: r\"…\"",
	})
}
