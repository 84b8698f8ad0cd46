package pep440

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Requirement is what a package or module asks for: name[extra]>=1 ; marker.
type Requirement struct {
	Name     string
	Extras   string // with the brackets, as written; empty: none
	Versions Specifiers
	URL      string // name @ URL
	Marker   string // the condition after the semicolon, as written

	extras    []string
	condition string // the normal form of the marker
}

// ParseRequirement reads a requirement of PEP 508. It accepts what Python's library
// packaging accepts.
func ParseRequirement(text string) (r Requirement, err error) {
	s := &scanner{text: []rune(text)}
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case syntaxError:
			r, err = Requirement{}, errors.New(string(cause))
		default:
			panic(cause)
		}
	}()
	s.space()
	if r.Name = s.name(); r.Name == "" {
		s.fail("the name of a package")
	}
	s.space()
	start := s.pos
	r.extras = s.extras()
	r.Extras = string(s.text[start:s.pos])
	s.space()
	versions := ""
	if s.sign('@') {
		s.url(&r)
	} else {
		versions = s.versions()
		s.space()
		expected := "a version such as >=1, a semicolon"
		if versions != "" {
			expected = "a comma, a semicolon"
		}
		s.condition(&r, expected)
	}
	if !s.ended() {
		s.fail("the end")
	}
	r.Versions, err = ParseSpecifiers(versions)
	return r, err
}

// extras reads [a, b].
func (s *scanner) extras() []string {
	if !s.sign('[') {
		return nil
	}
	s.space()
	var names []string
	for name := s.name(); name != ""; {
		names = append(names, name)
		s.space()
		if here := s.pos; s.name() != "" {
			s.pos = here
			s.fail("a comma")
		}
		if !s.sign(',') {
			break
		}
		s.space()
		if name = s.name(); name == "" {
			s.fail("the name of an extra")
		}
	}
	s.space()
	if !s.sign(']') {
		s.fail("`]`")
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
		s.fail("a URL")
	}
	s.space()
	s.condition(r, "a semicolon after a space")
}

// condition reads a semicolon and the condition after it, unless the text ends here.
// expected is what may stand here otherwise, for the error.
func (s *scanner) condition(r *Requirement, expected string) {
	if s.ended() {
		return
	}
	if !s.sign(';') {
		s.fail(expected + " or the end")
	}
	from := s.pos
	r.condition = s.marker().alone
	r.Marker = strings.TrimSpace(string(s.text[from:s.pos]))
}

// versions reads the conditions on the version, which may stand in parentheses.
func (s *scanner) versions() string {
	enclosed := s.sign('(')
	s.space()
	all := ""
	for {
		one := s.specifier()
		if one == "" {
			break
		}
		all += one
		s.noSuffix()
		s.space()
		if !s.sign(',') {
			break
		}
		all += ","
		s.space()
	}
	s.space()
	if enclosed && !s.sign(')') {
		s.fail("`)`")
	}
	return all
}

// noSuffix refuses .* and local versions where the condition before them does not
// allow them.
func (s *scanner) noSuffix() {
	next := s.at(s.pos + 1)
	if s.startsWith(".*") ||
		s.at(s.pos) == '+' && ('a' <= next && next <= 'z' || '0' <= next && next <= '9') {
		s.fail("the end of the version (.* and +local go with == and != only, .* after a plain release)")
	}
}

// pySpace is what \s matches in Python.
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

// specifier reads one condition on the version. It returns an empty text when there
// is none.
func (s *scanner) specifier() string {
	if s.ended() || !strings.ContainsRune("=!~<>", s.text[s.pos]) {
		return ""
	}
	found := specifierText().FindString(string(s.text[s.pos:]))
	s.pos += len([]rune(found))
	return found
}

// String writes the requirement as text.
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

// Canonical returns the normal form that the library packaging gives a requirement.
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

// Normal returns the form in which names of packages are compared: in lower case,
// with one dash for each run of separators.
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

// invalidSpecifier is the error of a condition on the version that cannot be read.
func invalidSpecifier(text string) error {
	return fmt.Errorf("%q is not a condition on a version, such as >=1.2", text)
}
