// Package eval runs programs of the modelling language.
//
//	files ──define──▶ program (names resolved) ──run──▶ instances, variables
//
// Variables are futures: a statement is split in what it needs and what it
// does, and it waits until all it needs is known. What is ready runs first
// come, first served. A list takes elements until it is frozen; when nothing
// is ready any more, the engine freezes one list, in an order that decides
// which models compile at all (queue.go).
//
// The same input gives the same result in the same order, always.
package eval

import (
	"context"
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Input is a program to compile.
type Input struct {
	// Files in the order in which their top-level statements are emitted.
	Files []*syntax.File
	// Modules are the Python sides of the loaded modules, in order.
	Modules []ModuleCode
	// Host runs plug-ins; nil when there are none.
	Host Host
	// MaxIterations limits the rounds of freezing, and how many implementations
	// may stand above an instance; 0 means 100 000.
	MaxIterations int
	// MemoryMax is how many bytes the process may use before the model is given
	// up; 0 means no limit.
	MemoryMax uint64
	// Static: no plug-in is called, whatever comes.
	Static bool
	// Lint tells of variables that nothing assigns before they are needed: as an
	// error where they certainly will be, else as a warning.
	Lint bool
	// Missing are namespaces whose files could not be read. Names in them are
	// not missed.
	Missing map[string]bool
	// Unloaded are the modules whose Python code was not imported: nobody knows
	// what plug-ins they have.
	Unloaded map[string]bool
	// DataTrace: errors of assigning tell where values came from.
	DataTrace bool
	// Precedence is the relation precedence policy of the project.
	Precedence []PrecedenceRule
}

// Warning is a warning of the compiler.
type Warning = syntax.Warning

// Result is what a compile gives, failed or not.
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
	// CheckResult says what is wrong with the result of a plug-in that Python code
	// called after the compile, and what that plug-in declares.
	CheckResult func(plugin string, v types.Value) (declared string, err *Error)
	Warnings    []Warning
	// Output are the lines that plug-ins printed.
	Output []string
	// Err is nil for a successful compile: the error that the reference reports.
	Err *Error
	// Further are errors that were found after Err, and do not follow from it.
	Further []*Error
	// Rounds counts how often all that was ready ran, and then a list was frozen.
	Rounds int
}

// Variable is a variable at module level. Value is nil when it has none.
type Variable struct {
	Name  string // namespace::name
	Value types.Value
	At    syntax.Span
}

// Compile runs a program. An error of the model is in the result.
func Compile(ctx context.Context, in Input) *Result {
	result := &Result{}
	var loaded *Loaded
	var after Heap // for the finalizers
	if in.Host != nil {
		var err error
		loaded, err = in.Host.Load(in.code())
		result.Output = taken(in.Host)
		if err != nil {
			result.Err, result.Further = loadErrors(err)
			in.alsoWrong(ctx, result)
			return result
		}
		result.Warnings = append(result.Warnings, loaded.Warnings...)
		defer func() { finalize(in.Host, after, result) }()
	}
	if loaded == nil {
		loaded = &Loaded{}
	}
	for _, f := range in.Files {
		result.Warnings = append(result.Warnings, f.Warnings...)
	}
	se := newSession(ctx, in)
	p := define(in, loaded, se.holds)
	if p.wrong() {
		se.fail(p, result)
		return result
	}
	r := newRun(se, p)
	after = &afterwards{heap{r: r}}
	err := r.runFiles()
	if err != nil && !r.finished {
		result.Further = r.salvage(err)
	}
	r.fill(result, err)
	return result
}

// runFiles emits the top level of every file and runs until nothing moves.
func (r *run) runFiles() *Error {
	r.extents = make([]extent, len(r.prog.entities))
	if err := r.startFiles(r.prog.order); err != nil {
		return err
	}
	if err := r.execute(); err != nil {
		return err
	}
	r.finished = true
	return r.check()
}

func (r *run) startFiles(files []*namespace) *Error {
	for i, ns := range files {
		if ns.body == nil {
			continue
		}
		if err := r.startBlock(ns.body, r.scopeOf(ns)); err != nil {
			r.leave(func(r *run) *Error { return r.startFiles(files[i+1:]) })
			return err
		}
	}
	return nil
}

// check reports what is missing in the end, all of it.
func (r *run) check() *Error {
	var errs []*Error
	for _, t := range r.tables {
		for _, k := range t.order {
			for _, p := range t.waiting[k] {
				e := notFound("No match in index on type %s with key %s", t.entity.Name, t.givenText(p.values))
				e.Hint = r.suggestInstance(t.entity)
				errs = append(errs, e.in(p.n))
			}
		}
	}
	for _, n := range r.notes {
		errs = append(errs, n.wrong()...)
	}
	for _, i := range r.instances {
		errs = append(errs, r.complete(i)...)
	}
	if err := together(errs); err != nil {
		return err
	}
	return r.stuck()
}

func cancelled(ctx context.Context) *Error {
	return &Error{
		Kind:    "CompilerException",
		Message: "the compile was stopped: " + context.Cause(ctx).Error(),
		bare:    true,
		final:   true,
	}
}

func (r *run) fill(result *Result, err *Error) {
	if r.in.DataTrace {
		r.traceData(err)
	}
	result.Err = err
	result.Instances = r.instances
	result.Entities = r.prog.entities
	for _, t := range r.prog.typedefs {
		result.Typedefs = append(result.Typedefs, t.t)
	}
	for _, info := range r.prog.impls {
		result.Implementations = append(result.Implementations, info.summary())
	}
	result.Files = r.prog.files()
	result.CheckResult = checkedBy(r.prog.plugins)
	result.Warnings = append(append(result.Warnings, r.prog.warnings...), r.warnings...)
	result.Output = append(result.Output, slices.Concat(r.prog.output, r.output)...)
	result.Rounds = r.rounds
	all := 0
	for _, ns := range r.prog.order {
		all += len(ns.names)
	}
	result.Variables = make([]Variable, 0, all)
	for _, ns := range r.prog.order {
		for i, name := range ns.names {
			v, _ := r.scopeOf(ns).vars[i].peek()
			result.Variables = append(
				result.Variables,
				Variable{Name: ns.name + "::" + name, Value: v, At: ns.first[i]},
			)
		}
	}
}
