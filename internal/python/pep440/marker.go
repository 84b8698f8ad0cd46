package pep440

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// marker is a condition in its normal form: as it stands alone, and as it stands
// within another condition, where a combined one needs parentheses.
type marker struct{ alone, nested string }

// deepest is how many parentheses of a marker may be open at once. Python gives
// up earlier.
const deepest = 1000

var markerVariables = []string{
	"python_version", "python_full_version", "os_name", "os.name", "sys_platform", "sys.platform",
	"platform_release", "platform_system", "platform_version", "platform.version", "platform_machine",
	"platform.machine", "platform_python_implementation", "platform.python_implementation",
	"python_implementation", "implementation_name", "implementation_version", "extras", "extra",
	"dependency_groups",
}

// marker reads comparisons joined by `and` and `or`.
func (s *scanner) marker() marker {
	first := s.markerAtom()
	parts := []string{first.nested}
	for {
		join := s.word("or", "and")
		if join == "" {
			break
		}
		parts = append(parts, join, s.markerAtom().nested)
	}
	if len(parts) == 1 {
		return first
	}
	all := strings.Join(parts, " ")
	return marker{all, "(" + all + ")"}
}

// markerAtom reads one comparison, or a condition in parentheses.
func (s *scanner) markerAtom() marker {
	s.space()
	if !s.sign('(') {
		item := s.comparison()
		s.space()
		return marker{item, item}
	}
	if s.depth++; s.depth > deepest {
		s.fail("fewer parentheses inside each other")
	}
	s.space()
	inner := s.marker()
	s.space()
	if !s.sign(')') {
		s.fail("`)`")
	}
	s.depth--
	s.space()
	return inner
}

func (s *scanner) comparison() string {
	left, name := s.operand()
	s.space()
	operator := s.comparator()
	s.space()
	right, other := s.operand()
	s.space()
	switch { // names of extras are compared in their normal form
	case name == "extra" && other == "":
		right = quoted(Normal(unquoted(right)))
	case other == "extra" && name == "":
		left = quoted(Normal(unquoted(left)))
	}
	return left + " " + operator + " " + right
}

func (s *scanner) comparator() string {
	if s.word("in") != "" {
		return "in"
	}
	if s.word("not") != "" {
		if !s.space() {
			s.fail("a space after `not`")
		}
		if s.word("in") == "" {
			s.fail("`in`")
		}
		return "not in"
	}
	found := s.operator("===", "==", "~=", "!=", "<=", ">=", "<", ">")
	if found == "" {
		s.fail("one of <, <=, ==, !=, >=, >, ~=, ===, in and not in")
	}
	return found
}

// operand reads a variable or a text in quotes, and returns its normal form. name
// is that of the variable, or empty.
func (s *scanner) operand() (written, name string) {
	if name = s.word(markerVariables...); name != "" {
		name = strings.ReplaceAll(name, ".", "_")
		if name == "python_implementation" {
			name = "platform_python_implementation"
		}
		return name, name
	}
	start := s.pos
	if q := s.at(start); q == '\'' || q == '"' {
		for end := start + 1; end < len(s.text); end++ {
			if s.text[end] == q {
				s.pos = end + 1
				value, ok := pythonText(s.text[start+1 : end])
				if !ok {
					s.fail("a text with valid escapes before this place")
				}
				return quoted(value), ""
			}
		}
	}
	s.fail("a variable such as python_version, or a text in quotes")
	return "", ""
}

func quoted(value string) string {
	if strings.Contains(value, `"`) {
		return "'" + value + "'"
	}
	return `"` + value + `"`
}

func unquoted(written string) string { return written[1 : len(written)-1] }

// pythonText resolves the escapes of a Python string literal, given without its
// quotes. Names of characters, \N{…}, stay as they are.
func pythonText(text []rune) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\n' || c == '\r' || c == 0 {
			return "", false
		}
		if c != '\\' {
			b.WriteRune(c)
			continue
		}
		if i++; i == len(text) {
			return "", false
		}
		digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
		switch c = text[i]; {
		case digits > 0:
			end := i + 1 + digits
			if end > len(text) {
				return "", false
			}
			code, err := strconv.ParseUint(string(text[i+1:end]), 16, 32)
			if err != nil || code > utf8.MaxRune {
				return "", false
			}
			b.WriteRune(rune(code))
			i = end - 1
		case '0' <= c && c <= '7':
			code := rune(0)
			end := min(i+3, len(text))
			for ; i < end && '0' <= text[i] && text[i] <= '7'; i++ {
				code = code*8 + text[i] - '0'
			}
			b.WriteRune(code)
			i--
		case c == 'N':
			length := strings.IndexByte(string(text[i:]), '}')
			if i+1 >= len(text) || text[i+1] != '{' || length < 3 {
				return "", false
			}
			b.WriteString(`\N`)
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
			i++
		case c == '\n' || c == '\r': // the literal continues on the next line
		case c == '\\' || c == '\'' || c == '"':
			b.WriteRune(c)
		case strings.ContainsRune("abfnrtv", c):
			b.WriteString(
				map[rune]string{'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}[c],
			)
		default:
			b.WriteRune('\\')
			b.WriteRune(c)
		}
	}
	return b.String(), true
}
