package deployer

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Deployer drives one environment. Its verbs may be called from any goroutine at any time; they return at once and
// are carried out in order.
type Deployer struct {
	cfg Config
	log *slog.Logger
	env intent.EnvironmentID

	mu      sync.Mutex
	inbox   []func()
	started bool
	ended   bool // the loop accepts nothing more
	wakeup  chan struct{}
	done    chan struct{} // closed when the loop ended

	// Handlers stop when tasks ends, writes to the database when records ends.
	tasks         context.Context
	cancelTasks   context.CancelFunc
	records       context.Context
	cancelRecords context.CancelFunc

	commits   sync.WaitGroup // writes to the database under way
	logFailed bool           // for the resource action log; owned by the commit under way

	// Owned by the loop.
	sched          *scheduler.Scheduler // nil until the record has been read
	environ        intent.Environment
	timers         [2]string // the settings that the scheduler has
	policy         scheduler.Policy
	rules          string // the settings and overrides that the scheduler has
	version        *versionCode
	resources      []intent.Resource // of the scheduler's version, sorted by id; not to be changed
	newestReleased int               // newest released version that it was told of
	loading        bool
	deferred       []func() // outcomes that wait until a version is loaded
	beforeLoad     []func() // verbs that came before the record was read
	pending        batch
	actionLines    bytes.Buffer // of the resource action log, to be written with the next batch
	committing     bool
	running        map[intent.ActionID]*deployment
	prepared       map[intent.ResourceID]*deployment     // recorded ahead of their turn, not started
	ahead          map[intent.ActionID]intent.ResourceID // these, and those that started and whose end is not durable
	listedAhead    int                                   // the length of the list that was recorded last
	unsaved        map[intent.ResourceID]int             // ends that are not durable yet
	taskTime       average
	commitTime     average
	endGap         average // between the ends of two tasks
	lastEnd        time.Time
	gatherSince    time.Time // when the batch began to wait for more ends; zero: it does not
	gatherUntil    time.Time // when it will have waited long enough
	inBackground   int       // how much else is under way
	queues         executorQueues
	dryRuns        map[intent.ActionID]*dryRun
	facts          factState
	waiters        []chan struct{}
	requests       []int64 // that were taken and are not done
	stopping       bool
	grace          *time.Timer // set while stopping
	abandoned      bool        // the grace time is over
}

// New checks the configuration; nothing runs before Start.
func New(cfg Config) (*Deployer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	d := &Deployer{
		cfg: cfg, env: cfg.Environment.ID, environ: cfg.Environment,
		log:     cfg.Logger.With("environment", cfg.Environment.ID.String()),
		wakeup:  make(chan struct{}, 1),
		done:    make(chan struct{}),
		running: make(map[intent.ActionID]*deployment), prepared: make(map[intent.ResourceID]*deployment),
		ahead:   make(map[intent.ActionID]intent.ResourceID),
		unsaved: make(map[intent.ResourceID]int), dryRuns: make(map[intent.ActionID]*dryRun), queues: newQueues(),
		facts: factState{asked: make(map[intent.ResourceID]time.Time), awaited: make(map[intent.ResourceID]bool)},
	}
	return d, nil
}

// Start reads the record, takes up what was left undone, and goes on until ctx ends or Stop is called. It does not
// wait for the database. It may be called once.
func (d *Deployer) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started || d.ended {
		return fault.New("deployer.Start", fault.Conflict, "this deployer was started before")
	}
	d.started = true
	base := context.WithoutCancel(ctx)
	d.tasks, d.cancelTasks = context.WithCancel(base)
	d.records, d.cancelRecords = context.WithCancel(base)
	go d.loop(ctx)
	return nil
}

// Stop ends the deployer: handlers are cancelled, what had finished is recorded, and what was cut off runs again at
// the next Start. It waits until nothing is under way, at most for the grace time. It may be called more than once.
func (d *Deployer) Stop() {
	d.mu.Lock()
	started := d.started
	d.ended = d.ended || !started
	d.mu.Unlock()
	if !started {
		return
	}
	d.post(d.beginStop)
	<-d.done
}

// VersionReleased reports that the record has a newer intent.
func (d *Deployer) VersionReleased(number int) {
	d.post(func() {
		d.newestReleased = max(d.newestReleased, number)
		d.loadVersion()
	})
}

// Deploy tries again what is not as intended, or with Full everything. When nothing of it is left to do, the request is
// deleted from the record; one without an id has no record.
func (d *Deployer) Deploy(r intent.Request, what intent.DeployRequest) {
	kind := scheduler.UserDeploy
	if what.Full {
		kind = scheduler.UserRepair
	}
	d.whenLoaded(func() {
		f := scheduler.Filter{Agents: what.Agents, Resources: what.Resources}
		if r.Taken != nil { // by a server that ended since; it did a part of it
			f = d.left(f, *r.Taken)
		}
		if r.Taken == nil || len(f.Resources) > 0 {
			d.carryOut(d.sched.Trigger(kind, f, now()))
		}
		if r.ID != 0 {
			d.requests = append(d.requests, r.ID)
		}
	})
}

// left names the resources of a filter that were not deployed since a time.
func (d *Deployer) left(f scheduler.Filter, since time.Time) (out scheduler.Filter) {
	named := make(map[intent.ResourceID]bool, len(f.Resources))
	for _, id := range f.Resources {
		named[id] = true
	}
	for i := range d.resources {
		id := d.resources[i].ID
		chosen := (len(f.Agents) == 0 || slices.Contains(f.Agents, id.Agent)) &&
			(len(named) == 0 || named[id])
		if state, known := d.sched.State(id); chosen && known &&
			(state.LastRunAt == nil || state.LastRunAt.Before(since)) {
			out.Resources = append(out.Resources, id)
		}
	}
	return out
}

// finishRequests deletes the requests that were carried out. If that fails until the end, the next server carries out
// what is left of them, which is nothing.
func (d *Deployer) finishRequests() {
	ids := d.requests
	d.requests = nil
	d.background(func() func() {
		err := d.persist(d.records, "delete requests that are done", func(ctx context.Context) error {
			return d.cfg.Store.FinishRequests(ctx, d.env, ids)
		})
		return func() {
			if err != nil {
				d.log.Warn("a request that was carried out stays on record", "error", err)
			}
		}
	})
}

// Unpark unparks resources, all of them when none is named.
func (d *Deployer) Unpark(resources []intent.ResourceID) {
	d.whenLoaded(func() { d.carryOut(d.sched.Unpark(resources, now())) })
}

// SetPaused pauses or resumes an agent, every one when the name is empty: what is running ends, nothing more starts.
func (d *Deployer) SetPaused(agent string, paused bool) {
	d.whenLoaded(func() {
		names := []string{agent}
		if agent == "" {
			names = d.sched.Agents()
		}
		for _, name := range names {
			if paused {
				d.recallPrepared(name)
				d.carryOut(d.sched.Pause(name, now()))
			} else {
				d.carryOut(d.sched.Unpause(name, now()))
			}
		}
	})
}

// Changed reports that settings or the halted mark of the environment changed.
func (d *Deployer) Changed(e intent.Environment) {
	d.post(func() {
		d.environ = e
		if d.sched != nil {
			d.applyEnvironment()
		}
	})
}

// Wait returns when nothing is running, nothing can start, and all is recorded; or with the error of ctx. What waits
// for a paused agent does not count.
func (d *Deployer) Wait(ctx context.Context) error {
	quiet := make(chan struct{})
	d.post(func() { d.waiters = append(d.waiters, quiet) })
	select {
	case <-quiet:
		return nil
	case <-d.done:
		return fault.New("deployer.Wait", fault.Conflict, "the deployer was stopped")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Snapshot is what a deployer is doing at a moment.
type Snapshot struct {
	Loaded  bool // the record was read
	Halted  bool
	Version int
	Running []scheduler.Running
	Wishes  []scheduler.Wish // most urgent first, at most 1,000
	Waiting int              // how many there are
}

// Snapshot returns what is running and what is waiting for what. It is zero after Stop.
func (d *Deployer) Snapshot() Snapshot {
	answer := make(chan Snapshot, 1)
	d.post(func() {
		s := Snapshot{Halted: d.environ.Halted}
		if d.sched != nil {
			s.Loaded, s.Version = true, d.sched.Version()
			s.Running, s.Wishes, s.Waiting = d.sched.Running(), d.sched.Wishes(1000, now()), d.sched.Waiting()
		}
		answer <- s
	})
	select {
	case s := <-answer:
		return s
	case <-d.done:
		return Snapshot{}
	}
}

// post hands f to the loop. After the loop has ended it does nothing.
func (d *Deployer) post(f func()) {
	d.mu.Lock()
	if !d.ended {
		d.inbox = append(d.inbox, f)
	}
	d.mu.Unlock()
	select {
	case d.wakeup <- struct{}{}:
	default:
	}
}

// whenLoaded hands f to the loop, to be run once the record has been read.
func (d *Deployer) whenLoaded(f func()) {
	d.post(func() {
		if d.sched == nil {
			d.beforeLoad = append(d.beforeLoad, f)
			return
		}
		f()
	})
}

// loop is the one goroutine that touches the scheduler.
func (d *Deployer) loop(ctx context.Context) {
	defer func() {
		d.cancelTasks()
		d.cancelRecords()
		d.commits.Wait()
		d.writeLines(d.takeLines()) // nothing is recorded after the end, when another server may own the environment
		close(d.done)
	}()
	d.load()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ended := ctx.Done()
	for {
		d.mu.Lock()
		inbox := d.inbox
		d.inbox = nil
		d.mu.Unlock()
		for _, f := range inbox {
			f()
		}
		if d.sched != nil && !d.stopping {
			if edge := d.sched.NextEdge(); !edge.IsZero() && !now().Before(edge) {
				d.recallPrepared("") // what was to come next may have to wait now
			}
			d.carryOut(d.sched.Tick(now()))
			if !d.facts.next.IsZero() && !d.facts.next.After(time.Now()) {
				d.lookAtFacts(false)
			}
		}
		if d.sched != nil && d.sched.Idle() {
			d.recallPrepared("")
		}
		d.flush()
		d.sendBehind()
		d.sendToExecutor()
		if !d.committing && d.pending.empty() {
			d.writeLines(d.takeLines())
		}
		if len(d.requests) > 0 && !d.stopping && d.quiet() {
			d.finishRequests()
		}
		if d.quiet() {
			for _, w := range d.waiters {
				close(w)
			}
			d.waiters = nil
		}
		if d.stopping && (d.abandoned || d.quiet()) && d.end() {
			d.grace.Stop()
			return
		}
		timer.Reset(d.untilTick())
		select {
		case <-d.wakeup:
		case <-timer.C:
		case <-ended:
			ended = nil
			d.beginStop()
		}
	}
}

// quiet reports whether nothing is under way.
func (d *Deployer) quiet() bool {
	if len(d.running) > 0 || d.committing || d.inBackground > 0 || !d.pending.empty() || len(d.deferred) > 0 {
		return false
	}
	return d.stopping && !d.loading || d.sched != nil && !d.loading && d.sched.Idle()
}

// end closes the inbox; it returns false when something came in meanwhile.
func (d *Deployer) end() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = len(d.inbox) == 0
	return d.ended
}

func (d *Deployer) untilTick() time.Duration {
	wait := time.Hour
	if d.sched == nil {
		return wait
	}
	for _, at := range []time.Time{d.sched.NextTick(), d.facts.next, d.gatherUntil} {
		if !at.IsZero() {
			wait = min(wait, max(time.Until(at), 0))
		}
	}
	if d.queues.behind > 0 {
		wait = min(wait, d.queues.slow)
	}
	return wait
}

func (d *Deployer) beginStop() {
	if d.stopping {
		return
	}
	d.stopping = true
	if d.sched != nil {
		d.carryOut(d.sched.Halt())
		d.recallPrepared("")
	}
	d.pending.starts = nil // they were not recorded, so they have not begun
	d.cancelTasks()
	d.grace = time.AfterFunc(d.cfg.Grace, func() {
		d.cancelRecords()
		d.post(func() { d.abandoned = true })
	})
}

// applyRules passes windows, overrides and limits of agents on to the scheduler when they changed.
func (d *Deployer) applyRules() {
	text, err := rulesText(d.environ)
	if err == nil && text == d.rules {
		return
	}
	rules, err := rulesOf(d.environ)
	if err != nil { // settings are checked when they are set
		d.log.Error("the windows or agent limits are invalid; the previous ones stay in force", "error", err)
		return
	}
	d.rules = text
	d.recallPrepared("")
	d.carryOut(d.sched.SetRules(rules, now()))
}

// applyEnvironment passes the halted mark and all settings on to the scheduler.
func (d *Deployer) applyEnvironment() {
	texts := [2]string{
		d.environ.Text("autostart_agent_deploy_interval"),
		d.environ.Text("autostart_agent_repair_interval"),
	}
	if texts != d.timers {
		timers, err := timersOf(d.environ)
		if err != nil { // settings are checked when they are set
			d.log.Error("a timer is invalid; the previous one stays in force", "error", err)
		} else {
			d.sched.SetTimers(timers, now())
			d.timers = texts
		}
	}
	if policy := policyOf(d.environ); !reflect.DeepEqual(policy, d.policy) {
		d.policy = policy
		d.carryOut(d.sched.SetPolicy(policy, now()))
	}
	d.applyRules()
	switch {
	case d.stopping:
	case d.environ.Halted:
		d.carryOut(d.sched.Halt())
		d.recallPrepared("")
	default:
		d.carryOut(d.sched.Resume(now()))
	}
}

// now is the time in the precision of the record.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
