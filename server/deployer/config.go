package deployer

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Store is what a deployer needs of the place of record. Each method is one transaction, durable when it returns nil.
// A fault of kind Unavailable means that the call may be repeated, even if it took effect: recording the same action
// twice changes nothing. FinishActions also records actions that were never started, and leaves alone what follows
// from an intent that is newer than the one in the state.
type Store interface {
	ActiveVersion(ctx context.Context, env intent.EnvironmentID) (*intent.Version, error) // nil: none yet
	VersionResources(ctx context.Context, env intent.EnvironmentID, number int) ([]intent.Resource, error)
	// VersionChanges returns, in no particular order, the resources of a version that version from does not have in
	// the same way, those of purged that the version has, and how many resources it has in all.
	VersionChanges(
		ctx context.Context,
		env intent.EnvironmentID,
		from, number int,
		purged []intent.ResourceID,
	) ([]intent.Resource, int, error)
	// GoneResources lists the resources that one version has and the other does not have.
	GoneResources(ctx context.Context, env intent.EnvironmentID, from, to int) ([]intent.ResourceID, error)
	VersionCode(
		ctx context.Context,
		env intent.EnvironmentID,
		number int,
	) ([]intent.ResourceCode, intent.PipConfig, error)
	States(ctx context.Context, env intent.EnvironmentID) ([]intent.ResourceState, error)
	Agents(ctx context.Context, env intent.EnvironmentID, q intent.ListQuery) (intent.Page[intent.Agent], error)
	StartActions(ctx context.Context, env intent.EnvironmentID, actions []intent.Action) error
	// SetAhead records the whole list of tasks that may run without another record.
	SetAhead(ctx context.Context, env intent.EnvironmentID, tasks []intent.Ahead) error
	FinishActions(ctx context.Context, env intent.EnvironmentID, done []intent.FinishedAction) error
	ResetDeploying(ctx context.Context, env intent.EnvironmentID, at time.Time, forget bool) (int, error)
	// Unpark ends the parking of resources, and returns which were parked.
	Unpark(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) ([]intent.ResourceID, error)
	DryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
	) (intent.DryRun, []intent.ResourceDiff, error)
	OpenDryRuns(ctx context.Context, env intent.EnvironmentID) ([]intent.DryRun, error)
	// DryRunChosen returns the resources that a filter chose for a dry run; nil: all.
	DryRunChosen(ctx context.Context, env intent.EnvironmentID, id intent.ActionID) ([]intent.ResourceID, error)
	// AddDryRunDiffs stores results, each resource's once; Conflict when the dry run has ended.
	AddDryRunDiffs(ctx context.Context, env intent.EnvironmentID, id intent.ActionID, diffs []intent.ResourceDiff) error
	EndDryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
		ending intent.DryRunEnding,
		reason string,
		behind map[intent.ResourceID]intent.ResourceID,
		at time.Time,
	) error
	// FactRequests lists the resources that a person wants to be asked for their facts, until FactsAnswered.
	FactRequests(ctx context.Context, env intent.EnvironmentID) ([]intent.ResourceID, error)
	FactsAnswered(ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID) error
	FactsDue(ctx context.Context, env intent.EnvironmentID) ([]intent.FactsDue, error)
	// FinishRequests deletes requests that were carried out.
	FinishRequests(ctx context.Context, env intent.EnvironmentID, ids []int64) error
}

// Executor runs handlers. Run returns exactly one result per task, soon after ctx ends at the latest; it is called
// from many goroutines.
type Executor interface {
	Run(ctx context.Context, t executor.Task) executor.Result
	// Begin is Run for many tasks, in this order, without waiting: each result goes to done, which does not wait
	// either. Tasks that are Behind begin when the one before on their agent has ended, unless they end as withdrawn
	// before that.
	Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result))
	// Recall asks for such tasks back, without waiting: those that have not begun soon end as withdrawn.
	Recall(tasks []intent.ActionID)
}

// Event tells live pages that something changed; they read the store again.
type Event struct {
	// Resource is what changed; zero for several at once.
	Resource intent.ResourceID
	// DryRun is the dry run that got results; zero when resources changed. Ended is set when it is over.
	DryRun intent.ActionID
	Ended  bool
}

// Config is what a Deployer is made of.
type Config struct {
	Environment intent.Environment // with its settings: timers, halted
	Store       Store
	Executor    Executor
	Logger      *slog.Logger
	// ActionLog gets one readable line per message of every deployment (resource-actions-<env>.log); nil for none.
	// Writes are not concurrent.
	ActionLog io.Writer
	// OnChange is called with what changed, after it is durable; it must not block. May be nil.
	OnChange func(Event)
	// OnNotice is called with notices for people, after they are recorded; it must not block. May be nil.
	OnNotice func(intent.Notice)
	Limits   scheduler.Limits
	// PythonVersion (major.minor) and Libc are those of the executors' interpreter.
	PythonVersion string
	Libc          string
	// Constraints are pip constraints for every blueprint.
	Constraints []string
	// Timeout bounds one run of a handler; 0 leaves it to the executor.
	Timeout time.Duration
	// OnFacts is called after facts were recorded; it must not block. May be nil.
	OnFacts func()
	// FactRenew is the age at which a fact is asked for again; 0 means 20 minutes.
	FactRenew time.Duration
	// Grace is how long Stop waits for running handlers to give up and for the database; 0 means 10 s.
	Grace time.Duration
}

func (c *Config) check() error {
	const op = "deployer.New"
	switch {
	case c.Store == nil, c.Executor == nil, c.Logger == nil:
		return fault.New(op, fault.Internal, "deployer.Config needs Store, Executor and Logger")
	case c.Environment.ID == intent.EnvironmentID{}:
		return fault.New(op, fault.Internal, "deployer.Config.Environment has no id")
	case c.FactRenew < 0, c.Grace < 0, c.Timeout < 0:
		return fault.New(op, fault.Invalid, "deployer.Config has a negative limit")
	}
	if c.FactRenew == 0 {
		c.FactRenew = 20 * time.Minute
	}
	if c.OnFacts == nil {
		c.OnFacts = func() {}
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.OnChange == nil {
		c.OnChange = func(Event) {}
	}
	if c.OnNotice == nil {
		c.OnNotice = func(intent.Notice) {}
	}
	if _, err := rulesOf(c.Environment); err != nil {
		return err
	}
	_, err := timersOf(c.Environment)
	return err
}

// policyOf reads from an environment's settings when the scheduler stops trying.
func policyOf(e intent.Environment) scheduler.Policy {
	return scheduler.Policy{
		Protected:   intent.GuardOf(e).Protected,
		MaxAttempts: e.Int("max_attempts"), ReportDrift: e.Text("drift_policy") == "report",
		HealLimit: e.Int("heal_limit"), HealWindow: time.Duration(e.Int("heal_window")) * time.Second,
		BreakerFailures: e.Int("breaker_failures"), BreakerPause: time.Duration(e.Int("breaker_pause")) * time.Second,
	}
}

// rulesOf reads from an environment's settings where, when and how much may run.
func rulesOf(e intent.Environment) (r scheduler.Rules, err error) {
	const op = "deployer.rulesOf"
	if r.Windows, err = e.Windows(); err != nil {
		return r, fault.Wrap(op, fault.Invalid, err).Say("the setting maintenance_windows is invalid")
	}
	if r.Agents, err = e.AgentLimits(); err != nil {
		return r, fault.Wrap(op, fault.Invalid, err).Say("the setting agent_limits is invalid")
	}
	r.Overrides, r.Concurrency = e.Overrides, e.Int("deploy_concurrency")
	return r, nil
}

// rulesText returns what rulesOf reads as a text, to see whether it changed.
func rulesText(e intent.Environment) (string, error) {
	text, err := json.Marshal(
		[]any{e.Dict("maintenance_windows"), e.Dict("agent_limits"), e.Int("deploy_concurrency"), e.Overrides},
	)
	return string(text), err
}

// timersOf reads the schedules from an environment's settings.
func timersOf(e intent.Environment) (scheduler.Timers, error) {
	const op = "deployer.timersOf"
	deploy, err := intent.ParseInterval(e.Text("autostart_agent_deploy_interval"))
	if err != nil {
		return scheduler.Timers{}, fault.Wrap(op, fault.Invalid, err).
			Say("the setting autostart_agent_deploy_interval is invalid")
	}
	repair, err := intent.ParseInterval(e.Text("autostart_agent_repair_interval"))
	if err != nil {
		return scheduler.Timers{}, fault.Wrap(op, fault.Invalid, err).
			Say("the setting autostart_agent_repair_interval is invalid")
	}
	return scheduler.Timers{Deploy: deploy, Repair: repair}, nil
}
