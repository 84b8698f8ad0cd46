package eval

import (
	"context"

	"ordain.dev/ordain/compiler/eval/internal/program"
)

// Compile compiles a model. An error of the model is in the result.
func Compile(ctx context.Context, in Input) *Result {
	result := &Result{}
	var loaded *Loaded
	var after Heap // for the finalizers
	if in.Host != nil {
		var err error
		loaded, err = in.Host.Load(in.Code())
		result.Output = program.TakeOutput(in.Host)
		if err != nil {
			result.Err, result.Further = program.LoadErrors(err)
			alsoWrong(ctx, in, result)
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
	p := program.Define(in, loaded, se.holds)
	if p.Wrong() {
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

// runFiles starts the top level of every file and runs until nothing moves.
func (r *run) runFiles() *Error {
	r.extents = make([]extent, len(r.prog.Entities))
	if err := r.startFiles(r.prog.Order); err != nil {
		return err
	}
	if err := r.execute(); err != nil {
		return err
	}
	r.finished = true
	return r.check()
}

func (r *run) startFiles(files []*program.Namespace) *Error {
	for i, ns := range files {
		if ns.Body == nil {
			continue
		}
		if err := r.startBlock(ns.Body, r.scopeOf(ns)); err != nil {
			r.postpone(func(r *run) *Error { return r.startFiles(files[i+1:]) })
			return err
		}
	}
	return nil
}

// check reports everything that is missing in the end.
func (r *run) check() *Error {
	var errs []*Error
	for _, t := range r.tables {
		for _, k := range t.order {
			for _, p := range t.waiting[k] {
				e := program.NotFound("No match in index on type %s with key %s", t.entity.Name, t.givenText(p.values))
				e.Hint = r.suggestInstance(t.entity)
				errs = append(errs, e.In(p.n))
			}
		}
	}
	for _, n := range r.notes {
		errs = append(errs, n.errors()...)
	}
	for _, i := range r.instances {
		errs = append(errs, r.missingIn(i)...)
	}
	if err := program.Combine(errs); err != nil {
		return err
	}
	return r.neverRan()
}

func cancelled(ctx context.Context) *Error {
	return &Error{
		Kind:    "CompilerException",
		Message: "the compile was stopped: " + context.Cause(ctx).Error(),
		Bare:    true,
		Final:   true,
	}
}

// Check reports what can be known to be wrong without running anything: it imports
// the plug-ins' signatures and goes through the definition phase. It calls no
// plug-in, and the result has no instances and no variables.
func Check(ctx context.Context, in Input) *Result {
	in.Static = true
	result := &Result{}
	loaded := &Loaded{}
	if in.Host != nil {
		got, err := in.Host.Load(in.Code())
		result.Output = program.TakeOutput(in.Host)
		if err != nil {
			result.Err, result.Further = program.LoadErrors(err)
			alsoWrong(ctx, in, result)
			return result
		}
		loaded = got
		result.Warnings = append(result.Warnings, loaded.Warnings...)
	}
	for _, f := range in.Files {
		result.Warnings = append(result.Warnings, f.Warnings...)
	}
	se := newSession(ctx, in)
	p := program.Define(in, loaded, se.holds)
	if p.Wrong() {
		se.fail(p, result)
		return result
	}
	result.Warnings = append(result.Warnings, p.Warnings...)
	result.Entities = p.Entities
	return result
}

// CheckRest looks for more errors when some files could not be read, and leaves out
// what depends on them.
func CheckRest(ctx context.Context, in Input) *Result {
	in.Unload()
	result := &Result{}
	guarded(func() { result = Check(ctx, in) })
	return result
}

// alsoWrong adds the errors of a model whose plug-ins could not be imported.
func alsoWrong(ctx context.Context, in Input, result *Result) {
	in.Static = true
	in.Unload()
	guarded(func() {
		p := program.Define(in, &Loaded{}, newSession(ctx, in).holds)
		if !p.Wrong() {
			return
		}
		result.Err, result.Further = p.BesideLoadErrors(result.Err, result.Further)
	})
}

// guarded runs a search for more errors. It may panic over something that an error
// left unfinished, and then there are fewer errors to report.
func guarded(do func()) {
	defer func() { _ = recover() }()
	do()
}

// fail fills the result of a compile whose definition failed.
func (se *session) fail(p *program.Program, result *Result) {
	err, further, warnings := p.Failure()
	result.Err, result.Further = err, further
	result.Warnings = append(result.Warnings, warnings...)
	result.Output = append(append(result.Output, p.Output...), se.output...)
}
