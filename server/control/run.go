package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// run is one compile on its way through the stages. Each stage is recorded
// when it begins, while it prints and when it ends; the first that fails ends
// the run, and what is deployed stays as it was.
type run struct {
	*keeper
	log     *slog.Logger // of this run; the keeper has one of its own
	e       intent.Environment
	compile intent.Compile
	job     BuildJob
	source  GitSource
	version *int
	diags   json.RawMessage
	// began is when the run could have begun, by the wall clock.
	began time.Time
	// fetching is set while the source is fetched and a commit chosen.
	fetching bool
	// refused is set when the commit may not be deployed.
	refused bool
	// wanted is the commit that was promoted, where the environment follows another one.
	wanted *wanted
	turn   *turn         // its place among the compiles that run
	ending *cancellation // nil for previews
	open   *intent.Stage // the stage that runs
	// preview is set for a commit that is only looked at: its version is never released.
	preview bool
}

// errModel says that the model has errors; the diagnostics tell which.
var errModel = errors.New("the model has errors")

// errUpToDate ends a run early: this commit is compiled already.
var errUpToDate = errors.New("nothing to do")

// compile runs one compile to its end. When ctx ends the run is left open: it
// starts over when the environment is owned again.
func (k *keeper) compile(
	ctx context.Context,
	e intent.Environment,
	compile intent.Compile,
	turn *turn,
	began time.Time,
) {
	dir := k.control.cfg.Workspace.CompilerDir(e.ID)
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{keeper: k, e: e, compile: compile, turn: turn, began: began, ending: &cancellation{cancel: cancel}}
	r.job = BuildJob{
		Environment: e,
		Compile:     compile,
		Dir:         dir,
		ProjectDir:  filepath.Join(dir, filepath.FromSlash(e.Source.Subdir)),
	}
	r.log = k.log.With("compile", compile.ID)
	k.moved(compile.ID)
	var watching sync.WaitGroup
	if e.Bool("compile_cancel_older") && compile.Moved() && k.cancelled < mostCancelled {
		watching.Go(func() { k.watchNewer(own, compile.ID, r.ending) })
	}
	err := r.stages(own)
	cancel()
	watching.Wait()
	if ctx.Err() != nil {
		return
	}
	success := err == nil || errors.Is(err, errUpToDate)
	end := intent.CompileEnd{Success: success, Version: r.version, Diagnostics: r.diags, At: k.control.cfg.Now()}
	k.cancelled++
	if by := r.ending.superseded(); by != nil && !success {
		end.SupersededBy, err = &by.ID, errSuperseded
		r.endSuperseded(ctx, *by)
	} else {
		end.Notice, k.cancelled = r.failure(err, success), 0
	}
	if !r.persist(ctx, "record the end of a compile", func() error {
		return k.control.cfg.Store.FinishCompile(ctx, compile.ID, end)
	}) {
		return
	}
	k.moved(compile.ID)
	if end.Notice != nil {
		k.control.publish(k.env, bus.Notification, "")
	}
	switch {
	case end.SupersededBy != nil:
		r.log.Info("compile cancelled for a newer commit", "newer", *end.SupersededBy)
	case success:
		if r.version != nil {
			r.log = r.log.With("version", *r.version)
		}
		r.log.Info("compile succeeded")
	default:
		r.log.Warn("compile failed; what is deployed stays as it is", "error", err)
	}
}

// failure is the notice of a compile that failed, as people look for it:
// what they pushed is not what is deployed. A compile that exports nothing
// concerns only who asked for it.
func (r *run) failure(err error, success bool) *intent.Notice {
	if success || !r.compile.Export || r.preview {
		return nil
	}
	id := r.compile.ID
	n := &intent.Notice{
		Severity: intent.SeverityError,
		Title:    "Compilation failed",
		URI:      "/api/v2/compilereport/" + id.String(),
		Compile:  &id,
	}
	if r.fetching {
		n.Title = "Pulling updates during compile failed"
	}
	if r.refused {
		n.Title = "A commit was refused"
	}
	if rev := r.compile.Revision; rev != nil && !r.fetching {
		n.Message = fmt.Sprintf("%s %q by %s: ", rev.Short(), rev.Subject, rev.Author)
	}
	n.Message += err.Error()
	return n
}

func (k *keeper) moved(compile intent.CompileID) {
	k.control.publish(k.env, bus.Compile, compile.String())
}

// stages goes through the stages in order.
func (r *run) stages(ctx context.Context) error {
	steps := []func(context.Context) error{
		r.init, r.sync, r.admit, r.checkout, r.venv, r.install, r.compileModel,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
		r.fetching = false
	}
	return nil
}

// stage records one stage around what it does. The error of do is shown as
// the last lines of its error output. No stage begins in a burst of webhooks,
// but one of a run that they held back for long.
func (r *run) stage(ctx context.Context, name string, do func(out Output) (command string, err error)) error {
	c := r.control
	c.arrivals.storm.over(ctx, r.began)
	s := intent.Stage{ID: uuid.New(), Compile: r.compile.ID, Name: name, Started: c.cfg.Now()}
	if !r.persist(ctx, "record a stage", func() error { return c.cfg.Store.StartStage(ctx, s) }) {
		return fmt.Errorf("%s could not be recorded", name)
	}
	r.open = &s
	r.moved(r.compile.ID)
	out := func(stdout, stderr string) {
		if err := c.cfg.Store.AppendStage(ctx, s.ID, stdout, stderr); err != nil && ctx.Err() == nil {
			r.log.Warn("output of a stage was lost", "stage", name, "error", err)
		}
		r.moved(r.compile.ID)
	}
	command, err := do(out)
	code := 0
	if err != nil && !errors.Is(err, errUpToDate) {
		code = 1
		out("", err.Error()+"\n")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	at := c.cfg.Now()
	if !r.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.FinishStage(ctx, s.ID, c.cfg.Workspace.Shown(r.env, command), code, at)
	}) {
		return fmt.Errorf("the end of %s could not be recorded", name)
	}
	r.open = nil
	r.moved(r.compile.ID)
	return err
}

func (r *run) init(ctx context.Context) error {
	return r.stage(ctx, intent.StageInit, func(out Output) (string, error) {
		asked := r.compile.Trigger.Type
		if m := r.compile.Trigger.Message; m != "" {
			asked += ": " + m
		}
		out("Asked for by "+asked+"\n", "")
		if err := r.control.cfg.Workspace.Prepare(r.e); err != nil {
			return "", err
		}
		if r.compile.Reinstall {
			out("Removing checkout and virtual environment, as asked\n", "")
			return "", r.control.cfg.Workspace.ResetCompiler(r.env)
		}
		return "", nil
	})
}

// sync fetches and chooses the commit. A run that starts over after the server
// was killed keeps the commit that it had chosen.
func (r *run) sync(ctx context.Context) error {
	name := intent.StageFetch
	r.fetching = true
	err := r.patiently(ctx, "find out what to fetch", func() (err error) {
		if r.wanted, err = r.control.wanted(ctx, r.e); err != nil {
			return err
		}
		if r.wanted != nil {
			r.e.Source.Branch = r.wanted.follows
		}
		r.source, err = r.control.gitSource(ctx, r.e)
		r.job.Credentials = r.source
		return err
	})
	if err != nil {
		return r.stage(ctx, name, func(Output) (string, error) { return "", err })
	}
	if r.wanted != nil {
		r.source.Branch = r.wanted.commit
	}
	if !r.control.cfg.Git.Mirrored(r.source) {
		name = intent.StageClone
	}
	if name == intent.StageFetch && r.compile.Revision != nil {
		return nil
	}
	if name == intent.StageFetch && !r.compile.Update {
		last, err := r.control.cfg.Store.LastCompile(ctx, r.env)
		if err != nil {
			return err
		}
		if last != nil && last.Revision != nil && r.same(*last.Revision) {
			return r.choose(ctx, *last.Revision)
		}
	}
	return r.stage(ctx, name, func(out Output) (string, error) {
		var rev intent.Revision
		var step Step
		var err error
		r.turn.during(ctx, func() { rev, step, err = r.control.cfg.Git.Fetch(ctx, r.source) })
		if step.Output != "" {
			out(step.Output, "")
		}
		if err != nil {
			r.gitFailed(ctx, err)
			return step.Command, err
		}
		if w := r.wanted; w != nil {
			if rev.Commit != w.commit { // such as a branch that is named like the commit
				return step.Command, fault.New("control.sync", fault.Conflict, fmt.Sprintf("the repository gives %s for the commit %s", rev.Commit, w.commit)).
					Hint("remove the branch or tag of that name from the repository")
			}
			rev.Branch = w.branch
			out(w.why+"\n", "")
		}
		out(
			fmt.Sprintf(
				"%s is at %s %q by %s\n",
				cmp.Or(r.source.Branch, rev.Branch),
				rev.Short(),
				rev.Subject,
				rev.Author,
			),
			"",
		)
		if r.skips(ctx, rev) {
			out("This commit is compiled already: nothing to do\n", "")
			return step.Command, errors.Join(r.choose(ctx, rev), errUpToDate)
		}
		return step.Command, r.choose(ctx, rev)
	})
}

// same tells whether a commit that was compiled before is the one to compile
// when nothing is fetched.
func (r *run) same(rev intent.Revision) bool {
	if r.wanted != nil {
		return rev.Commit == r.wanted.commit
	}
	return r.e.Source.Branch == "" || rev.Branch == r.e.Source.Branch
}

// skips tells whether a run that only a notice asked for would repeat the last one.
func (r *run) skips(ctx context.Context, rev intent.Revision) bool {
	switch r.compile.Trigger.Type {
	case "webhook", "poll", "watch":
	default:
		return false
	}
	if r.compile.Reinstall {
		return false
	}
	last, err := r.control.cfg.Store.LastCompile(ctx, r.env)
	if err != nil || last == nil || last.Revision == nil {
		return false
	}
	return last.Revision.Commit == rev.Commit && last.Success != nil && *last.Success && !last.Partial
}

func (r *run) choose(ctx context.Context, rev intent.Revision) error {
	r.compile.Revision = &rev
	r.job.Compile = r.compile
	return r.patiently(ctx, "record the commit", func() error {
		return r.control.cfg.Store.SetCompileRevision(ctx, r.compile.ID, rev)
	})
}

func (r *run) checkout(ctx context.Context) error {
	return r.stage(ctx, intent.StageCheckout, func(out Output) (string, error) {
		step, err := r.control.cfg.Git.Checkout(ctx, r.source, r.compile.Revision.Commit, r.job.Dir)
		if step.Output != "" {
			out(step.Output, "")
		}
		return step.Command, err
	})
}

func (r *run) venv(ctx context.Context) error {
	return r.stage(ctx, intent.StageVenv, func(out Output) (string, error) {
		return r.control.cfg.Builder.Venv(ctx, r.job, out)
	})
}

func (r *run) install(ctx context.Context) error {
	return r.stage(ctx, intent.StageInstall, func(out Output) (string, error) {
		job := r.job
		if !r.preview {
			job.Modules = func(urls map[string]string) { r.modulesKnown(ctx, urls) }
		}
		return r.control.cfg.Builder.Install(ctx, job, out)
	})
}

// parameters reads what plug-ins may ask for: all parameters and facts.
func (r *run) parameters(ctx context.Context) ([]intent.Parameter, error) {
	var all []intent.Parameter
	for _, facts := range []bool{false, true} {
		q := intent.ListQuery{Limit: 1000, Sort: "name"}
		for {
			page, err := r.control.cfg.Store.Parameters(ctx, r.e.ID, facts, q)
			if err != nil {
				return nil, err
			}
			all = append(all, page.Items...)
			if page.After == 0 || len(page.Items) == 0 {
				break
			}
			last := page.Items[len(page.Items)-1]
			q.After = &intent.Bound{Value: &last.Name, ID: last.ID.String()}
		}
	}
	return all, nil
}

// compileModel compiles, stores what came of it and releases it.
func (r *run) compileModel(ctx context.Context) error {
	var doc *export.Document
	err := r.stage(ctx, intent.StageCompile, func(out Output) (command string, err error) {
		if r.job.Parameters, err = r.parameters(ctx); err != nil {
			return "", err
		}
		doc, command, err = r.control.cfg.Builder.Compile(ctx, r.job, out)
		if err != nil {
			return command, err
		}
		if len(doc.Diagnostics) > 0 {
			if r.diags, err = json.Marshal(doc.Diagnostics); err != nil {
				return command, err
			}
		}
		if !doc.Success {
			return command, errModel
		}
		return command, nil
	})
	if err == nil {
		err = r.ending.pass()
	}
	if err != nil || !r.compile.Export {
		return err
	}
	if err := r.store(ctx, doc); err != nil {
		return err
	}
	if r.preview {
		return nil
	}
	return r.releaseVersion(ctx)
}

// store records the version, and the files that it refers to.
func (r *run) store(ctx context.Context, doc *export.Document) error {
	c := r.control
	return r.stage(ctx, intent.StageExport, func(out Output) (string, error) {
		v, err := r.newVersion(doc)
		if err != nil {
			return "", err
		}
		if v.Preview = r.preview; !r.preview {
			if err := r.projectSettings(ctx, doc.Settings); err != nil {
				return "", err
			}
		}
		var number int
		if err := r.patiently(ctx, "store the version", func() (err error) {
			if err := c.storeFiles(ctx, doc); err != nil {
				return err
			}
			number, err = c.cfg.Store.StoreVersion(ctx, v, c.cfg.Now())
			return err
		}); err != nil {
			return "", err
		}
		r.version = &number
		c.publish(r.env, bus.Version, strconv.Itoa(number))
		if v.Partial != nil {
			out(
				fmt.Sprintf(
					"Committed %d resources of the resource sets that changed with version %d\n",
					len(v.Resources),
					number,
				),
				"",
			)
			return "", nil
		}
		out(fmt.Sprintf("Committed %d resources with version %d\n", len(v.Resources), number), "")
		return "", nil
	})
}

// releaseVersion makes the new version the intent, where the environment wants that.
func (r *run) releaseVersion(ctx context.Context) error {
	if !r.e.Bool("auto_deploy") {
		return nil
	}
	return r.stage(ctx, intent.StageRelease, func(out Output) (string, error) {
		err := r.patiently(ctx, "release the version", func() error {
			active, err := r.control.cfg.Store.ActiveVersion(ctx, r.env)
			if err != nil {
				return err
			}
			if active != nil && active.Number == *r.version {
				r.control.released(r.env, *r.version) // by an attempt that was cut off
				return nil
			}
			return r.control.Release(ctx, r.env, *r.version)
		})
		var held *intent.HeldError
		if errors.As(err, &held) {
			out(
				fmt.Sprintf("held: version %d is not released: %s\n%s\n", held.Version, held.Hold.Text, held.Advice()),
				"",
			)
			return "", nil
		}
		if fault.Is(err, fault.Conflict) {
			out("Not released: "+err.Error()+"\n", "")
			return "", nil
		}
		if err == nil {
			out(fmt.Sprintf("Version %d is the intent now\n", *r.version), "")
		}
		return "", err
	})
}

// provenance says where the version comes from.
func (r *run) provenance(doc *export.Document) intent.Provenance {
	rev := r.compile.Revision
	return intent.Provenance{
		Compile: r.compile.ID, Commit: rev.Commit, Branch: rev.Branch, Author: rev.Author, Email: rev.Email,
		Subject: rev.Subject, CommitTime: rev.Time.UTC().Truncate(time.Second), Signer: rev.Signer.Name, SignerKey: rev.Signer.Key, Trigger: r.compile.Trigger,
		Modules: doc.Modules, CompilerPython: doc.Python, Ordain: r.control.cfg.Version, Variables: r.compile.Variables,
	}
}
