package pep440

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Requirement is what a package or module asks for: name[extra]>=1 ; marker.
type Requirement struct {
	Name     string
	Extras   string // with the brackets, as written; empty: none
	Versions Specifiers
	URL      string // name @ URL
	Marker   string // the condition after the semicolon
}

var requirementPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[^\]]*\])?\s*(.*)$`)
})

// ParseRequirement reads a requirement.
func ParseRequirement(text string) (Requirement, error) {
	body, marker, conditional := strings.Cut(strings.TrimSpace(text), ";")
	if name, url, ok := strings.Cut(text, "@"); ok && requirementPattern().MatchString(strings.TrimSpace(name)) && !strings.ContainsAny(name, "<>=~!") {
		// The semicolon of a marker stands alone; one in a URL does not.
		url, marker, _ := strings.Cut(strings.TrimSpace(url), " ;")
		m := requirementPattern().FindStringSubmatch(strings.TrimSpace(name))
		if m[3] != "" || url == "" {
			return Requirement{}, malformed(text)
		}
		return Requirement{Name: m[1], Extras: m[2], URL: strings.TrimSpace(url), Marker: strings.TrimSpace(marker)}, nil
	}
	m := requirementPattern().FindStringSubmatch(strings.TrimSpace(body))
	if m == nil {
		return Requirement{}, malformed(text)
	}
	if conditional && !ValidMarker(marker) {
		return Requirement{}, malformed(text)
	}
	r := Requirement{Name: m[1], Extras: m[2], Marker: strings.TrimSpace(marker)}
	conditions := strings.TrimSpace(m[3])
	if inner, ok := strings.CutPrefix(conditions, "("); ok {
		if conditions, ok = strings.CutSuffix(inner, ")"); !ok {
			return Requirement{}, malformed(text)
		}
	}
	if conditions != "" && !strings.ContainsAny(conditions[:1], "<>=!~") {
		return Requirement{}, malformed(text)
	}
	var err error
	if r.Versions, err = ParseSpecifiers(conditions); err != nil {
		return Requirement{}, fmt.Errorf("%w: %w", malformed(text), err)
	}
	return r, nil
}

func malformed(text string) error {
	return fmt.Errorf("%q is not a requirement such as `std ~= 8.0`", strings.TrimSpace(text))
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
