// Package queue wakes the workers of processes, with River (github.com/riverqueue/river).
//
// A job of River is no record: it carries the id of a process and means "read that row again". It is inserted in the
// transaction that makes the row due, found by whichever worker is free, and may come twice or too late without harm.
//
//	transaction: row + job ──▶ River: LISTEN/NOTIFY, priorities, limits of queues ──▶ Work(id)
//
// What counts is in the row: state, attempts, lease, fencing number. See ADR 43.
package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"ordain.dev/ordain/internal/fault"
)

// Default is the queue of processes that name none.
const Default = river.QueueDefault

const (
	// pollInterval is how often a queue is read although no notification came.
	pollInterval = time.Second
	// keepJobs is how long River keeps jobs that are done: they say nothing that the processes do not say.
	keepJobs = 10 * time.Minute
	// rescueAfter is when River runs a job again whose worker vanished. By then the process has long been continued.
	rescueAfter = time.Hour
	// stopTime bounds how long Work waits for what runs once its context has ended.
	stopTime = 15 * time.Second
)

// Wake is a job: worker, read this process.
type Wake struct {
	Name     string // of the process: the kind of the job
	ID       int64
	Priority int
	Queue    string
}

// job is what River stores of a Wake.
type job struct {
	ID   int64 `json:"id"`
	kind string
}

// Kind implements river.JobArgs.
func (j job) Kind() string { return j.kind }

// Queue inserts jobs, and works them.
type Queue struct {
	pool   *pgxpool.Pool
	insert *river.Client[pgx.Tx]
}

// New returns the queue in the database of a pool.
func New(pool *pgxpool.Pool) (*Queue, error) {
	insert, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fault.Wrap("queue.New", fault.Internal, err)
	}
	return &Queue{pool: pool, insert: insert}, nil
}

// Add inserts a job and returns its number.
func (q *Queue) Add(ctx context.Context, tx pgx.Tx, w Wake) (int64, error) {
	inserted, err := q.insert.InsertTx(ctx, tx, job{ID: w.ID, kind: w.Name}, &river.InsertOpts{
		Priority: w.Priority, Queue: w.Queue, MaxAttempts: 1,
	})
	if err != nil {
		return 0, err
	}
	return inserted.Job.ID, nil
}

// Workers says what a process of the operating system works on.
type Workers struct {
	// ID names the workers; it is unique among those of the database.
	ID string
	// Names are the processes that this version knows. Jobs of others are left to those that know them.
	Names []string
	// Queues says how many processes of each queue run at a time.
	Queues map[string]int
	// Work runs a process. It records everything itself; its context ends when the workers are to stop.
	Work   func(ctx context.Context, name string, id int64)
	Logger *slog.Logger
}

type worker struct {
	river.WorkerDefaults[job]

	work func(ctx context.Context, name string, id int64)
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	w.work(ctx, j.Kind, j.Args.ID)
	return nil
}

// Timeout leaves bounds on time to the process.
func (w *worker) Timeout(*river.Job[job]) time.Duration { return -1 }

// Work works jobs until ctx ends. It fails at once when the database cannot be reached.
func (q *Queue) Work(ctx context.Context, w Workers) error {
	const op = "queue.Work"
	workers, queues := river.NewWorkers(), map[string]river.QueueConfig{}
	for _, name := range w.Names {
		river.AddWorkerArgs(workers, job{kind: name}, &worker{work: w.Work})
	}
	for name, most := range w.Queues {
		queues[name] = river.QueueConfig{MaxWorkers: most}
	}
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		ID: w.ID, Workers: workers, Queues: queues, FetchOnlyKnownKinds: true,
		FetchPollInterval: pollInterval, JobTimeout: -1, RescueStuckJobsAfter: rescueAfter,
		CompletedJobRetentionPeriod: keepJobs, CancelledJobRetentionPeriod: keepJobs,
		DiscardedJobRetentionPeriod: keepJobs,
		Logger:                      slog.New(quiet{w.Logger.Handler()}),
	})
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the workers of processes cannot start yet")
	}
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := client.StopAndCancel(stopping); err != nil && !errors.Is(err, context.Canceled) {
		return fault.Wrap(op, fault.Internal, err).Say("the workers of processes did not stop in time")
	}
	return nil
}

// quiet passes on what goes wrong in River, as warnings: it tries again, and so do processes. It leaves out what River
// says about its ordinary life.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, slog.LevelWarn)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelWarn
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
