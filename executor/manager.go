package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/python/worker"
)

// Manager runs the executors of one environment. It is safe for concurrent use.
type Manager struct {
	c       Config
	runtime string // folder of the Python runtime

	ctx    context.Context // ends with Close, and with it all starts and processes
	cancel context.CancelFunc

	making sync.RWMutex // held for reading while folders are made, for writing while they are removed

	mu         sync.Mutex
	executors  map[string]*executor         // by blueprint hash
	workers    map[*process]bool            // processes that have not ended
	processes  int                          // places taken: processes that run or are being started
	retiring   int                          // places of processes that will end
	allowance  *Allowance                   // of this manager and others; nil: none
	queue      []*executor                  // blueprints that wait for a place, in the order in which they came
	waiting    int                          // goroutines that wait for freed
	freed      chan struct{}                // closed and replaced when a place or a seat may have become free
	behind     map[intent.ActionID]*taskRun // tasks with Behind that have not ended
	generation int                          // counts the calls of Renew: processes of older generations get no tasks
	watching   bool                         // a goroutine counts the processes that handlers start
	baseline   int                          // tasks of the machine when we last counted those of executors
	grown      bool                         // folders were made since Clean last measured them
	lastUsed   map[string]bool              // folders that were in use then
	doomed     map[string]bool              // virtual environments that RemoveVenvs is to remove
	closed     bool
	work       sync.WaitGroup // goroutines that Close waits for

	// report caches what Report found on disk.
	report struct {
		sync.Mutex
		at      time.Time
		folders []intent.ExecutorFolder
		total   int64
	}
}

// executor is one blueprint, with at most one process that takes tasks. Retired
// processes that still finish theirs are not part of it.
type executor struct {
	hash      string
	blueprint intent.Blueprint
	seats     map[string]*seat // by agent
	tasks     int              // that run or wait
	waiting   int              // tasks that wait for a place or a seat
	queued    bool             // in the manager's queue for a place

	current  *process
	starting *starting
	failed   error // why the last start failed
	failedAt time.Time
}

// starting is a start that tasks wait for.
type starting struct {
	done      chan struct{}
	err       error
	allowance *Allowance // that gave the place
}

// NewManager checks the configuration and unpacks the Python runtime.
func NewManager(c Config) (*Manager, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	runtimeDir, err := runtime.Unpack(c.Layout.CacheDir())
	if err != nil {
		return nil, err
	}
	if err := c.Layout.Environment(c.Environment).Prepare(); err != nil {
		return nil, err
	}
	m := &Manager{
		c: c, runtime: runtimeDir, executors: map[string]*executor{}, freed: make(chan struct{}),
		workers: map[*process]bool{}, behind: map[intent.ActionID]*taskRun{}, baseline: worker.SystemTasks(),
	}
	if !c.KeepDaemons {
		if n := worker.KillMarked(m.mark()); n > 0 {
			c.Logger.Warn("ended processes of handlers that had outlived a killed server", "processes", n)
		}
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// mark is the beginning of the name that all processes of this environment's
// executors carry. It is made of the environment's folder, so several servers on
// one machine have different marks.
func (m *Manager) mark() string {
	sum := sha256.Sum256([]byte(m.c.Layout.Environment(m.c.Environment).Dir()))
	return hex.EncodeToString(sum[:8]) + "-"
}

var errClosed = errors.New("the executors of this environment are stopped")

// Prepare starts the process of each blueprint, so that the first task finds it
// ready. It returns the errors of all, joined.
func (m *Manager) Prepare(ctx context.Context, blueprints []intent.Blueprint) error {
	failed := make([]error, len(blueprints))
	var all sync.WaitGroup
	for n, b := range blueprints {
		all.Go(func() {
			w, err := m.acquire(ctx, b, "")
			if err != nil {
				failed[n] = err
				return
			}
			m.release(w, "")
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// executor returns the executor of a blueprint, which it makes if need be. The caller holds mu.
func (m *Manager) executor(b intent.Blueprint) *executor {
	hash := b.Hash()
	e := m.executors[hash]
	if e == nil {
		e = &executor{hash: hash, blueprint: b, seats: map[string]*seat{}}
		m.executors[hash] = e
	}
	return e
}

// Renew replaces every process before its next task, because the variables of
// handlers changed.
func (m *Manager) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
}

// Close ends all processes. Running tasks may finish while ctx lasts, but no
// longer than closeGrace; after that they fail. No task starts any more.
func (m *Manager) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	m.mu.Lock()
	m.closed = true
	m.waiting++
	m.wakeWaiters()
	for ctx.Err() == nil && m.busy() {
		freed := m.freed
		m.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
	m.waiting--
	var sessions []worker.Session
	for _, e := range m.executors {
		if e.current != nil {
			sessions = append(sessions, e.current.session)
		}
	}
	m.mu.Unlock()
	grace := time.Second // for handlers to release what they hold
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

// busy reports whether any task runs. The caller holds mu.
func (m *Manager) busy() bool {
	for _, e := range m.executors {
		if e.current != nil && e.current.running > 0 {
			return true
		}
	}
	return false
}

// Drop ends the processes of the blueprints with these hashes after their tasks, and lets the next Clean remove the
// folders that were made for them and that nothing else uses.
func (m *Manager) Drop(hashes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	paths := m.c.Layout.Environment(m.c.Environment)
	for _, hash := range hashes {
		dirs := []string{paths.Code(hash)}
		if e := m.executors[hash]; e != nil {
			if e.current != nil {
				m.retire(e.current)
			}
			dirs = append(dirs, paths.Venv(e.blueprint.VenvHash()))
		}
		for _, dir := range dirs {
			venv.Expire(dir)
			_ = os.Chtimes(dir, time.Unix(1, 0), time.Unix(1, 0)) // if it is not there, there is nothing to remove
		}
	}
}
