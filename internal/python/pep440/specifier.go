package pep440

import (
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// Specifiers are conditions on a version that must all hold: >=1.2,!=1.3.
type Specifiers []Specifier

// Specifier is one condition.
type Specifier struct {
	Operator string // ~= == != <= >= < > ===
	Text     string // the version as written
	version  Version
	wildcard bool // 1.2.*
}

// ParseSpecifiers reads conditions separated by commas. There may be none.
func ParseSpecifiers(text string) (Specifiers, error) {
	var all Specifiers
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimFunc(one, pytext.Space); one == "" {
			continue
		}
		s, err := parseSpecifier(one)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parseSpecifier(text string) (Specifier, error) {
	if specifierText().FindString(text) != text {
		return Specifier{}, invalidSpecifier(text)
	}
	s := Specifier{}
	for _, sign := range []string{"===", "~=", "==", "!=", "<=", ">=", "<", ">"} {
		if rest, ok := strings.CutPrefix(text, sign); ok {
			s.Operator, s.Text = sign, strings.TrimFunc(rest, pytext.Space)
			break
		}
	}
	if s.Operator == "===" {
		s.version, _ = Parse(s.Text) // the text need not be a version
		return s, nil
	}
	bare, wildcard := strings.CutSuffix(s.Text, ".*")
	s.wildcard = wildcard
	var err error
	if s.version, err = Parse(bare); err != nil {
		return Specifier{}, invalidSpecifier(text)
	}
	return s, nil
}

// String writes the conditions as text.
func (s Specifiers) String() string {
	parts := make([]string, len(s))
	for i, one := range s {
		parts[i] = one.Operator + one.Text
	}
	return strings.Join(parts, ",")
}

// Contains reports whether a version satisfies all conditions. A pre-release does so
// only if pre is set or a condition names a pre-release.
func (s Specifiers) Contains(v Version, pre bool) bool {
	for _, one := range s {
		if one.Operator != "!=" && !one.version.IsZero() && one.version.Prerelease() {
			pre = true
		}
	}
	if v.Prerelease() && !pre {
		return false
	}
	for _, one := range s {
		if !one.holds(v) {
			return false
		}
	}
	return true
}

func (s Specifier) holds(v Version) bool {
	public := v
	public.local = nil
	switch s.Operator {
	case "===":
		return strings.EqualFold(v.String(), s.Text)
	case "==":
		return s.equals(v)
	case "!=":
		return !s.equals(v)
	case "<=":
		return Compare(public, s.version) <= 0
	case ">=":
		return Compare(public, s.version) >= 0
	case "~=":
		upTo := s.version
		upTo.release = upTo.release[:len(upTo.release)-1]
		return Compare(public, s.version) >= 0 && prefix(upTo, v)
	case "<":
		// A pre-release of the version does not count as smaller.
		return Compare(public, s.version) < 0 &&
			(s.version.Prerelease() || !v.Prerelease() || !sameRelease(v, s.version) ||
				s.version.post != nil && (v.pre != "" || compareOptional(v.post, s.version.post, -1) != 0))
	default: // >
		// A post-release does not count as greater unless the condition names one.
		return Compare(public, s.version) > 0 &&
			(s.version.post != nil || v.post == nil || !sameRelease(v, s.version) ||
				v.pre != s.version.pre || compareOptional(v.preN, s.version.preN, 0) != 0)
	}
}

func (s Specifier) equals(v Version) bool {
	if s.wildcard {
		return prefix(s.version, v)
	}
	if s.version.local == nil {
		v.local = nil
	}
	return Compare(v, s.version) == 0
}

func sameRelease(a, b Version) bool {
	return a.epoch.Cmp(b.epoch) == 0 && compareRelease(a.release, b.release) == 0
}

// prefix reports whether the release of v begins with that of p.
func prefix(p, v Version) bool {
	if p.epoch.Cmp(v.epoch) != 0 {
		return false
	}
	for i := range p.release {
		if p.release[i].Cmp(component(v.release, i)) != 0 {
			return false
		}
	}
	return true
}
