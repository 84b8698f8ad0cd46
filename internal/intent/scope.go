package intent

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Scope says which paths of a repository concern an environment.
type Scope struct {
	rules []scopeRule
	shown string
}

type scopeRule struct {
	not bool
	re  *regexp.Regexp
}

const (
	maxScopeRules = 200
	maxScopeRule  = 500
)

// ParseScope reads patterns of paths from the top of the repository, separated by line
// breaks or commas. In a name, * stands for any text and ? for any character; **
// stands for any folders. A pattern also matches everything below what it matches. A
// pattern that begins with ! excludes what earlier patterns include.
func ParseScope(text string) (Scope, error) {
	var s Scope
	var shown []string
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ',' }) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) > maxScopeRule {
			return s, fmt.Errorf("%.40q… is longer than %d characters", line, maxScopeRule)
		}
		if len(s.rules) == maxScopeRules {
			return s, fmt.Errorf("there are more than %d patterns", maxScopeRules)
		}
		rule, err := scopeRuleOf(line)
		if err != nil {
			return s, fmt.Errorf("%q: %w", line, err)
		}
		s.rules, shown = append(s.rules, rule), append(shown, line)
	}
	s.shown = strings.Join(shown, ", ")
	return s, nil
}

func scopeRuleOf(line string) (scopeRule, error) {
	pattern, not := strings.CutPrefix(line, "!")
	pattern = path.Clean("/" + strings.TrimSpace(pattern))
	if strings.Contains(line, "..") {
		return scopeRule{}, errors.New("a path begins at the top of the repository, without ..")
	}
	re := "^"
	for _, name := range strings.Split(pattern[1:], "/") {
		switch {
		case name == "":
		case name == "**":
			re += "(?:[^/]+/)*"
		default:
			name = regexp.QuoteMeta(name)
			name = strings.ReplaceAll(name, `\*`, `[^/]*`)
			re += strings.ReplaceAll(name, `\?`, `[^/]`) + "/"
		}
	}
	// Paths are matched with a slash at their end, so that a folder's name is a prefix.
	compiled, err := regexp.Compile(re)
	return scopeRule{not: not, re: compiled}, err
}

// ScopeOf returns the scope of an environment: the setting trigger_paths or, without
// it, the project's folder and modules, its modules in the same repository.
func ScopeOf(e Environment, modules ...string) (Scope, error) {
	if text := e.Text("trigger_paths"); strings.TrimSpace(text) != "" {
		return ParseScope(text)
	}
	if e.Source.Subdir == "" {
		return Scope{}, nil
	}
	s := Scope{shown: e.Source.Subdir}
	for _, dir := range append([]string{e.Source.Subdir}, modules...) {
		s.rules = append(s.rules,
			scopeRule{re: regexp.MustCompile("^" + regexp.QuoteMeta(strings.Trim(path.Clean("/"+dir), "/")) + "/")})
	}
	return s, nil
}

// Everything reports whether every path concerns the environment.
func (s Scope) Everything() bool { return len(s.rules) == 0 }

// Has reports whether a path concerns the environment.
func (s Scope) Has(file string) bool {
	if s.Everything() {
		return true
	}
	has := s.rules[0].not // a list that begins with ! excludes from everything
	for _, r := range s.rules {
		if r.re.MatchString(file + "/") {
			has = !r.not
		}
	}
	return has
}

func (s Scope) String() string { return s.shown }

func scopeCheck(text string) error {
	_, err := ParseScope(text)
	return err
}
