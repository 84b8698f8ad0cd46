package syntax

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/runenames"
)

// NamedRune gives the character of a name, as \N{…} has it.
func NamedRune(name string) (rune, bool) {
	r, ok := namedRunes()[strings.ToUpper(name)]
	return r, ok
}

// namedRunes is built when the first \N{…} is met; hardly any model has one.
var namedRunes = sync.OnceValue(func() map[string]rune {
	names := make(map[string]rune, 40000)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if name := runenames.Name(r); name != "" && name[0] != '<' {
			names[name] = r
		}
	}
	return names
})

// namedEscape reads N{NAME}.
func namedEscape(b string) (rune, int, string) {
	if len(b) < 2 || b[1] != '{' {
		return 0, 1, "malformed \\N character escape"
	}
	end := strings.IndexByte(b, '}')
	if end <= 2 {
		return 0, 1, "malformed \\N character escape"
	}
	r, ok := namedRunes()[strings.ToUpper(b[2:end])]
	if !ok {
		return 0, end + 1, "unknown Unicode character name"
	}
	return r, end + 1, ""
}
