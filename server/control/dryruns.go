package control

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
)

// DryRunRequest names what to dry-run: a version or a commit.
type DryRunRequest struct {
	Version int
	// Commit is a hash, a branch or a tag of the environment's repository. It is compiled
	// in parallel to the environment's own compiles, and its version is never released.
	Commit string
	Filter intent.DryRunFilter
}

// StartDryRun begins a dry run. Its results are recorded one by one.
func (c *Control) StartDryRun(ctx context.Context, env intent.EnvironmentID, q DryRunRequest) (intent.ActionID, error) {
	const op = "control.StartDryRun"
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return uuid.Nil, err
	}
	q.Commit = strings.TrimSpace(q.Commit)
	switch {
	case e.Halted:
		return uuid.Nil, fault.New(op, fault.Conflict, "the environment "+e.Name+" is halted").Hint("resume it first")
	case (q.Version > 0) == (q.Commit != ""):
		return uuid.Nil, fault.New(op, fault.Invalid, "a dry run needs either a version or a commit")
	}
	run := intent.DryRun{
		ID:          uuid.New(),
		Environment: env,
		Version:     q.Version,
		Date:        c.cfg.Now(),
		Commit:      q.Commit,
		Filter:      q.Filter,
	}
	active, err := c.cfg.Store.ActiveVersion(ctx, env)
	if err != nil {
		return uuid.Nil, err
	}
	if active != nil {
		run.Base = active.Number
	}
	if q.Commit != "" {
		return c.startPreview(ctx, e, run)
	}
	if run.Total, err = keeper.CountMatches(ctx, c.cfg.Store, env, q.Version, q.Filter); err != nil {
		return uuid.Nil, err
	}
	run.Todo = run.Total
	return run.ID, c.createDryRun(ctx, run)
}

// startPreview records a dry run of a commit and starts its compile.
func (c *Control) startPreview(ctx context.Context, e intent.Environment, run intent.DryRun) (intent.ActionID, error) {
	const op = "control.StartDryRun"
	switch {
	case !e.Bool("server_compile"):
		return uuid.Nil, fault.New(op, fault.Conflict, "the environment "+e.Name+" is not compiled on the server").
			Hint("set server_compile, or store a version and dry-run it")
	case e.Source.URL == "":
		return uuid.Nil, fault.New(op, fault.Invalid, "the environment "+e.Name+" is not bound to a repository")
	case len(run.Commit) > 250 || strings.ContainsFunc(run.Commit, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return uuid.Nil, fault.New(op, fault.Invalid, "a commit is a hash, or the name of a branch or tag")
	}
	compile := uuid.New()
	run.Compile = &compile
	return run.ID, c.createDryRun(ctx, run)
}

func (c *Control) createDryRun(ctx context.Context, run intent.DryRun) error {
	env := run.Environment
	if err := c.cfg.Store.Asking(env, intent.RequestDryRun, run.ID).CreateDryRun(ctx, run); err != nil {
		return err
	}
	c.publish(env, bus.DryRun, run.ID.String())
	c.cfg.Keepers.Attend(ctx, env)
	return nil
}

// CancelDryRun ends a dry run. A handler that is running for it finishes, but its
// result is not recorded. CancelDryRun returns Conflict if the dry run has ended.
func (c *Control) CancelDryRun(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) error {
	return c.cfg.Keepers.CancelDryRun(ctx, env, id)
}

// DryRunDiagnostics returns what the compiler said of the commit of a dry run that failed.
func (c *Control) DryRunDiagnostics(ctx context.Context, run intent.DryRun) ([]diag.Diagnostic, error) {
	if run.Ending != intent.DryRunFailed || run.Compile == nil {
		return nil, nil
	}
	compile, _, err := c.cfg.Store.Compile(ctx, *run.Compile)
	if fault.Is(err, fault.NotFound) || err == nil && len(compile.Diagnostics) == 0 {
		return nil, nil // its report was deleted, or the model was not reached
	}
	if err != nil {
		return nil, err
	}
	var out []diag.Diagnostic
	if err := json.Unmarshal(compile.Diagnostics, &out); err != nil {
		return nil, fault.Wrap("control.DryRunDiagnostics", fault.Internal, err)
	}
	return out, nil
}

// NoLongerManaged lists the resources that were in the active version when a dry
// run was requested and are missing from the version of the dry run. Releasing that
// version would leave them as they are.
func (c *Control) NoLongerManaged(ctx context.Context, run intent.DryRun) ([]intent.ResourceID, error) {
	return forge.NoLongerManaged(ctx, c.cfg.Store, run)
}
