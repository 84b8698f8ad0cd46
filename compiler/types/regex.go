package types

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"ordain.dev/ordain/compiler/syntax"
)

// Regex is a regular expression of Python's re, matched at the start of a
// string and not necessarily to its end.
type Regex struct {
	compiled *regexp2.Regexp
	// wide takes the place of compiled for texts with other characters than those
	// of ASCII, where \w and \s mean something else in Python; nil: nothing else.
	wide *regexp2.Regexp
}

// MatchLimit is how long a match may take; tests do not wait that long.
// Repetitions inside of repetitions, such as (a+)+$, may need longer than
// anybody lives.
var MatchLimit = 20 * time.Second

// NewRegex compiles a pattern.
func NewRegex(pattern string) (*Regex, error) { return newRegex(pattern, MatchLimit) }

func newRegex(pattern string, limit time.Duration) (*Regex, error) {
	flags, rest := leadingFlags(pattern)
	end := ")"
	if strings.Contains(flags, "x") {
		end = "\n)" // ends a comment
	}
	if flags = strings.Map(known, flags); flags != "" {
		flags = "(?" + flags + ")"
	}
	compile := func(c classes) (*regexp2.Regexp, error) {
		compiled, err := regexp2.Compile(`\A(?:`+flags+translateRegex(rest, c)+end, regexp2.None)
		if err != nil {
			return nil, fmt.Errorf("%s is not a regular expression: %w", pattern, err)
		}
		compiled.MatchTimeout = limit
		return compiled, nil
	}
	compiled, err := compile(plain)
	r := &Regex{compiled: compiled}
	if err != nil || !strings.ContainsAny(rest, "wWsSdDbB") {
		return r, err
	}
	c := unicodeClasses
	if asciiFlag.MatchString(pattern) {
		c = asciiClasses
	}
	r.wide, err = compile(c)
	return r, err
}

var (
	scopedFlags = regexp.MustCompile(`^\(\?[aLuimsx]+(-[imsx]+)?:`)
	asciiFlag   = regexp.MustCompile(`\(\?[Luimsx]*a[Luimsx]*(-[imsx]+)?[:)]`)
)

// leadingFlags are those that a pattern begins with: (?i).
func leadingFlags(p string) (flags, rest string) {
	if end := strings.IndexByte(p, ')'); end > 2 && strings.HasPrefix(p, "(?") && strings.Trim(p[2:end], "aiLmsux") == "" {
		return p[2:end], p[end+1:]
	}
	return "", p
}

// known leaves out the flags that .NET does not have.
func known(flag rune) rune {
	if strings.ContainsRune("aLu", flag) {
		return -1
	}
	return flag
}

// classes says what to write for \w and the like, outside and inside of sets;
// what is not named stays.
type classes struct{ outside, inside map[byte]string }

// For texts of ASCII .NET's own classes are Python's.
var (
	plain          = classes{}
	unicodeClasses = classes{
		outside: map[byte]string{'w': `[\p{L}\p{N}_]`, 'W': `[^\p{L}\p{N}_]`},
		inside:  map[byte]string{'w': `\p{L}\p{N}_`},
	}
	asciiClasses = classes{
		outside: map[byte]string{
			'w': `[a-zA-Z0-9_]`, 'W': `[^a-zA-Z0-9_]`, 'd': `[0-9]`, 'D': `[^0-9]`, 's': `[ \t-\r]`, 'S': `[^ \t-\r]`,
			'b': `(?:(?<=[a-zA-Z0-9_])(?![a-zA-Z0-9_])|(?<![a-zA-Z0-9_])(?=[a-zA-Z0-9_]))`,
			'B': `(?:(?<=[a-zA-Z0-9_])(?=[a-zA-Z0-9_])|(?<![a-zA-Z0-9_])(?![a-zA-Z0-9_]))`,
		},
		inside: map[byte]string{'w': `a-zA-Z0-9_`, 'd': `0-9`, 's': ` \t-\r`},
	}
)

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Match reports whether the text begins with what the pattern describes. It
// gives an error when that is not known after a long time.
func (r *Regex) Match(text string) (bool, error) {
	compiled := r.compiled
	if r.wide != nil && !isASCII(text) {
		compiled = r.wide
	}
	ok, err := compiled.MatchString(text)
	if err != nil {
		return false, fmt.Errorf("it was not known after %v whether a text of %d characters matches", r.compiled.MatchTimeout, utf8.RuneCountInString(text))
	}
	return ok, nil
}

// translateRegex turns what Python spells differently from .NET into the
// latter: (?P<n>…), (?P=n), \Z, \N{…}, {,n} and braces that are not quantifiers.
func translateRegex(p string, own classes) string {
	if strings.Contains(p, "*+") || strings.Contains(p, "++") || strings.Contains(p, "?+") || strings.Contains(p, "}+") {
		p = atomicGroups(p)
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			i += escaped(&b, p[i+1:], inClass, own)
		case inClass:
			switch {
			case c == ']':
				inClass = false
			case c == '[':
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case c == '[':
			inClass = true
			b.WriteByte(c)
			if i+1 < len(p) && p[i+1] == '^' {
				i++
				b.WriteByte('^')
			}
			if i+1 < len(p) && p[i+1] == ']' {
				i++
				b.WriteString(`\]`)
			}
		case scopedFlags.MatchString(p[i:]):
			end := strings.IndexByte(p[i:], ':')
			b.WriteString(strings.Map(known, p[i:i+end]))
			i += end - 1
		case strings.HasPrefix(p[i:], "(?P<"):
			b.WriteString("(?<")
			i += 3
		case strings.HasPrefix(p[i:], "(?P="):
			end := strings.IndexByte(p[i:], ')')
			if end < 0 {
				b.WriteByte(c)
				continue
			}
			b.WriteString(`\k<` + p[i+4:i+end] + `>`)
			i += end
		case strings.HasPrefix(p[i:], "{,"):
			end := strings.IndexByte(p[i:], '}')
			if end == 2 {
				b.WriteByte('*')
				i += end
				continue
			}
			if end > 2 && strings.Trim(p[i+2:i+end], "0123456789") == "" {
				b.WriteString("{0," + p[i+2:i+end] + "}")
				i += end
				continue
			}
			b.WriteString(`\{`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// escaped writes what follows a backslash, and gives how long it is.
func escaped(b *strings.Builder, p string, inClass bool, c classes) int {
	class := c.outside
	if inClass {
		class = c.inside
	}
	if text, own := class[p[0]]; own {
		b.WriteString(text)
		return 1
	}
	first, length := utf8.DecodeRuneInString(p)
	switch {
	case p[0] == 'Z' && !inClass:
		b.WriteString(`\z`)
	case p[0] == 'N' || p[0] == 'U':
		r, n := character(p)
		b.WriteString(regexp2.Escape(string(r)))
		return n
	case p[0] == '_' || first >= utf8.RuneSelf: // .NET takes those for words that it does not know
		b.WriteString(p[:length])
		return length
	default:
		b.WriteByte('\\')
		b.WriteByte(p[0])
	}
	return 1
}

// character reads the N{…} or U… of a character, which was seen to be one.
func character(p string) (r rune, length int) {
	if p[0] == 'U' {
		n, _ := strconv.ParseUint(p[1:min(9, len(p))], 16, 32)
		return rune(n), min(9, len(p))
	}
	end := max(strings.IndexByte(p, '}'), 2)
	r, _ = syntax.NamedRune(p[2:end])
	return r, end + 1
}

// atomicGroups writes what a possessive quantifier gathers, x*+, as the group
// that it is short for: (?>x*).
func atomicGroups(p string) string {
	var out []byte
	var open []int // where the groups begin that are not closed
	atom := 0      // where the last thing begins that a quantifier can stand after
	quantified := false
	for i := 0; i < len(p); i++ {
		c, length := p[i], 1
		switch {
		case c == '+' && quantified:
			out = append(out[:atom], append([]byte("(?>"), append(out[atom:], ')')...)...)
			quantified = false
			continue
		case c == '*' || c == '+' || c == '?' && len(out) > 0 && !quantified:
			quantified = true
			out = append(out, c)
			continue
		case c == '{':
			if end := strings.IndexByte(p[i:], '}'); end > 1 && strings.Trim(p[i+1:i+end], "0123456789,") == "" {
				quantified = true
				out = append(out, p[i:i+end+1]...)
				i += end
				continue
			}
			atom = len(out)
		case c == '\\' && i+1 < len(p):
			atom, length = len(out), 2
		case c == '[':
			atom, length = len(out), classLength(p[i:])
		case c == '(':
			open = append(open, len(out))
			if strings.HasPrefix(p[i:], "(?") {
				length = 2
			}
			atom = len(out)
		case c == ')' && len(open) > 0:
			atom, open = open[len(open)-1], open[:len(open)-1]
		default:
			atom = len(out)
		}
		quantified = false
		out = append(out, p[i:i+length]...)
		i += length - 1
	}
	return string(out)
}

// classLength is how long the class is that a text begins with.
func classLength(p string) int {
	i := 1
	if strings.HasPrefix(p[i:], "^") {
		i++
	}
	if strings.HasPrefix(p[i:], "]") {
		i++
	}
	for ; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case ']':
			return i + 1
		}
	}
	return len(p)
}
