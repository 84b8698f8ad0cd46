// Package metrics records what environments were like over time: how many resources were in which state, how long
// compiles and deployments took, how many compiles waited.
//
//	every minute ─▶ a sample of all environments, one statement ─▶ table metric ─▶ api, console
//	every hour   ─▶ minutes of a day ago become one sample an hour; what is too old is deleted
//
// Every process that carries out work has a recorder. The record says up to when samples were taken, so that the first
// one whose minute is over takes the next sample, and the others do nothing: each compile and deployment is in one
// sample. When no process runs, there are no samples; a chart has a gap then.
package metrics

import (
	"context"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
)

const (
	interval = time.Minute
	// least is less than the interval, so that a timer that is early does not lose its turn for a minute.
	least = interval - 5*time.Second
	// retention is the setting that says for how many hours samples are kept; 0: forever.
	retention = "environment_metrics_retention"
)

// Store is the part of the record that has the samples; *store.Store implements it.
type Store interface {
	RecordMetrics(ctx context.Context, now time.Time, least time.Duration) (taken bool, err error)
	RollMetrics(ctx context.Context, before time.Time) error
	DeleteMetricsBefore(ctx context.Context, before map[intent.EnvironmentID]time.Time) error
	Environments(ctx context.Context) ([]intent.Environment, error)
}

// Config configures a recorder. Store and Logger are required.
type Config struct {
	Store  Store
	Logger *slog.Logger
	Now    func() time.Time // time.Now when nil
}

// Recorder takes samples while it runs.
type Recorder struct {
	cfg     Config
	running service.Runner
}

// New checks the configuration. Nothing runs before Start.
func New(cfg Config) (*Recorder, error) {
	if cfg.Store == nil || cfg.Logger == nil {
		return nil, fault.New("metrics.New", fault.Internal, "metrics.Config needs Store and Logger")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Recorder{cfg: cfg}, nil
}

// Start takes samples until Stop.
func (r *Recorder) Start(ctx context.Context) error {
	return r.running.Start(ctx, func(context.Context) (func(context.Context), error) { return r.run, nil })
}

// Stop ends taking samples.
func (r *Recorder) Stop() { r.running.Stop() }

func (r *Recorder) run(ctx context.Context) {
	minutes, hours := time.NewTicker(interval), time.NewTicker(time.Hour)
	defer minutes.Stop()
	defer hours.Stop()
	failed := false
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-minutes.C:
			_, err = r.cfg.Store.RecordMetrics(ctx, r.cfg.Now(), least)
		case <-hours.C:
			err = r.Tidy(ctx)
		}
		if err != nil && !failed && ctx.Err() == nil {
			r.cfg.Logger.Warn("metrics cannot be recorded now; charts will have a gap", "error", err)
		}
		failed = err != nil
	}
}

// Tidy puts old minutes together, and deletes what is past the retention of its environment, but for halted ones.
func (r *Recorder) Tidy(ctx context.Context) error {
	now := r.cfg.Now()
	if err := r.cfg.Store.RollMetrics(ctx, now.Add(-intent.MetricMinutes)); err != nil {
		return err
	}
	envs, err := r.cfg.Store.Environments(ctx)
	if err != nil {
		return err
	}
	before := map[intent.EnvironmentID]time.Time{}
	for _, e := range envs {
		if hours := e.Int(retention); hours > 0 && !e.Halted {
			before[e.ID] = now.Add(-time.Duration(hours) * time.Hour)
		}
	}
	return r.cfg.Store.DeleteMetricsBefore(ctx, before)
}
