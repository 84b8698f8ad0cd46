package venv

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Lacking returns the requirements of the modules in these site-packages folders
// that none of the folders satisfies and that apply to an interpreter.
func Lacking(sites []string, i Interpreter) []string {
	present := map[string]bool{}
	for _, site := range sites {
		for name := range installed(site) {
			present[name] = true
		}
	}
	return slices.DeleteFunc(ModuleRequirements(sites), func(r string) bool {
		_, marker, conditional := strings.Cut(r, ";")
		return present[distribution(r)] || conditional && !Applies(marker, i)
	})
}

// Applies evaluates the condition of a requirement, such as
// python_version < "3.11" and sys_platform != "win32". A condition that it cannot
// read counts as true, so that the requirement is not overlooked.
func Applies(marker string, i Interpreter) bool {
	m := &markerReader{tokens: markerTokens(marker), values: map[string]string{
		"python_version": i.Minor, "python_full_version": i.Version, "implementation_version": i.Version,
		"os_name": "posix", "sys_platform": runtime.GOOS, "platform_system": platformSystem(),
		"platform_machine": platformMachine(), "implementation_name": "cpython",
		"platform_python_implementation": "CPython", "extra": "",
	}}
	value := m.or()
	return value || m.failed || len(m.tokens) > 0
}

func platformSystem() string { return strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:] }

func platformMachine() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// markerTokens splits a condition into words, quoted strings (with the opening
// quote only), comparison operators and parentheses.
func markerTokens(s string) []string {
	var out []string
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		n := 1
		switch {
		case s[0] == '"' || s[0] == '\'':
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return append(out, "(") // makes the condition unreadable
			}
			out = append(out, s[:end+1])
			s = s[end+2:]
			continue
		case strings.ContainsRune("<>=!~", rune(s[0])):
			for n < len(s) && strings.ContainsRune("<>=!~", rune(s[n])) {
				n++
			}
		case s[0] != '(' && s[0] != ')':
			for n < len(s) && !strings.ContainsRune(" \t()<>=!~\"'", rune(s[n])) {
				n++
			}
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

type markerReader struct {
	tokens []string
	values map[string]string
	failed bool
}

func (m *markerReader) next() string {
	if len(m.tokens) == 0 {
		m.failed = true
		return ""
	}
	t := m.tokens[0]
	m.tokens = m.tokens[1:]
	return t
}

func (m *markerReader) or() bool {
	value := m.and()
	for len(m.tokens) > 0 && m.tokens[0] == "or" {
		m.next()
		right := m.and()
		value = value || right
	}
	return value
}

func (m *markerReader) and() bool {
	value := m.comparison()
	for len(m.tokens) > 0 && m.tokens[0] == "and" {
		m.next()
		right := m.comparison()
		value = value && right
	}
	return value
}

func (m *markerReader) comparison() bool {
	left := m.next()
	if left == "(" {
		value := m.or()
		m.failed = m.next() != ")" || m.failed
		return value
	}
	operator := m.next()
	if operator == "not" {
		operator += " " + m.next()
	}
	right := m.next()
	version := strings.Contains(left+right, "version")
	a, b := m.value(left), m.value(right)
	switch operator {
	case "in":
		return strings.Contains(b, a)
	case "not in":
		return !strings.Contains(b, a)
	case "==":
		return a == b
	case "!=":
		return a != b
	}
	order, ok := compareVersions(a, b)
	if !version || !ok {
		m.failed = true
		return true
	}
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	m.failed = true
	return true
}

func (m *markerReader) value(token string) string {
	if token != "" && (token[0] == '"' || token[0] == '\'') {
		return token[1:]
	}
	value, ok := m.values[token]
	m.failed = m.failed || !ok
	return value
}

// compareVersions compares versions of numbers and dots.
func compareVersions(a, b string) (int, bool) {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for n := range max(len(as), len(bs)) {
		var x, y int
		for _, side := range []struct {
			from []string
			to   *int
		}{{as, &x}, {bs, &y}} {
			if n < len(side.from) {
				value, err := strconv.Atoi(side.from[n])
				if err != nil {
					return 0, false
				}
				*side.to = value
			}
		}
		if x != y {
			return x - y, true
		}
	}
	return 0, true
}
