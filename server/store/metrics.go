package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// RecordMetrics takes a sample of all environments, with one statement, when at least the given time has passed since
// the last one; it reports whether it was its turn. Several processes may call it: each interval of time is recorded
// once.
func (s *Store) RecordMetrics(ctx context.Context, now time.Time, least time.Duration) (taken bool, err error) {
	// Not a state: if the connection dies, the sample may have been taken, and the next one is a minute away.
	err = s.write(ctx, "store.RecordMetrics", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statements.MetricSample, now, least.Seconds())
		taken = tag.RowsAffected() > 0
		return err
	})
	return taken, err
}

// RollMetrics puts the minutes of the hours that ended before a time together to one sample for each hour.
func (s *Store) RollMetrics(ctx context.Context, before time.Time) error {
	return s.write(ctx, "store.RollMetrics", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.MetricRoll, before.UTC().Truncate(time.Hour))
		return err
	})
}

// DeleteMetricsBefore deletes the samples of each environment from before its time.
func (s *Store) DeleteMetricsBefore(ctx context.Context, before map[intent.EnvironmentID]time.Time) error {
	var envs []uuid.UUID
	var times []time.Time
	for env, at := range before {
		envs, times = append(envs, env), append(times, at)
	}
	if len(envs) == 0 {
		return nil
	}
	return s.write(ctx, "store.DeleteMetricsBefore", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.MetricDelete, envs, times)
		return err
	})
}

type metricRow struct {
	Place               int
	Deploying           float64
	Undefined           float64
	SkippedForUndefined float64
	Available           float64
	Skipped             float64
	Failed              float64
	NonCompliant        float64
	Deployed            float64
	AgentsUp            float64
	AgentsDown          float64
	AgentsPaused        float64
	CompilesWaiting     float64
	Compiles            int
	CompileSeconds      float64
	Waits               int
	WaitSeconds         float64
	Deploys             int
	DeploysFailed       int
	DeploySeconds       float64
}

func (r metricRow) value() (intent.MetricInterval, error) {
	return intent.MetricInterval{
		Place: r.Place - 1,
		Resources: map[intent.Status]float64{
			intent.StatusDeploying: r.Deploying, intent.StatusUndefined: r.Undefined,
			intent.StatusSkippedForUndefined: r.SkippedForUndefined, intent.StatusAvailable: r.Available,
			intent.StatusSkipped: r.Skipped, intent.StatusFailed: r.Failed,
			intent.StatusNonCompliant: r.NonCompliant, intent.StatusDeployed: r.Deployed,
		},
		Agents:          intent.MetricAgents{Up: r.AgentsUp, Down: r.AgentsDown, Paused: r.AgentsPaused},
		CompilesWaiting: r.CompilesWaiting,
		Compiles:        intent.MetricTimes{Count: r.Compiles, Seconds: r.CompileSeconds},
		Waits:           intent.MetricTimes{Count: r.Waits, Seconds: r.WaitSeconds},
		Deploys:         intent.MetricTimes{Count: r.Deploys, Seconds: r.DeploySeconds}, DeploysFailed: r.DeploysFailed,
	}, nil
}

// Metrics returns what was recorded from a time until before another one, in a number of intervals of the same length.
// Intervals without a sample are left out.
func (s *Store) Metrics(
	ctx context.Context, env intent.EnvironmentID, from, until time.Time, intervals int,
) ([]intent.MetricInterval, error) {
	return listed(ctx, s, "store.Metrics", metricRow.value, statements.MetricBuckets, env, from, until, intervals)
}
