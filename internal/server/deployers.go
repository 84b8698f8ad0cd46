package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/deployer"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/pyenv"
	"ordain.dev/ordain/internal/store"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/scheduler"
)

// deployers makes the deployer of an environment together with its executors
// and its logs.
type deployers struct {
	server *Server
	store  *store.Store
	maker  *pyenv.Maker
	bus    *bus.Bus
}

// cleanInterval is how often unused processes and virtual environments are looked for.
const cleanInterval = 10 * time.Second

// deployment is a deployer with what belongs to it.
type deployment struct {
	*deployer.Deployer
	executors *executor.Manager
	log       *slog.Logger
	files     []*os.File
	stopClean context.CancelFunc
	cleaned   chan struct{}
}

// New implements control.Deployers.
func (d *deployers) New(e intent.Environment) (_ control.Deployer, err error) {
	o := d.server.cfg.Options
	made := &deployment{cleaned: make(chan struct{})}
	defer func() {
		if err != nil {
			made.closeFiles()
		}
	}()
	agentLog, err := made.open(d.server.layout.AgentLog(e.ID))
	if err != nil {
		return nil, err
	}
	actions, err := made.open(d.server.layout.ResourceActionsLog(e.ID))
	if err != nil {
		return nil, err
	}
	made.log = newLog(agentLog, o.LogLevel)
	python, err := d.maker.Interpreter(context.Background(), "")
	if err != nil {
		return nil, err
	}
	made.executors, err = executor.NewManager(executor.Config{
		Layout: d.server.layout, Environment: e.ID, Maker: d.maker, Files: d.store, Logger: made.log,
		HandlerTimeout: o.HandlerTimeout,
		IdleRetention:  o.ExecutorRetention, VenvRetention: o.ExecutorVenvRetention,
	})
	if err != nil {
		return nil, err
	}
	made.Deployer, err = deployer.New(deployer.Config{
		Environment: e, Store: d.store, Executor: made.executors, Logger: made.log, ActionLog: actions,
		OnChange: func(moved deployer.Event) { d.tell(e.ID, moved) },
		Limits:   scheduler.Limits{Concurrency: o.Concurrency}, PythonVersion: python.Minor, Libc: python.Libc,
		Timeout: o.HandlerTimeout,
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// tell passes on what moved to live pages.
func (d *deployers) tell(env intent.EnvironmentID, moved deployer.Event) {
	event := bus.Event{Environment: env, Topic: bus.Resource}
	switch {
	case moved.DryRun != intent.ActionID{}:
		event.Topic, event.ID = bus.DryRun, moved.DryRun.String()
	case !moved.Resource.IsZero():
		event.ID = moved.Resource.String()
	}
	d.bus.Publish(event)
}

func (d *deployment) open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, layout.Explain("server.deployer", path, err)
	}
	d.files = append(d.files, f)
	return f, nil
}

func (d *deployment) closeFiles() {
	for _, f := range d.files {
		_ = f.Close()
	}
}

// Start starts the deployer and the clean-up of what it no longer uses.
func (d *deployment) Start(ctx context.Context) error {
	if err := d.Deployer.Start(ctx); err != nil {
		d.closeFiles()
		return err
	}
	ctx, d.stopClean = context.WithCancel(ctx)
	go func() {
		defer close(d.cleaned)
		ticker := time.NewTicker(cleanInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := d.executors.Clean(ctx); err != nil && ctx.Err() == nil {
					d.log.Error("the clean-up of executors failed", "error", err)
				}
			}
		}
	}()
	return nil
}

// Stop ends deployer, executors and logs, in this order.
func (d *deployment) Stop() {
	d.Deployer.Stop()
	d.stopClean()
	<-d.cleaned
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.executors.Close(ctx); err != nil {
		d.log.Error("executors did not stop", "error", err)
	}
	d.closeFiles()
}
