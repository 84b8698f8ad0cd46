package mailaddress

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"ordain.dev/ordain/internal/python/pytext"
)

// Limits of RFC 1035, in octets.
const (
	longestDomain = 253
	longestLabel  = 63
)

// reserved are the top-level names that no mail goes to (RFC 2606, 6761, 6762, 7686).
var reserved = []string{"arpa", "invalid", "local", "localhost", "onion", "test"}

var (
	hostName = sync.OnceValue(func() *regexp.Regexp {
		label := `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
		return regexp.MustCompile(`^` + label + `(?:\.` + label + `)*$`)
	})
	oddDashes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(?:^|\.)(?:[^x.].|x[^n.])--`) })
	mapped    = sync.OnceValue(
		func() *idna.Profile { return idna.New(idna.MapForLookup(), idna.StrictDomainName(false)) },
	)
	encoded = sync.OnceValue(func() *idna.Profile {
		return idna.New(
			idna.MapForLookup(),
			idna.StrictDomainName(true),
			idna.ValidateLabels(true),
			idna.CheckJoiners(true),
			idna.BidiRule(),
		)
	})
)

// checkDomain looks at what stands behind the @ and gives the name of the host.
func checkDomain(domain string) (host, wrong string) {
	if n := utf8.RuneCountInString(domain); n > longestDomain {
		return "", "The email address is too long after the @-sign " + tooMany(n, longestDomain) + "."
	}
	isHost := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c >= 0x80
	}
	if bad := others(domain, isHost); bad != "" {
		return "", "The part after the @-sign contains invalid characters: " + bad + "."
	}
	if wrong := checkUnsafe(domain, false); wrong != "" {
		return "", wrong
	}
	host = strings.ToLower(domain)
	wide := strings.ContainsFunc(domain, func(c rune) bool { return c >= 0x80 })
	if plain, err := mapped().ToUnicode(domain); wide && err == nil {
		host = plain
	}
	if bad := others(host, isHost); bad != "" {
		return "", "The part after the @-sign contains invalid characters after Unicode normalization: " + bad + "."
	}
	if wrong := checkHostDots(host); wrong != "" {
		return "", wrong
	}
	if oddDashes().MatchString(host) {
		return "", "An email address cannot have two letters followed by two dashes immediately after the @-sign or after a period, except Punycode."
	}
	ascii := domain
	if !hostName().MatchString(domain) || strings.Contains(strings.ToLower(domain), "xn--") {
		var err error
		if ascii, err = encoded().ToASCII(domain); err == nil && slices.Contains(strings.Split(ascii, "."), "") {
			err = errors.New("a label is empty")
		}
		if long := func(l string) bool { return len(l) > longestLabel }; wide && err == nil &&
			slices.ContainsFunc(strings.Split(ascii, "."), long) {
			return "", "The part after the @-sign is invalid (Label too long)."
		}
		if err != nil {
			return "", fmt.Sprintf("The part after the @-sign is not valid IDNA (%v).", err)
		}
	}
	return host, checkHost(strings.ToLower(ascii))
}

func checkHostDots(host string) string {
	start, end := "An email address cannot have a %s immediately after the @-sign.", "An email address cannot end with a %s."
	wrong := checkDots(host, fmt.Sprintf(start, "period"), fmt.Sprintf(end, "period"))
	switch {
	case wrong != "":
		return wrong
	case strings.HasSuffix(host, "-"):
		return fmt.Sprintf(end, "hyphen")
	case strings.HasPrefix(host, "-"):
		return fmt.Sprintf(start, "hyphen")
	case strings.Contains(host, ".-"), strings.Contains(host, "-."):
		return "An email address cannot have a period and a hyphen next to each other."
	}
	return ""
}

// checkHost looks at the name that the system of names is asked for.
func checkHost(host string) string {
	if over := len(host) - longestDomain; over > 0 {
		return fmt.Sprintf(
			"The email address is too long after the @-sign (%d byte%s too many after IDNA encoding).",
			over,
			plural(over),
		)
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if len(l) > longestLabel {
			return "After the @-sign, periods cannot be separated by so many characters " + tooMany(
				len(l),
				longestLabel,
			) + "."
		}
	}
	last := labels[len(labels)-1]
	switch c := host[len(host)-1]; {
	case len(labels) == 1:
		return "The part after the @-sign is not valid. It should have a period."
	case c < 'a' || c > 'z':
		return "The part after the @-sign is not valid. It is not within a valid top-level domain."
	case slices.Contains(reserved, last):
		return "The part after the @-sign is a special-use or reserved name that cannot be used with email."
	}
	return ""
}

// checkLiteral looks at an address of a host in brackets, which is not allowed anyway.
func checkLiteral(text string) string {
	const refused = "A bracketed IP address after the @-sign is not allowed here."
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		if wrong := noIPv4(text); wrong != "" {
			return "The address in brackets after the @-sign is not valid: It is not an IPv4 address (" + wrong + ") or is missing an address literal tag."
		}
		return refused
	}
	tag, rest, tagged := strings.Cut(text, ":")
	switch {
	case !tagged:
		return "The part after the @-sign in brackets is not an IPv4 address and has no address literal tag."
	case !strings.EqualFold(tag, "ipv6"):
		return "The part after the @-sign contains an invalid address literal tag in brackets."
	}
	if ip, err := netip.ParseAddr(rest); err != nil || !ip.Is6() {
		return "The IPv6 address in brackets after the @-sign is not valid (" + pytext.Quote(rest) + ")."
	}
	return refused
}

// noIPv4 says why digits and full stops are no address.
func noIPv4(text string) string {
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return "Expected 4 octets in " + pytext.Quote(text)
	}
	for _, p := range parts {
		n, _ := strconv.Atoi(p)
		switch quoted := pytext.Quote(p); {
		case p == "":
			return "Empty octet not permitted in " + pytext.Quote(text)
		case len(p) > 3:
			return "At most 3 characters permitted in " + quoted + " in " + pytext.Quote(text)
		case p != "0" && p[0] == '0':
			return "Leading zeros are not permitted in " + quoted + " in " + pytext.Quote(text)
		case n > 255:
			return fmt.Sprintf("Octet %d (> 255) not permitted in %s", n, pytext.Quote(text))
		}
	}
	return ""
}
