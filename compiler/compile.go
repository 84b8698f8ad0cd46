// Package compiler turns a project on disk into a model, and the model into resources: text in, result
// and diagnostics out. It uses no database, no network and no clock.
//
//	project.yml ─▶ module: files, in order ─▶ eval: instances ─▶ export: resources
//	                        plugin: Python worker ◀──┴──────────────┘
//
// The worker starts while the files are parsed, or not at all: what importing the same modules led to is
// remembered. Every error becomes a diagnostic in the outcome, also one outside of the model, such as a
// missing interpreter or a worker that dies.
package compiler

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
)

// Run compiles a project. Errors of the project, its modules, the model and its plug-ins are in the
// document's diagnostics.
func Run(ctx context.Context, o Options) *Outcome {
	c := &compilation{options: o, doc: export.NewDocument()}
	result, ok := c.watched(ctx)
	if !ok { // the goroutine that was given up may still write to c
		c = &compilation{options: o, doc: export.NewDocument()}
		c.fail(tooLarge(o.MemoryMax))
	}
	out := &Outcome{Result: result, Document: c.doc, Folders: c.folders, exported: o.Export, crashed: c.crashed}
	if c.host != nil {
		c.release()
		_ = c.host.Close() // it is killed when it does not end by itself
		out.Recipe = c.host.Recipe()
	}
	c.doc.Success = len(c.doc.Diagnostics) == 0
	for i, d := range c.doc.Diagnostics {
		if o.PythonNote != "" && d.Code == diag.Code("PluginModuleLoadException") {
			c.doc.Diagnostics[i].Hint = o.PythonNote
		}
	}
	quote(o.Project, c.doc.Diagnostics)
	quote(o.Project, c.doc.Warnings)
	out.Text = diag.Style{}.RenderAll(c.doc.Diagnostics)
	return out
}

// compilation is the state of one compile.
type compilation struct {
	options Options
	doc     *export.Document
	host    *plugin.Host
	// release stops the end of the context from interrupting the host.
	release func() bool

	folders []string // of the modules
	crashed bool
}

func (c *compilation) fail(d ...diag.Diagnostic) *eval.Result {
	c.doc.Diagnostics = append(c.doc.Diagnostics, d...)
	return nil
}

// addWarningsOf adds the warnings that were found before opening the project failed.
func (c *compilation) addWarningsOf(err error) {
	var m *module.Error
	if !errors.As(err, &m) {
		return
	}
	for _, text := range m.Warnings {
		c.doc.Warnings = append(c.doc.Warnings, warning(syntax.Warning{Kind: module.KindConfiguration, Message: text}))
	}
}

// timed runs a stage and records how long it took.
func (c *compilation) timed(name string, do func()) {
	began := time.Now()
	do()
	c.doc.Stages = append(c.doc.Stages,
		export.Stage{Name: name, Milliseconds: float64(time.Since(began).Microseconds()) / 1000})
	c.endStage(name)
}

func (c *compilation) endStage(name string) {
	if c.options.OnStage != nil {
		c.options.OnStage(name)
	}
}

// guarded compiles. A panic in the compiler becomes a diagnostic, with a request to report it.
func (c *compilation) guarded(ctx context.Context) (result *eval.Result) {
	defer func() {
		if cause := recover(); cause != nil {
			c.doc.Diagnostics, c.crashed = nil, true
			result = c.fail(panicked(cause, debug.Stack()))
		}
	}()
	if c.options.onCompile != nil {
		c.options.onCompile()
	}
	return c.compile(ctx)
}

func (c *compilation) compile(ctx context.Context) *eval.Result {
	project, err := module.OpenProject(c.options.Project)
	if err != nil {
		c.addWarningsOf(err)
		return c.fail(Diagnose(err))
	}
	if c.options.SitePackages != nil {
		project.SitePackages = c.options.SitePackages
	}
	project.Bundled = c.bundled
	if !c.options.NoPlugins {
		if err := c.prepare(ctx, project); err != nil {
			return c.fail(Diagnose(err))
		}
	}
	c.endStage("open")
	main := c.options.Main
	if main == "" {
		main = "main.cf"
	}
	var program *module.Program
	c.timed("parse", func() { program, err = module.NewLoader(project).Load(main, !c.options.NoStd) })
	if err != nil {
		return c.unreadable(ctx, project, program, err)
	}
	c.doc.Modules = make(map[string]string, len(program.Modules))
	for _, m := range program.Modules {
		c.doc.Modules[m.Name] = m.Version
		c.folders = append(c.folders, m.Path, m.PluginDir)
	}
	result := c.evaluate(ctx, project, program)
	if result.Err == nil && c.options.Export && !c.options.Check {
		c.doc.Pip, c.doc.Settings = project.PipConfig(), project.Metadata.EnvironmentSettings
		c.export(ctx, program, result)
	}
	return result
}

// unreadable reports why files could not be read, and other errors in the files that could.
func (c *compilation) unreadable(
	ctx context.Context,
	project *module.Project,
	program *module.Program,
	err error,
) *eval.Result {
	if program == nil {
		return c.fail(Diagnose(err))
	}
	for _, one := range program.Errors {
		c.fail(Diagnose(one))
	}
	for _, w := range program.Warnings {
		if w.At.File == nil { // it is about loading
			c.doc.Warnings = append(c.doc.Warnings, warning(w))
		}
	}
	in := c.input(project, program)
	in.Missing, in.Lint = program.Missing, c.options.Check
	if result := eval.CheckRest(ctx, in); result.Err != nil {
		c.fail(result.Diagnostics()...)
	}
	return nil
}

func (c *compilation) input(project *module.Project, program *module.Program) eval.Input {
	in := eval.Input{
		DataTrace:     c.options.DataTrace,
		Files:         program.Files,
		MaxIterations: c.options.MaxIterations,
		MemoryMax:     c.options.MemoryMax,
	}
	for _, rule := range project.Metadata.RelationPrecedencePolicy {
		in.Precedence = append(in.Precedence, eval.PrecedenceRule(rule))
	}
	for _, m := range program.Modules {
		in.Modules = append(in.Modules,
			eval.ModuleCode{Name: m.Name, Version: m.Version, Root: m.Path, Dir: m.PluginDir, Files: m.PythonFiles})
	}
	return in
}

func (c *compilation) evaluate(ctx context.Context, project *module.Project, program *module.Program) *eval.Result {
	in := c.input(project, program)
	if c.host != nil {
		in.Host = c.host
	}
	if c.options.NoPlugins {
		in.Unload()
	}
	in.Lint = c.options.Check
	compile := eval.Compile
	if c.options.Check {
		compile = eval.Check
	}
	var result *eval.Result
	c.timed("evaluate", func() { result = compile(ctx, in) })
	c.doc.Output = result.Output
	for _, w := range program.Warnings {
		if w.At.File == nil { // it is about loading; the result has those of files
			result.Warnings = append(result.Warnings, w)
		}
	}
	for _, w := range result.Warnings {
		c.doc.Warnings = append(c.doc.Warnings, warning(w))
	}
	if result.Err != nil {
		c.fail(result.Diagnostics()...)
	}
	return result
}

func (c *compilation) export(ctx context.Context, program *module.Program, result *eval.Result) {
	c.timed("export", func() {
		err := export.Export(ctx, export.Input{
			Result: result, Host: c.host, Modules: program.Modules, Document: c.doc,
			Partial: c.options.Partial, DeleteSets: c.options.DeleteSets, ModelOnly: c.options.ModelOnly,
			Functions: c.options.ExportFunctions, ProjectDir: c.options.Project,
		})
		if err != nil {
			c.fail(export.Diagnostics(err)...)
		}
	})
	c.doc.Python = c.host.Python()
}
