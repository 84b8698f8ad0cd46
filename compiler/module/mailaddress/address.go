// Package mailaddress tells what is wrong with the mail address of an author, in
// the words of the library that pydantic asks (email-validator): it must be an
// address that mail could be sent to (RFC 5321, without quoted names and addresses
// of hosts, RFC 6531 for other letters).
package mailaddress

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of pydantic, and of RFC 5321 in octets.
const (
	longestText    = 2048
	longestAddress = 254
)

// pretty is `Name <address>`, with the name in quotes or not.
var pretty = sync.OnceValue(func() *regexp.Regexp {
	word := `[\p{L}\p{N}_.!#$%&'*+\-/=?^{|}~` + "`" + `]+`
	return regexp.MustCompile(`^\s*(?:(?:` + word + `\s+)*` + word + `|"(?:.+)")?\s*<(.+)>\s*$`)
})

// Check gives what is wrong with an address, alone or as `Name <address>`; empty:
// nothing is.
func Check(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if utf8.RuneCountInString(text) > longestText {
		return fmt.Sprintf("Length must not exceed %d characters", longestText)
	}
	if strings.ContainsAny(text, "\r\n") {
		return "Carriage return and line feed characters are not allowed"
	}
	if m := pretty().FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	text = strings.TrimSpace(text)
	local, domain, wrong := split(text)
	if wrong != "" {
		return wrong
	}
	name, quoted, wrong := unquoted(local)
	if wrong != "" {
		return wrong
	}
	if wrong = checkLocal(name, quoted); wrong != "" {
		return wrong
	}
	if normal := norm.NFC.String(name); normal != name {
		if wrong = checkLocal(normal, quoted); wrong != "" {
			return "After Unicode normalization: " + wrong
		}
	}
	if quoted {
		return "Quoting the part before the @-sign is not allowed here."
	}
	switch {
	case domain == "":
		return "There must be something after the @-sign."
	case strings.HasPrefix(domain, "[") && strings.HasSuffix(domain, "]"):
		return checkLiteral(domain[1 : len(domain)-1])
	}
	host, wrong := checkDomain(domain)
	if wrong != "" {
		return wrong
	}
	if wrong = checkLength(local+"@"+domain, name+"@"+host); wrong == "" && strings.HasSuffix(text, ">") {
		return "A display name and angle brackets around the email address are not permitted here."
	}
	return wrong
}

// split takes an address apart, which may stand in angle brackets behind a name.
func split(text string) (local, domain, wrong string) {
	left, right, wrong := cut(text, "@<")
	if wrong != "" {
		return "", "", wrong
	}
	if strings.HasPrefix(right, "<") {
		if wrong = checkName(strings.TrimSpace(left)); wrong != "" {
			return "", "", wrong
		}
		if !strings.Contains(right, ">") {
			return "", "", "An open angle bracket at the start of the email address has to be followed by a close angle bracket at the end."
		}
		right = strings.TrimRight(right, " ")
		if !strings.HasSuffix(right, ">") {
			return "", "", "There can't be anything after the email address."
		}
		if left, right, wrong = cut(right[1:len(right)-1], "@"); wrong != "" {
			return "", "", wrong
		}
	}
	return left, strings.TrimPrefix(right, "@"), ""
}

// cut ends the left part before the first special character outside quotes.
func cut(text, specials string) (left, right, wrong string) {
	inside, escaped := false, false
	for i, c := range text {
		switch {
		case combines(text[i:], c):
		case inside:
			inside = c != '"' || escaped
			escaped = c == '\\' && !escaped
		case c == '"':
			inside = true
		case strings.ContainsRune(specials, c):
			return text[:i], text[i:], ""
		}
	}
	switch {
	case strings.Contains(text, "＠"):
		return "", "", `The email address has the "full-width" at-sign (@) character instead of a regular at-sign.`
	case strings.Contains(text, "﹫"):
		return "", "", `The email address has the "small commercial at" character instead of a regular at-sign.`
	}
	return "", "", "An email address must have an @-sign."
}

// combines tells whether what follows makes another character of the first one.
func combines(text string, c rune) bool {
	next := text[utf8.RuneLen(c):]
	if next == "" || next[0] < utf8.RuneSelf {
		return false
	}
	first, _ := utf8.DecodeRuneInString(norm.NFC.String(text[:min(len(text), 128)]))
	return first != c
}

// unquoted takes the quotes and the escapes off a part.
func unquoted(text string) (value string, quoted bool, wrong string) {
	if !strings.HasPrefix(text, `"`) {
		return text, false, ""
	}
	var b strings.Builder
	escaped := false
	for i, c := range text[1:] {
		switch {
		case escaped:
			b.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			if rest := text[i+2:]; rest != "" {
				shown := make([]string, 0, len(rest))
				for _, c := range rest {
					shown = append(shown, display(c))
				}
				return "", false, "Extra character(s) found after close quote: " + strings.Join(shown, ", ")
			}
			return b.String(), true, ""
		default:
			b.WriteRune(c)
		}
	}
	return b.String(), true, ""
}

// checkName looks at the name before an address in angle brackets.
func checkName(text string) string {
	name, quoted, wrong := unquoted(text)
	if wrong != "" {
		return wrong
	}
	if !quoted {
		if bad := others(name, func(c rune) bool { return c != '.' && (isAtom(c) || c == ' ') }); bad != "" {
			return "The display name contains invalid characters when not quoted: " + bad + "."
		}
	}
	return checkUnsafe(name, true)
}

func checkLocal(name string, quoted bool) string {
	if name == "" {
		return "There must be something before the @-sign."
	}
	wide := func(c rune) bool { return isAtom(c) || c >= 0x80 }
	bad := others(name, func(c rune) bool { return wide(c) || c == '.' })
	dots := checkDots(
		name,
		"An email address cannot start with a period.",
		"An email address cannot have a period immediately before the @-sign.",
	)
	switch {
	case bad == "" && dots == "":
		if others(name, func(c rune) bool { return isAtom(c) || c == '.' }) == "" {
			return ""
		}
		return checkUnsafe(name, false)
	case quoted:
		if bad = others(name, func(c rune) bool { return c >= ' ' && c != 0x7f }); bad != "" {
			return "The email address contains invalid characters in quotes before the @-sign: " + bad + "."
		}
		return checkUnsafe(name, true)
	case bad != "":
		return "The email address contains invalid characters before the @-sign: " + bad + "."
	}
	return dots
}

func isAtom(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.ContainsRune("_!#$%&'*+-/=?^`{|}~", c)
}

func checkDots(text, start, end string) string {
	switch {
	case strings.HasSuffix(text, "."):
		return end
	case strings.HasPrefix(text, "."):
		return start
	case strings.Contains(text, ".."):
		return "An email address cannot have two periods in a row."
	}
	return ""
}

func checkLength(original, normal string) string {
	characters, octets := utf8.RuneCountInString(original), len(original)
	over := octets - longestAddress
	switch {
	case over > 0 && characters == octets:
		return "The email address is too long " + tooMany(characters, longestAddress) + "."
	case over > 0:
		widest := 1
		for _, c := range original {
			widest = max(widest, utf8.RuneLen(c))
		}
		count := fmt.Sprint(over)
		if least := max(1, over/widest); least != over {
			count = fmt.Sprintf("%d-%d", least, over)
		}
		return fmt.Sprintf("The email address is too long (%s character%s too many).", count, plural(over))
	}
	if over = len(normal) - longestAddress; over > 0 {
		return fmt.Sprintf(
			"The email address is too long after normalization (%d byte%s too many).",
			over,
			plural(over),
		)
	}
	return ""
}

func tooMany(length, limit int) string {
	return fmt.Sprintf("(%d character%s too many)", length-limit, plural(length-limit))
}

func plural(n int) string {
	if n > 1 {
		return "s"
	}
	return ""
}

// others lists the characters of a text that are not allowed, as a sorted set.
func others(text string, allowed func(c rune) bool) string {
	var bad []string
	for _, c := range text {
		if !allowed(c) {
			bad = append(bad, display(c))
		}
	}
	slices.Sort(bad)
	return strings.Join(slices.Compact(bad), ", ")
}
