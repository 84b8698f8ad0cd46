package deployer

import (
	"context"
	"io"
	"log/slog"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Store is what a deployer needs of the place of record. Each method is one
// transaction, durable when it returns nil. A fault of kind Unavailable means
// that the call may be repeated, also when it had taken effect: recording the
// same action twice changes nothing. FinishActions records whole what never
// began, and leaves alone what follows from an intent that is newer than the
// one in the state.
type Store interface {
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error) // nil: none yet
	VersionResources(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.Resource, error)
	VersionCode(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.ResourceCode, intent.PipConfig, error)
	States(ctx context.Context, env intent.EnvironmentID) ([]intent.ResourceState, error)
	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)
	StartActions(ctx context.Context, env intent.EnvironmentID, actions []intent.Action) error
	FinishActions(ctx context.Context, env intent.EnvironmentID, done []intent.FinishedAction) error
	ResetDeploying(ctx context.Context, env intent.EnvironmentID, at time.Time) (int, error)
	AddDryRunDiffs(ctx context.Context, env intent.EnvironmentID, id intent.ActionID, diffs []intent.ResourceDiff) error
}

// Executor runs handlers. Run gives exactly one result per task and comes back
// soon after ctx ends; it is called from many goroutines.
type Executor interface {
	Run(ctx context.Context, t executor.Task) executor.Result
}

// Event tells live pages that something moved; they read the store again.
type Event struct {
	// Resource that moved; zero for several at once.
	Resource intent.ResourceID
	// DryRun that got results; zero when resources moved.
	DryRun intent.ActionID
}

// Config is what a Deployer is made of.
type Config struct {
	Environment intent.Environment // with its settings: timers, halted
	Store       Store
	Executor    Executor
	Logger      *slog.Logger
	// ActionLog gets one readable line per message of every deployment
	// (resource-actions-<env>.log); nil for none. Writes are not concurrent.
	ActionLog io.Writer
	// OnChange is told what moved, after it is durable; it must not block. May be nil.
	OnChange func(Event)
	Limits   scheduler.Limits
	// PythonVersion (major.minor) and Libc are those of the executors' interpreter.
	PythonVersion string
	Libc          string
	// Constraints are pip constraints for every blueprint.
	Constraints []string
	// Timeout of one handler; 0 leaves it to the executor.
	Timeout time.Duration
	// DryRuns is how many resources are dry-run at once; 0 means 4.
	DryRuns int
	// Grace is how long Stop waits for running handlers to give up and for the record; 0 means 10 s.
	Grace time.Duration
}

func (c *Config) check() error {
	const op = "deployer.New"
	switch {
	case c.Store == nil, c.Executor == nil, c.Logger == nil:
		return fault.New(op, fault.Internal, "deployer.Config needs Store, Executor and Logger")
	case c.Environment.ID == intent.EnvironmentID{}:
		return fault.New(op, fault.Internal, "deployer.Config.Environment has no id")
	case c.DryRuns < 0, c.Grace < 0, c.Timeout < 0:
		return fault.New(op, fault.Invalid, "deployer.Config has a negative limit")
	}
	if c.DryRuns == 0 {
		c.DryRuns = 4
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.OnChange == nil {
		c.OnChange = func(Event) {}
	}
	_, err := timersOf(c.Environment)
	return err
}

// timersOf reads the schedules from an environment's settings.
func timersOf(e intent.Environment) (scheduler.Timers, error) {
	const op = "deployer.timersOf"
	deploy, err := intent.ParseInterval(e.Text("autostart_agent_deploy_interval"))
	if err != nil {
		return scheduler.Timers{}, fault.Wrap(op, fault.Invalid, err).Say("setting autostart_agent_deploy_interval")
	}
	repair, err := intent.ParseInterval(e.Text("autostart_agent_repair_interval"))
	if err != nil {
		return scheduler.Timers{}, fault.Wrap(op, fault.Invalid, err).Say("setting autostart_agent_repair_interval")
	}
	return scheduler.Timers{Deploy: deploy, Repair: repair}, nil
}
