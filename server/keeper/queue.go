package keeper

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// CompileRequest holds the options of a requested compile.
type CompileRequest struct {
	Update    bool // fetch from Git first
	Reinstall bool // throw away checkout and virtual environment first
	Metadata  map[string]any
	Trigger   intent.Trigger
	Variables map[string]string
	// Partial compiles only some resource sets; RemovedSets are removed.
	Partial     bool
	RemovedSets []string
}

// Enqueue records a request to compile and returns at once. If the environment is not
// compiled on the server, it records nothing and returns a warning.
func (r *Registry) Enqueue(
	ctx context.Context,
	e intent.Environment,
	q CompileRequest,
) (id intent.CompileID, warning string, err error) {
	const op = "keeper.RequestCompile"
	switch {
	case !e.Bool("server_compile"):
		return uuid.Nil, "Skipping compile because server compile is not enabled for this environment.", nil
	case e.Source.URL == "":
		return uuid.Nil, "", fault.New(op, fault.Invalid, "the environment "+e.Name+" is not bound to a repository").
			Hint("ordain environment set " + e.Name + " --repo URL --branch NAME")
	case len(q.RemovedSets) > 0 && !q.Partial:
		return uuid.Nil, "", fault.New(op, fault.Invalid, "only a partial compile can remove resource sets").
			Hint("a full compile removes the sets that the model no longer has")
	}
	compile := intent.Compile{
		ID: uuid.New(), Environment: e.ID, Requested: r.cfg.Now(),
		Trigger: q.Trigger, Metadata: q.Metadata, Update: q.Update, Reinstall: q.Reinstall,
		Export: true, Variables: q.Variables, Partial: q.Partial, RemovedSets: q.RemovedSets,
	}
	if err := r.cfg.Store.EnqueueCompile(ctx, compile); err != nil {
		return uuid.Nil, "", err
	}
	r.Enqueued(e.ID, compile.ID)
	return compile.ID, "", nil
}

// Enqueued notifies pages and the keeper of a recorded request to compile.
func (r *Registry) Enqueued(env intent.EnvironmentID, compile intent.CompileID) {
	r.publish(env, bus.Compile, compile.String())
	r.nudge(env)
}

// keepCompiles runs requested compiles until ctx ends or the environment is deleted.
func (k *keeper) keepCompiles(ctx context.Context) {
	var lastEnd time.Time
	for ctx.Err() == nil {
		gap := time.Duration(k.remembered().Float("recompile_backoff") * float64(time.Second))
		pause(ctx, gap-k.cfg.Now().Sub(lastEnd))
		worked, err := k.compileNext(ctx)
		switch {
		case fault.Is(err, fault.NotFound):
			return
		case err != nil:
			if ctx.Err() == nil {
				k.log.Error("cannot look for work", "error", err)
			}
			pause(ctx, ownRetry)
		case worked:
			lastEnd = k.cfg.Now()
		default:
			k.awaitRequest(ctx)
		}
	}
}

// compileNext runs the next compile, if one waits, once it is the environment's turn.
func (k *keeper) compileNext(ctx context.Context) (worked bool, err error) {
	if open, err := k.cfg.Store.OpenCompiles(ctx, k.env); err != nil || len(open) == 0 {
		return false, err
	}
	turn, err := k.takeTurn(ctx, k.compiles)
	if err != nil {
		return false, err
	}
	defer turn.release()
	// The compile takes only requests that were recorded before the environment was
	// read, so it has every setting that was changed before such a request. This is
	// the only read of the row for a whole compile.
	asked := k.cfg.Now()
	e, err := k.cfg.Store.Environment(ctx, k.env)
	if err != nil {
		return false, err
	}
	k.remember(e)
	if e.Halted || !e.Bool("server_compile") {
		return false, nil
	}
	compile, err := k.cfg.Store.StartCompile(ctx, k.env, asked)
	if err != nil || compile == nil {
		return false, err
	}
	k.compiling.Add(1)
	defer k.compiling.Add(-1)
	k.compile(ctx, e, *compile, turn)
	return true, nil
}

// awaitRequest waits until there may be a request. When the environment's schedule is
// due, it requests a compile itself.
func (k *keeper) awaitRequest(ctx context.Context) {
	e := k.remembered()
	var due <-chan time.Time
	if schedule, err := intent.ParseInterval(e.Text("auto_full_compile")); err == nil && schedule != nil {
		now := k.cfg.Now()
		timer := time.NewTimer(schedule.Next(now).Sub(now))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-k.compileWakes:
	case <-due:
		_, _, err := k.Enqueue(ctx, e, CompileRequest{
			Update: true, Trigger: intent.Trigger{Type: "schedule", Message: "auto_full_compile is due"},
		})
		if err != nil && ctx.Err() == nil {
			k.log.Error("cannot request the scheduled compile", "error", err)
		}
	}
}
