package executor

import (
	"context"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// How a task gets a process, and what it may have to wait for:
//
//	task ──▶ a seat for its agent in the process of its blueprint (AgentCap per agent)
//	         none left: the agent's least recently used idle seat is given up
//	     ──▶ a place for the process of its blueprint (Cap per environment, and the Allowance of several)
//	         none left: the process that has been idle longest ends; if all are
//	         busy, the oldest one that has had its Turn takes no more tasks and ends
//
// A process whose last seat is given up serves nobody and ends. Blueprints that
// wait for a place get it in the order in which they came.

// acquire returns the process of a blueprint with a seat for the agent, and
// starts the process if need be. Without an agent (empty) it takes no seat.
// The caller gives both back with release.
func (m *Manager) acquire(ctx context.Context, b intent.Blueprint, agent string) (*process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.executor(b)
	e.tasks++ // so that nothing forgets the executor meanwhile
	defer func() { e.tasks-- }()
	w, err := m.awaitProcess(ctx, e, agent)
	if err != nil {
		m.returnSeat(e, agent)
	}
	return w, err
}

// awaitProcess does the waiting of acquire. The caller holds mu, which is
// released during the waiting.
func (m *Manager) awaitProcess(ctx context.Context, e *executor, agent string) (*process, error) {
	for seated := false; ; {
		if m.closed {
			return nil, errClosed
		}
		if !seated && !m.takeSeat(e, agent) {
			if err := m.awaitChange(ctx, e); err != nil {
				return nil, err
			}
			continue
		}
		seated = true
		if w := m.usable(e); w != nil {
			w.running++
			m.startWatch()
			return w, nil
		}
		if e.starting == nil {
			if e.failed != nil && time.Since(e.failedAt) < m.c.StartRetry {
				return nil, e.failed
			}
			if !m.takePlace(e) {
				if err := m.awaitChange(ctx, e); err != nil {
					return nil, err
				}
				continue
			}
			e.starting = &starting{done: make(chan struct{}), allowance: m.allowance}
			m.work.Add(1)
			go m.start(e, e.starting)
		}
		if err := m.awaitStart(ctx, e.starting); err != nil {
			return nil, err
		}
	}
}

// awaitStart waits for the end of a start. The caller holds mu, which is
// released during the waiting.
func (m *Manager) awaitStart(ctx context.Context, s *starting) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitChange waits until a place or a seat may have become free, at most for a
// Turn. The caller holds mu, which is released during the waiting.
func (m *Manager) awaitChange(ctx context.Context, e *executor) error {
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
	e.waiting--
	if err != nil && e.waiting == 0 {
		m.dequeue(e)
	}
	return err
}

// wakeWaiters wakes the callers of awaitChange. The caller holds mu.
func (m *Manager) wakeWaiters() {
	if m.waiting == 0 {
		return
	}
	close(m.freed)
	m.freed = make(chan struct{})
}

// takePlace reports whether a blueprint may start its process now, and counts
// the process if so. Otherwise it queues the blueprint and makes room for it.
// The caller holds mu.
func (m *Manager) takePlace(e *executor) bool {
	here := m.processes < m.c.Cap && (len(m.queue) == 0 || m.queue[0] == e)
	if here && m.allowance.take(m) {
		m.dequeue(e)
		m.processes++
		return true
	}
	if !e.queued {
		e.queued = true
		if here {
			m.c.Logger.Info("an executor waits, because the quota of executors of its project is used up",
				"executor", e.hash)
		}
		m.queue = append(m.queue, e)
	}
	if !here && m.processes-m.retiring+len(m.queue) > m.c.Cap {
		m.makeRoom(false)
	}
	return false
}

// dequeue removes a blueprint from the queue for a place. The caller holds mu.
func (m *Manager) dequeue(e *executor) {
	if !e.queued {
		return
	}
	e.queued = false
	m.queue = slices.DeleteFunc(m.queue, func(o *executor) bool { return o == e })
	m.wakeWaiters() // another blueprint is the first in the queue now
}

// makeRoom retires the process that has been idle longest or, when all are
// busy, the one that was started first, if it has had its turn. It reports whether
// there was one. The caller holds mu.
func (m *Manager) makeRoom(idleOnly bool) bool {
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
	if idle == nil && !idleOnly {
		idle = busy
	}
	if idle == nil {
		return false
	}
	m.c.Logger.Info("an executor ends to make room for another one",
		"executor", idle.executor.hash, "pid", idle.session.PID())
	m.retire(idle)
	return true
}

// release gives a process and a seat back.
func (m *Manager) release(w *process, agent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := w.executor.seats[agent]; s != nil {
		s.busy, s.used = max(0, s.busy-1), time.Now()
		s.held = s.held && (s.busy > 0 || w.executor.current == w)
	}
	w.running--
	if w.running == 0 {
		w.idleSince = time.Now()
		if w.retired {
			close(w.idle) // happens once, because nobody acquires a retired process
		}
	}
	m.wakeWaiters()
}
