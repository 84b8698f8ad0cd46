package intent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Patterns chooses resources by their ids. In a pattern, * stands for any text and ?
// for any one character.
type Patterns []string

const (
	maxPatterns      = 1000
	maxPatternLength = 2000
)

// joined matches the beginning of another pattern inside the brackets of a pattern,
// which means that a bracket is missing.
var joined = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`,\s*[A-Za-z_][\w*?]*::[\w:*?]*\[`) })

// ParsePatterns reads patterns of resource ids, separated by line breaks or commas. A
// comma inside brackets belongs to the id.
func ParsePatterns(text string) (Patterns, error) {
	var out Patterns
	for _, p := range splitPatterns(text) {
		if p = strings.TrimSpace(p); p == "" || slices.Contains(out, p) {
			continue
		}
		if err := checkPattern(p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if len(out) > maxPatterns {
		return nil, fmt.Errorf("%d patterns are more than %d", len(out), maxPatterns)
	}
	return out, nil
}

func splitPatterns(text string) (out []string) {
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '[':
			depth++
		case ']':
			depth = max(0, depth-1)
		case ',', '\n':
			if c == '\n' {
				depth = 0
			}
			if depth == 0 {
				out = append(out, text[start:i])
				start = i + 1
			}
		}
	}
	return append(out, text[start:])
}

// checkPattern rejects a pattern that cannot match any resource id.
func checkPattern(p string) error {
	switch {
	case len(p) > maxPatternLength:
		return fmt.Errorf("a pattern is longer than %d bytes", maxPatternLength)
	case strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("the pattern %q holds a control character", p)
	case joined().MatchString(p):
		return fmt.Errorf("%q looks like several patterns: close the brackets of each, or write one per line", p)
	case strings.ContainsAny(p, "*?"):
		return nil
	}
	if _, err := ParseResourceID(p); err != nil {
		return fmt.Errorf(
			"%q matches no resource: write a whole id such as std::File[web1,path=/etc/motd], or a pattern such as "+
				"std::File[* or *[web1,*",
			p,
		)
	}
	return nil
}

// Match reports whether a resource id matches one of the patterns.
func (ps Patterns) Match(id ResourceID) bool {
	if len(ps) == 0 {
		return false
	}
	text := id.String()
	return slices.ContainsFunc(ps, func(p string) bool { return matchPattern(p, text) })
}

// matchPattern compares both texts and, when they differ, goes back to the last *.
func matchPattern(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	i, j, star, mark := 0, 0, -1, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// Like returns the patterns in the syntax of SQL's LIKE.
func (ps Patterns) Like() []string {
	words := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`, `?`, `_`)
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = words.Replace(p)
	}
	return out
}
