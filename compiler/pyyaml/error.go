package pyyaml

import (
	"fmt"
	"strings"
)

// Classes of errors: what PyYAML raises, and where Python itself stumbles over
// a text, what Python raises.
const (
	ClassReader      = "yaml.reader.ReaderError"
	ClassScanner     = "yaml.scanner.ScannerError"
	ClassParser      = "yaml.parser.ParserError"
	ClassComposer    = "yaml.composer.ComposerError"
	ClassConstructor = "yaml.constructor.ConstructorError"
	ClassDecode      = "builtins.UnicodeDecodeError"
	ClassValue       = "builtins.ValueError"
	ClassRecursion   = "builtins.RecursionError"
)

// Error is why a text is refused.
type Error struct {
	Class       string
	Name        string // of the text, as messages give it
	Context     string // what was being read; empty: nothing is said of it
	ContextMark Mark
	Problem     string
	ProblemMark Mark
	// Position is that of a character that is not allowed, from 0.
	Position int
}

// YAML tells whether PyYAML itself refuses the text. Otherwise Python raised
// something else while it read.
func (e *Error) YAML() bool { return strings.HasPrefix(e.Class, "yaml.") }

// Error gives the text that Python's str gives of the exception.
func (e *Error) Error() string {
	switch {
	case !e.YAML():
		return e.Problem
	case e.Class == ClassReader:
		return fmt.Sprintf("%s\n  in \"%s\", position %d", e.Problem, e.Name, e.Position)
	}
	var lines []string
	if e.Context != "" {
		lines = append(lines, e.Context)
	}
	if !e.ContextMark.None() && !e.ContextMark.shownAs(e.ProblemMark) {
		lines = append(lines, e.ContextMark.in(e.Name))
	}
	lines = append(lines, e.Problem)
	if !e.ProblemMark.None() {
		lines = append(lines, e.ProblemMark.in(e.Name))
	}
	return strings.Join(lines, "\n")
}

// MostDigits is how many digits Python's int takes.
const MostDigits = 4300

// TooManyDigits is what Python says of a number that has more.
func TooManyDigits(digits int) string {
	return fmt.Sprintf("Exceeds the limit (%d digits) for integer string conversion: value has %d digits; "+
		"use sys.set_int_max_str_digits() to increase the limit", MostDigits, digits)
}
