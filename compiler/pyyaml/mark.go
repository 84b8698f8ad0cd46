package pyyaml

import "fmt"

// Mark is a place in a text: line and column from 1, in characters. The zero
// Mark is none.
type Mark struct {
	Line, Column int
	Index        int // characters before it
}

// None tells whether it is no place.
func (m Mark) None() bool { return m.Line == 0 }

// in writes a place as PyYAML does.
func (m Mark) in(name string) string {
	return fmt.Sprintf("  in \"%s\", line %d, column %d", name, m.Line, m.Column)
}

// shownAs tells whether two places look the same. A byte order mark has no column.
func (m Mark) shownAs(other Mark) bool { return m.Line == other.Line && m.Column == other.Column }
