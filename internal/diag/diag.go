// Package diag has diagnostics: the errors and warnings that the compiler reports to the author of a
// model. Each has a stable code, a place, what is wrong, and how to fix it. Render shows it with the
// source line and a caret.
package diag

import "fmt"

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

// String returns file:line or file:line:column.
func (l Location) String() string {
	if l.Column > 0 {
		return fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Column)
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// Diagnostic is one error or warning of a compile.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`    // stable, documented: such as E0101
	Kind     string   `json:"kind"`    // the reference's class, such as inmanta.ast.DoubleSetException
	Message  string   `json:"message"` // without the place
	// Raised is the exception that a plug-in raised on purpose. For programs that is the error,
	// as in the reference's compile report.
	Raised   *Exception `json:"raised,omitempty"`
	Location *Location  `json:"location,omitempty"`
	// Focus is closer to the mistake than Location, which is the place in the reference.
	Focus *Location `json:"focus,omitempty"`
	// Source is the line of the model at Focus or else Location, if it could be read.
	Source string `json:"source,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Expected and Found say in words what would have been right in this place and what is
	// there, if both are known.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Chain says how the compile got here, the innermost instance first.
	Chain []Step `json:"chain,omitempty"`
	// Repeats counts the other instances for which the same statement fails in
	// the same way.
	Repeats int `json:"repeats,omitempty"`
	// Related are other places that are involved.
	Related []Related `json:"related,omitempty"`
	// Also are other places with the same mistake.
	Also []Location `json:"also,omitempty"`
	// Python are the lines of the plug-in that led to an exception, the
	// innermost last.
	Python []Frame `json:"python,omitempty"`
	// Trace is the whole text as the reference would print it.
	Trace  string       `json:"trace,omitempty"`
	Causes []Diagnostic `json:"causes,omitempty"`
}

// Exception is a Python exception.
type Exception struct {
	Kind    string `json:"kind"` // its class
	Message string `json:"message"`
}

// ForPrograms returns the kind and the message for programs: for compile reports and the document of
// --model-json.
func (d *Diagnostic) ForPrograms() (kind, message string) {
	if d.Raised != nil {
		return d.Raised.Kind, d.Raised.Message
	}
	return d.Kind, d.Message
}

// Step is one instance of a chain.
type Step struct {
	// Instance names it in the words of the model: web::Site(name="shop").
	Instance string `json:"instance"`
	// Implementation is the one that ran for the instance; empty for the instance itself.
	Implementation string `json:"implementation,omitempty"`
	// Made is the place of its constructor, Source the line there.
	Made   *Location `json:"made_at,omitempty"`
	Source string    `json:"source,omitempty"`
	// Skipped counts the steps left out between this one and the next.
	Skipped int `json:"skipped,omitempty"`
}

// Related is a place, with a label that says how it is involved.
type Related struct {
	Label    string   `json:"label"`
	Location Location `json:"location"`
	Source   string   `json:"source,omitempty"`
}

// Place is the place to show: Focus, or else Location.
func (d *Diagnostic) Place() *Location {
	if d.Focus != nil {
		return d.Focus
	}
	return d.Location
}

// Frame is a line of Python.
type Frame struct {
	Location Location `json:"location"`
	Function string   `json:"function,omitempty"`
	Source   string   `json:"source,omitempty"`
}
