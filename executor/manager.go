package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/internal/python/worker"
)

// Manager runs the executors of one environment. It is safe for concurrent use.
type Manager struct {
	c       Config
	runtime string // folder of the Python runtime

	ctx    context.Context // ends with Close; starts and kills hang on it
	cancel context.CancelFunc

	making sync.RWMutex // held for reading while folders are made, for writing while they are removed

	mu        sync.Mutex
	executors map[string]*executor     // by blueprint hash
	processes int                      // running or being started
	retiring  int                      // of them, those that will end and leave their place
	queue     []*executor              // blueprints that wait for a place, first come first served
	freed     chan struct{}            // closed and replaced when a process may have become free
	waiting   int                      // who waits for that
	behind    map[intent.ActionID]*run // tasks that are behind another one
	workers   map[*process]bool        // processes that have not ended
	watching  bool                     // a goroutine counts what handlers start
	calm      int                      // processes of the machine when ours were counted last
	grown     bool                     // folders were made since Clean looked at how large they are
	lastUsed  map[string]bool          // folders that were in use then
	closed    bool
	// generation counts calls of Renew: a process of an older one gets no tasks.
	generation int
	work       sync.WaitGroup // starts and killers

	// report is what Report found on disk, and when.
	report struct {
		sync.Mutex
		at      time.Time
		folders []intent.ExecutorFolder
		total   int64
	}
}

// executor is one blueprint: at most one process that takes tasks, and any
// number of retired ones that finish theirs.
type executor struct {
	hash      string
	blueprint intent.Blueprint
	seats     map[string]*seat // by agent
	tasks     int              // that run or wait
	waiting   int              // of them, those that wait for a place or a seat
	queued    bool             // in the manager's queue for a place

	current  *process
	starting *starting
	failed   error // why the last start failed
	failedAt time.Time
}

// starting is a start that several tasks wait for.
type starting struct {
	done   chan struct{}
	worker *process
	err    error
}

// process is one process.
type process struct {
	executor *executor
	session  worker.Session
	started  time.Time
	printed  *output
	files    []file            // that it was started on
	masks    *strings.Replacer // of secrets in its environment
	// generation of the manager when its start began
	generation int

	// Under the manager's mutex.
	running   int
	looked    time.Time // when its files were looked at last
	idleSince time.Time
	retired   bool
	hung      bool
	idle      chan struct{} // closed when a retired worker has nothing to do any more
	why       string        // it was ended for, when that was us
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
		workers: map[*process]bool{}, behind: map[intent.ActionID]*run{}, calm: worker.SystemTasks(),
	}
	if !c.KeepDaemons {
		if n := worker.KillMarked(m.mark()); n > 0 {
			c.Logger.Warn("processes of handlers outlived a server that was killed; they were ended", "processes", n)
		}
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// mark names all processes of this environment's executors. It tells
// environments of several servers on one machine apart by where they lie.
func (m *Manager) mark() string {
	sum := sha256.Sum256([]byte(m.c.Layout.Environment(m.c.Environment).Dir()))
	return hex.EncodeToString(sum[:8]) + "-"
}

var errClosed = errors.New("the executors of this environment are stopped")

// Prepare starts the process of each blueprint, so that the first task finds
// it ready. It gives what went wrong, joined.
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

// executor finds or makes the entry of a blueprint. The caller holds mu.
func (m *Manager) executor(b intent.Blueprint) *executor {
	hash := b.Hash()
	e := m.executors[hash]
	if e == nil {
		e = &executor{hash: hash, blueprint: b, seats: map[string]*seat{}}
		m.executors[hash] = e
	}
	return e
}

// Close ends all processes: tasks that run may finish while ctx lasts, but no
// longer than closeGrace; then they fail. No task starts any more.
func (m *Manager) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	m.mu.Lock()
	m.closed = true
	m.waiting++
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
	m.waiting--
	var sessions []worker.Session
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
