package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/internal/python/worker"
)

// DefaultCallTimeout is how long a plug-in may run if Config has no timeout.
const DefaultCallTimeout = 10 * time.Minute

// Config says which worker to start, and what its plug-ins can read.
type Config struct {
	Python     string   // interpreter of the project's virtual environment
	RuntimeDir string   // from runtime.Unpack
	Path       []string // further folders for sys.path, such as site-packages of another environment
	ProjectDir string   // folder of project.yml, the working directory of the worker

	ProjectName string
	// Metadata is project.yml, for plug-ins that read Project.get().metadata.
	Metadata map[string]any
	// ModulePath are the folders with modules of the first generation. Their Python code can be
	// imported even if the model does not load them.
	ModulePath []string
	// AutoStd: every model file imports std implicitly.
	AutoStd bool
	// About reads the metadata of the module in a folder, for Python code that asks for it;
	// nil: there is none.
	About func(root string) (*module.About, error)
	// Settings are configuration options by section and name, such as config.environment.
	Settings map[string]map[string]any
	// Known is what the server knows; nil without a server.
	Known *Known
	// Clusters are those that the module ordain sees.
	Clusters Clusters

	Env         []string // the environment of the worker; empty: a minimal one
	MemoryMax   uint64
	CallTimeout time.Duration // 0: DefaultCallTimeout
	// CacheDir is where tables of loads are kept; empty: nowhere.
	CacheDir string
	// Warm is a template that is copied instead of starting a worker, if that makes no
	// difference; nil: there is none.
	Warm *Warm
	// OnOutput receives what plug-ins write to standard error, and what programs print that
	// they start.
	OnOutput func(stream, line string)
	// OnPrint receives each line that plug-ins print to standard output, when they print it; nil: nobody reads along.
	// The results of calls have these lines too.
	OnPrint func(line string)
}

// Known is what a server knows and plug-ins may ask for. It is passed from the server to the
// compiler and on to the worker.
type Known struct {
	Environment Environment `json:"environment"`
	// Facts are facts by resource id and name. Those with an empty resource id are parameters
	// of the environment.
	Facts map[string]map[string]string `json:"facts"`
}

// Clusters are the clusters of an environment by name, each as the module ordain reads it (server/cluster/view). They
// stay in the compiler, because they may be large: the worker asks for those that a model uses.
type Clusters map[string]json.RawMessage

// answer returns the names of all clusters or, with a name, that cluster; null: there is none.
func (c Clusters) answer(name *string) any {
	if name == nil {
		return slices.Concat([]string{}, slices.Sorted(maps.Keys(c)))
	}
	if found := c[*name]; found != nil {
		return found
	}
	return nil
}

// Environment is the environment that is compiled for.
type Environment struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Project string `json:"project_id"`
}

// Host runs plug-ins in a worker process. It must not be used by several goroutines at once.
type Host struct {
	config  Config
	ctx     context.Context // for the start of the worker
	cancel  context.CancelFunc
	alive   context.Context // for requests: ends with Interrupt
	giveUp  context.CancelFunc
	begin   sync.Once
	began   bool          // Begin was called
	started chan struct{} // closed when dialogue or startErr is set

	dialogue       worker.Dialogue
	stackRequested atomic.Bool // the worker took too long and was told to print its stack
	startErr       error
	python         string
	pid            int

	modules    []moduleCode
	key        string // of the load; empty when the load cannot be remembered
	table      *table // the result of the load; nil before it
	remembered bool   // the table is from an earlier load
	kept       *table // the table that the next compile will find; to be read after Close
	noCode     bool   // no module has Python code
	adopts     bool   // the worker will be a copy of the template
	adopted    bool   // it is such a copy
	// anticipated: the worker will probably be needed. It starts once the host knows whether it
	// can be a copy.
	anticipated bool
	loaded      bool          // the request to load was sent, or is about to be
	preloaded   chan struct{} // closed when loadLazily has ended; nil before it starts
	loadErr     error         // of loadLazily
	joined      bool          // awake has waited for loadLazily
	keeping     sync.WaitGroup
	used        map[string]bool // modules whose Python code was used

	wire       *codec
	heap       eval.Heap
	slots      []eval.Slot // of the running call
	posted     posted
	plugins    map[*eval.Signature]int
	raw        []json.RawMessage // the signatures as the worker wrote them
	introduced []bool            // plug-ins that the worker knows
	pending    []string          // printed while no call ran
	printed    []string          // by the request that is running
	searching  bool              // for further errors: what is printed meanwhile is not shown
	warned     []string          // about deprecated plug-ins that were called outside of calls

	onAnswer func(op string) // for tests: called for everything that Python asks
}

var (
	_ eval.Host  = (*Host)(nil)
	_ eval.Twins = (*Host)(nil)
)

// New makes a host whose worker starts with Begin or when it is first needed. ctx is for the start of
// the worker only; Close ends the worker.
func New(ctx context.Context, c Config) *Host {
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Host{
		config:  c,
		ctx:     ctx,
		cancel:  cancel,
		started: make(chan struct{}),
		used:    map[string]bool{},
		plugins: map[*eval.Signature]int{},
	}
	h.alive, h.giveUp = context.WithCancel(context.Background())
	h.wire = newCodec(h)
	return h
}

// Start makes a host and starts its worker. It returns at once; the first request waits for the
// worker.
func Start(ctx context.Context, c Config) *Host {
	h := New(ctx, c)
	h.Begin()
	return h
}

// Begin starts the worker, if it has not been started, and returns at once.
func (h *Host) Begin() {
	h.begin.Do(func() {
		h.began = true
		go h.start(h.adopts)
	})
	h.preload()
}

// Anticipate starts the worker if it will probably be needed: if the last compile of the project
// needed one, or there is no record of that.
func (h *Host) Anticipate() {
	if h.config.CacheDir != "" {
		if known := h.tables().habit(h.config.ProjectDir); known != nil && len(known.Used) == 0 {
			return
		}
	}
	if h.config.Warm != nil {
		h.anticipated = true
		return
	}
	h.Begin()
}

func (h *Host) tables() tables { return tables{filepath.Join(h.config.CacheDir, "plugins")} }

// start starts the worker, or copies the template if adopt is set.
func (h *Host) start(adopt bool) {
	defer close(h.started)
	if adopt {
		if h.adopt() == nil {
			h.adopted = true
			return
		}
		if h.dialogue != nil {
			_ = h.dialogue.Close(0)
		}
	}
	h.startErr = h.connect(func(c worker.Config) (worker.Dialogue, error) { return worker.StartDialogue(h.ctx, c) })
}

func (h *Host) adopt() error {
	return h.connect(func(c worker.Config) (worker.Dialogue, error) {
		return worker.Adopt(h.ctx, h.config.Warm.Handover, c)
	})
}

// connect gets a worker and sends it the settings.
func (h *Host) connect(begin func(worker.Config) (worker.Dialogue, error)) error {
	c := h.config
	dialogue, err := begin(worker.Config{
		Python:     c.Python,
		Role:       "compile",
		RuntimeDir: c.RuntimeDir,
		Path:       c.Path,
		Dir:        c.ProjectDir,
		Env:        c.Env,
		MemoryMax:  c.MemoryMax,
		OnOutput:   h.withoutStacks(c.OnOutput),
		OnNotice:   h.noticed,
	})
	if err != nil {
		return err
	}
	var reply struct {
		PID    int    `json:"pid"`
		Python string `json:"python"`
	}
	h.dialogue = dialogue
	err = dialogue.Ask(h.ctx, "start", map[string]any{"settings": c.Settings, "known": c.Known}, &reply, nil)
	h.pid, h.python = reply.PID, reply.Python
	return err
}

// preload has a started worker import the modules that cannot wait, if a table names them.
func (h *Host) preload() {
	if !h.remembered || h.loaded || !h.began {
		return
	}
	h.loaded = true
	h.preloaded = make(chan struct{})
	go func() {
		defer close(h.preloaded)
		h.loadErr = h.loadLazily()
	}()
}

// Python is the version of the interpreter, such as 3.11.7; empty when it was not started.
func (h *Host) Python() string {
	if h.remembered {
		return h.table.Python
	}
	if !h.began {
		return ""
	}
	<-h.started
	return h.python
}

// Interrupt ends the running request and the worker. Any goroutine may call it at any time.
func (h *Host) Interrupt() { h.giveUp() }

// Close ends the worker. No request may be running.
func (h *Host) Close() error {
	h.cancel()
	h.keeping.Wait()
	h.keepHabit()
	if !h.began {
		return nil
	}
	<-h.started
	if h.dialogue == nil {
		return nil
	}
	if h.preloaded != nil {
		h.giveUp() // no request waited for these imports
		<-h.preloaded
	}
	return h.dialogue.Close(2 * time.Second)
}

// keepHabit records what was needed, for Anticipate.
func (h *Host) keepHabit() {
	if h.key == "" {
		return
	}
	s := h.tables()
	now := &habit{Used: slices.Sorted(maps.Keys(h.used))}
	if before := s.habit(h.config.ProjectDir); before == nil || !slices.Equal(before.Used, now.Used) {
		s.writeHabit(h.config.ProjectDir, now)
	}
}

// TakeOutput returns and forgets the lines that were printed outside of calls: by imports and by
// finalizers.
func (h *Host) TakeOutput() []string {
	lines := h.pending
	h.pending = nil
	return lines
}

// TakeWarnings returns and forgets the warnings about deprecated plug-ins that were called outside of
// calls: by finalizers and an export.
func (h *Host) TakeWarnings() []string {
	warned := h.warned
	h.warned = nil
	return warned
}

// env is the environment of the worker.
func (c Config) env() []string {
	if len(c.Env) > 0 {
		return c.Env
	}
	return worker.MinimalEnv()
}
