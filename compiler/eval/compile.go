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

	"ordain.dev/ordain/compiler/eval/internal/program"
)

// Compile runs a program. An error of the model is in the result.
func Compile(ctx context.Context, in program.Input) *Result {
	result := &Result{}
	var loaded *program.Loaded
	var after program.Heap // for the finalizers
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
		loaded = &program.Loaded{}
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

// runFiles emits the top level of every file and runs until nothing moves.
func (r *run) runFiles() *program.Error {
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

func (r *run) startFiles(files []*program.Namespace) *program.Error {
	for i, ns := range files {
		if ns.Body == nil {
			continue
		}
		if err := r.startBlock(ns.Body, r.scopeOf(ns)); err != nil {
			r.leave(func(r *run) *program.Error { return r.startFiles(files[i+1:]) })
			return err
		}
	}
	return nil
}

// check reports what is missing in the end, all of it.
func (r *run) check() *program.Error {
	var errs []*program.Error
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
		errs = append(errs, n.wrong()...)
	}
	for _, i := range r.instances {
		errs = append(errs, r.complete(i)...)
	}
	if err := program.Combine(errs); err != nil {
		return err
	}
	return r.stuck()
}

func cancelled(ctx context.Context) *program.Error {
	return &program.Error{
		Kind:    "CompilerException",
		Message: "the compile was stopped: " + context.Cause(ctx).Error(),
		Bare:    true,
		Final:   true,
	}
}

// Check finds what can be known to be wrong without running anything: it
// imports the plug-ins' signatures and goes through the definition phase. No
// plug-in is called. The result has no instances and no variables.
func Check(ctx context.Context, in program.Input) *Result {
	in.Static = true
	result := &Result{}
	loaded := &program.Loaded{}
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

// CheckRest looks for more that is wrong where not every file could be read:
// whatever of it depends on what is missing is not told.
func CheckRest(ctx context.Context, in program.Input) *Result {
	in.Unload()
	result := &Result{}
	guarded(func() { result = Check(ctx, in) })
	return result
}

// alsoWrong adds what is wrong with the model of a compile whose plug-ins
// could not be imported.
func alsoWrong(ctx context.Context, in program.Input, result *Result) {
	in.Static = true
	in.Unload()
	guarded(func() {
		p := program.Define(in, &program.Loaded{}, newSession(ctx, in).holds)
		if !p.Wrong() {
			return
		}
		result.Err, result.Further = p.BesideLoadErrors(result.Err, result.Further)
	})
}

// guarded runs what may fall over something that an error left unfinished:
// then there are fewer errors to tell, and that is all.
func guarded(do func()) {
	defer func() { _ = recover() }()
	do()
}

// fail fills the result of a compile whose program has errors.
func (se *session) fail(p *program.Program, result *Result) {
	err, further, warnings := p.Failure()
	result.Err, result.Further = err, further
	result.Warnings = append(result.Warnings, warnings...)
	result.Output = append(append(result.Output, p.Output...), se.output...)
}
