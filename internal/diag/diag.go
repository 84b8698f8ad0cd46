// Package diag holds diagnostics: what the compiler has to say to the author
// of a model. Each has a stable code, a place, what is wrong, and how to mend
// it; Render draws it with the source line and a caret.
package diag

import (
	"fmt"
	"strings"
)

// Severity of a diagnostic.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Location is a place in a file. Lines and columns count from 1; a zero
// column or end means that only the line is known.
type Location struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
}

// String gives file:line or file:line:column.
func (l Location) String() string {
	if l.Column > 0 {
		return fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Column)
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// Diagnostic is one error or warning of a compile.
type Diagnostic struct {
	Severity Severity  `json:"severity"`
	Code     string    `json:"code"`    // stable, documented: such as E0101
	Kind     string    `json:"kind"`    // the reference's class, such as inmanta.ast.DoubleSetException
	Message  string    `json:"message"` // without the place
	Location *Location `json:"location,omitempty"`
	// Source is the line of the model that Location names, when it could be read.
	Source string `json:"source,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Trace is the whole text as the reference would print it.
	Trace  string       `json:"trace,omitempty"`
	Causes []Diagnostic `json:"causes,omitempty"`
}

// Render draws a diagnostic for a terminal or a page in plain text:
//
//	error[E0203]: Could not set attribute `x` on instance `__config__::A`
//	  --> main.cf:3:1
//	   |
//	 3 | a.x = 4
//	   | ^^^^^^^
//	   = help: x was set before at main.cf:2
func (d Diagnostic) Render() string {
	var b strings.Builder
	d.render(&b, "")
	return b.String()
}

func (d Diagnostic) render(b *strings.Builder, indent string) {
	head := string(d.Severity)
	if d.Code != "" {
		head += "[" + d.Code + "]"
	}
	fmt.Fprintf(b, "%s%s: %s\n", indent, head, strings.ReplaceAll(d.Message, "\n", "\n"+indent+"  "))
	if l := d.Location; l != nil {
		number := fmt.Sprint(l.Line)
		gutter := strings.Repeat(" ", len(number)+1)
		fmt.Fprintf(b, "%s%s--> %s\n", indent, gutter, l)
		if d.Source != "" {
			fmt.Fprintf(b, "%s%s |\n", indent, gutter)
			fmt.Fprintf(b, "%s %s | %s\n", indent, number, strings.ReplaceAll(d.Source, "\t", " "))
			if l.Column > 0 {
				fmt.Fprintf(b, "%s%s | %s%s\n", indent, gutter, strings.Repeat(" ", l.Column-1), d.caret())
			}
		}
		if d.Hint != "" {
			fmt.Fprintf(b, "%s%s = help: %s\n", indent, gutter, d.Hint)
		}
	} else if d.Hint != "" {
		fmt.Fprintf(b, "%s  = help: %s\n", indent, d.Hint)
	}
	for _, cause := range d.Causes {
		fmt.Fprintf(b, "%s  caused by:\n", indent)
		cause.render(b, indent+"    ")
	}
}

func (d Diagnostic) caret() string {
	l := d.Location
	width := 1
	if (l.EndLine == l.Line || l.EndLine == 0) && l.EndColumn > l.Column {
		width = l.EndColumn - l.Column
	} else if l.EndLine > l.Line && len(d.Source) >= l.Column {
		width = len([]rune(d.Source)) - l.Column + 1
	}
	return strings.Repeat("^", max(1, width))
}
