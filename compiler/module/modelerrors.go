package module

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/pytext"
)

// modelErrors are what is wrong with the fields of a file, in the words of
// pydantic, by which the reference reads them.
type modelErrors struct {
	model string
	count int
	lines strings.Builder
}

// quote writes a text as Python shows it.
func quote(s string) string { return pytext.Quote(s) }

// add notes one. input is the value as Python shows it, and kind what it is.
func (e *modelErrors) add(field, message, code, input, kind string) {
	e.count++
	fmt.Fprintf(&e.lines, "\n%s\n  %s [type=%s, input_value=%s, input_type=%s]\n    For further information visit https://errors.pydantic.dev/2.14/v/%s",
		field, message, code, truncated(input), kind, code)
}

// missing is for a field that is not there; input is all that is.
func (e *modelErrors) missing(field, input string) {
	e.add(field, "Field required", "missing", input, "dict")
}

// value is for a text that a check of the reference refuses.
func (e *modelErrors) value(field, message, text string) {
	e.text(field, "Value error, "+message, "value_error", text)
}

// text is for a text that is none of those that a field takes.
func (e *modelErrors) text(field, message, code, text string) {
	e.add(field, message, code, quote(text), "str")
}

// String is the whole text, set in by two spaces.
func (e *modelErrors) String() string {
	s := ""
	if e.count > 1 {
		s = "s"
	}
	return setIn(fmt.Sprintf("%d validation error%s for %s%s", e.count, s, e.model, e.lines.String()))
}

// truncated leaves the middle out of a long value: what counts are bytes, and no
// character is cut.
func truncated(input string) string {
	if len(input) <= 50 {
		return input
	}
	head, tail := 25, len(input)-24
	for !utf8.RuneStart(input[head]) {
		head--
	}
	for tail < len(input) && !utf8.RuneStart(input[tail]) {
		tail++
	}
	return input[:head] + "..." + input[tail:]
}

// setIn begins every line that is not blank with two spaces, as Python's
// textwrap does. Lines end wherever they end in a text of Python.
func setIn(text string) string {
	var b strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, endsLine)
		switch {
		case end < 0:
			end = len(text)
		case strings.HasPrefix(text[end:], "\r\n"):
			end += 2
		default:
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		if strings.TrimFunc(text[:end], pytext.Space) != "" {
			b.WriteString("  ")
		}
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String()
}

// endsLine is where str.splitlines ends a line.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}
