// Package pep440 reads versions, version specifiers and requirements of Python
// packages, as PEP 440 and PEP 508 define them. With it, Ordain chooses the tag of a
// module that satisfies what a project asks for.
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
		v.local = strings.FieldsFunc(strings.ToLower(m[10]),
			func(r rune) bool { return strings.ContainsRune("-_.", r) })
	}
	return v, nil
}

// plain reports whether a version is nothing but a release. Most are, and reading
// all of them takes less time than compiling the pattern.
func plain(text string) bool {
	dotted := true // a digit has to follow
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

// number reads digits. No digits are 0.
func number(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

// Prerelease reports whether the version is an alpha, a beta, a candidate or a
// development version.
func (v Version) Prerelease() bool { return v.pre != "" || v.dev != nil }

// Base reports whether the version is nothing but a release, with or without an epoch.
func (v Version) Base() bool { return !v.Prerelease() && v.post == nil && v.local == nil }

// IsZero reports whether the version is the zero value, which is not a version.
func (v Version) IsZero() bool { return v.release == nil }

// String returns the normal form.
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
	return cmp.Or(a.epoch.Cmp(b.epoch), compareRelease(a.release, b.release), cmp.Compare(a.phase(), b.phase()),
		compareOptional(a.preN, b.preN, 0), compareOptional(a.post, b.post, -1), compareOptional(a.dev, b.dev, +1))
}

// phase orders the stages in the life of a release. Development versions of the
// release itself come before its alphas.
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

// compareOptional compares two numbers, either of which may be absent. absent is the
// order of an absent number relative to a present one.
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
		if c := component(a, i).Cmp(component(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

var zero = new(big.Int)

// component returns the i-th component of a release. Those not written are 0.
func component(release []*big.Int, i int) *big.Int {
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
