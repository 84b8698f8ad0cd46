package pydantic

import (
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// documentation is where pydantic describes its types of problems, by the version
// that inmanta-core 20.1 is installed with.
const documentation = "https://errors.pydantic.dev/2.14/v/"

// Problem is one value that does not fit.
type Problem struct {
	// Path leads to the value: texts for keys, ints for elements. The names of
	// the members of a union and [key] are part of it, as Member.
	Path []any
	Type string // such as string_type
	Text string // such as "Input should be a valid string"
	// Custom problems are not pydantic's own: it has no page about them.
	Custom bool
	Input  any
}

// Member is a step of a path that leads to no other value.
type Member string

// Error is all that does not fit in a value.
type Error struct {
	Title    string // the name of the model
	Problems []Problem
}

// Error gives pydantic's text, of several lines.
func (e *Error) Error() string {
	var b strings.Builder
	plural := "s"
	if len(e.Problems) == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "%d validation error%s for %s", len(e.Problems), plural, e.Title)
	for _, p := range e.Problems {
		steps := make([]string, len(p.Path))
		for i, s := range p.Path {
			steps[i] = step(s)
		}
		fmt.Fprintf(&b, "\n%s\n  %s [type=%s, input_value=%s, input_type=%s]",
			strings.Join(steps, "."), p.Text, p.Type, shortened(Repr(p.Input)), TypeOf(p.Input))
		if !p.Custom {
			b.WriteString("\n    For further information visit " + documentation + p.Type)
		}
	}
	return b.String()
}

// step is how a step of a path is written: in backticks when it has a full stop.
func step(s any) string {
	var text string
	switch s := s.(type) {
	case string:
		text = s
	case Member:
		text = string(s)
	case int:
		return fmt.Sprint(s)
	case bool:
		if s {
			return "1"
		}
		return "0"
	case *big.Int:
		return s.String()
	default:
		text = Repr(s)
	}
	if strings.Contains(text, ".") {
		return "`" + text + "`"
	}
	return text
}

// What is shown of a long value, in bytes.
const (
	longest = 50
	head    = 25
	tail    = 24
)

func shortened(text string) string {
	if len(text) <= longest {
		return text
	}
	from, to := head, len(text)-tail
	for !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return text[:from] + "..." + text[to:]
}
