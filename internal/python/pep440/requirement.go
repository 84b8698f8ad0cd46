package pep440

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ordain.dev/ordain/internal/python/pytext"
)

// Requirement is what a package or module asks for: name[extra]>=1 ; marker.
type Requirement struct {
	Name     string
	Extras   string // with the brackets, as written; empty: none
	Versions Specifiers
	URL      string // name @ URL
	Marker   string // the condition after the semicolon, as written

	extras    []string
	condition string // the marker in the form that packaging gives it
}

// ParseRequirement reads a requirement, as Python's packaging library does
// (PEP 508). The error is in its words: a *SyntaxError, or one that names the
// condition that it cannot read.
func ParseRequirement(text string) (r Requirement, err error) {
	s := &scanner{text: []rune(text)}
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case *SyntaxError:
			r, err = Requirement{}, cause
		default:
			panic(cause)
		}
	}()
	s.space()
	if r.Name = s.name(); r.Name == "" {
		s.fail("Expected package name at the start of dependency specifier", s.pos)
	}
	s.space()
	start := s.pos
	r.extras = s.extras()
	r.Extras = string(s.text[start:s.pos])
	s.space()
	versions := ""
	if start = s.pos; s.sign('@') {
		s.url(&r)
	} else {
		versions = s.versions()
		s.space()
		expected := "semicolon (after name with no version specifier)"
		if versions != "" {
			expected = "comma (within version specifier), semicolon (after version specifier)"
		}
		s.condition(&r, expected, start)
	}
	if !s.ended() {
		s.fail("Expected end of dependency specifier", s.pos)
	}
	r.Versions, err = ParseSpecifiers(versions)
	return r, err
}

// extras reads [a, b].
func (s *scanner) extras() []string {
	open := s.pos
	if !s.sign('[') {
		return nil
	}
	s.space()
	var names []string
	for name := s.name(); name != ""; {
		names = append(names, name)
		s.space()
		here := s.pos
		if s.name() != "" {
			s.pos = here
			s.fail("Expected comma between extra names", here)
		}
		if !s.sign(',') {
			break
		}
		s.space()
		if name = s.name(); name == "" {
			s.fail("Expected extra name after comma", s.pos)
		}
	}
	s.space()
	if !s.sign(']') {
		s.fail("Expected matching RIGHT_BRACKET for LEFT_BRACKET, after extras", open)
	}
	return names
}

// url reads what follows the @: the URL, and behind white space a condition.
func (s *scanner) url(r *Requirement) {
	s.space()
	start := s.pos
	for !s.ended() && s.text[s.pos] != ' ' && s.text[s.pos] != '\t' {
		s.pos++
	}
	if r.URL = string(s.text[start:s.pos]); r.URL == "" {
		s.fail("Expected URL after @", s.pos)
	}
	s.space()
	s.condition(r, "semicolon (after URL and whitespace)", start)
}

// condition reads what follows a semicolon, unless the text is at its end.
func (s *scanner) condition(r *Requirement, expected string, start int) {
	if s.ended() {
		return
	}
	if !s.sign(';') {
		s.fail("Expected "+expected+" or end", start)
	}
	from := s.pos
	r.condition = s.marker().open
	r.Marker = strings.TrimSpace(string(s.text[from:s.pos]))
}

// versions reads conditions on the version, which may stand in parentheses.
func (s *scanner) versions() string {
	open := s.pos
	enclosed := s.sign('(')
	s.space()
	all := ""
	for {
		start := s.pos
		one := s.specifier()
		if one == "" {
			break
		}
		all += one
		s.nothingBehind(one, start)
		s.space()
		if !s.sign(',') {
			break
		}
		all += ","
		s.space()
	}
	s.space()
	if enclosed && !s.sign(')') {
		s.fail("Expected matching RIGHT_PARENTHESIS for LEFT_PARENTHESIS, after version specifier", open)
	}
	return all
}

// nothingBehind refuses endings that do not go with the condition before them.
func (s *scanner) nothingBehind(condition string, start int) {
	if s.startsWith(".*") {
		message := ".* suffix can only be used with `==` or `!=` operators"
		if strings.HasPrefix(condition, "!=") ||
			strings.HasPrefix(condition, "==") && !strings.HasPrefix(condition, "===") {
			message = ".* suffix cannot be used with pre-release, post-release, dev or local versions"
		}
		s.pos++
		s.fail(message, start)
	}
	if next := s.at(s.pos + 1); s.at(s.pos) == '+' && ('a' <= next && next <= 'z' || '0' <= next && next <= '9') {
		s.fail("Local version label can only be used with `==` or `!=` operators", start)
	}
}

// pySpace is what Python's \s is for a text.
const pySpace = `\t-\r\x1c-\x20\x{85}\p{Z}`

var specifierText = sync.OnceValue(func() *regexp.Regexp {
	const (
		start   = `[` + pySpace + `]*[vV]?(?:[0-9]+!)?[0-9]+`
		pre     = `(?:[-_.]?(?i:alpha|beta|preview|pre|a|b|c|rc)[-_.]?[0-9]*)?`
		post    = `(?:-[0-9]+|[-_.]?(?:[pP][oO][sS][tT]|(?i:rev|r))[-_.]?[0-9]*)?`
		anyPost = `(?:-[0-9]+|[-_.]?(?i:post|rev|r)[-_.]?[0-9]*)?` // ſ is an s too
		dev     = `(?:[-_.]?(?i:dev)[-_.]?[0-9]*)?`
		local   = `(?:\+[a-zA-Z0-9]+(?:[-_.][a-zA-Z0-9]+)*)?`
	)
	return regexp.MustCompile(`^(?:===[` + pySpace + `]*[^` + pySpace + `;)]*` +
		`|(?:==|!=)` + start + `(?:\.[0-9]+)*(?:\.\*|` + pre + post + dev + local + `)` +
		`|~=` + start + `(?:\.[0-9]+)+` + pre + anyPost + dev +
		`|(?:<=|>=|<|>)` + start + `(?:\.[0-9]+)*` + pre + post + dev + `)`)
})

// specifier reads one condition on the version; empty when there is none.
func (s *scanner) specifier() string {
	if s.ended() || !strings.ContainsRune("=!~<>", s.text[s.pos]) {
		return ""
	}
	found := specifierText().FindString(string(s.text[s.pos:]))
	s.pos += len([]rune(found))
	return found
}

// String writes it out again.
func (r Requirement) String() string {
	s := r.Name + r.Extras
	if r.URL != "" {
		s += " @ " + r.URL
	} else {
		s += r.Versions.String()
	}
	if r.Marker != "" {
		s += " ; " + r.Marker
	}
	return s
}

// Canonical writes it as packaging does, with the normal form of the name.
func (r Requirement) Canonical() string {
	s := Normal(r.Name)
	if names := slices.Compact(slices.Sorted(slices.Values(r.extras))); len(names) > 0 {
		s += "[" + strings.Join(names, ",") + "]"
	}
	var conditions []string
	for _, one := range r.Versions {
		conditions = append(conditions, one.Operator+one.Text)
	}
	slices.Sort(conditions)
	s += strings.Join(slices.Compact(conditions), ",")
	if r.URL != "" {
		s += " @ " + r.URL
	}
	if r.condition != "" {
		if r.URL != "" {
			s += " "
		}
		s += "; " + r.condition
	}
	return s
}

// Normal is the form in which names of packages are compared: one dash for any
// run of separators.
func Normal(name string) string {
	name = strings.TrimSpace(name)
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; c {
		case '-', '_', '.':
			if i == 0 || !strings.Contains("-_.", name[i-1:i]) {
				b = append(b, '-')
			}
		default:
			b = append(b, c)
		}
	}
	return strings.ToLower(string(b))
}

// invalidSpecifier is the error of a condition, in packaging's words.
func invalidSpecifier(text string) error {
	return fmt.Errorf("Invalid specifier: %s", pytext.Quote(text)) // the words of packaging
}
