package target

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/agent/protocol"
)

// Config is what an agent is made of.
type Config struct {
	StateDir string
	Program  string // name and version, for the server
	Python   string // the interpreter; if it is empty, one is searched for
	Logger   *slog.Logger
	// Isolation confines handlers; nil confines nothing.
	Isolation   *isolation.Config
	KeepDaemons bool   // background processes that handlers started outlive the executor
	MemoryMax   uint64 // of a process of handlers, in bytes; 0: no limit
	ChildrenMax int    // processes that an executor may have started; 0: no limit

	// pause is the first pause before another connection; tests have a short one.
	pause time.Duration
}

const (
	firstPause = time.Second
	longPause  = time.Minute
	cleanEvery = 10 * time.Second
	// idleTime is how long a process of handlers lives without work. Making another one costs little, but nothing else
	// of this machine waits for the memory either.
	idleTime = 10 * time.Minute
	// stopGrace is how long the answers of what Run's end cut off may take to reach the server.
	stopGrace = 2 * time.Second
)

// Agent is one agent: one name in one environment of one server.
type Agent struct {
	c        Config
	log      *slog.Logger
	id       *identity
	paths    layout.Agent
	lock     *layout.Lock
	contents *contents
	journal  *journal
	work     *work
	machine  protocol.Machine

	ctx    context.Context // of the commands
	cancel context.CancelFunc
	all    sync.WaitGroup // commands that run

	mu       sync.Mutex
	commands map[string]*command // that run, or whose answers are not recorded
	recorded map[string]bool     // the answers of these are
	link     *link               // nil: not connected
	linked   chan struct{}       // closed when link is set, and replaced when it is not any more
}

// Join makes the folders of an agent and the identity that a token is for.
func Join(ctx context.Context, c Config, token string) error {
	l, lock, err := prepare(c)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	return join(ctx, l.Agent(), token, c.Program)
}

// Joined reports whether there is an agent in the state directory.
func Joined(c Config) bool {
	_, err := os.Lstat(layout.AgentIn(c.StateDir).Identity())
	return err == nil
}

// prepare makes the folders and locks them for this process.
func prepare(c Config) (*layout.Layout, *layout.Lock, error) {
	if c.StateDir == "" {
		return nil, nil, errors.New("target: Config.StateDir is empty")
	}
	l, err := layout.New(layout.Config{
		StateDir: c.StateDir, LogDir: filepath.Join(c.StateDir, "log"), CacheDir: filepath.Join(c.StateDir, "cache"),
	})
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(l.Agent().Answers(), 0o700); err != nil {
		return nil, nil, fault.Disk("target.prepare", l.Agent().Answers(), err)
	}
	if err := os.Chmod(l.Agent().Dir(), 0o700); err != nil {
		return nil, nil, fault.Disk("target.prepare", l.Agent().Dir(), err)
	}
	lock, err := l.Lock()
	return l, lock, err
}

// New reads what an agent that has joined keeps on its disk. The caller calls Run, once.
func New(ctx context.Context, c Config) (_ *Agent, err error) {
	l, lock, err := prepare(c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Unlock()
		}
	}()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.pause == 0 {
		c.pause = firstPause
	}
	a := &Agent{
		c: c, log: c.Logger, paths: l.Agent(), lock: lock, commands: map[string]*command{},
		recorded: map[string]bool{}, linked: make(chan struct{}),
	}
	if a.id, err = readIdentity(a.paths); err != nil {
		return nil, err
	}
	var warned sync.Once
	a.id.warn = func(problem string) {
		warned.Do(func() {
			a.log.Warn(
				"the server's certificate is not valid at the time that this machine's clock shows; it is accepted, "+
					"because it comes from the server's own authority: is the clock right?",
				"problem",
				problem,
			)
		})
	}
	if a.contents, err = openContents(a.paths.Contents(), l.CacheDir()); err != nil {
		return nil, err
	}
	a.contents.damaged = func(hash string) { go a.tellDamage(hash) }
	if err := a.openWork(ctx, l); err != nil {
		return nil, err
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if err := a.recall(); err != nil {
		return nil, errors.Join(err, a.work.Close(ctx))
	}
	return a, nil
}

// openWork makes what runs handlers.
func (a *Agent) openWork(ctx context.Context, l *layout.Layout) error {
	maker, err := venv.New(venv.Config{
		Python: a.c.Python, CacheDir: l.CacheDir(), ToolsDir: filepath.Join(l.CacheDir(), "tools"),
		Records: l.VenvRecords(), Logger: a.log,
	})
	if err != nil {
		return err
	}
	python, err := maker.Interpreter(ctx, "")
	if err != nil {
		return err
	}
	a.machine = protocol.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Libc: python.Libc, Pythons: []string{python.Minor},
	}
	for _, minor := range []string{"3.10", "3.11", "3.12", "3.13", "3.14"} {
		if i, err := maker.Interpreter(ctx, "python"+minor); err == nil &&
			!slices.Contains(a.machine.Pythons, i.Minor) {
			a.machine.Pythons = append(a.machine.Pythons, i.Minor)
		}
	}
	a.work = &work{
		env: a.id.Environment, contents: a.contents, maker: maker, libc: python.Libc, log: a.log,
		sources: map[string]string{}, sha1s: map[string]string{}, prints: map[string]*blueprint{},
	}
	var cell *isolation.Cell
	if a.c.Isolation != nil {
		cell = a.c.Isolation.Cell(1)
	}
	a.work.Manager, err = executor.NewManager(executor.Config{
		Layout: l, Environment: a.id.Environment, Maker: maker, Files: desk{a}, Desk: desk{a}, Contents: a.contents,
		Logger: a.log, Variables: a.work.environment, Cell: cell, KeepDaemons: a.c.KeepDaemons,
		MemoryMax: a.c.MemoryMax, ChildrenMax: a.c.ChildrenMax, IdleRetention: idleTime,
	})
	return err
}

// Identity returns the agent's name and the address of its server, for people.
func (a *Agent) Identity() (name, url string) { return a.id.Agent, a.id.URL }

// Run connects to the server, again and again, and carries out commands until ctx ends. It returns an error when the
// server no longer wants this agent.
func (a *Agent) Run(ctx context.Context) error {
	defer func() { _ = a.lock.Unlock() }()
	linking, unlink := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.keepLinked(linking) }()
	ticker := time.NewTicker(cleanEvery)
	defer ticker.Stop()
	var err error
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case err = <-ended:
			running = false
			ended <- nil // for the end below
		case <-ticker.C:
			a.clean(ctx)
		}
	}
	a.stopWork()
	unlink()
	<-ended
	a.journal.close()
	return err
}

// stopWork ends what runs and gives the answers some time to reach the server. Those that do not are sent at the next
// start.
func (a *Agent) stopWork() {
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := a.work.Close(grace); err != nil {
		a.log.Error("the processes of handlers did not end", "error", err)
	}
	a.cancel()
	a.all.Wait()
	deadline := time.NewTimer(stopGrace)
	defer deadline.Stop()
	for {
		a.mu.Lock()
		connected, left := a.link != nil, len(a.commands)
		var gone chan struct{}
		for _, c := range a.commands {
			gone = c.gone
			break
		}
		a.mu.Unlock()
		if !connected || left == 0 {
			return
		}
		select {
		case <-gone:
		case <-deadline.C:
			return
		}
	}
}

// clean removes what is not used any more.
func (a *Agent) clean(ctx context.Context) {
	if err := a.work.Clean(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("the clean-up failed", "error", err)
	}
	a.mu.Lock()
	busy := len(a.commands) > 0
	a.mu.Unlock()
	if !busy {
		a.work.forget(time.Now().Add(-contentAge))
		a.contents.clean(a.work.usedContents())
	}
}
