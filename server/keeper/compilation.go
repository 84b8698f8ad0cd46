package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/build"
)

// compilation is one compile on its way through the stages. Each stage is
// recorded when it begins, while it prints and when it ends. The first stage that
// fails ends the compilation, and the deployed version stays.
type compilation struct {
	*keeper
	log     *slog.Logger
	e       intent.Environment // as it was when the compilation began; see applyProjectSettings
	compile intent.Compile
	job     build.Job
	source  gitsync.Source
	doc     *export.Document // what the compiler exported
	version *int             // the stored version
	// clusters are the manifests of the commit's cluster files; nil: there are none, and never were.
	clusters json.RawMessage
	// clusterView identifies what the model could see of the environment's clusters.
	clusterView string
	diags       json.RawMessage
	// fetching is true while the source is fetched and a commit is chosen.
	fetching bool
	// sameFailure is set when the source could not be fetched, as before: people know that.
	sameFailure bool
	// unreadableSince is set when the source was fetched and could not be read before.
	unreadableSince *time.Time
	// refused is set if the commit may not be deployed.
	refused bool
	// promoted is the promoted commit, if the environment follows another one.
	promoted *PromotedCommit
	turn     *turn         // its place among the compiles that run
	ending   *cancellation // nil for previews
	open     *intent.Stage // the stage that runs
	// preview is set for a preview, whose version is never released.
	preview bool
	// secrets masks what the stages print; nil before the first one.
	secrets *secret.Redactor
}

// errModel says that the model has errors, which the diagnostics describe.
var errModel = errors.New("the model has errors")

// errUpToDate ends a compilation early: its commit is compiled already.
var errUpToDate = errors.New("nothing to do")

func (k *keeper) newCompilation(e intent.Environment, compile intent.Compile, dir string) *compilation {
	return &compilation{
		keeper: k, e: e, compile: compile, log: k.log.With("compile", compile.ID),
		job: build.Job{
			Environment: e, Compile: compile,
			Dir: dir, ProjectDir: filepath.Join(dir, filepath.FromSlash(e.Source.Subdir)),
		},
	}
}

// compile runs one compile to its end. If ctx ends, the compile stays open and starts
// over when the environment has an owner again.
func (k *keeper) compile(ctx context.Context, e intent.Environment, compile intent.Compile, turn *turn) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	c := k.newCompilation(e, compile, k.Folders.compilerDir(e.ID))
	c.turn, c.ending = turn, &cancellation{cancel: cancel}
	k.publishCompile(compile.ID)
	var watching sync.WaitGroup
	if e.Bool("compile_cancel_older") && compile.Moved() && k.cancelled < mostCancelled {
		watching.Go(func() { k.watchNewer(own, compile.ID, c.ending) })
	}
	k.begin(compile, c.ending)
	err := c.run(own)
	k.end()
	cancel()
	watching.Wait()
	if ctx.Err() == nil {
		c.finish(ctx, err)
	}
}

// run goes through the stages in order.
func (c *compilation) run(ctx context.Context) error {
	stages := []func(context.Context) error{
		c.prepare, c.fetch, c.admit, c.checkout, c.readClusters, c.makeVenv, c.install, c.compileModel,
		c.storeVersion, c.release,
	}
	for _, stage := range stages {
		if err := stage(ctx); err != nil {
			return err
		}
		c.fetching = false
	}
	return nil
}

// finish records how the compilation ended.
func (c *compilation) finish(ctx context.Context, err error) {
	success := err == nil || errors.Is(err, errUpToDate)
	end := intent.CompileEnd{
		Success:     success,
		Version:     c.version,
		Diagnostics: c.maskedDiagnostics(),
		At:          c.cfg.Now(),
	}
	if by := c.ending.superseded(); by != nil && !success {
		end.SupersededBy = &by.ID
		c.endSuperseded(ctx, *by)
		c.cancelled++
	} else if by := c.ending.cancelledBy(); by != nil && !success {
		end.Cancelled = true
		c.endCancelled(ctx, *by)
		c.cancelled = 0
	} else {
		if end.Notice = c.failure(err, success); end.Notice == nil {
			end.Notice = c.recovery()
		}
		c.cancelled = 0
	}
	if success {
		c.lookAgain(ctx) // a job that ends later finds the version by itself
	}
	if !c.persist(ctx, "record the end of a compile", func() error {
		return c.cfg.Store.FinishCompile(ctx, c.compile.ID, end)
	}) {
		return
	}
	c.publishCompile(c.compile.ID)
	if end.Notice != nil {
		c.publish(c.env, bus.Notification, "")
	}
	switch {
	case end.SupersededBy != nil:
		c.log.Info("compile cancelled for a newer commit", "newer", *end.SupersededBy)
	case end.Cancelled:
		c.log.Info("compile cancelled by a person")
	case success && c.version != nil:
		c.log.Info("compile succeeded", "version", *c.version)
	case success:
		c.log.Info("compile succeeded")
	default:
		c.log.Warn("compile failed; the deployed version stays", "error", err)
	}
}

// maskedDiagnostics returns the diagnostics without secrets, which exceptions of plug-ins
// may quote.
func (c *compilation) maskedDiagnostics() json.RawMessage {
	if len(c.diags) == 0 {
		return c.diags
	}
	in := json.NewDecoder(bytes.NewReader(c.diags))
	in.UseNumber()
	var all any
	if err := in.Decode(&all); err != nil {
		c.log.Error("the diagnostics of a compile cannot be read", "error", err)
		return nil
	}
	masked, err := json.Marshal(maskTexts(all, c.secrets))
	if err != nil {
		c.log.Error("the diagnostics of a compile cannot be written", "error", err)
		return nil
	}
	return masked
}

// maskTexts masks secrets in the texts of a JSON value, and leaves its form as it is, whatever the secrets look like.
func maskTexts(value any, secrets *secret.Redactor) any {
	switch v := value.(type) {
	case string:
		return secrets.Text(v)
	case []any:
		for i := range v {
			v[i] = maskTexts(v[i], secrets)
		}
	case map[string]any:
		for name := range v {
			v[name] = maskTexts(v[name], secrets)
		}
	}
	return value
}

// failure returns the notice of a failed compile. People need it because the commit
// that they pushed is not deployed. A compile that exports nothing concerns only its
// caller, and has no notice.
func (c *compilation) failure(err error, success bool) *intent.Notice {
	if success || !c.compile.Export || c.preview {
		return nil
	}
	if c.sameFailure && (c.compile.Moved() || c.compile.Trigger.Type == intent.TriggerSource) {
		return nil // nobody asked, and nothing is new
	}
	id := c.compile.ID
	n := &intent.Notice{
		Severity: intent.SeverityError,
		Title:    "Compilation failed",
		URI:      "/api/v2/compilereport/" + id.String(),
		Compile:  &id,
	}
	if c.fetching {
		n.Title = "Pulling updates during compile failed"
	}
	if c.refused {
		n.Title = "A commit was refused"
	}
	if rev := c.compile.Revision; rev != nil && !c.fetching {
		n.Message = fmt.Sprintf("%s %q by %s: ", rev.Short(), rev.Subject, rev.Author)
	}
	n.Message += err.Error()
	return n
}

// recovery is the notice that the source can be read again; nil when it could be before.
func (c *compilation) recovery() *intent.Notice {
	if c.unreadableSince == nil || c.preview {
		return nil
	}
	id := c.compile.ID
	return &intent.Notice{
		Severity: intent.SeveritySuccess,
		Title:    "The repository can be read again",
		Message:  "It could not be read since " + c.unreadableSince.Format("2006-01-02 15:04 UTC"),
		URI:      "/api/v2/compilereport/" + id.String(),
		Compile:  &id,
	}
}

func (k *keeper) publishCompile(compile intent.CompileID) {
	k.publish(k.env, bus.Compile, compile.String())
}

// stage runs do as one stage and records it. An error of do becomes the last lines of
// the stage's error output.
func (c *compilation) stage(
	ctx context.Context,
	name string,
	do func(out build.Output) (command string, err error),
) error {
	s := intent.Stage{ID: uuid.New(), Compile: c.compile.ID, Name: name, Started: c.cfg.Now()}
	if !c.persist(ctx, "record a stage", func() error { return c.cfg.Store.StartStage(ctx, s) }) {
		return fmt.Errorf("%s could not be recorded", name)
	}
	c.open = &s
	c.publishCompile(c.compile.ID)
	if c.secrets == nil {
		c.secrets = c.cfg.Sources.Redactor(ctx, c.e)
	}
	out := func(stdout, stderr string) {
		stdout, stderr = c.secrets.Text(stdout), c.secrets.Text(stderr)
		if err := c.cfg.Store.AppendStage(ctx, s.ID, stdout, stderr); err != nil && ctx.Err() == nil {
			c.log.Warn("output of a stage was lost", "stage", name, "error", err)
		}
		c.publishCompile(c.compile.ID)
	}
	command, err := do(out)
	err = c.secrets.Error(err)
	code := 0
	if err != nil && !errors.Is(err, errUpToDate) {
		code = 1
		out("", err.Error()+"\n")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	at := c.cfg.Now()
	if !c.persist(ctx, "record the end of a stage", func() error {
		return c.cfg.Store.FinishStage(ctx, s.ID, c.secrets.Text(c.Folders.shown(c.env, command)), code, at)
	}) {
		return fmt.Errorf("the end of %s could not be recorded", name)
	}
	c.open = nil
	c.publishCompile(c.compile.ID)
	return err
}
