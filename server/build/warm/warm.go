// Package warm keeps Python processes that have already imported what the compiles of
// a project use. A compile gets a copy of such a template (fork, copy on write) in
// place of a fresh interpreter. What the compile does in its copy does not reach the
// template or the next copy.
//
//	compile ──recipe──▶ Keeper ──after a while──▶ template
//	next compile ◀──socket, key── Keeper      template ──fork──▶ worker of that compile
//
// The key is a hash of the content of everything that the imports read. A compile takes
// a copy only of a template with its own key. Any failure here is harmless: without a
// template, a compile only takes longer.
package warm

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
)

// Config configures a Keeper.
type Config struct {
	Logger *slog.Logger
	// Max is how many templates there may be; 0: 4. The least recently used one makes
	// room for a new one.
	Max int
	// MemoryMax is how many bytes of memory a template may take; 0: 512 MiB.
	MemoryMax int64
	// Idle is how long an unused template is kept; 0: 15 minutes.
	Idle time.Duration
	// Delay is how long after a compile a template is made, so that this does not slow
	// down the deploy that follows; 0: 2 seconds; below 0: at once.
	Delay time.Duration
	// OnChange, if set, is called when a template is ready, and when one is given up,
	// with the reason.
	OnChange func(owner string, ready bool, why string)
}

// Keeper keeps one template for each owner. It is safe for concurrent use.
type Keeper struct {
	config Config

	mu     sync.Mutex
	owners map[string]*entry
	closed bool
	wg     sync.WaitGroup
}

// entry is the template of an owner, or one that is being made.
type entry struct {
	recipe   []byte // as JSON
	key      string
	template *plugin.Template // nil until it is ready
	stop     context.CancelFunc
	used     time.Time
	idle     *time.Timer
	lent     sync.WaitGroup // compiles that have it; confined copies would end with their template
}

// Confinement confines the process of a template; see worker.Config. The zero value does not.
type Confinement struct {
	Confine func(*exec.Cmd) (started func() (*isolation.Space, error), err error)
	Ended   func()
}

// New makes a Keeper.
func New(c Config) (*Keeper, error) {
	if c.Logger == nil {
		return nil, fault.New("warm.New", fault.Internal, "warm.Config is not complete")
	}
	if c.Max == 0 {
		c.Max = 4
	}
	if c.MemoryMax == 0 {
		c.MemoryMax = 512 << 20
	}
	if c.Idle == 0 {
		c.Idle = 15 * time.Minute
	}
	if c.Delay == 0 {
		c.Delay = 2 * time.Second
	}
	if c.OnChange == nil {
		c.OnChange = func(string, bool, string) {}
	}
	return &Keeper{config: c, owners: map[string]*entry{}}, nil
}

// Lend returns what a compile needs to take a copy of the owner's template, or nil if
// there is no template. The caller closes the file, and calls back after the compile,
// which ends what the copy has left running if it was confined.
func (k *Keeper) Lend(owner string) (lent *plugin.Warm, back func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.owners[owner]
	if one == nil || one.template == nil {
		return nil, nil
	}
	one.use(k.config.Idle)
	fd, err := duplicate(one.template.Handover())
	if err != nil {
		return nil, nil
	}
	one.lent.Add(1)
	template := one.template
	return &plugin.Warm{Handover: fd, Key: one.key}, func() {
		template.EndOthers()
		one.lent.Done()
	}
}

// duplicate returns a second descriptor of a file, which child processes do not inherit.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var dupErr error
	err = raw.Control(func(number uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, dupErr = syscall.Dup(int(number)); dupErr == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err := errors.Join(err, dupErr); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// use records that the template was used, which restarts its idle time.
func (o *entry) use(idle time.Duration) {
	o.used = time.Now()
	o.idle.Reset(idle)
}

// Learn takes what a compile of the owner left: the recipe of a template for the next
// compile, or nil if a template would be of no use. env is the environment of the
// template's process, and confine returns its confinement; it may be nil.
func (k *Keeper) Learn(owner string, recipe *plugin.Recipe, env []string, confine func() (Confinement, error)) {
	if recipe == nil {
		k.end(owner, "the last compile had no use for it")
		return
	}
	if recipe.Lost {
		k.end(owner, "it no longer makes copies")
		recipe.Lost = false
	}
	text, err := json.Marshal(recipe)
	if err != nil {
		return
	}
	k.mu.Lock()
	one := k.owners[owner]
	if one != nil && string(one.recipe) == string(text) {
		one.use(k.config.Idle)
		k.mu.Unlock()
		return
	}
	k.mu.Unlock()
	k.end(owner, "what it was made of has changed")
	k.begin(owner, &entry{recipe: text, key: recipe.Key}, func(ctx context.Context) (*plugin.Template, error) {
		var c Confinement
		if confine != nil {
			if c, err = confine(); err != nil {
				return nil, err
			}
		}
		return plugin.NewTemplate(ctx, recipe, env, c.Confine, c.Ended)
	})
}

// begin starts to make a template, unless the owner has one.
func (k *Keeper) begin(owner string, one *entry, prepare func(context.Context) (*plugin.Template, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	one.stop, one.used = cancel, time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.owners[owner] != nil {
		cancel()
		return
	}
	k.owners[owner] = one
	one.idle = time.AfterFunc(k.config.Idle, func() { k.drop(owner, one, "it was idle for too long") })
	k.wg.Go(func() { k.keep(ctx, owner, one, prepare) })
}

// keep makes a template and keeps it until it ends.
func (k *Keeper) keep(
	ctx context.Context,
	owner string,
	one *entry,
	prepare func(context.Context) (*plugin.Template, error),
) {
	template, err := k.prepare(ctx, owner, prepare)
	if err != nil {
		if ctx.Err() == nil {
			k.report(owner, err.Error())
		}
		return
	}
	defer template.Close()
	if template.RSS() > k.config.MemoryMax {
		k.report(owner, "it needs too much memory")
		return
	}
	k.mu.Lock()
	if k.owners[owner] == one {
		one.template = template
	}
	k.mu.Unlock()
	k.config.Logger.Debug("a warm worker waits for the next compile", "owner", owner, "bytes", template.RSS())
	k.config.OnChange(owner, true, "")
	select {
	case <-ctx.Done():
	case <-template.Done():
		k.drop(owner, one, "it ended by itself")
	}
	one.lent.Wait()
}

// attempts is how often the making of a template is tried if its files change
// meanwhile. The wait doubles each time.
const attempts = 6

// prepare makes a template after the delay. It tries again if files have changed.
func (k *Keeper) prepare(
	ctx context.Context,
	owner string,
	prepare func(context.Context) (*plugin.Template, error),
) (*plugin.Template, error) {
	wait := k.config.Delay
	for n := 1; ; n++ {
		if wait > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(wait):
			}
		}
		k.makeRoom(owner)
		template, err := prepare(ctx)
		if n == attempts || !errors.Is(err, plugin.ErrTouched) {
			return template, err
		}
		wait = max(2*wait, 100*time.Millisecond)
	}
}

// report reports that an owner has no template, and why. None is made until Learn gets
// another recipe.
func (k *Keeper) report(owner, why string) {
	k.config.Logger.Debug("no warm worker for the next compile", "owner", owner, "why", why)
	k.config.OnChange(owner, false, why)
}

// makeRoom ends the least recently used template of another owner if there are too many.
func (k *Keeper) makeRoom(owner string) {
	k.mu.Lock()
	count, oldest := 0, ""
	for name, one := range k.owners {
		if one.template == nil || name == owner {
			continue
		}
		count++
		if oldest == "" || one.used.Before(k.owners[oldest].used) {
			oldest = name
		}
	}
	k.mu.Unlock()
	if count >= k.config.Max {
		k.end(oldest, "another environment needs its room")
	}
}

// end ends the template of an owner, if it has one.
func (k *Keeper) end(owner, why string) {
	k.mu.Lock()
	one := k.owners[owner]
	k.mu.Unlock()
	if one != nil {
		k.drop(owner, one, why)
	}
}

// drop ends a template, unless another one has replaced it.
func (k *Keeper) drop(owner string, one *entry, why string) {
	k.mu.Lock()
	here := k.owners[owner] == one
	if here {
		delete(k.owners, owner)
	}
	k.mu.Unlock()
	if here {
		one.idle.Stop()
		one.stop()
		k.report(owner, why)
	}
}

// Forget ends the template of an owner that was deleted.
func (k *Keeper) Forget(owner string) { k.end(owner, "the environment was deleted") }

// Close ends all templates and waits for their processes.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	var owners []string
	for owner := range k.owners {
		owners = append(owners, owner)
	}
	k.mu.Unlock()
	for _, owner := range owners {
		k.end(owner, "the server stops")
	}
	k.wg.Wait()
}
