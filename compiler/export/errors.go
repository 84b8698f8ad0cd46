package export

import (
	"errors"
	"fmt"

	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// Codes of what can be wrong with an export.
const (
	CodeResource = "E0501" // a resource cannot be made from the model
	CodeCycle    = "E0502" // resources require each other in a circle
	CodePython   = diag.ExportPython
	CodeWorker   = diag.ExportWorker
)

// FormatError says that a document was written by another version of this program.
type FormatError struct{ Got int }

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the export document has format %d, and this program reads %d: compile again with the same version as the server", e.Got, DocumentFormat)
}

// fail makes an error of the reference's class.
func fail(class, format string, args ...any) *Error {
	code := CodeResource
	kind := "inmanta.resources." + class
	switch class {
	case "DependencyCycleException":
		code, kind = CodeCycle, "inmanta.export."+class
	case "CompilerException":
		kind = "inmanta.ast." + class
	}
	return &Error{diag.Diagnostic{Severity: diag.Error, Code: code, Kind: kind, Message: fmt.Sprintf(format, args...)}}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// at says which instance it is about, where that knows its place.
func (e *Error) at(i types.Instance) *Error {
	if placed, ok := i.(interface{ At() syntax.Span }); ok {
		if span := placed.At(); span.File != nil {
			e.Location = &diag.Location{File: span.File.Path, Line: int(span.Start.Line), Column: int(span.Start.Col)}
		}
	}
	return e
}

// asError makes a diagnostic of any error.
func asError(err error) *Error {
	var made *Error
	if errors.As(err, &made) {
		return made
	}
	var raised *plugin.RequestError
	if errors.As(err, &raised) {
		d := diag.Diagnostic{Severity: diag.Error, Code: CodePython, Kind: raised.Class, Message: raised.Message, Trace: raised.Trace}
		if raised.File != "" {
			d.Location = &diag.Location{File: raised.File, Line: raised.Line}
		}
		return &Error{d}
	}
	return &Error{diag.Diagnostic{Severity: diag.Error, Code: CodeWorker, Kind: "Exception", Message: err.Error()}}
}
