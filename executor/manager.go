package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/pyworker"
)

// Manager runs the executors of one environment. It is safe for concurrent use.
type Manager struct {
	c       Config
	runtime string // folder of the Python runtime

	ctx    context.Context // ends with Close; starts and kills hang on it
	cancel context.CancelFunc

	mu        sync.Mutex
	executors map[string]*executor // by blueprint hash
	processes int                  // running or being started
	freed     chan struct{}        // closed and replaced when a process may have become free
	closed    bool
	work      sync.WaitGroup // starts and killers
}

// executor is one blueprint: at most one process that takes tasks, and any
// number of condemned ones that finish theirs.
type executor struct {
	hash      string
	blueprint intent.Blueprint
	agents    map[string]chan struct{} // holds a token while no task of the agent runs
	tasks     int                      // that run or wait

	current  *worker
	starting *starting
	failed   error // why the last start failed
	failedAt time.Time
}

// starting is a start that several tasks wait for.
type starting struct {
	done   chan struct{}
	worker *worker
	err    error
}

// worker is one process.
type worker struct {
	executor *executor
	session  pyworker.Session
	started  time.Time
	venv     string

	// Under the manager's mutex.
	running   int
	idleSince time.Time
	condemned bool
	idle      chan struct{} // closed when a condemned worker has nothing to do any more
}

// NewManager checks the configuration and unpacks the Python runtime.
func NewManager(c Config) (*Manager, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	runtime, err := pyworker.UnpackRuntime(c.Layout.CacheDir())
	if err != nil {
		return nil, err
	}
	if err := c.Layout.Environment(c.Environment).Prepare(); err != nil {
		return nil, err
	}
	m := &Manager{c: c, runtime: runtime, executors: map[string]*executor{}, freed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

var errClosed = errors.New("the executors of this environment are stopped")

// Prepare starts the process of each blueprint, so that the first task finds
// it ready. It gives what went wrong, joined.
func (m *Manager) Prepare(ctx context.Context, blueprints []intent.Blueprint) error {
	failed := make([]error, len(blueprints))
	var all sync.WaitGroup
	for n, b := range blueprints {
		all.Go(func() {
			w, err := m.acquire(ctx, b)
			if err != nil {
				failed[n] = err
				return
			}
			m.release(w)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// executor finds or makes the entry of a blueprint. The caller holds mu.
func (m *Manager) executor(b intent.Blueprint) *executor {
	hash := b.Hash()
	e := m.executors[hash]
	if e == nil {
		e = &executor{hash: hash, blueprint: b, agents: map[string]chan struct{}{}}
		m.executors[hash] = e
	}
	return e
}

// acquire gives the process of a blueprint, started if need be; release gives
// it back.
func (m *Manager) acquire(ctx context.Context, b intent.Blueprint) (*worker, error) {
	for {
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			return nil, errClosed
		}
		e := m.executor(b)
		if w := e.current; w != nil {
			select {
			case <-w.session.Done():
				m.gone(w)
			default:
				w.running++
				m.mu.Unlock()
				return w, nil
			}
		}
		if e.starting == nil {
			if e.failed != nil && time.Since(e.failedAt) < m.c.StartRetry {
				m.mu.Unlock()
				return nil, e.failed
			}
			if m.processes >= m.c.Cap && !m.evict() {
				freed := m.freed
				m.mu.Unlock()
				select {
				case <-freed:
					continue
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			m.processes++
			e.starting = &starting{done: make(chan struct{})}
			m.work.Add(1)
			go m.start(e, e.starting)
		}
		s := e.starting
		m.mu.Unlock()
		select {
		case <-s.done:
			if s.err != nil {
				return nil, s.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
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
		w.idleSince = time.Now()
		m.work.Go(func() { // notice the end, whoever caused it
			<-w.session.Done()
			m.mu.Lock()
			defer m.mu.Unlock()
			m.gone(w)
			m.processes--
			m.announce()
		})
		m.c.Logger.Info("an executor started", "executor", e.hash, "pid", w.session.PID())
		if m.closed {
			go w.session.Kill()
		}
	}
	close(s.done)
}

// gone forgets a process that ended. The caller holds mu.
func (m *Manager) gone(w *worker) {
	if w.executor.current == w {
		w.executor.current = nil
	}
}

// announce wakes those that wait for a free process. The caller holds mu.
func (m *Manager) announce() {
	close(m.freed)
	m.freed = make(chan struct{})
}

// evict ends the process that has been idle longest, to make room; false when
// all are busy. The caller holds mu.
func (m *Manager) evict() bool {
	var oldest *worker
	for _, e := range m.executors {
		if w := e.current; w != nil && w.running == 0 && (oldest == nil || w.idleSince.Before(oldest.idleSince)) {
			oldest = w
		}
	}
	if oldest == nil {
		return false
	}
	m.gone(oldest)
	// It still counts until it has ended, and its end announces the room.
	m.work.Go(func() { _ = oldest.session.Close(closeGrace) })
	return false
}

const closeGrace = 5 * time.Second

// release gives a process back.
func (m *Manager) release(w *worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.running--
	if w.running > 0 {
		return
	}
	w.idleSince = time.Now()
	if w.condemned {
		close(w.idle) // nobody acquires a condemned process, so this happens once
	}
	m.announce()
}

// condemn takes a process with a hung handler out of service: it gets no more
// tasks, and is killed when its other tasks are done or after HangGrace. The
// caller has not released it yet. The channel is closed once it is dead.
func (m *Manager) condemn(w *worker) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone(w)
	if !w.condemned && !m.closed { // Close ends it as well
		w.condemned = true
		w.idle = make(chan struct{})
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
			m.c.Logger.Warn("an executor with a hung handler was ended", "executor", w.executor.hash, "pid", w.session.PID())
		})
	}
	return w.session.Done()
}

// Close ends all processes: tasks that run may finish while ctx lasts, but no
// longer than closeGrace; then they fail. No task starts any more.
func (m *Manager) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	m.mu.Lock()
	m.closed = true
	m.announce()
	for ctx.Err() == nil && m.busy() {
		freed := m.freed
		m.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
	var sessions []pyworker.Session
	for _, e := range m.executors {
		if e.current != nil {
			sessions = append(sessions, e.current.session)
		}
	}
	m.mu.Unlock()
	grace := time.Second // to give back what handlers hold
	if ctx.Err() != nil {
		grace = 0
	}
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() { _ = s.Close(grace) })
	}
	all.Wait()
	m.cancel()
	m.work.Wait()
	return nil
}

// busy says whether any task runs. The caller holds mu.
func (m *Manager) busy() bool {
	for _, e := range m.executors {
		if e.current != nil && e.current.running > 0 {
			return true
		}
	}
	return false
}

// Stat describes a running process, for pages and metrics.
type Stat struct {
	Executor string // hash of the blueprint
	PID      int
	RSS      int64 // bytes
	Running  int   // tasks
	Started  time.Time
}

// Stats lists the running processes.
func (m *Manager) Stats() []Stat {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Stat
	for hash, e := range m.executors {
		if w := e.current; w != nil {
			out = append(out, Stat{Executor: hash, PID: w.session.PID(), RSS: w.session.RSS(), Running: w.running, Started: w.started})
		}
	}
	return out
}
