package process

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/queue"
)

// Record is what the engine needs of the place of record; *store.Store does it.
type Record interface {
	Schedule(ctx context.Context, p intent.NewProcess) (id int64, err error)
	WorkProcesses(ctx context.Context, w queue.Workers) error
	TakeProcess(
		ctx context.Context, id int64, worker string, lease time.Duration, delegate *intent.NewProcess,
	) (*intent.Process, error)
	BeatProcesses(
		ctx context.Context, claims []intent.ProcessClaim, lease time.Duration,
	) (kept map[intent.ProcessClaim]string, err error)
	ProcessPhase(
		ctx context.Context, c intent.ProcessClaim, phase string, data json.RawMessage,
	) (cancel string, err error)
	EndProcess(ctx context.Context, c intent.ProcessClaim, end intent.ProcessEnd) error
	SweepProcesses(ctx context.Context) (moved int, err error)
	DeleteProcesses(ctx context.Context, ended, dead time.Duration) error
}

var _ Record = (*store.Store)(nil)

// Config is what an Engine is made of. Record, Bus, Logger and Definitions are required.
type Config struct {
	Record      Record
	Bus         *bus.Bus
	Logger      *slog.Logger
	Definitions []Definition
	// Queues says how many processes of each queue run at a time in this process of the operating system; ten of the
	// default queue when a queue is not named.
	Queues map[string]int
	// Worker names this process of the operating system among those that run processes; a random name when empty.
	Worker string
	// Lease is how long a worker that does not show itself keeps a process; 10 s when zero.
	Lease time.Duration
	// Sweep is how often the record is searched for processes that were lost or whose time has come; 1 s when zero.
	Sweep time.Duration
	// Backoff returns the pause after a number of failed attempts; see Backoff when nil.
	Backoff func(failed int) time.Duration
	// Grace is how long a handler may go on after its context has ended; then its process goes to another worker.
	// 30 s when zero.
	Grace time.Duration
}

const (
	defaultLease   = 10 * time.Second
	defaultSweep   = time.Second
	defaultGrace   = 30 * time.Second
	defaultWorkers = 10
	// shortestPause and longestPause bound the pauses between attempts.
	shortestPause = 2 * time.Second
	longestPause  = 2 * time.Minute
	// keepEnded and keepDead are how long processes stay in the record: dead ones until somebody must have seen them.
	keepEnded = 24 * time.Hour
	keepDead  = 30 * 24 * time.Hour
	// cleanEvery is how often older ones are deleted.
	cleanEvery = 10 * time.Minute
	// calm is the pause before the database is asked again when it did not answer.
	calm = 500 * time.Millisecond
	// stopPatience is how long a server that stops waits for the database to record the end of an attempt.
	stopPatience = 2 * time.Second
)

// Backoff returns the pause after a number of failed attempts: 2 s, 4 s, 8 s … 2 min, each a little shorter or longer,
// so that what failed together is not tried again together.
func Backoff(failed int) time.Duration {
	pause := min(shortestPause<<min(max(failed-1, 0), 20), longestPause)
	return time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))
}

// Engine schedules processes, and runs them while it is started. Its methods may be called at any time: what they
// record while no engine runs waits.
type Engine struct {
	cfg     Config
	known   map[string]Definition
	running service.Runner

	mu    sync.Mutex
	tries map[intent.ProcessClaim]*try // what runs here
}

// New makes an engine, which runs nothing before Start. It fails when a definition makes no sense.
func New(cfg Config) (*Engine, error) {
	if cfg.Record == nil || cfg.Bus == nil || cfg.Logger == nil {
		return nil, fault.New("process.New", fault.Internal, "a part of process.Config is missing")
	}
	e := &Engine{cfg: cfg, known: map[string]Definition{}, tries: map[intent.ProcessClaim]*try{}}
	if e.cfg.Worker == "" {
		e.cfg.Worker = uuid.NewString()
	}
	e.cfg.Lease = positive(cfg.Lease, defaultLease)
	e.cfg.Sweep = positive(cfg.Sweep, defaultSweep)
	e.cfg.Grace = positive(cfg.Grace, defaultGrace)
	if cfg.Backoff == nil {
		e.cfg.Backoff = Backoff
	}
	e.cfg.Queues = map[string]int{queue.Default: defaultWorkers}
	for name, most := range cfg.Queues {
		e.cfg.Queues[name] = most
	}
	for _, d := range cfg.Definitions {
		if _, twice := e.known[d.Name]; twice {
			return nil, fault.New("process.New", fault.Internal, "there are two processes "+d.Name)
		}
		e.known[d.Name] = d.withDefaults()
	}
	for _, d := range e.known {
		if err := d.validate(e.known); err != nil {
			return nil, err
		}
		if q := d.Queue; q != "" && e.cfg.Queues[q] == 0 {
			e.cfg.Queues[q] = defaultWorkers
		}
	}
	return e, nil
}

func positive(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// New returns the process that an intention asks for, to be recorded together with something else:
// store.Scheduling(p).SomeChange(…).
func (e *Engine) New(i Intention) (intent.NewProcess, error) {
	const op = "process.Schedule"
	d, has := e.known[i.Process]
	if !has {
		return intent.NewProcess{}, fault.New(op, fault.Internal, "there is no process "+i.Process)
	}
	data := i.Data
	if data == nil {
		data = map[string]any{}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return intent.NewProcess{}, fault.Wrap(op, fault.Internal, err)
	}
	p := intent.NewProcess{
		Name: d.Name, Resource: intent.ProcessResource{Type: d.Resource, ID: i.Resource}, Environment: i.Environment,
		Project: i.Project, Paths: d.Paths, Failed: d.Failed, Cancelled: d.Cancelled, Single: d.Single,
		Most: d.Attempts, Deadline: max(d.Deadline, 0), Priority: d.Priority, Queue: d.Queue, Data: raw, MadeBy: i.By,
		After: i.After,
	}
	for name, other := range e.known {
		if other.Resource == d.Resource && slices.Contains(other.CancelledBy, d.Name) {
			p.Cancels = append(p.Cancels, name)
		}
	}
	return p, nil
}

// Schedule records an intention and returns the id of its process. Conflict when the state of the resource does not
// allow it.
func (e *Engine) Schedule(ctx context.Context, i Intention) (int64, error) {
	p, err := e.New(i)
	if err != nil {
		return 0, err
	}
	id, err := e.cfg.Record.Schedule(ctx, p)
	if err == nil {
		e.publish(p.Environment)
	}
	return id, err
}

func (e *Engine) publish(env intent.EnvironmentID) {
	e.cfg.Bus.Publish(bus.Event{Environment: env, Topic: bus.Process})
}

// Start begins to run processes. It returns at once: while the database does not answer, the engine keeps trying.
func (e *Engine) Start(ctx context.Context) error {
	return e.running.Start(ctx, func(context.Context) (func(context.Context), error) { return e.run, nil })
}

// Stop ends the attempts that run, and waits for their end. They are tried again by the next worker at once.
func (e *Engine) Stop() { e.running.Stop() }

func (e *Engine) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	// Leases are renewed until the last handler has ended.
	beating, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	loops.Go(func() { e.beat(beating) })
	loops.Go(func() { e.sweep(ctx) })
	var names []string
	for name := range e.known {
		names = append(names, name)
	}
	for ctx.Err() == nil {
		err := e.cfg.Record.WorkProcesses(ctx, queue.Workers{
			ID: "ordain_" + e.cfg.Worker + "_" + uuid.NewString()[:8], Names: names, Queues: e.cfg.Queues, Work: e.work,
			Logger: e.cfg.Logger,
		})
		if err != nil && ctx.Err() == nil && !fault.Is(err, fault.Unavailable) {
			e.cfg.Logger.Error("processes cannot run", "error", err)
		}
		pause(ctx, calm)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// sweep searches the record for processes that nobody runs though somebody should, until ctx ends.
func (e *Engine) sweep(ctx context.Context) {
	tick := time.NewTicker(e.cfg.Sweep)
	defer tick.Stop()
	var cleaned time.Time
	repeated := false
	for {
		if !repeated {
			repeated = e.beginSchedules(ctx)
		}
		if _, err := e.cfg.Record.SweepProcesses(ctx); err != nil && ctx.Err() == nil &&
			!fault.Is(err, fault.Unavailable) {
			e.cfg.Logger.Error("cannot look for processes whose worker vanished", "error", err)
		}
		if time.Since(cleaned) >= cleanEvery {
			if err := e.cfg.Record.DeleteProcesses(ctx, keepEnded, keepDead); err == nil {
				cleaned = time.Now()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// beginSchedules schedules the processes that repeat themselves, and reports whether that worked. Those that wait
// already stay as they are.
func (e *Engine) beginSchedules(ctx context.Context) bool {
	for _, d := range e.known {
		if d.Schedule == "" {
			continue
		}
		now := time.Now()
		_, err := e.Schedule(ctx, Intention{
			Process: d.Name, Resource: d.Name, By: "schedule", After: d.next(now).Sub(now),
		})
		if err != nil {
			return false
		}
	}
	return true
}

// next returns when a process with a schedule runs next.
func (d Definition) next(after time.Time) time.Time {
	s, err := cron.ParseStandard(d.Schedule)
	if err != nil {
		return after.Add(time.Hour) // validate has read it
	}
	return s.Next(after)
}

// beat renews the leases of what runs here, until ctx ends.
func (e *Engine) beat(ctx context.Context) {
	tick := time.NewTicker(e.cfg.Lease / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		mine := e.claims()
		if len(mine) == 0 {
			continue
		}
		asked := time.Now()
		bounded, cancel := context.WithTimeout(ctx, e.cfg.Lease/2)
		kept, err := e.cfg.Record.BeatProcesses(bounded, mine, e.cfg.Lease)
		cancel()
		for _, c := range mine {
			e.mu.Lock()
			t := e.tries[c]
			e.mu.Unlock()
			if t == nil {
				continue
			}
			why, still := kept[c]
			switch {
			case err != nil && time.Since(t.renewed) > e.cfg.Lease, err == nil && !still:
				t.end(errTaken)
			case err == nil && why != "":
				t.renewed = asked
				t.end(&cancelError{why})
			case err == nil:
				t.renewed = asked
			}
		}
	}
}

// claims returns what runs here, apart from handlers that do not end though their context has.
func (e *Engine) claims() (out []intent.ProcessClaim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for claim, t := range e.tries {
		if !t.overdue(e.cfg.Grace) {
			out = append(out, claim)
		}
	}
	return out
}
