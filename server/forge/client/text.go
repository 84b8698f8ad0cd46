package client

import "strings"

// Tame replaces the characters that turn text around or hide it.
func Tame(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20,
			r == 0x7f,
			r >= 0x80 && r < 0xa0,
			r >= 0x200b && r <= 0x200f,
			r >= 0x202a && r <= 0x202e,
			r >= 0x2066 && r <= 0x2069,
			r == 0xfeff:
			return '�'
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// Code makes text that cannot leave a code span, on one line.
func Code(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(Tame(s), "\n", " "), "`", "'")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}
