package types

import (
	"fmt"
	"strings"

	"github.com/dlclark/regexp2"
)

// Regex is a regular expression of Python's re, matched at the start of a
// string and not necessarily to its end.
type Regex struct{ compiled *regexp2.Regexp }

// NewRegex compiles a pattern.
func NewRegex(pattern string) (*Regex, error) {
	translated := translateRegex(pattern)
	compiled, err := regexp2.Compile(`\A(?:`+translated+`)`, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("%s is not a regular expression: %w", pattern, err)
	}
	return &Regex{compiled}, nil
}

// Match reports whether the text begins with what the pattern describes.
func (r *Regex) Match(text string) bool {
	ok, err := r.compiled.MatchString(text)
	return err == nil && ok
}

// translateRegex turns what Python spells differently from .NET into the
// latter: (?P<n>…), (?P=n), \Z, {,n} and braces that are not quantifiers.
func translateRegex(p string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			i++
			if p[i] == 'Z' && !inClass {
				b.WriteString(`\z`)
			} else {
				b.WriteByte('\\')
				b.WriteByte(p[i])
			}
		case inClass:
			switch {
			case c == ']':
				inClass = false
			case c == '[':
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case c == '[':
			inClass = true
			b.WriteByte(c)
			if i+1 < len(p) && p[i+1] == '^' {
				i++
				b.WriteByte('^')
			}
			if i+1 < len(p) && p[i+1] == ']' {
				i++
				b.WriteString(`\]`)
			}
		case strings.HasPrefix(p[i:], "(?P<"):
			b.WriteString("(?<")
			i += 3
		case strings.HasPrefix(p[i:], "(?P="):
			end := strings.IndexByte(p[i:], ')')
			if end < 0 {
				b.WriteByte(c)
				continue
			}
			b.WriteString(`\k<` + p[i+4:i+end] + `>`)
			i += end
		case strings.HasPrefix(p[i:], "{,"):
			end := strings.IndexByte(p[i:], '}')
			if end > 2 && strings.Trim(p[i+2:i+end], "0123456789") == "" {
				b.WriteString("{0," + p[i+2:i+end] + "}")
				i += end
				continue
			}
			b.WriteString(`\{`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
