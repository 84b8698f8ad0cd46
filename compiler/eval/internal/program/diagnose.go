package program

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
)

// Class returns the reference's class with its module:
// inmanta.ast.DoubleSetException.
func (e *Error) Class() string {
	switch {
	case strings.Contains(e.Kind, "."):
		return e.Kind
	case e.Builtin:
		return "builtins." + e.Kind
	}
	return "inmanta.ast." + e.Kind
}

// Diagnostics returns the errors for the author of the model: each error of a
// MultiException separately.
func (e *Error) Diagnostics() []diag.Diagnostic {
	if e.Kind != "MultiException" {
		return []diag.Diagnostic{e.Diagnostic()}
	}
	found := Collected{seen: map[topic]*Error{}}
	for _, cause := range e.Causes {
		found.Add(cause)
	}
	out := make([]diag.Diagnostic, len(found.list))
	for i, cause := range found.list {
		out[i] = cause.Diagnostic()
	}
	return out
}

// Diagnostic returns the error with its place, source line, causes and hint.
func (e *Error) Diagnostic() diag.Diagnostic {
	if e.Hint == "" && e.MakeHint != nil {
		e.Hint = e.MakeHint()
	}
	d := diag.Diagnostic{
		Severity: diag.Error, Code: diag.Code(e.Class()), Kind: e.Class(), Message: e.Message, Hint: e.Hint,
		Trace:    e.Trace(),
		Expected: e.Expected, Found: e.Found, Chain: e.chain(), Repeats: e.repeats, Raised: e.Raised,
	}
	if e.code != "" {
		d.Code = e.code
	}
	at := e.Place
	if at == nil {
		at = e.About
	}
	if at != nil && at.File != nil && at.Start.Line > 0 {
		d.Location, d.Source = Locate(*at)
	} else if e.File != "" {
		d.Location = &diag.Location{File: e.File, Line: e.Line, Column: e.Column}
	}
	if e.Focus != nil && e.Focus.File != nil && e.Focus.Start.Line > 0 && e.Focus.Start.Col > 0 {
		d.Focus, d.Source = Locate(*e.Focus)
		if d.Location != nil && *d.Focus == *d.Location {
			d.Focus = nil
		}
	}
	for _, r := range e.Related {
		l, source := Locate(*r.at)
		d.Related = append(d.Related, diag.Related{Label: r.label, Location: *l, Source: source})
	}
	if !e.Builtin { // the error that it caused has the frames
		d.Python = frames(e.PythonTrace)
	} else if d.Code == diag.Code("") {
		d.Code = "" // an exception of Python's has no code
	}
	for _, at := range e.also {
		if l, _ := Locate(*at); l != nil {
			d.Also = append(d.Also, *l)
		}
	}
	for _, cause := range e.Causes {
		d.Causes = append(d.Causes, cause.Diagnostic())
	}
	return d
}

func (e *Error) chain() []diag.Step {
	if e.By == nil {
		return nil
	}
	return e.By.Steps()
}

func Locate(at syntax.Span) (*diag.Location, string) {
	l := &diag.Location{
		File: at.File.Path, Line: int(at.Start.Line), Column: int(at.Start.Col),
		EndLine: int(at.End.Line), EndColumn: int(at.End.Col),
	}
	source := ""
	if l.Line <= len(at.File.Lines) {
		source = at.File.Lines[l.Line-1]
	}
	return l, source
}
