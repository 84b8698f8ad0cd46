package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Who gets a process, and who waits:
//
//	task ──▶ seat of its agent in the blueprint's process (AgentCap of them per agent)
//	         full: the agent's least recently used idle seat is given up
//	     ──▶ place for the process of the blueprint (Cap of them per environment)
//	         full: the process that has been idle longest ends; when all are busy
//	         the oldest one that has had its Turn takes no more tasks and ends
//
// A seat is what an agent holds in a process: its thread, its cache and its
// connections. A process whose last seat is given up has nobody to serve and
// ends. Blueprints that wait for a place get it in the order in which they came.

const (
	// closeGrace is how long an orderly end may take.
	closeGrace = 5 * time.Second
	// lookEvery is for how long what a busy process was started on is taken for being there.
	lookEvery = 10 * time.Millisecond
)

// seat is one agent in the process of one blueprint.
type seat struct {
	lanes chan int // free ones; each is held by one task of the agent that runs
	made  int      // lanes that there are, free or not
	tasks int      // that hold a lane or wait for one
	line  []*run   // in its process, in the order in which they were sent
	taken bool     // it counts for the agent
	busy  int      // tasks that are on their way to the process or in it
	used  time.Time
}

// file is something that a process was started on and cannot do without.
type file struct {
	path string
	info os.FileInfo
}

// missing names what a process was started on and is not there any more.
func (w *process) missing() string {
	for _, f := range w.files {
		if now, err := os.Stat(f.path); err != nil || !os.SameFile(now, f.info) {
			return f.path
		}
	}
	return ""
}

// enter waits until one of the lanes of the agent is free on the blueprint:
// tasks in one lane follow each other. It gives the task that lane, until leave.
func (m *Manager) enter(ctx context.Context, r *run) error {
	m.mu.Lock()
	r.e = m.executor(r.task.Blueprint)
	agent := r.task.Resource.ID.Agent
	if r.seat = r.e.seats[agent]; r.seat == nil {
		r.seat = &seat{lanes: make(chan int, intent.MostConcurrency)}
		r.e.seats[agent] = r.seat
	}
	r.seat.widen(r.task.Lanes)
	r.e.tasks++
	r.seat.tasks++
	m.mu.Unlock()
	select {
	case r.lane = <-r.seat.lanes:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		m.left(r)
		return ctx.Err()
	}
}

// widen makes so many lanes. The caller holds the manager's mutex.
func (s *seat) widen(lanes int) {
	for s.made < min(max(lanes, 1), intent.MostConcurrency) {
		s.lanes <- s.made
		s.made++
	}
}

// quick gives a task a place in the process of its blueprint, or behind another
// one there, when it need not wait for anything. The caller holds mu.
func (m *Manager) quick(r *run) bool {
	e := m.executor(r.task.Blueprint)
	s := e.seats[r.task.Resource.ID.Agent]
	if m.closed || s == nil || !s.taken || e.current == nil {
		return false
	}
	w := m.usable(e)
	if w == nil {
		return false
	}
	switch {
	case r.task.Behind && s.made > 1, r.task.Behind && len(s.line) > 0 && s.line[0].w != w:
		return false
	case r.task.Behind && len(s.line) > 0:
		r.lane = s.line[0].lane
	default: // also what was to be behind one that has ended since
		s.widen(r.task.Lanes)
		select {
		case r.lane = <-s.lanes:
		default:
			return false
		}
		r.begun = true
	}
	if r.task.Behind {
		m.behind[r.task.ID] = r
	}
	r.e, r.seat, r.w = e, s, w
	e.tasks++
	s.tasks++
	s.busy++
	w.running++
	s.line = append(s.line, r)
	m.watched()
	return true
}

// leave lets go of the lane of a task: to what is next behind it, which begins when
// the process goes on, or else to whoever waits.
func (m *Manager) leave(r *run, goesOn bool) {
	m.mu.Lock()
	s := r.seat
	s.line = slices.DeleteFunc(s.line, func(o *run) bool { return o == r })
	next := slices.IndexFunc(s.line, func(o *run) bool { return o.lane == r.lane })
	var begins *run
	if next < 0 {
		s.lanes <- r.lane
	} else if o := s.line[next]; goesOn && !o.begun {
		o.begun = true
		begins = o
	}
	m.left(r)
	m.mu.Unlock()
	if begins != nil {
		begins.clock()
	}
}

// left takes a task off its seat. The caller holds mu.
func (m *Manager) left(r *run) {
	delete(m.behind, r.task.ID)
	r.e.tasks--
	if r.seat.tasks--; r.seat.tasks == 0 && !r.seat.taken && r.e.seats[r.task.Resource.ID.Agent] == r.seat {
		delete(r.e.seats, r.task.Resource.ID.Agent)
	}
}

// acquire gives the process of a blueprint, started if need be, with a seat
// for the agent; without an agent (empty) only the process. release gives it back.
func (m *Manager) acquire(ctx context.Context, b intent.Blueprint, agent string) (*process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.executor(b)
	e.tasks++ // nobody forgets it meanwhile
	defer func() { e.tasks-- }()
	w, err := m.acquired(ctx, e, agent)
	if err != nil {
		m.vacate(e, agent)
	}
	return w, err
}

// acquired is acquire; the caller holds mu, which is let go meanwhile.
func (m *Manager) acquired(ctx context.Context, e *executor, agent string) (*process, error) {
	for seated := false; ; {
		if m.closed {
			return nil, errClosed
		}
		if !seated && !m.sit(e, agent) {
			if err := m.wait(ctx, e); err != nil {
				return nil, err
			}
			continue
		}
		seated = true
		if w := m.usable(e); w != nil {
			w.running++
			m.watched()
			return w, nil
		}
		if e.starting == nil {
			if e.failed != nil && time.Since(e.failedAt) < m.c.StartRetry {
				return nil, e.failed
			}
			if !m.place(e) {
				if err := m.wait(ctx, e); err != nil {
					return nil, err
				}
				continue
			}
			m.processes++
			e.starting = &starting{done: make(chan struct{})}
			m.work.Add(1)
			go m.start(e, e.starting)
		}
		if err := m.started(ctx, e.starting); err != nil {
			return nil, err
		}
	}
}

// started waits for a start. The caller holds mu, which is let go meanwhile.
func (m *Manager) started(ctx context.Context, s *starting) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits until a place or a seat may be free. The caller holds mu, which
// is let go meanwhile.
func (m *Manager) wait(ctx context.Context, e *executor) error {
	freed := m.freed
	m.waiting++
	e.waiting++
	m.mu.Unlock()
	turn := time.NewTimer(m.c.Turn)
	defer turn.Stop()
	var err error
	select {
	case <-freed:
	case <-turn.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	m.mu.Lock()
	m.waiting--
	if e.waiting--; err != nil && e.waiting == 0 {
		m.dequeue(e)
	}
	return err
}

// usable is the process of a blueprint if it can take a task. The caller holds mu.
func (m *Manager) usable(e *executor) *process {
	w := e.current
	if w == nil {
		return nil
	}
	select {
	case <-w.session.Done():
		m.gone(w)
		return nil
	default:
	}
	// Beside tasks that run on them anyway, they are not looked at for each.
	if w.running > 0 && time.Since(w.looked) < lookEvery {
		return m.current(e, w)
	}
	w.looked = time.Now()
	if path := w.missing(); path != "" {
		m.c.Logger.Warn(
			"an executor is replaced: what it was started on was removed",
			"executor",
			e.hash,
			"pid",
			w.session.PID(),
			"path",
			path,
		)
		m.retire(w)
		return nil
	}
	return m.current(e, w)
}

// current is w, unless it was started before what handlers see changed. The caller holds mu.
func (m *Manager) current(e *executor, w *process) *process {
	if w.generation != m.generation {
		m.c.Logger.Info(
			"an executor is replaced: the variables for handlers changed",
			"executor",
			e.hash,
			"pid",
			w.session.PID(),
		)
		m.retire(w)
		return nil
	}
	return w
}

// sit takes a seat for an agent; false when the agent has as many as it may
// have and all are busy. The caller holds mu.
func (m *Manager) sit(e *executor, agent string) bool {
	s := e.seats[agent]
	if s == nil || s.taken {
		if s != nil {
			s.busy++
		}
		return true
	}
	var others int
	var oldest *executor
	for _, o := range m.executors {
		other := o.seats[agent]
		if o == e || other == nil || !other.taken {
			continue
		}
		others++
		if other.busy == 0 && (oldest == nil || other.used.Before(oldest.seats[agent].used)) {
			oldest = o
		}
	}
	if others >= m.c.AgentCap {
		if oldest == nil {
			return false
		}
		m.unseat(oldest, agent)
	}
	s.taken = true
	s.busy++
	return true
}

// vacate ends the use of a seat that led to no process. The caller holds mu.
func (m *Manager) vacate(e *executor, agent string) {
	if s := e.seats[agent]; s != nil && s.busy > 0 {
		s.busy--
		s.taken = s.busy > 0 || e.current != nil && !s.used.IsZero()
		m.announce()
	}
}

// unseat gives up an idle seat: the process lets go of what the agent holds
// there, and ends when it serves nobody else. The caller holds mu.
func (m *Manager) unseat(e *executor, agent string) {
	s := e.seats[agent]
	if s.taken = false; s.tasks == 0 {
		delete(e.seats, agent)
	}
	w := e.current
	if w == nil {
		return
	}
	if e.taken() == 0 && w.running == 0 && e.tasks == 0 {
		m.c.Logger.Info(
			"an executor ends, for its last agent left",
			"executor",
			e.hash,
			"pid",
			w.session.PID(),
			"agent",
			agent,
		)
		m.retire(w)
		return
	}
	m.work.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, closeGrace)
		defer cancel()
		if err := w.session.Call(ctx, "leave", map[string]any{"agent": agent}, nil, nil, nil); err != nil {
			m.c.Logger.Debug("an agent could not leave its executor", "executor", e.hash, "agent", agent, "error", err)
		}
	})
}

// taken counts the agents that have a seat.
func (e *executor) taken() int {
	var n int
	for _, s := range e.seats {
		if s.taken {
			n++
		}
	}
	return n
}

// place says whether a blueprint may start its process now; if not it stands
// in the queue, and room is made. The caller holds mu.
func (m *Manager) place(e *executor) bool {
	if m.processes < m.c.Cap && (len(m.queue) == 0 || m.queue[0] == e) {
		m.dequeue(e)
		return true
	}
	if !e.queued {
		e.queued = true
		m.queue = append(m.queue, e)
	}
	if m.processes-m.retiring+len(m.queue) > m.c.Cap {
		m.makeRoom()
	}
	return false
}

// dequeue takes a blueprint out of the queue. The caller holds mu.
func (m *Manager) dequeue(e *executor) {
	if !e.queued {
		return
	}
	e.queued = false
	m.queue = slices.DeleteFunc(m.queue, func(o *executor) bool { return o == e })
	m.announce() // the next one is the first now
}

// makeRoom retires the process that has been idle longest. When all are busy
// it is the one that serves longest, after its turn. The caller holds mu.
func (m *Manager) makeRoom() {
	var idle, busy *process
	for _, e := range m.executors {
		switch w := e.current; {
		case w == nil:
		case w.running == 0 && e.tasks == 0:
			if idle == nil || w.idleSince.Before(idle.idleSince) {
				idle = w
			}
		case time.Since(w.started) >= m.c.Turn && (busy == nil || w.started.Before(busy.started)):
			busy = w
		}
	}
	if idle == nil {
		idle = busy
	}
	if idle != nil {
		m.c.Logger.Info(
			"an executor ends to make room for another",
			"executor",
			idle.executor.hash,
			"pid",
			idle.session.PID(),
		)
		m.retire(idle)
	}
}

// start makes what the blueprint needs and starts its process.
func (m *Manager) start(e *executor, s *starting) {
	defer m.work.Done()
	ctx, cancel := context.WithTimeout(m.ctx, m.c.StartTimeout)
	defer cancel()
	w, err := m.launch(ctx, e)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the executor was not ready after %s: %w", m.c.StartTimeout, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.starting, s.err = nil, err
	e.failed, e.failedAt = err, time.Now()
	if err != nil {
		m.processes--
		m.announce()
		m.c.Logger.Error("an executor cannot start", "executor", e.hash, "error", err)
	} else {
		e.current, s.worker = w, w
		m.workers[w] = true
		w.idleSince = time.Now()
		m.work.Go(func() { m.follow(w) })
		m.c.Logger.Info("an executor started", "executor", e.hash, "pid", w.session.PID())
		if m.closed {
			go w.session.Kill()
		}
	}
	close(s.done)
}

// follow notices the end of a process, whoever caused it.
func (m *Manager) follow(w *process) {
	<-w.session.Done()
	w.printed.flush()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone(w)
	delete(m.workers, w)
	m.processes--
	if w.retired {
		m.retiring--
	}
	m.announce()
}

// gone forgets a process that ended or takes no more tasks, with the seats in
// it that nobody uses. The caller holds mu.
func (m *Manager) gone(w *process) {
	e := w.executor
	if e.current != w {
		return
	}
	e.current = nil
	for agent, s := range e.seats {
		if s.busy == 0 {
			if s.taken = false; s.tasks == 0 {
				delete(e.seats, agent)
			}
		}
	}
}

// announce wakes those that wait for a place or a seat. The caller holds mu.
func (m *Manager) announce() {
	if m.waiting == 0 {
		return
	}
	close(m.freed)
	m.freed = make(chan struct{})
}

// release gives a process and a seat back.
func (m *Manager) release(w *process, agent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := w.executor.seats[agent]; s != nil {
		s.busy, s.used = max(0, s.busy-1), time.Now()
		s.taken = s.taken && (s.busy > 0 || w.executor.current == w)
	}
	if w.running--; w.running == 0 {
		w.idleSince = time.Now()
		if w.retired {
			close(w.idle) // nobody acquires a retired process, so this happens once
		}
	}
	m.announce()
}

// retire takes a process out of service: it gets no more tasks, and ends when
// those that run are done. The caller holds mu.
func (m *Manager) retire(w *process) {
	m.gone(w)
	if w.retired || m.closed { // Close ends it as well
		return
	}
	w.retired, w.idle = true, make(chan struct{})
	if behind := m.behindOn(w); len(behind) > 0 {
		m.work.Go(func() { recall(behind) })
	}
	m.retiring++
	if w.running == 0 {
		close(w.idle)
	}
	m.work.Go(func() {
		select {
		case <-w.idle:
			_ = w.session.Close(closeGrace)
		case <-w.session.Done():
		case <-m.ctx.Done():
			w.session.Kill()
		}
	})
}

// behindOn lists what is behind in a process. The caller holds mu.
func (m *Manager) behindOn(w *process) []*run {
	var out []*run
	for _, r := range m.behind {
		if r.w == w && !r.begun {
			out = append(out, r)
		}
	}
	return out
}

// retireFor retires a process that says itself that it should be.
func (m *Manager) retireFor(w *process, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.c.Logger.Warn(
		"an executor is replaced before its next task",
		"executor",
		w.executor.hash,
		"pid",
		w.session.PID(),
		"reason",
		why,
	)
	m.retire(w)
}

// condemn retires a process with a hung handler: it is killed when its other
// tasks are done or after HangGrace. The caller has not released it yet. The
// channel is closed once it is dead.
func (m *Manager) condemn(w *process) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retire(w)
	if w.retired && !w.hung {
		w.hung = true
		m.work.Go(func() {
			timer := time.NewTimer(m.c.HangGrace)
			defer timer.Stop()
			select {
			case <-w.idle:
			case <-timer.C:
			case <-w.session.Done():
			case <-m.ctx.Done():
			}
			w.session.Kill()
			m.c.Logger.Warn(
				"an executor with a hung handler was ended",
				"executor",
				w.executor.hash,
				"pid",
				w.session.PID(),
			)
		})
	}
	return w.session.Done()
}
