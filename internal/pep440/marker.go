package pep440

import (
	"regexp"
	"strings"
	"sync"
)

var markerTokens = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[ \t]*(?:(\()|(\))|('[^']*'|"[^"]*")|(===|==|~=|!=|<=|>=|<|>)|(and|or)\b|(not[ \t]+in|in)\b|` +
		`(python_version|python_full_version|os[._]name|sys[._]platform|platform_(?:release|system)|platform[._](?:version|machine|python_implementation)|` +
		`python_implementation|implementation_(?:name|version)|extras?|dependency_groups)\b)`)
})

// kinds of markerTokens, by group.
const (
	markOpen = iota + 1
	markClose
	markText
	markCompare
	markJoin
	markIn
	markVariable
)

// ValidMarker tells whether a condition of a requirement can be read (PEP 508):
// comparisons of variables and texts, joined by `and` and `or`.
func ValidMarker(text string) bool {
	open := 0
	next := func() int {
		m := markerTokens().FindStringSubmatchIndex(text)
		if m == nil {
			return 0
		}
		text = text[m[1]:]
		for kind := markOpen; kind <= markVariable; kind++ {
			if m[2*kind] >= 0 {
				return kind
			}
		}
		return 0
	}
	for {
		token := next()
		for ; token == markOpen; token = next() {
			open++
		}
		operand := func(kind int) bool { return kind == markText || kind == markVariable }
		if !operand(token) {
			return false
		}
		if op := next(); op != markCompare && op != markIn {
			return false
		}
		if !operand(next()) {
			return false
		}
		for {
			if strings.TrimLeft(text, " \t") == "" {
				return open == 0
			}
			token = next()
			if token != markClose {
				break
			}
			if open--; open < 0 {
				return false
			}
		}
		if token != markJoin {
			return false
		}
	}
}
