package types

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// Regex is a regular expression of Python's re, matched at the start of a
// string and not necessarily to its end.
type Regex struct{ compiled *regexp2.Regexp }

// matchLimit is how long a match may take. Repetitions inside of repetitions,
// such as (a+)+$, may need longer than anybody lives.
const matchLimit = 20 * time.Second

// NewRegex compiles a pattern.
func NewRegex(pattern string) (*Regex, error) { return newRegex(pattern, matchLimit) }

func newRegex(pattern string, limit time.Duration) (*Regex, error) {
	translated := translateRegex(pattern)
	compiled, err := regexp2.Compile(`\A(?:`+translated+`)`, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("%s is not a regular expression: %w", pattern, err)
	}
	compiled.MatchTimeout = limit
	return &Regex{compiled}, nil
}

// Match reports whether the text begins with what the pattern describes. It
// gives an error when that is not known after a long time.
func (r *Regex) Match(text string) (bool, error) {
	ok, err := r.compiled.MatchString(text)
	if err != nil {
		return false, fmt.Errorf("it was not known after %v whether a text of %d characters matches", r.compiled.MatchTimeout, utf8.RuneCountInString(text))
	}
	return ok, nil
}

// translateRegex turns what Python spells differently from .NET into the
// latter: (?P<n>…), (?P=n), \Z, {,n} and braces that are not quantifiers.
func translateRegex(p string) string {
	if strings.Contains(p, "*+") || strings.Contains(p, "++") || strings.Contains(p, "?+") || strings.Contains(p, "}+") {
		p = atomicGroups(p)
	}
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

// atomicGroups writes what a possessive quantifier gathers, x*+, as the group
// that it is short for: (?>x*).
func atomicGroups(p string) string {
	var out []byte
	var open []int // where the groups begin that are not closed
	atom := 0      // where the last thing begins that a quantifier can stand after
	quantified := false
	for i := 0; i < len(p); i++ {
		c, length := p[i], 1
		switch {
		case c == '+' && quantified:
			out = append(out[:atom], append([]byte("(?>"), append(out[atom:], ')')...)...)
			quantified = false
			continue
		case c == '*' || c == '+' || c == '?' && len(out) > 0 && !quantified:
			quantified = true
			out = append(out, c)
			continue
		case c == '{':
			if end := strings.IndexByte(p[i:], '}'); end > 1 && strings.Trim(p[i+1:i+end], "0123456789,") == "" {
				quantified = true
				out = append(out, p[i:i+end+1]...)
				i += end
				continue
			}
			atom = len(out)
		case c == '\\' && i+1 < len(p):
			atom, length = len(out), 2
		case c == '[':
			atom, length = len(out), classLength(p[i:])
		case c == '(':
			open = append(open, len(out))
			if strings.HasPrefix(p[i:], "(?") {
				length = 2
			}
			atom = len(out)
		case c == ')' && len(open) > 0:
			atom, open = open[len(open)-1], open[:len(open)-1]
		default:
			atom = len(out)
		}
		quantified = false
		out = append(out, p[i:i+length]...)
		i += length - 1
	}
	return string(out)
}

// classLength is how long the class is that a text begins with.
func classLength(p string) int {
	i := 1
	if strings.HasPrefix(p[i:], "^") {
		i++
	}
	if strings.HasPrefix(p[i:], "]") {
		i++
	}
	for ; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case ']':
			return i + 1
		}
	}
	return len(p)
}
