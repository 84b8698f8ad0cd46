package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/scheduler"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/agent/remote"
	"ordain.dev/ordain/server/callback"
	"ordain.dev/ordain/server/deployer"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/logfile"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// deployments makes the deployer of an environment together with its executors
// and its logs.
type deployments struct {
	server  *Server
	store   *store.Store
	maker   *venv.Maker
	bus     *bus.Bus
	sources *source.Opener
	record  *record.Record // of commands to remote agents
	// isolation confines executors; nil confines nothing.
	isolation *isolation.Config

	mu         sync.Mutex
	allowances map[intent.ProjectID]*executor.Allowance // of the environments of each project
}

// allowance returns the allowance of a project, with the bound of its quota.
func (d *deployments) allowance(ctx context.Context, project intent.ProjectID) (*executor.Allowance, error) {
	quota, err := d.store.Quota(ctx, project)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.allowances == nil {
		d.allowances = map[intent.ProjectID]*executor.Allowance{}
	}
	a := d.allowances[project]
	if a == nil {
		a = executor.NewAllowance()
		d.allowances[project] = a
	}
	most, limited := quota[intent.QuotaExecutors]
	if !limited {
		most = -1
	}
	a.Limit(most)
	return a, nil
}

// cleanInterval is how often unused processes and virtual environments are removed.
const cleanInterval = 10 * time.Second

// deployment is a deployer with its executors and log files.
type deployment struct {
	*deployer.Deployer
	executors *executor.Manager
	remote    *remote.Executor // for the agents that are remote
	router    *remote.Router   // between the two
	owner     *deployments
	log       *slog.Logger
	variables *variables
	files     []*logfile.File
	running   service.Runner
	closing   sync.Once
	// retention is how long lines of the resource action log are kept, in nanoseconds.
	retention atomic.Int64
	// separation says for people how the environment is separated from others.
	separation string
}

// new makes the deployer of an environment.
func (d *deployments) new(e intent.Environment) (_ keeper.Deployer, err error) {
	o := d.server.cfg.Options
	made := &deployment{owner: d, separation: d.server.separation}
	made.variables = &variables{sources: d.sources, env: e.ID, passed: o.ExecutorEnvironment}
	defer func() {
		if err != nil {
			made.closeFiles()
		}
	}()
	agentLog, err := made.open(d.server.layout.AgentLog(e.ID), d.server.logPolicy)
	if err != nil {
		return nil, err
	}
	made.retention.Store(retentionOf(e))
	actions, err := made.open(d.server.layout.ResourceActionsLog(e.ID), func() logfile.Policy {
		policy := d.server.logPolicy()
		policy.Retention = time.Duration(made.retention.Load())
		return policy
	})
	if err != nil {
		return nil, err
	}
	made.log = newLog(maskedLog{d.server, agentLog}, o.LogLevel)
	python, err := d.maker.Interpreter(context.Background(), "")
	if err != nil {
		return nil, err
	}
	desk, err := callback.New(e.ID, func() http.Handler { return d.server.rest })
	if err != nil {
		return nil, err
	}
	allowance, err := d.allowance(context.Background(), e.ProjectID)
	if err != nil {
		return nil, err
	}
	var cell *isolation.Cell
	if d.isolation != nil {
		cell = d.isolation.Cell(e.Number)
	}
	made.executors, err = executor.NewManager(executor.Config{
		Cell: cell, MayGrow: func(ctx context.Context) error { return d.mayGrow(ctx, e.ID) },
		Layout: d.server.layout, Environment: e.ID, Maker: d.maker, Files: files{d.store, e.ID}, Desk: desk,
		Logger: made.log, Variables: made.variables.all, HandlerTimeout: o.HandlerTimeout,
		IdleRetention: o.ExecutorRetention, VenvRetention: o.ExecutorVenvRetention,
		AgentCap: o.ExecutorCap, Cap: o.ExecutorProcesses, DiskMax: o.ExecutorDisk, MemoryMax: o.ExecutorMemory,
		FileMax: o.ExecutorFileSize, ChildrenMax: o.ExecutorChildren, KeepDaemons: o.ExecutorKeepDaemons,
	})
	if err != nil {
		return nil, err
	}
	made.executors.SetAllowance(allowance)
	made.remote, err = remote.New(remote.Config{
		Environment: e.ID, Record: d.record, Bus: d.bus, Files: files{d.store, e.ID}, Maker: d.maker,
		Layout: d.server.layout, Logger: made.log, Timeout: o.HandlerTimeout, Recorded: d.store.RecordedActions,
		WheelRetention: o.ExecutorVenvRetention,
	})
	if err != nil {
		return nil, err
	}
	made.router = &remote.Router{
		Here: made.executors, Remote: made.remote, Environment: e, Unmanaged: d.store.UnmanagedAgents, Bus: d.bus,
	}
	made.Deployer, err = deployer.New(deployer.Config{
		Environment: e, Store: d.store, Executor: made.router, Logger: made.log,
		ActionLog: maskedLog{d.server, actions},
		OnChange:  func(moved deployer.Event) { d.publish(e.ID, moved) },
		OnNotice: func(n intent.Notice) {
			made.log.Warn(n.Title, "severity", n.Severity, "message", n.Message, "uri", n.URI)
			d.bus.Publish(bus.Event{Environment: e.ID, Topic: bus.Notification})
		},
		OnFacts: func() { d.server.keepers.FactsChanged(e.ID) }, FactRenew: o.FactRenew,
		Limits:        scheduler.Limits{Concurrency: o.Concurrency, DryRuns: o.DryRuns, Facts: o.FactRefreshes},
		PythonVersion: python.Minor, Libc: python.Libc, Timeout: o.HandlerTimeout,
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// mayGrow fails when the project of an environment has used up its disk.
func (d *deployments) mayGrow(ctx context.Context, env intent.EnvironmentID) error {
	e, err := d.store.Environment(ctx, env)
	if err != nil {
		return err
	}
	return d.server.keepers.CheckDisk(ctx, e)
}

// publish tells live pages what moved.
func (d *deployments) publish(env intent.EnvironmentID, moved deployer.Event) {
	event := bus.Event{Environment: env, Topic: bus.Resource}
	switch {
	case moved.DryRun != intent.ActionID{}:
		event.Topic, event.ID = bus.DryRun, moved.DryRun.String()
	case !moved.Resource.IsZero():
		event.ID = moved.Resource.String()
	}
	d.bus.Publish(event)
	if moved.Ended { // the end of a dry run makes a notification
		d.bus.Publish(bus.Event{Environment: env, Topic: bus.Notification})
	}
}

// retentionOf returns how long lines of the resource action log are kept, in nanoseconds.
func retentionOf(e intent.Environment) int64 {
	return int64(e.Int("resource_action_logs_retention")) * int64(24*time.Hour)
}

// Changed passes changed settings, secrets, the quota and the halted mark to the deployer, the executors and the logs.
func (d *deployment) Changed(e intent.Environment) {
	if allowance, err := d.owner.allowance(context.Background(), e.ProjectID); err == nil {
		d.executors.SetAllowance(allowance)
	} else {
		d.log.Warn("the quota of executors cannot be read; the one before stays", "error", err)
	}
	d.retention.Store(retentionOf(e))
	if d.variables.changed() {
		d.executors.Renew()
	}
	d.Deployer.Changed(e)
}

// RemoveVenvs removes the virtual environments of executors. It returns at once.
func (d *deployment) RemoveVenvs() {
	go func() {
		if err := d.executors.RemoveVenvs(context.Background()); err != nil {
			d.log.Warn("not all virtual environments of executors could be removed", "error", err)
		}
	}()
}

// Executors describes the processes that run the environment's handlers.
func (d *deployment) Executors() intent.Executors {
	report := d.executors.Report()
	report.Separation = d.separation
	return report
}

func (d *deployment) open(path string, policy func() logfile.Policy) (*logfile.File, error) {
	f, err := logfile.Open(path, policy)
	if err != nil {
		return nil, fault.Disk("server.deployer", path, err)
	}
	d.files = append(d.files, f)
	return f, nil
}

func (d *deployment) closeFiles() {
	for _, f := range d.files {
		_ = f.Close()
	}
}

// Start starts the deployer and the regular clean-up.
func (d *deployment) Start(ctx context.Context) error {
	return d.running.Start(ctx, func(ctx context.Context) (func(context.Context), error) {
		d.remote.Start()
		d.router.Start()
		if err := d.Deployer.Start(ctx); err != nil {
			d.router.Stop()
			d.remote.Stop()
			return nil, err
		}
		return d.run, nil
	})
}

// Stop stops the deployer and the executors and closes the logs, in this order. The
// deployment cannot be started again.
func (d *deployment) Stop() {
	d.running.Stop()
	d.closing.Do(d.closeFiles)
}

// run cleans up regularly until ctx ends, and then stops the deployer and its executors.
func (d *deployment) run(ctx context.Context) {
	ticker := time.NewTicker(cleanInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			d.clean(ctx)
		}
	}
	d.Deployer.Stop()
	d.router.Stop()
	d.remote.Stop()
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.executors.Close(grace); err != nil {
		d.log.Error("executors did not stop", "error", err)
	}
}

func (d *deployment) clean(ctx context.Context) {
	if err := d.executors.Clean(ctx); err != nil && ctx.Err() == nil {
		d.log.Error("the clean-up of executors failed", "error", err)
	}
	for _, f := range d.files {
		if err := f.Clean(); err != nil {
			d.log.Error("old logs cannot be removed", "error", err)
		}
	}
}
