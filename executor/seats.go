package executor

import (
	"context"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// seat is what one agent has in the process of one blueprint: a thread, a cache
// and connections, once for each of its lanes. Tasks in the same lane run one
// after the other.
type seat struct {
	free  chan int   // lanes that no task holds
	lanes int        // how many lanes were made
	tasks int        // tasks that hold a lane or wait for one
	sent  []*taskRun // tasks in the process, in the order in which they were sent
	held  bool       // the process has the agent, which counts against AgentCap
	busy  int        // tasks that have the seat, or are waiting for the process with it
	// threads has the numbers of the threads of the process, by lane.
	threads map[int]string
	used    time.Time // when a task last gave it back
}

// addLanes makes lanes until there are as many as a task asks for. The caller holds mu.
func (s *seat) addLanes(wanted int) {
	for s.lanes < min(max(wanted, 1), intent.MostConcurrency) {
		s.free <- s.lanes
		s.lanes++
	}
}

// takeLane waits until a lane of the task's agent is free in the task's
// blueprint. The task holds the lane until releaseLane.
func (m *Manager) takeLane(ctx context.Context, r *taskRun) error {
	m.mu.Lock()
	r.executor = m.executor(r.task.Blueprint)
	agent := r.agent()
	r.seat = r.executor.seats[agent]
	if r.seat == nil {
		r.seat = &seat{free: make(chan int, intent.MostConcurrency)}
		r.executor.seats[agent] = r.seat
	}
	r.seat.addLanes(r.task.Lanes)
	r.executor.tasks++
	r.seat.tasks++
	m.mu.Unlock()
	select {
	case r.lane = <-r.seat.free:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		m.uncount(r)
		return ctx.Err()
	}
}

// releaseLane passes the lane of a task on: to the next task that was sent
// behind it, which begins if the process lives on, or else to any waiting task.
func (m *Manager) releaseLane(r *taskRun, processLives bool) {
	m.mu.Lock()
	s := r.seat
	s.sent = slices.DeleteFunc(s.sent, func(o *taskRun) bool { return o == r })
	next := slices.IndexFunc(s.sent, func(o *taskRun) bool { return o.lane == r.lane })
	var begins *taskRun
	if next < 0 {
		s.free <- r.lane
	} else if o := s.sent[next]; processLives && !o.begun {
		o.begun = true
		begins = o
	}
	m.uncount(r)
	m.mu.Unlock()
	if begins != nil {
		begins.startClock()
	}
}

// uncount removes a task from its seat and its executor. The caller holds mu.
func (m *Manager) uncount(r *taskRun) {
	delete(m.behind, r.task.ID)
	r.executor.tasks--
	r.seat.tasks--
	r.executor.dropSeat(r.agent(), r.seat)
}

// dropSeat forgets a seat that the process does not have and no task needs. The caller holds mu.
func (e *executor) dropSeat(agent string, s *seat) {
	if !s.held && s.tasks == 0 && e.seats[agent] == s {
		delete(e.seats, agent)
	}
}

// reserve gives a task a lane and a process if it has to wait for neither. A
// task with Behind gets the lane of the task before it. The caller holds mu.
func (m *Manager) reserve(r *taskRun) bool {
	e := m.executor(r.task.Blueprint)
	s := e.seats[r.agent()]
	if m.closed || s == nil || !s.held || e.current == nil {
		return false
	}
	w := m.usable(e)
	if w == nil {
		return false
	}
	switch {
	case r.task.Behind && s.lanes > 1, r.task.Behind && len(s.sent) > 0 && s.sent[0].process != w:
		return false
	case r.task.Behind && len(s.sent) > 0:
		r.lane = s.sent[0].lane
	default: // also a task with Behind, if the one before it has ended meanwhile
		s.addLanes(r.task.Lanes)
		select {
		case r.lane = <-s.free:
		default:
			return false
		}
		r.begun = true
	}
	if r.task.Behind {
		m.behind[r.task.ID] = r
	}
	r.executor, r.seat, r.process = e, s, w
	e.tasks++
	s.tasks++
	s.busy++
	w.running++
	s.sent = append(s.sent, r)
	m.startWatch()
	return true
}

// takeSeat takes a seat for an agent. It returns false when the agent has
// AgentCap seats and all are busy. The caller holds mu.
func (m *Manager) takeSeat(e *executor, agent string) bool {
	s := e.seats[agent]
	if s == nil || s.held {
		if s != nil {
			s.busy++
		}
		return true
	}
	var others int
	var oldest *executor
	for _, o := range m.executors {
		other := o.seats[agent]
		if o == e || other == nil || !other.held {
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
		m.giveUpSeat(oldest, agent)
	}
	s.held = true
	s.busy++
	return true
}

// returnSeat undoes takeSeat for a task that got no process. The caller holds mu.
func (m *Manager) returnSeat(e *executor, agent string) {
	if s := e.seats[agent]; s != nil && s.busy > 0 {
		s.busy--
		s.held = s.busy > 0 || e.current != nil && !s.used.IsZero()
		m.wakeWaiters()
	}
}

// giveUpSeat takes an idle seat away from an agent: the process releases what it
// holds for the agent, or ends if it serves no other. The caller holds mu.
func (m *Manager) giveUpSeat(e *executor, agent string) {
	s := e.seats[agent]
	s.held = false
	e.dropSeat(agent, s)
	w := e.current
	if w == nil {
		return
	}
	if e.seatsHeld() == 0 && w.running == 0 && e.tasks == 0 {
		m.c.Logger.Info("an executor ends because its last agent left it",
			"executor", e.hash, "pid", w.session.PID(), "agent", agent)
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

// seatsHeld counts the agents that the process has. The caller holds mu.
func (e *executor) seatsHeld() int {
	var n int
	for _, s := range e.seats {
		if s.held {
			n++
		}
	}
	return n
}
