package compiler

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
)

// Diagnose makes a diagnostic of an error from reading files: of the parser, or of the project and its
// modules.
func Diagnose(err error) diag.Diagnostic {
	var parse *syntax.Error
	if errors.As(err, &parse) {
		var m *module.Error
		if !errors.As(err, &m) {
			d := locate(diag.Diagnostic{
				Severity: diag.Error, Code: diag.Code(parse.Kind), Kind: parse.Kind,
				Message: parse.Message, Hint: parse.Hint, Trace: parse.Error(), Expected: parse.Expected,
				Found: parse.Found,
			}, parse.At)
			if focus := locate(diag.Diagnostic{}, parse.Focus); focus.Location != nil {
				d.Focus, d.Source = focus.Location, focus.Source
			}
			if parse.Other != nil {
				if other := locate(diag.Diagnostic{}, *parse.Other); other.Location != nil {
					d.Related = []diag.Related{
						{Label: "the other one is", Location: *other.Location, Source: other.Source},
					}
				}
			}
			return d
		}
	}
	var m *module.Error
	if errors.As(err, &m) {
		d := diag.Diagnostic{
			Severity: diag.Error, Code: diag.Code(m.Kind), Kind: m.Kind,
			Message: m.Message, Hint: m.Hint, Trace: m.Error(),
		}
		if m.Cause != nil {
			d.Causes = []diag.Diagnostic{Diagnose(m.Cause)}
		}
		if d.Code == diag.Code("") { // in the reference it is an exception of Python itself
			d.Code = diag.Code(cmp.Or(m.Like, module.KindInvalidMetadata))
		}
		return locate(d, m.At)
	}
	d := diag.Diagnostic{
		Severity: diag.Error,
		Code:     diag.Code("Error"),
		Kind:     "builtins.Exception",
		Message:  err.Error(),
		Trace:    err.Error(),
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Advice != "" {
		d.Hint = f.Advice
		d.Message = strings.TrimSuffix(d.Message, "; "+f.Advice)
	}
	return d
}

// Failed is the outcome of a compile that could not begin, because what it needs could not be installed.
func Failed(err error) *Outcome {
	doc := export.NewDocument()
	doc.Diagnostics = append(doc.Diagnostics, Diagnose(err))
	return &Outcome{Document: doc, Text: doc.Diagnostics[0].Render()}
}

// panicked is the diagnostic of a panic in the compiler.
func panicked(cause any, stack []byte) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Error, Code: diag.Code("InternalError"), Kind: "ordain.InternalError",
		Message: fmt.Sprintf("the compiler failed: %v", cause),
		Hint:    "this is a fault of Ordain and not of the model: please report it, with the model and this text",
		Trace:   fmt.Sprintf("the compiler failed: %v\n%s", cause, stack),
	}
}

// tooLarge is the diagnostic of a project that needs more memory than it may use.
func tooLarge(limit uint64) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Error, Code: diag.Code("CompilerException"), Kind: "inmanta.ast.CompilerException",
		Message: fmt.Sprintf("The project needs more than %d MiB of memory and was given up", limit>>20),
		Hint: "is there a file that a program wrote, and too much of it? raise the limit with --memory-max if " +
			"the project is that large",
	}
}

// warning makes a diagnostic of a warning.
func warning(w syntax.Warning) diag.Diagnostic {
	return locate(diag.Diagnostic{Severity: diag.Warning, Code: diag.Code(w.Kind), Kind: w.Kind, Message: w.Message},
		w.At)
}

// locate adds the place and the source line, if they are known.
func locate(d diag.Diagnostic, at syntax.Span) diag.Diagnostic {
	if at.File == nil || at.Start.Line == 0 {
		return d
	}
	d.Location = &diag.Location{
		File:      at.File.Path,
		Line:      int(at.Start.Line),
		Column:    int(at.Start.Col),
		EndLine:   int(at.End.Line),
		EndColumn: int(at.End.Col),
	}
	if n := int(at.Start.Line); n <= len(at.File.Lines) {
		d.Source = at.File.Lines[n-1]
	}
	return d
}
