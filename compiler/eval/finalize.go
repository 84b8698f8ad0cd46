package eval

import (
	"errors"
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// warner is a Host that keeps what it was told of deprecated plug-ins outside
// of calls.
type warner interface{ TakeWarnings() []string }

// checkedBy checks the results of plug-ins without the rest of the program.
func checkedBy(plugins []*program.PluginInfo) func(string, types.Value) (string, *program.Error) {
	return func(plugin string, v types.Value) (string, *program.Error) {
		for _, info := range plugins { // the first of a name is what it means
			if info.Signature.Name == plugin {
				return checkResult(info, v)
			}
		}
		return "", nil
	}
}

func finalize(h program.Host, after program.Heap, result *Result) {
	err := h.Finalize(after)
	result.Output = append(result.Output, program.TakeOutput(h)...)
	if w, is := h.(warner); is {
		for _, message := range w.TakeWarnings() {
			if !slices.ContainsFunc(result.Warnings, func(w program.Warning) bool { return w.Message == message }) {
				result.Warnings = append(result.Warnings, program.Warning{Kind: "PluginDeprecationWarning", Message: message})
			}
		}
	}
	var raised interface{ Raised() *program.PluginError }
	if errors.As(err, &raised) && raised.Raised().Kind == "exit" { // whatever came of the compile
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
	var failed []*program.Error
	for _, one := range all {
		failed = append(failed, finalizerError(one))
	}
	result.Err = program.Combine(failed)
}

// finalizerError is about one finalizer. In the reference it has no place.
func finalizerError(err error) *program.Error {
	e := &program.Error{Kind: "CompilerException", Message: err.Error(), Bare: true}
	var raised interface{ Raised() *program.PluginError }
	if errors.As(err, &raised) {
		cause := raised.Raised()
		e.PythonTrace, e.About, e.Hint = cause.Trace, program.PlaceOutside(cause.File, cause.Line, 1), cause.Notes
	}
	return e
}
