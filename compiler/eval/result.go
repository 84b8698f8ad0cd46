package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// Result is the result of a compile, even of a failed one.
type Result struct {
	// Instances in the order in which they were made.
	Instances []*Instance
	// Variables at module level, in order of namespaces and definition.
	Variables []Variable
	Entities  []*types.Entity
	Typedefs  []*types.Typedef
	// Implementations in the order of their definition.
	Implementations []*types.Implementation
	// Files of the model in the order in which they were loaded.
	Files []*syntax.File
	// CheckResult checks the result of a plug-in that Python code called after the
	// compile, and returns the type that the plug-in declares.
	CheckResult func(plugin string, v types.Value) (declared string, err *Error)
	Warnings    []Warning
	// Output are the lines that plug-ins printed.
	Output []string
	// Err is the error that the reference reports; nil for a successful compile.
	Err *Error
	// Further are errors that were found after Err and do not follow from it.
	Further []*Error
	// Rounds is how often everything ready ran and then a list was frozen.
	Rounds int
}

// Variable is a variable at module level. Value is nil when it has none.
type Variable struct {
	Name  string // namespace::name
	Value types.Value
	At    syntax.Span
}

func (r *run) fill(result *Result, err *Error) {
	if r.in.DataTrace {
		r.traceData(err)
	}
	result.Err = err
	result.Instances = r.instances
	result.Entities = r.prog.Entities
	for _, t := range r.prog.Typedefs {
		result.Typedefs = append(result.Typedefs, t.Type)
	}
	for _, info := range r.prog.Implementations {
		result.Implementations = append(result.Implementations, info.Summary())
	}
	result.Files = r.prog.Files()
	result.CheckResult = checkedBy(r.prog.Plugins)
	result.Warnings = append(append(result.Warnings, r.prog.Warnings...), r.warnings...)
	result.Output = append(result.Output, slices.Concat(r.prog.Output, r.output)...)
	result.Rounds = r.rounds
	all := 0
	for _, ns := range r.prog.Order {
		all += len(ns.Names)
	}
	result.Variables = make([]Variable, 0, all)
	for _, ns := range r.prog.Order {
		for i, name := range ns.Names {
			v, _ := r.scopeOf(ns).vars[i].peek()
			result.Variables = append(result.Variables,
				Variable{Name: ns.Name + "::" + name, Value: v, At: ns.First[i]})
		}
	}
}

// Diagnostics returns all errors of a compile, the first one first.
func (r *Result) Diagnostics() []diag.Diagnostic {
	if r.Err == nil {
		return nil
	}
	out := r.Err.Diagnostics()
	for _, further := range r.Further {
		out = append(out, further.Diagnostic())
	}
	for i := range out {
		if out[i].Code == "" { // one of Python's exceptions, which the reference does not catch
			out[i].Code = diag.Code("RuntimeException")
		}
	}
	return out
}
