package module

import (
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/python/pytext"
)

// setIn begins every line that is not blank with two spaces, as Python's
// textwrap does. Lines end wherever they end in a text of Python.
func setIn(text string) string {
	var b strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, endsLine)
		switch {
		case end < 0:
			end = len(text)
		case strings.HasPrefix(text[end:], "\r\n"):
			end += 2
		default:
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		if strings.TrimFunc(text[:end], pytext.Space) != "" {
			b.WriteString("  ")
		}
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String()
}

// endsLine is where str.splitlines ends a line.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}
