package export

import (
	"errors"
	"fmt"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// Codes of errors of an export.
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
	return fmt.Sprintf(
		"the export document has format %d, and this program reads %d: compile again with the same version as the "+
			"server",
		e.Got,
		DocumentFormat,
	)
}

// fail makes an error of a class that the reference has.
func fail(class, format string, args ...any) *Error {
	code := CodeResource
	kind := "inmanta.resources." + class
	switch class {
	case "DependencyCycleException":
		code, kind = CodeCycle, "inmanta.export."+class
	case "CompilerException":
		kind = "inmanta.ast." + class
	case "KeyError", "TypeError": // where the reference's own Python fails
		kind = class
	}
	return &Error{
		Diagnostic: diag.Diagnostic{
			Severity: diag.Error,
			Code:     code,
			Kind:     kind,
			Message:  fmt.Sprintf(format, args...),
		},
	}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// mostFailures is how many different errors of resources are reported.
const mostFailures = 20

// failures are the errors of resources. An export reports all of them.
type failures struct {
	list []*Error
}

// add adds an error of a resource. When another resource failed in the same way, that error
// counts one more instead.
func (f *failures) add(err error, instance types.Instance) {
	made := asError(err).of(instance)
	for _, have := range f.list {
		if have.Code == CodePython && have.repeatedBy(made) {
			have.Repeats++
			return
		}
	}
	if len(f.list) < mostFailures {
		f.list = append(f.list, made)
	}
}

// repeatedBy reports whether another resource fails in the same way: on the same line of Python
// or, if the line is not known, with the same message.
func (e *Error) repeatedBy(other *Error) bool {
	if e.Location == nil || other.Location == nil {
		return e.Location == other.Location && e.Kind == other.Kind && e.Message == other.Message
	}
	return e.Kind == other.Kind && *e.Location == *other.Location
}

// err is the first error, with the others in it; nil when there is none.
func (f *failures) err() error {
	if len(f.list) == 0 {
		return nil
	}
	first := f.list[0]
	for _, other := range f.list[1:] {
		first.Further = append(first.Further, other.Diagnostic)
	}
	return first
}

// of names the instance that was exported.
func (e *Error) of(i types.Instance) *Error {
	placed, ok := i.(interface {
		At() syntax.Span
		Title() string
	})
	if !ok {
		return e
	}
	return e.related("the resource is "+placed.Title()+", made", placed.At())
}

// other names the instance that has the same id.
func (e *Error) other(i types.Instance) *Error {
	if placed, ok := i.(interface{ At() syntax.Span }); ok {
		return e.related("the other one is made", placed.At())
	}
	return e
}

func (e *Error) related(label string, span syntax.Span) *Error {
	if span.File == nil || span.Start.Line == 0 {
		return e
	}
	made := diag.Location{
		File:      span.File.Path,
		Line:      int(span.Start.Line),
		Column:    int(span.Start.Col),
		EndLine:   int(span.End.Line),
		EndColumn: int(span.End.Col),
	}
	if e.Location != nil && e.Location.File == made.File && e.Location.Line == made.Line {
		return e
	}
	r := diag.Related{Label: label, Location: made}
	if n := made.Line; n <= len(span.File.Lines) {
		r.Source = span.File.Lines[n-1]
	}
	e.Related = append(e.Related, r)
	return e
}

// at locates the error where the instance was made, if that is known.
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
		d := diag.Diagnostic{
			Severity: diag.Error, Code: CodePython, Kind: raised.Class, Message: raised.Message, Trace: raised.Trace,
			Python: raised.Frames(),
			Hint:   raised.Notes, Raised: raised.Raised(),
		}
		if cause := raised.Wrapped; cause != nil {
			d.Causes = []diag.Diagnostic{{Severity: diag.Error, Kind: cause.Class, Message: cause.Last()}}
		}
		d.Causes = append(d.Causes, causes(raised.Causes)...)
		if raised.File != "" {
			d.Location = &diag.Location{File: raised.File, Line: raised.Line}
		}
		return &Error{Diagnostic: d}
	}
	return &Error{
		Diagnostic: diag.Diagnostic{Severity: diag.Error, Code: CodeWorker, Kind: "Exception", Message: err.Error()},
	}
}

// causes are the causes of a compiler exception.
func causes(of []eval.PluginError) []diag.Diagnostic {
	var list []diag.Diagnostic
	for _, cause := range of {
		list = append(
			list,
			diag.Diagnostic{
				Severity: diag.Error,
				Kind:     cause.Class,
				Message:  cause.Message,
				Causes:   causes(cause.Causes),
			},
		)
	}
	return list
}

// gone adds to the error of a worker that died which resources it was making.
func gone(err error, asked []*item) error {
	made := asError(err)
	if made.Code != CodeWorker {
		return err
	}
	which := asked[0].title()
	if last := len(asked) - 1; last > 0 {
		which = fmt.Sprintf("%d resources, %s the first and %s the last of them", len(asked), which,
			asked[last].title())
	}
	made.Message += ", while it made the fields of " + which
	return made.of(asked[0].instance)
}
