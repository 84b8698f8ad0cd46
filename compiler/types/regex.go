package types

import (
	"fmt"
	"time"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/pyregex"
	"ordain.dev/ordain/compiler/syntax"
)

// Regex is a regular expression of Python's re, matched at the start of a
// string and not necessarily to its end.
type Regex struct {
	compiled *pyregex.Regexp
	limit    time.Duration
}

// MatchLimit is how long a match may take; tests set a shorter one. Nested
// repetitions such as (a+)+$ may need longer than a lifetime.
var MatchLimit = 20 * time.Second

// NewRegex compiles a pattern.
func NewRegex(pattern string) (*Regex, error) { return newRegex(pattern, MatchLimit) }

func newRegex(pattern string, limit time.Duration) (*Regex, error) {
	compiled, err := pyregex.Compile(pattern, syntax.NamedRune)
	if err != nil {
		return nil, fmt.Errorf("%s is not a regular expression: %w", pattern, err)
	}
	return &Regex{compiled, limit}, nil
}

// Match reports whether the text begins with a match of the pattern. It returns an
// error when that takes too long to find out.
func (r *Regex) Match(text string) (bool, error) {
	ok, err := r.compiled.Match(text, r.limit)
	if err != nil {
		return false, fmt.Errorf("it was not known after %v whether a text of %d characters matches", r.limit,
			utf8.RuneCountInString(text))
	}
	return ok, nil
}
