package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"ordain.dev/ordain/internal/python/worker"
)

const (
	// closeGrace is how long a process may take to end in an orderly way.
	closeGrace = 5 * time.Second
	// checkFilesEvery limits how often the files of a busy process are checked.
	checkFilesEvery = 10 * time.Millisecond
)

// process is a worker process of an executor.
type process struct {
	executor   *executor
	session    worker.Session
	started    time.Time
	printed    *output
	files      []file            // the process cannot go on without these
	masks      *strings.Replacer // hides secrets of its environment
	generation int               // of the manager when the start began

	// The manager's mutex guards these.
	running        int // tasks
	filesCheckedAt time.Time
	idleSince      time.Time
	retired        bool
	hung           bool
	idle           chan struct{} // closed when a retired process has no tasks left
	endedFor       string        // why we ended it, if we did
	allowance      *Allowance    // that gave its place
	ender          *taskRun      // the task whose handler has said that it ends the process
	enderCall      string        // how
	blame          *blame        // whose handler ended it, once it has ended by itself
}

// file is a file or folder that a process was started with.
type file struct {
	path string
	info os.FileInfo
}

// missingFile returns the path of a file that the process was started with and
// that was removed or replaced since, or an empty string.
func (w *process) missingFile() string {
	for _, f := range w.files {
		if now, err := os.Stat(f.path); err != nil || !os.SameFile(now, f.info) {
			return f.path
		}
	}
	return ""
}

// usable returns the process of a blueprint if it can take a task, or nil. It
// retires a process that lost its files or has old variables. The caller holds mu.
func (m *Manager) usable(e *executor) *process {
	w := e.current
	if w == nil {
		return nil
	}
	select {
	case <-w.session.Done():
		m.detach(w)
		return nil
	default:
	}
	if w.running == 0 || time.Since(w.filesCheckedAt) >= checkFilesEvery {
		w.filesCheckedAt = time.Now()
		if path := w.missingFile(); path != "" {
			m.c.Logger.Warn("an executor is replaced because a file that it was started with was removed",
				"executor", e.hash, "pid", w.session.PID(), "path", path)
			m.retire(w)
			return nil
		}
	}
	if w.generation != m.generation {
		m.c.Logger.Info("an executor is replaced because the variables of handlers changed",
			"executor", e.hash, "pid", w.session.PID())
		m.retire(w)
		return nil
	}
	return w
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
		s.allowance.give(m)
		m.wakeWaiters()
		m.c.Logger.Error("an executor cannot start", "executor", e.hash, "error", err)
	} else {
		e.current, w.allowance = w, s.allowance
		m.workers[w] = true
		w.idleSince = time.Now()
		m.work.Go(func() { m.awaitEnd(w) })
		m.c.Logger.Info("an executor started", "executor", e.hash, "pid", w.session.PID())
		if m.closed {
			go w.session.Kill()
		}
	}
	close(s.done)
}

// awaitEnd waits for the end of a process, whatever ends it, and frees its place.
func (m *Manager) awaitEnd(w *process) {
	<-w.session.Done()
	w.printed.flush()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.detach(w)
	delete(m.workers, w)
	m.processes--
	w.allowance.give(m)
	if w.retired {
		m.retiring--
	}
	m.wakeWaiters()
}

// detach makes sure that a process gets no more tasks: the next task of its
// blueprint starts a new one. Seats that no task uses end with it. The caller holds mu.
func (m *Manager) detach(w *process) {
	e := w.executor
	if e.current != w {
		return
	}
	e.current = nil
	for agent, s := range e.seats {
		if s.busy == 0 {
			s.held = false
			e.dropSeat(agent, s)
		}
	}
}

// retire takes a process out of service: it gets no more tasks, and ends when
// its running tasks are done. The caller holds mu.
func (m *Manager) retire(w *process) {
	m.detach(w)
	if w.retired || m.closed { // Close ends the process
		return
	}
	w.retired, w.idle = true, make(chan struct{})
	if runs := m.notBegunIn(w); len(runs) > 0 {
		m.work.Go(func() { retract(runs) })
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

// retireOnRequest retires a process that asked to be replaced.
func (m *Manager) retireOnRequest(w *process, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.c.Logger.Warn("an executor is replaced before its next task",
		"executor", w.executor.hash, "pid", w.session.PID(), "reason", reason)
	m.retire(w)
}

// retireHung retires a process with a hung handler and kills it when its other
// tasks are done, at the latest after HangGrace. The caller still holds a place
// in the process. The returned channel is closed when the process is dead.
func (m *Manager) retireHung(w *process) <-chan struct{} {
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
			m.c.Logger.Warn("an executor with a hung handler was ended",
				"executor", w.executor.hash, "pid", w.session.PID())
		})
	}
	return w.session.Done()
}
