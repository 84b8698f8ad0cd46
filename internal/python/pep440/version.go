// Package pep440 reads the versions, version specifiers and requirements of
// Python packages, as PEP 440 and PEP 508 define them: which of the tags of a
// module satisfies what a project asks for.
package pep440

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"sync"
)

// Version is one version, such as 1!2.0rc1.post2.dev3+local.
type Version struct {
	epoch   *big.Int
	release []*big.Int
	pre     string // a, b or rc; empty: none
	preN    *big.Int
	post    *big.Int // nil: none
	dev     *big.Int // nil: none
	local   []string
}

var versionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^v?(?:(\d+)!)?(\d+(?:\.\d+)*)` +
		`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?(\d*))?` +
		`(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?` +
		`(?:[-_.]?(dev)[-_.]?(\d*))?` +
		`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)
})

var preNames = map[string]string{
	"alpha": "a", "a": "a", "beta": "b", "b": "b", "c": "rc", "pre": "rc", "preview": "rc", "rc": "rc",
}

// Parse reads a version.
func Parse(text string) (Version, error) {
	text = strings.TrimSpace(text)
	if plain(text) {
		return Version{epoch: new(big.Int), release: numbers(text)}, nil
	}
	m := versionPattern().FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version", text)
	}
	v := Version{epoch: number(m[1]), release: numbers(m[2])}
	if m[3] != "" {
		v.pre, v.preN = preNames[strings.ToLower(m[3])], number(m[4])
	}
	if m[5] != "" {
		v.post = number(m[5])
	} else if m[6] != "" {
		v.post = number(m[7])
	}
	if m[8] != "" {
		v.dev = number(m[9])
	}
	if m[10] != "" {
		v.local = strings.FieldsFunc(
			strings.ToLower(m[10]),
			func(r rune) bool { return strings.ContainsRune("-_.", r) },
		)
	}
	return v, nil
}

// plain tells the versions that are nothing but a release: most are, and the
// pattern takes longer to compile than all of them to read.
func plain(text string) bool {
	dotted := true // what comes next has to be a digit
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			dotted = false
		case c == '.' && !dotted:
			dotted = true
		default:
			return false
		}
	}
	return !dotted
}

func numbers(release string) []*big.Int {
	parts := strings.Split(release, ".")
	list := make([]*big.Int, len(parts))
	for i, part := range parts {
		list[i] = number(part)
	}
	return list
}

// number reads digits; none are 0.
func number(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

// Prerelease tells whether it comes before a release: an alpha, a beta, a
// candidate or a development version.
func (v Version) Prerelease() bool { return v.pre != "" || v.dev != nil }

// Base tells a version that is nothing but a release, with or without an epoch.
func (v Version) Base() bool { return !v.Prerelease() && v.post == nil && v.local == nil }

// IsZero tells the zero Version, which is none.
func (v Version) IsZero() bool { return v.release == nil }

// String gives the normal form.
func (v Version) String() string {
	if v.IsZero() {
		return ""
	}
	var b strings.Builder
	if v.epoch.Sign() > 0 {
		fmt.Fprintf(&b, "%s!", v.epoch)
	}
	b.WriteString(join(v.release))
	if v.pre != "" {
		fmt.Fprintf(&b, "%s%s", v.pre, v.preN)
	}
	if v.post != nil {
		fmt.Fprintf(&b, ".post%s", v.post)
	}
	if v.dev != nil {
		fmt.Fprintf(&b, ".dev%s", v.dev)
	}
	if v.local != nil {
		b.WriteString("+" + strings.Join(v.local, "."))
	}
	return b.String()
}

func join(release []*big.Int) string {
	parts := make([]string, len(release))
	for i, n := range release {
		parts[i] = n.String()
	}
	return strings.Join(parts, ".")
}

// Compare orders two versions: negative when a is older than b.
func Compare(a, b Version) int {
	if c := comparePublic(a, b); c != 0 {
		return c
	}
	return compareLocal(a.local, b.local)
}

func comparePublic(a, b Version) int {
	return cmp.Or(
		a.epoch.Cmp(b.epoch),
		compareRelease(a.release, b.release),
		cmp.Compare(a.phase(), b.phase()),
		compareOptional(a.preN, b.preN, 0),
		compareOptional(a.post, b.post, -1),
		compareOptional(a.dev, b.dev, +1),
	)
}

// phase is where in the life of a release a version stands; development
// versions of the release itself come before its alphas.
func (v Version) phase() int {
	switch {
	case v.pre == "a":
		return 1
	case v.pre == "b":
		return 2
	case v.pre == "rc":
		return 3
	case v.post == nil && v.dev != nil:
		return 0
	}
	return 4
}

// compareOptional compares numbers of which either may be absent; absent says
// where that stands beside one that is there.
func compareOptional(a, b *big.Int, absent int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return absent
	case b == nil:
		return -absent
	}
	return a.Cmp(b)
}

func compareRelease(a, b []*big.Int) int {
	for i := range max(len(a), len(b)) {
		if c := part(a, i).Cmp(part(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

var zero = new(big.Int)

// part is the i-th part of a release; those not written are 0.
func part(release []*big.Int, i int) *big.Int {
	if i < len(release) {
		return release[i]
	}
	return zero
}

func compareLocal(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) {
			return -1
		}
		if i >= len(b) {
			return 1
		}
		x, xIsNumber := new(big.Int).SetString(a[i], 10)
		y, yIsNumber := new(big.Int).SetString(b[i], 10)
		var c int
		switch {
		case xIsNumber && yIsNumber:
			c = x.Cmp(y)
		case xIsNumber:
			c = 1
		case yIsNumber:
			c = -1
		default:
			c = strings.Compare(a[i], b[i])
		}
		if c != 0 {
			return c
		}
	}
	return 0
}
