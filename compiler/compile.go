// Package compiler turns a project on disk into a model and, from it, into
// resources: text in, result and diagnostics out. It knows no database, no
// network and no clock.
//
//	project.yml ─▶ module: files, in order ─▶ eval: instances ─▶ export: resources
//	                        plugin: Python worker ◀──┴──────────────┘
//
// The worker starts while files are parsed, or never: what it told of the same
// modules before is remembered. A model with errors is a result
// like another; only what is outside of the model (no interpreter, a worker
// that dies) is an error of Run, and that too becomes a diagnostic.
package compiler

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/python/runtime"
)

// Options say what to compile and how.
type Options struct {
	Project string // folder with project.yml
	Main    string // entry file; empty: main.cf
	NoStd   bool   // std is not imported implicitly
	// DataTrace: errors of assigning tell where the values came from.
	DataTrace bool
	Export    bool // build the resources too
	Partial   bool // export the changed resource sets only
	// DeleteSets are resource sets to remove with a partial export.
	DeleteSets []string
	// ExportFunctions are run with an export, by the names that they have.
	ExportFunctions []string
	// ModelOnly leaves out of an export what only its own document has: where
	// fields were set, and hashes.
	ModelOnly bool
	// Python runs plug-ins: the interpreter of the project's virtual
	// environment. SitePackages replaces the folders of packages that the
	// project's own .env has, when it is set.
	Python       string
	SitePackages []string
	// PythonNote is what a person should know of that interpreter when plug-ins
	// cannot be loaded.
	PythonNote string
	// Env is the environment of plug-ins; empty: that of this process.
	Env         []string
	CacheDir    string // for the Python runtime
	Environment string // id of the environment; empty off line
	// Known is what the server knows that plug-ins may ask for; nil off line.
	Known *plugin.Known
	// Warm is a worker that may be copied; nil: there is none.
	Warm *plugin.Warm
	// OnOutput gets what plug-ins print, as they print it.
	OnOutput func(stream, line string)
	// OnStage is called at the end of each stage of a compile: open, parse,
	// evaluate, export.
	OnStage func(name string)
	// PluginTimeout is how long a plug-in may run; 0: plugin.DefaultCallTimeout.
	PluginTimeout time.Duration
	// MaxIterations and MemoryMax (bytes) stop a model that does not end: see
	// eval.Input.
	MaxIterations int
	MemoryMax     uint64

	// Check only looks for what is wrong: nothing is run and nothing exported.
	Check bool
	// NoPlugins leaves Python alone: plug-ins are taken to be there. For Check.
	NoPlugins bool

	onCompile func() // for tests: fails in the midst of a compile
}

// Outcome is what came of a compile.
type Outcome struct {
	Result   *eval.Result // nil when the files could not be read
	Document *export.Document
	// Text is what is printed for a person when the compile failed.
	Text string
	// Folders are those of the modules that were loaded, with their plug-ins.
	Folders []string

	// Recipe says how to make a template for the next compile; nil when it
	// would be of no use.
	Recipe *plugin.Recipe

	exported bool // an export was asked for
	crashed  bool // the compiler itself failed: the document tells where
}

// Run compiles. What is wrong with the project, its modules, the model or its
// plug-ins is in the document's diagnostics.
func Run(ctx context.Context, o Options) *Outcome {
	r := &run{o: o, doc: export.NewDocument()}
	result, ok := r.watched(ctx)
	if !ok { // what r holds is still written to
		r = &run{o: o, doc: export.NewDocument()}
		r.fail(tooLarge(o.MemoryMax))
	}
	out := &Outcome{Result: result, Document: r.doc, Folders: r.folders, exported: o.Export, crashed: r.crashed}
	if r.host != nil {
		r.release()
		_ = r.host.Close() // it is killed when it does not end by itself
		out.Recipe = r.host.Recipe()
	}
	r.doc.Success = len(r.doc.Diagnostics) == 0
	for i, d := range r.doc.Diagnostics {
		if o.PythonNote != "" && d.Code == diag.Code("PluginModuleLoadException") {
			r.doc.Diagnostics[i].Hint = o.PythonNote
		}
	}
	quote(o.Project, r.doc.Diagnostics)
	quote(o.Project, r.doc.Warnings)
	out.Text = diag.Style{}.RenderAll(r.doc.Diagnostics)
	return out
}

// run is one compile.
type run struct {
	o    Options
	doc  *export.Document
	host *plugin.Host
	// release lets go of the context, which interrupts the host when it ends.
	release func() bool

	folders []string // of the modules
	crashed bool
}

func (r *run) fail(d ...diag.Diagnostic) *eval.Result {
	r.doc.Diagnostics = append(r.doc.Diagnostics, d...)
	return nil
}

// warnedOnTheWay tells what was found before a project could not be opened.
func (r *run) warnedOnTheWay(err error) {
	var m *module.Error
	if !errors.As(err, &m) {
		return
	}
	for _, text := range m.Warnings {
		r.doc.Warnings = append(r.doc.Warnings, warning(syntax.Warning{Kind: module.KindConfiguration, Message: text}))
	}
}

// timed records how long a part took.
func (r *run) timed(name string, do func()) {
	began := time.Now()
	do()
	r.doc.Stages = append(
		r.doc.Stages,
		export.Stage{Name: name, Milliseconds: float64(time.Since(began).Microseconds()) / 1000},
	)
	r.endStage(name)
}

func (r *run) endStage(name string) {
	if r.o.OnStage != nil {
		r.o.OnStage(name)
	}
}

// guarded compiles. What goes wrong in the compiler itself is told like any
// other error, with a request to report it.
func (r *run) guarded(ctx context.Context) (result *eval.Result) {
	defer func() {
		if cause := recover(); cause != nil {
			r.doc.Diagnostics, r.crashed = nil, true
			result = r.fail(panicked(cause, debug.Stack()))
		}
	}()
	if r.o.onCompile != nil {
		r.o.onCompile()
	}
	return r.compile(ctx)
}

func (r *run) compile(ctx context.Context) *eval.Result {
	project, err := module.OpenProject(r.o.Project)
	if err != nil {
		r.warnedOnTheWay(err)
		return r.fail(reading(err))
	}
	if r.o.SitePackages != nil {
		project.SitePackages = r.o.SitePackages
	}
	if !r.o.NoPlugins {
		if err := r.prepare(ctx, project); err != nil {
			return r.fail(reading(err))
		}
	}
	r.endStage("open")
	main := r.o.Main
	if main == "" {
		main = "main.cf"
	}
	var program *module.Program
	r.timed("parse", func() { program, err = module.NewLoader(project).Load(main, !r.o.NoStd) })
	if err != nil {
		return r.unreadable(ctx, project, program, err)
	}
	r.doc.Modules = make(map[string]string, len(program.Modules))
	for _, m := range program.Modules {
		r.doc.Modules[m.Name] = m.Version
		r.folders = append(r.folders, m.Path, m.PluginDir)
	}
	result := r.evaluate(ctx, project, program)
	if result.Err == nil && r.o.Export && !r.o.Check {
		r.doc.Pip, r.doc.Settings = project.PipConfig(), project.Metadata.EnvironmentSettings
		r.export(ctx, program, result)
	}
	return result
}

// prepare makes the host for plug-ins. Its worker starts now, while files are
// parsed, when it probably will be needed.
func (r *run) prepare(ctx context.Context, project *module.Project) error {
	runtimeDir, err := runtime.Unpack(r.o.CacheDir)
	if err != nil {
		return err
	}
	settings, err := project.Settings()
	if err != nil {
		return err
	}
	if settings["config"] == nil {
		settings["config"] = map[string]any{}
	}
	if r.o.Environment != "" {
		settings["config"]["environment"] = r.o.Environment
	}
	env := r.o.Env
	if len(env) == 0 {
		env = os.Environ()
	}
	r.host = plugin.New(ctx, plugin.Config{
		Python: r.o.Python, RuntimeDir: runtimeDir, Path: project.SitePackages, ProjectDir: project.Dir,
		ProjectName: project.Metadata.Name, ModulePath: project.ModulePath, Metadata: shownMetadata(project), Settings: settings, Env: env, OnOutput: r.o.OnOutput, CallTimeout: r.o.PluginTimeout,
		AutoStd: !r.o.NoStd, About: module.AboutModule,
		CacheDir: r.o.CacheDir, MemoryMax: workerMemory(r.o.MemoryMax), Known: r.o.Known, Warm: r.o.Warm,
	})
	r.release = context.AfterFunc(ctx, r.host.Interrupt)
	if !r.o.NoStd && !r.o.Check {
		r.host.Anticipate()
	}
	return nil
}

// shownMetadata is what plug-ins see of project.yml; what it does not say is None
// there, or an empty list.
func shownMetadata(p *module.Project) map[string]any {
	m := p.Metadata
	shown := map[string]any{
		"requires": slices.Concat(
			[]string{},
			m.Requires,
		), "freeze_recursive": m.FreezeRecursive, "freeze_operator": m.FreezeOperator,
		"install_mode": m.InstallMode, "relation_precedence_policy": shownRules(m.RelationPrecedencePolicy), "repo": shownRepos(m.Repo),
		"pip": map[string]any{
			"index_url":         nil,
			"extra_index_url":   slices.Concat([]string{}, m.Pip.ExtraIndexURL),
			"pre":               m.Pip.Pre,
			"use_system_config": m.Pip.UseSystemConfig,
		},
	}
	if m.DownloadPath != "" {
		shown["downloadpath"] = p.DownloadPath()
	}
	if m.Pip.IndexURL != "" {
		shown["pip"].(map[string]any)["index_url"] = m.Pip.IndexURL
	}
	if m.EnvironmentSettings != nil {
		shown["environment_settings"] = m.EnvironmentSettings
	}
	for name, value := range map[string]string{
		"description": m.Description, "author": m.Author, "author_email": m.AuthorEmail, "license": m.License, "copyright": m.Copyright,
	} {
		if value != "" {
			shown[name] = value
		}
	}
	return shown
}

func shownRules(rules []module.PrecedenceRule) []string {
	shown := []string{}
	for _, rule := range rules {
		shown = append(shown, rule.String())
	}
	return shown
}

func shownRepos(repos []module.Repo) [][2]string {
	shown := [][2]string{}
	for _, repo := range repos {
		shown = append(shown, [2]string{repo.URL, repo.Type})
	}
	return shown
}

// unreadable tells why files could not be read, and what else is wrong with
// those that could.
func (r *run) unreadable(
	ctx context.Context,
	project *module.Project,
	program *module.Program,
	err error,
) *eval.Result {
	if program == nil {
		return r.fail(reading(err))
	}
	for _, one := range program.Errors {
		r.fail(reading(one))
	}
	for _, w := range program.Warnings {
		if w.At.File == nil { // of the loading
			r.doc.Warnings = append(r.doc.Warnings, warning(w))
		}
	}
	in := r.input(project, program)
	in.Missing, in.Lint = program.Missing, r.o.Check
	if result := eval.CheckRest(ctx, in); result.Err != nil {
		r.fail(result.Diagnostics()...)
	}
	return nil
}

func (r *run) input(project *module.Project, program *module.Program) eval.Input {
	in := eval.Input{
		DataTrace:     r.o.DataTrace,
		Files:         program.Files,
		MaxIterations: r.o.MaxIterations,
		MemoryMax:     r.o.MemoryMax,
	}
	for _, rule := range project.Metadata.RelationPrecedencePolicy {
		in.Precedence = append(in.Precedence, eval.PrecedenceRule(rule))
	}
	for _, m := range program.Modules {
		in.Modules = append(
			in.Modules,
			eval.ModuleCode{Name: m.Name, Version: m.Version, Root: m.Path, Dir: m.PluginDir, Files: m.PythonFiles},
		)
	}
	return in
}

func (r *run) evaluate(ctx context.Context, project *module.Project, program *module.Program) *eval.Result {
	in := r.input(project, program)
	if r.host != nil {
		in.Host = r.host
	}
	if r.o.NoPlugins {
		in.Unload()
	}
	in.Lint = r.o.Check
	compile := eval.Compile
	if r.o.Check {
		compile = eval.Check
	}
	var result *eval.Result
	r.timed("evaluate", func() { result = compile(ctx, in) })
	r.doc.Output = result.Output
	for _, w := range program.Warnings {
		if w.At.File == nil { // of the loading; those of a file are in the result
			result.Warnings = append(result.Warnings, w)
		}
	}
	for _, w := range result.Warnings {
		r.doc.Warnings = append(r.doc.Warnings, warning(w))
	}
	if result.Err != nil {
		r.fail(result.Diagnostics()...)
	}
	return result
}

func (r *run) export(ctx context.Context, program *module.Program, result *eval.Result) {
	r.timed("export", func() {
		err := export.Export(ctx, export.Input{
			Result: result, Host: r.host, Modules: program.Modules, Document: r.doc,
			Partial: r.o.Partial, DeleteSets: r.o.DeleteSets, ModelOnly: r.o.ModelOnly, Functions: r.o.ExportFunctions, ProjectDir: r.o.Project,
		})
		if err != nil {
			r.fail(export.Diagnostics(err)...)
		}
	})
	r.doc.Python = r.host.Python()
}

// workerMemory is the limit of the worker's address space. Threads and
// libraries reserve far more of that than they use: a small limit would stop
// what fits well.
func workerMemory(limit uint64) uint64 {
	if limit == 0 {
		return 0
	}
	return max(limit, 4<<30)
}

// PackagesOf gives the folders of packages of the virtual environment that an
// interpreter belongs to; none when it belongs to none.
func PackagesOf(python string) []string {
	venv := filepath.Dir(filepath.Dir(python))
	if _, err := os.Stat(filepath.Join(venv, "pyvenv.cfg")); err != nil {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(venv, "lib", "python3.*", "site-packages"))
	if err != nil {
		return nil
	}
	return found
}
