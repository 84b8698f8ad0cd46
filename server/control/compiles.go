package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// CompileRequest is what a client asks for.
type CompileRequest struct {
	Update    bool // fetch from Git first
	Reinstall bool // throw away checkout and virtual environment first
	Metadata  map[string]any
	Trigger   intent.Trigger
	Variables map[string]string
	// Partial compiles some resource sets only; RemovedSets go.
	Partial     bool
	RemovedSets []string
}

// RequestCompile records a request to compile and returns at once. When the
// environment may not compile on the server, nothing is recorded and the
// warning says so.
func (c *Control) RequestCompile(
	ctx context.Context,
	env intent.EnvironmentID,
	r CompileRequest,
) (id intent.CompileID, warning string, err error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return uuid.Nil, "", err
	}
	if !e.Bool("server_compile") {
		return uuid.Nil, "Skipping compile because server compile is not enabled for this environment.", nil
	}
	if e.Source.URL == "" {
		return uuid.Nil, "", fault.New("control.RequestCompile", fault.Invalid, "the environment "+e.Name+" is not bound to a repository").
			Hint("ordain environment set " + e.Name + " --repo URL --branch NAME")
	}
	if len(r.RemovedSets) > 0 && !r.Partial {
		return uuid.Nil, "", fault.New("control.RequestCompile", fault.Invalid, "resource sets are removed by a partial compile only").
			Hint("a full compile removes the sets that the model does not have")
	}
	compile := intent.Compile{
		ID: uuid.New(), Environment: env, Requested: c.cfg.Now(),
		Trigger: r.Trigger, Metadata: r.Metadata, Update: r.Update, Reinstall: r.Reinstall,
		Export: true, Variables: r.Variables, Partial: r.Partial, RemovedSets: r.RemovedSets,
	}
	if err := c.cfg.Store.EnqueueCompile(ctx, compile); err != nil {
		return uuid.Nil, "", err
	}
	c.publish(env, bus.Compile, compile.ID.String())
	c.wake(env)
	return compile.ID, "", nil
}

// IsCompiling tells whether a compile of the environment runs or is about to.
func (c *Control) IsCompiling(ctx context.Context, env intent.EnvironmentID) (bool, error) {
	open, err := c.cfg.Store.OpenCompiles(ctx, env)
	if err != nil || len(open) == 0 {
		return false, err
	}
	e, err := c.cfg.Store.Environment(ctx, env)
	return err == nil && !e.Halted, err
}

// CompileQueue lists the requests that are not completed, oldest first.
func (c *Control) CompileQueue(ctx context.Context, env intent.EnvironmentID) ([]intent.Compile, error) {
	return c.cfg.Store.OpenCompiles(ctx, env)
}

// Compiles lists compile reports.
func (c *Control) Compiles(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Compile], error) {
	return c.cfg.Store.Compiles(ctx, env, q)
}

// Compile gives one report with its stages.
func (c *Control) Compile(ctx context.Context, id intent.CompileID) (intent.Compile, []intent.Stage, error) {
	return c.cfg.Store.Compile(ctx, id)
}
