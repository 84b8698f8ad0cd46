package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/record"
)

// Config is what an Executor is made of.
type Config struct {
	Environment intent.EnvironmentID
	Record      *record.Record
	Bus         *bus.Bus
	Files       executor.Files // the sources of handlers
	Maker       *venv.Maker    // fetches packages for agents
	Layout      *layout.Layout
	Logger      *slog.Logger
	Timeout     time.Duration // of a handler; 0 means 10 minutes
	// WheelRetention is how long packages that were fetched for agents are kept after their last use; 0 means an hour.
	WheelRetention time.Duration
	// Recorded returns those of these actions whose results are recorded.
	Recorded func(ctx context.Context, env intent.EnvironmentID, ids []intent.ActionID) ([]intent.ActionID, error)

	// sweep is how often the record is read although no event came, and grace how long a task waits for an agent that
	// is not connected; tests have short ones.
	sweep, grace time.Duration
}

const (
	sweepInterval = 2 * time.Second
	// idleSweep is that interval while nothing waits for an agent, and agentsAge how old the list of agents may be
	// that a task relies on.
	idleSweep = 30 * time.Second
	agentsAge = 5 * time.Second
	// startTime is added to the time of a handler: the agent may have to make a virtual environment first, and to
	// finish the handler before.
	startTime = 15 * time.Minute
	// connectGrace is how long a task waits for an agent that is not connected.
	connectGrace = 5 * time.Second
	// recordTime is the time after which a result that was handed over is recorded.
	recordTime = time.Minute
)

// Executor runs the tasks of remote agents. Start begins its sweep; it is safe for concurrent use.
type Executor struct {
	c    Config
	ctx  context.Context // ends with Stop
	stop context.CancelFunc
	done sync.WaitGroup

	parcels parcels
	ready   chan struct{} // closed when the agents and the commands of an earlier owner were read

	mu      sync.Mutex
	agents  map[string]intent.RemoteAgent // that have joined
	changed chan struct{}                 // closed and replaced when agents was read
	readAt  time.Time                     // when agents was read
	waiting map[intent.ActionID]waiter    // tasks that wait for an answer, by command
	adopted map[string][]intent.ActionID  // commands of an earlier owner by subject
	old     map[intent.ActionID]time.Time // deadlines of such commands that nobody has adopted
	ended   map[intent.ActionID]time.Time // when answers were handed over, which may not be recorded yet
}

// waiter is a task that waits for an answer.
type waiter struct {
	agent    string
	answered chan struct{} // has room for one, which says that there may be an answer
}

// New checks the configuration.
func New(c Config) (*Executor, error) {
	if c.Record == nil || c.Recorded == nil || c.Bus == nil || c.Files == nil || c.Maker == nil || c.Layout == nil ||
		c.Logger == nil {
		return nil, errors.New("remote: Config needs Record, Recorded, Bus, Files, Maker, Layout and Logger")
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.sweep == 0 {
		c.sweep, c.grace = sweepInterval, connectGrace
	}
	e := &Executor{
		c: c, agents: map[string]intent.RemoteAgent{}, changed: make(chan struct{}),
		waiting: map[intent.ActionID]waiter{}, adopted: map[string][]intent.ActionID{},
		old:   map[intent.ActionID]time.Time{},
		ended: map[intent.ActionID]time.Time{},
	}
	e.ready = make(chan struct{})
	e.parcels = parcels{c: c, known: map[string]*parcel{}, sources: map[string]string{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Start begins to read which agents there are and which commands an earlier owner left, as often as it takes, and to
// follow what changes. Tasks wait for the first of it.
func (e *Executor) Start() {
	events := e.c.Bus.Subscribe(func(v bus.Event) bool {
		switch v.Topic {
		case bus.Command, bus.Answered, bus.Lagged:
			return v.Environment == e.c.Environment || v.Topic == bus.Lagged
		}
		return false
	})
	e.done.Go(func() {
		for e.ctx.Err() == nil {
			err := e.readAgents(e.ctx)
			if err == nil {
				err = e.takeOver(e.ctx)
			}
			if err == nil {
				close(e.ready)
				break
			}
			e.c.Logger.Warn("the record of remote agents cannot be read; tasks wait", "error", err)
			select {
			case <-time.After(e.c.sweep):
			case <-e.ctx.Done():
			}
		}
		e.follow(events)
	})
}

// awaitReady waits until the record was read.
func (e *Executor) awaitReady(ctx context.Context) error {
	select {
	case <-e.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ctx.Done():
		return fault.New("remote.Run", fault.Unavailable, "this server stops")
	}
}

// isReady reports whether the record was read.
func (e *Executor) isReady() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// takeOver looks at the commands that an earlier owner left. Those whose results it has recorded are done; the others
// may be adopted.
func (e *Executor) takeOver(ctx context.Context) error {
	left, err := e.c.Record.Unfinished(ctx, e.c.Environment)
	if err != nil {
		return err
	}
	var ids []intent.ActionID
	for _, c := range left {
		ids = append(ids, c.ID)
	}
	recorded, err := e.c.Recorded(ctx, e.c.Environment, ids)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range left {
		id := c.ID
		if slices.Contains(recorded, c.ID) {
			e.ended[id] = time.Time{}
			continue
		}
		e.old[id] = c.Deadline
		if c.Subject != "" {
			e.adopted[c.Subject] = append(e.adopted[c.Subject], id)
		}
	}
	return nil
}

// Stop ends the sweep. Commands stay as they are: the next owner of the environment takes their answers.
func (e *Executor) Stop() {
	e.stop()
	e.done.Wait()
}

// follow reads the record when an event says so, and now and then.
func (e *Executor) follow(events *bus.Subscription) {
	defer events.Close()
	ticker := time.NewTicker(e.c.sweep)
	defer ticker.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-ticker.C:
			if e.busy() || time.Since(e.lastRead()) > idleSweep {
				e.sweep()
			}
		case v := <-events.Events():
			switch v.Topic {
			case bus.Answered:
				if id, err := uuid.Parse(v.ID); err == nil {
					e.wake(id)
				}
			case bus.Command:
				if err := e.readAgents(e.ctx); err != nil && e.ctx.Err() == nil {
					e.c.Logger.Warn("the remote agents cannot be read", "error", err)
				}
			default:
				e.sweep()
			}
		}
	}
}

// sweep does what lost events would have led to.
func (e *Executor) sweep() {
	err := e.readAgents(e.ctx)
	if err == nil && e.busy() {
		err = e.c.Record.EndLate(e.ctx, e.c.Environment)
	}
	if err != nil && e.ctx.Err() == nil {
		e.c.Logger.Warn("the record of remote agents cannot be read", "error", err)
		return
	}
	e.takeBack()
	e.wake(intent.ActionID{})
	e.finishOld()
	e.parcels.clean(time.Now())
}

func (e *Executor) lastRead() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.readAt
}

func (e *Executor) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting)+len(e.old)+len(e.ended) > 0
}

// wake makes the task of a command read its answer; a zero id means all.
func (e *Executor) wake(id intent.ActionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for each, w := range e.waiting {
		if id == (intent.ActionID{}) || id == each {
			select {
			case w.answered <- struct{}{}:
			default:
			}
		}
	}
}

// takeBack cancels commands that were never sent, because their agents have gone just before.
func (e *Executor) takeBack() {
	e.mu.Lock()
	gone := map[intent.ActionID]bool{}
	for id, w := range e.waiting {
		a, ok := e.agents[w.agent]
		if !ok || !a.Connected && (a.Since == nil || time.Since(*a.Since) > e.c.grace) {
			gone[id] = true
		}
	}
	e.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	left, err := e.c.Record.Unfinished(e.ctx, e.c.Environment)
	if err != nil {
		return // the next sweep tries again
	}
	for _, c := range left {
		if !gone[c.ID] || c.Sent != nil || c.Answered != nil {
			continue
		}
		if err := e.c.Record.Cancel(e.ctx, e.c.Environment, c.ID); err != nil && e.ctx.Err() == nil {
			e.c.Logger.Warn(
				"a command for a remote agent that is gone cannot be taken back",
				"command",
				c.ID,
				"error",
				err,
			)
		}
	}
}

// finishOld deletes commands that are done: those whose results were handed over long enough ago to be recorded, and
// those of an earlier owner that no task asked for until some time after their deadlines, because their resources have
// changed or are gone.
func (e *Executor) finishOld() {
	var ids []intent.ActionID
	e.mu.Lock()
	for id, at := range e.ended {
		if time.Since(at) > recordTime {
			ids = append(ids, id)
		}
	}
	for id, deadline := range e.old {
		if time.Since(deadline) > startTime {
			ids = append(ids, id)
		}
	}
	e.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	if err := e.c.Record.Finish(e.ctx, e.c.Environment, ids...); err != nil {
		return // the next sweep tries again
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		delete(e.old, id)
		delete(e.ended, id)
	}
}

func (e *Executor) readAgents(ctx context.Context) error {
	began := time.Now()
	all, err := e.c.Record.Agents(ctx, e.c.Environment)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.agents)
	e.readAt = began
	for _, a := range all {
		if a.State == intent.RemoteJoined || a.State == intent.RemoteRevoked {
			e.agents[a.Name] = a
		}
	}
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// Has reports whether an agent is remote: one of this name has joined and was not removed.
func (e *Executor) Has(agent string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.agents[agent]
	return ok
}

// Recall implements deployer.Executor. There is nothing to take back: Begin gives tasks with Behind back at once.
func (e *Executor) Recall([]intent.ActionID) {}

// Begin implements deployer.Executor.
func (e *Executor) Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result)) {
	for _, t := range tasks {
		if t.Behind { // on its way to an agent a task could not be taken back in time
			r := resultOf(t, time.Now())
			r.Withdrawn = true
			done(r)
			continue
		}
		go func() { done(e.Run(ctx, t)) }()
	}
}

// Run implements deployer.Executor. When ctx ends, the command stays, for the next owner of the environment; only the
// cause executor.ErrEnd cancels it.
func (e *Executor) Run(ctx context.Context, t executor.Task) executor.Result {
	began := time.Now()
	if err := e.awaitReady(ctx); err != nil {
		return failed(t, began, intent.StatusUnavailable, err)
	}
	agent, err := e.connected(ctx, t.Resource.ID.Agent)
	if err != nil {
		r := failed(t, began, intent.StatusUnavailable, err)
		r.Unreachable = ctx.Err() == nil
		return r
	}
	p, err := e.parcels.get(ctx, t.Blueprint, agent.Machine)
	if err != nil {
		return failed(t, began, intent.StatusUnavailable, err)
	}
	subject := subjectOf(t)
	if r, ok := e.adopt(ctx, t, subject, began); ok {
		return r
	}
	answer, err := e.command(ctx, agent.Name, t, subject, p)
	if err != nil {
		return failed(t, began, intent.StatusUnavailable, err)
	}
	if answer.Status == protocol.Refused {
		e.parcels.forget(p) // the record or the agent may lack something: look again for the next task
	}
	r := e.result(t, answer, began)
	if answer.Status == protocol.Cancelled && ctx.Err() == nil {
		r.Unreachable = true // it was never sent; see takeBack
	}
	return r
}

// connected returns an agent that has a connection. It waits a moment for one that is just connecting again.
func (e *Executor) connected(ctx context.Context, name string) (intent.RemoteAgent, error) {
	grace := time.NewTimer(e.c.grace)
	defer grace.Stop()
	if time.Since(e.lastRead()) > agentsAge {
		if err := e.readAgents(ctx); err != nil {
			return intent.RemoteAgent{}, err
		}
	}
	for {
		e.mu.Lock()
		a, ok := e.agents[name]
		changed := e.changed
		e.mu.Unlock()
		switch {
		case !ok:
			return a, fault.New("remote.Run", fault.NotFound, "the remote agent "+name+" is no longer there")
		case a.State == intent.RemoteRevoked:
			return a, fault.New("remote.Run", fault.Unavailable,
				"the certificate of the remote agent "+name+" is revoked").
				Hint("let it join again, or remove it")
		case a.Connected:
			return a, nil
		}
		again := time.After(e.c.sweep) // nothing else may be reading while nothing waits for an answer
		select {
		case <-changed:
		case <-again:
			if err := e.readAgents(ctx); err != nil {
				return a, err
			}
		case <-grace.C:
			return a, away(a)
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

func away(a intent.RemoteAgent) error {
	text := "the remote agent " + a.Name + " never connected since it joined"
	if a.Since != nil {
		text = "the remote agent " + a.Name + " is not connected since " + a.Since.UTC().Format(time.DateTime) + " UTC"
	}
	return fault.New("remote.Run", fault.Unavailable, text).
		Hint("look whether ordain agent runs there, and at its log")
}

// actions are the actions of tasks in the protocol.
var actions = map[executor.Action]protocol.Action{
	executor.Deploy: protocol.Deploy, executor.DryRun: protocol.DryRun, executor.GetFacts: protocol.Facts,
}

// subjectOf returns a text that is the same for two tasks that would do the same.
func subjectOf(t executor.Task) string {
	sum := sha256.New()
	fmt.Fprintf(
		sum,
		"%s\x00%s\x00%d\x00%s\x00%s",
		t.Action,
		t.Resource.ID,
		t.Resource.Version,
		t.Resource.AttributeHash,
		t.Blueprint.Hash(),
	)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// adopt takes the answer of a command of an earlier owner that does what a task would do. It returns false if there is
// none, or if that command did not get as far as a handler.
func (e *Executor) adopt(
	ctx context.Context,
	t executor.Task,
	subject string,
	began time.Time,
) (executor.Result, bool) {
	if t.Action != executor.Deploy { // what another action found may be too old
		return executor.Result{}, false
	}
	e.mu.Lock()
	ids := e.adopted[subject]
	delete(e.adopted, subject)
	e.mu.Unlock()
	for n, id := range ids {
		answered, stop := e.expect(id, t.Resource.ID.Agent)
		answered <- struct{}{} // it may be there already
		answer, err := e.await(ctx, id, answered)
		stop()
		if err != nil {
			e.mu.Lock()
			e.adopted[subject] = append(ids[n:], e.adopted[subject]...)
			e.mu.Unlock()
			return failed(t, began, intent.StatusUnavailable, err), true
		}
		e.finish(id)
		switch answer.Status {
		case protocol.Lost, protocol.Late, protocol.Cancelled, protocol.Refused:
			continue
		}
		e.c.Logger.Info(
			"a remote agent answered a command of an earlier owner",
			"agent",
			t.Resource.ID.Agent,
			"command",
			id,
		)
		r := e.result(t, answer, began)
		r.Messages = append(
			r.Messages,
			line("INFO", "The command "+id.String()+" did this before the server that sent it ended"),
		)
		return r, true
	}
	return executor.Result{}, false
}

// command records the command of a task and waits for its answer.
func (e *Executor) command(
	ctx context.Context,
	agent string,
	t executor.Task,
	subject string,
	p *parcel,
) (protocol.AnswerBody, error) {
	timeout := t.Timeout
	if timeout <= 0 {
		timeout = e.c.Timeout
	}
	m := protocol.CommandMessage{
		ID: t.ID.String(), Action: actions[t.Action],
		DeadlineMS: (timeout + startTime).Milliseconds(), Needs: p.needs,
		Payload: protocol.Payload{Blueprint: &p.blueprint, Task: taskOf(t, timeout)},
	}
	if m.Action == "" {
		return protocol.AnswerBody{}, fault.New(
			"remote.Run",
			fault.Internal,
			"remote agents know no action "+string(t.Action),
		)
	}
	answered, stop := e.expect(t.ID, agent)
	defer stop()
	if err := e.c.Record.Put(ctx, e.c.Environment, agent, subject, m); err != nil {
		return protocol.AnswerBody{}, err
	}
	answer, err := e.await(ctx, t.ID, answered)
	if err == nil {
		e.finish(t.ID)
		return answer, nil
	}
	if errors.Is(context.Cause(ctx), executor.ErrEnd) {
		cancelled, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if err := e.c.Record.Cancel(cancelled, e.c.Environment, t.ID); err != nil {
			return answer, err
		}
		// A handler may take a moment to end.
		if answer, again := e.await(cancelled, t.ID, answered); again == nil {
			e.finish(t.ID)
			return answer, nil
		}
	}
	return answer, err
}

// expect makes wake know a command. The returned function ends that.
func (e *Executor) expect(id intent.ActionID, agent string) (chan struct{}, func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	answered := make(chan struct{}, 1)
	e.waiting[id] = waiter{agent, answered}
	return answered, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, id)
	}
}

// await waits for the answer of a command.
func (e *Executor) await(
	ctx context.Context,
	id intent.ActionID,
	answered <-chan struct{},
) (protocol.AnswerBody, error) {
	for {
		select {
		case <-answered:
		case <-ctx.Done():
			return protocol.AnswerBody{}, ctx.Err()
		case <-e.ctx.Done():
			return protocol.AnswerBody{}, fault.New("remote.Run", fault.Unavailable, "this server stops")
		}
		answers, err := e.c.Record.Answers(ctx, e.c.Environment, []intent.ActionID{id})
		if answer, ok := answers[id]; ok && err == nil {
			return answer, nil
		}
		if err != nil && ctx.Err() == nil {
			e.c.Logger.Warn("an answer of a remote agent cannot be read; trying again", "command", id, "error", err)
		}
	}
}

// finish lets a sweep delete a command when its result is recorded.
func (e *Executor) finish(id intent.ActionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.old, id)
	e.ended[id] = time.Now()
}

func taskOf(t executor.Task, timeout time.Duration) *protocol.Task {
	out := &protocol.Task{
		Reason: t.Reason, Requires: map[string]string{}, DependencyChanged: t.DependencyChanged, Lanes: t.Lanes,
		TimeoutMS: timeout.Milliseconds(),
		Resource: protocol.Resource{
			ID: t.Resource.ID.String(), Version: t.Resource.Version, Attributes: t.Resource.Attributes,
			Requires: []string{},
		},
	}
	if len(out.Resource.Attributes) == 0 {
		out.Resource.Attributes = json.RawMessage("{}")
	}
	for _, id := range t.Resource.Requires {
		out.Resource.Requires = append(out.Resource.Requires, id.String())
	}
	for id, status := range t.Requires {
		out.Requires[id.String()] = string(status)
	}
	return out
}
