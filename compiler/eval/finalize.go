package eval

import (
	"errors"
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// warner is a Host that collects warnings about deprecated plug-ins outside of
// calls.
type warner interface{ TakeWarnings() []string }

// checkedBy returns a function that checks results of plug-ins without the rest of
// the program.
func checkedBy(plugins []*program.PluginInfo) func(string, types.Value) (string, *Error) {
	return func(plugin string, v types.Value) (string, *Error) {
		for _, info := range plugins { // the first one of a name counts
			if info.Signature.Name == plugin {
				return checkResult(info, v)
			}
		}
		return "", nil
	}
}

func finalize(h Host, after Heap, result *Result) {
	err := h.Finalize(after)
	result.Output = append(result.Output, program.TakeOutput(h)...)
	if w, is := h.(warner); is {
		for _, message := range w.TakeWarnings() {
			if !slices.ContainsFunc(result.Warnings, func(w Warning) bool { return w.Message == message }) {
				result.Warnings = append(result.Warnings, Warning{Kind: "PluginDeprecationWarning", Message: message})
			}
		}
	}
	var raised interface{ Raised() *PluginError }
	if errors.As(err, &raised) && raised.Raised().Kind == "exit" { // even after a compile that failed
		result.Err = program.Exited(*raised.Raised())
		return
	}
	if err == nil || result.Err != nil {
		return
	}
	all := []error{err}
	if several, is := err.(interface{ Unwrap() []error }); is {
		all = several.Unwrap()
	}
	var failed []*Error
	for _, one := range all {
		failed = append(failed, finalizerError(one))
	}
	result.Err = program.Combine(failed)
}

// finalizerError is the error of one finalizer. The reference has no place for it.
func finalizerError(err error) *Error {
	e := &Error{Kind: "CompilerException", Message: err.Error(), Bare: true}
	var raised interface{ Raised() *PluginError }
	if errors.As(err, &raised) {
		cause := raised.Raised()
		e.PythonTrace, e.About, e.Hint = cause.Trace, program.PlaceOutside(cause.File, cause.Line, 1), cause.Notes
	}
	return e
}
