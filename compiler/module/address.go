package module

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of RFC 5321 and RFC 1035, in octets.
const (
	longestAddress = 254
	longestDomain  = 253
)

// reservedDomains are the top-level names that no mail goes to (RFC 2606, 6761,
// 6762, 7686).
var reservedDomains = []string{"arpa", "invalid", "local", "localhost", "onion", "test"}

var (
	namedAddress = sync.OnceValue(func() *regexp.Regexp {
		word := `[\p{L}\p{N}_.!#$%&'*+\-/=?^{|}~` + "`" + `]+`
		return regexp.MustCompile(`^\s*(?:(?:` + word + `\s+)*` + word + `|"[^"]+")?\s*<(.+)>\s*$`)
	})
	localPart = sync.OnceValue(func() *regexp.Regexp {
		atom := `[a-zA-Z0-9_!#$%&'*+\-/=?^{|}~` + "`" + `\x{80}-\x{10FFFF}]+`
		return regexp.MustCompile(`^` + atom + `(?:\.` + atom + `)*$`)
	})
	hostName = sync.OnceValue(func() *regexp.Regexp {
		label := `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
		return regexp.MustCompile(`^` + label + `(?:\.` + label + `)+$`)
	})
	domains = sync.OnceValue(func() *idna.Profile {
		return idna.New(idna.MapForLookup(), idna.StrictDomainName(true), idna.ValidateLabels(true), idna.CheckJoiners(true), idna.BidiRule())
	})
)

// checkAddress tells what is wrong with a mail address, alone or as
// `Name <address>`: it must be one that mail could be sent to (RFC 5321, without
// quoted names and addresses of hosts, RFC 6531 for other letters).
func checkAddress(text string) error {
	if strings.ContainsAny(text, "\r\n") {
		return errors.New("it has more than one line")
	}
	if m := namedAddress().FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	text = strings.TrimSpace(text)
	local, domain, ok := strings.Cut(text, "@")
	switch {
	case !ok:
		return errors.New("it has no @")
	case strings.Contains(domain, "@"):
		return errors.New("it has more than one @")
	case !utf8.ValidString(text) || !localPart().MatchString(local):
		return fmt.Errorf("%q cannot stand before the @", local)
	}
	host, err := domains().ToASCII(domain)
	if err != nil || !hostName().MatchString(host) {
		return fmt.Errorf("%q is not the name of a domain", domain)
	}
	labels := strings.Split(strings.ToLower(host), ".")
	last := labels[len(labels)-1]
	if c := last[len(last)-1]; c < 'a' || c > 'z' {
		return fmt.Errorf("%q is not the name of a domain", domain)
	}
	if slices.Contains(reservedDomains, last) {
		return fmt.Errorf("no mail goes to .%s", last)
	}
	if len(host) > longestDomain || len(local)+1+len(host) > longestAddress || slices.ContainsFunc(labels, func(l string) bool { return len(l) > 63 }) {
		return errors.New("it is too long")
	}
	return nil
}
