// Package diag holds diagnostics: what the compiler has to say to the author
// of a model. Each has a stable code, a place, what is wrong, and how to mend
// it; Render draws it with the source line and a caret.
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
	// Raised is the exception that a plug-in raised on purpose. For programs the
	// error is that one, as in the reference's compile report.
	Raised   *Exception `json:"raised,omitempty"`
	Location *Location  `json:"location,omitempty"`
	// Focus is nearer to what is wrong than Location, which is the reference's.
	Focus *Location `json:"focus,omitempty"`
	// Source is the line of the model that Focus or else Location names, when it
	// could be read.
	Source string `json:"source,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Expected and Found say, in words, what would have been right in this place
	// and what stands there, where both are known.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Chain tells how the compile came here, the innermost instance first.
	Chain []Step `json:"chain,omitempty"`
	// Repeats counts the other instances for which the same statement fails in
	// the same way.
	Repeats int `json:"repeats,omitempty"`
	// Related are other places that have a part in it.
	Related []Related `json:"related,omitempty"`
	// Also are other places where the same is wrong.
	Also []Location `json:"also,omitempty"`
	// Python are the lines of the plug-in that led to an exception, the
	// innermost last.
	Python []Frame `json:"python,omitempty"`
	// Trace is the whole text as the reference would print it.
	Trace  string       `json:"trace,omitempty"`
	Causes []Diagnostic `json:"causes,omitempty"`
}

// Exception is one of Python.
type Exception struct {
	Kind    string `json:"kind"` // its class
	Message string `json:"message"`
}

// ForPrograms returns the kind and the message that programs read: a compile
// report and the document of --model-json have them.
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
	// Implementation is the one that ran for it; empty for the instance itself.
	Implementation string `json:"implementation,omitempty"`
	// Made is where its constructor stands, Source the line there.
	Made   *Location `json:"made_at,omitempty"`
	Source string    `json:"source,omitempty"`
	// Skipped counts the steps left out between this one and the next.
	Skipped int `json:"skipped,omitempty"`
}

// Related is a place with what it has to do with a diagnostic.
type Related struct {
	Label    string   `json:"label"`
	Location Location `json:"location"`
	Source   string   `json:"source,omitempty"`
}

// Place is where to look: Focus, or else Location.
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
