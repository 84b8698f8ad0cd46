package mailaddress

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/runenames"

	"ordain.dev/ordain/internal/python/pytext"
)

// display shows a character: in quotes when it can be seen, by its name otherwise.
func display(c rune) string {
	switch {
	case c == '\\':
		return `"\"`
	case unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S):
		return pytext.Quote(string(c))
	}
	if name := runenames.Name(c); name != "" && name[0] != '<' {
		return name
	}
	if c < 0xffff {
		return fmt.Sprintf("U+%04X", c)
	}
	return fmt.Sprintf("U+%08X", c)
}

// checkUnsafe refuses what cannot be seen, or would change what stands before it.
func checkUnsafe(text string, spaces bool) string {
	var bad []rune
	for i, c := range text {
		switch {
		case unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S):
		case unicode.In(c, unicode.M) && i > 0:
		case unicode.In(c, unicode.Zs) && spaces:
		default:
			bad = append(bad, c)
		}
	}
	if bad == nil {
		return ""
	}
	slices.Sort(bad)
	var shown []string
	for _, c := range slices.Compact(bad) {
		shown = append(shown, display(c))
	}
	return "The email address contains unsafe characters: " + strings.Join(shown, ", ") + "."
}
