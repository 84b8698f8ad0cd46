// Package warm keeps Python processes that have imported what the compiles of
// a project use. A compile gets a copy of one (fork, copy on write) instead of
// an interpreter that has everything still to import; what it does there
// reaches neither the template nor the next copy.
//
//	compile ──recipe──▶ Keeper ──after a while──▶ template
//	next compile ◀──socket, key── Keeper      template ──fork──▶ worker of that compile
//
// A compile takes a copy only when the key, which names all that the imports
// read by content, is its own. There is nothing that must work here: without a
// template a compile merely takes longer.
package warm

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/fault"
)

// Config is what a Keeper is made of.
type Config struct {
	Logger *slog.Logger
	// Max is how many templates there may be; 0: 4. The one that was used
	// longest ago makes room.
	Max int
	// MemoryMax is how large one may be, in bytes; 0: 512 MiB.
	MemoryMax int64
	// Idle is how long one is kept that nobody uses; 0: 15 minutes.
	Idle time.Duration
	// Delay is how long after a compile one is made, so that it is not in the
	// way of the deploy that follows; 0: 2 seconds, below 0: at once.
	Delay time.Duration
	// OnChange is told, if set, of every template that is ready or was given up,
	// and why.
	OnChange func(owner string, ready bool, why string)
}

// Keeper keeps templates by owner. It is safe for concurrent use.
type Keeper struct {
	config Config

	mu     sync.Mutex
	owners map[string]*kept
	closed bool
	wg     sync.WaitGroup
}

// kept is the template of an owner, or the making of one.
type kept struct {
	recipe   []byte // as JSON
	key      string
	template *plugin.Template // nil until it is ready
	stop     context.CancelFunc
	used     time.Time
	idle     *time.Timer
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
	return &Keeper{config: c, owners: map[string]*kept{}}, nil
}

// Lend gives what a compile needs to take a copy of the owner's template; nil
// when there is none. The caller closes the file.
func (k *Keeper) Lend(owner string) *plugin.Warm {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.owners[owner]
	if one == nil || one.template == nil {
		return nil
	}
	one.use(k.config.Idle)
	fd, err := duplicate(one.template.Handover())
	if err != nil {
		return nil
	}
	return &plugin.Warm{Handover: fd, Key: one.key}
}

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

func (o *kept) use(idle time.Duration) {
	o.used = time.Now()
	o.idle.Reset(idle)
}

// Learn is told what a compile of the owner left: how to make a template for
// the next one, or nil where that would be of no use. env is the environment
// of its process.
func (k *Keeper) Learn(owner string, recipe *plugin.Recipe, env []string) {
	if recipe == nil {
		k.end(owner, "the last compile has no use for one")
		return
	}
	if recipe.Lost {
		k.end(owner, "it makes no copies any more")
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
	k.begin(owner, &kept{recipe: text, key: recipe.Key}, func(ctx context.Context) (*plugin.Template, error) {
		return plugin.NewTemplate(ctx, recipe, env)
	})
}

// begin makes a template after a while.
func (k *Keeper) begin(owner string, one *kept, prepare func(context.Context) (*plugin.Template, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	one.stop, one.used = cancel, time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.owners[owner] != nil {
		cancel()
		return
	}
	k.owners[owner] = one
	one.idle = time.AfterFunc(k.config.Idle, func() { k.drop(owner, one, "nobody used it for long") })
	k.wg.Go(func() { k.keep(ctx, owner, one, prepare) })
}

// keep makes a template and looks after it until it ends.
func (k *Keeper) keep(
	ctx context.Context,
	owner string,
	one *kept,
	prepare func(context.Context) (*plugin.Template, error),
) {
	template, err := k.prepare(ctx, owner, prepare)
	if err != nil {
		if ctx.Err() == nil {
			k.tell(owner, err.Error())
		}
		return
	}
	defer template.Close()
	if template.RSS() > k.config.MemoryMax {
		k.tell(owner, "it needs too much memory")
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
}

// attempts is how often a template is tried whose files somebody touches
// meanwhile, each time after twice as long.
const attempts = 6

// prepare makes a template after a while, and again where that may help.
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

// tell says that there is no template any more, or none by this recipe: it is
// not tried again until another one comes.
func (k *Keeper) tell(owner, why string) {
	k.config.Logger.Debug("no warm worker for the next compile", "owner", owner, "why", why)
	k.config.OnChange(owner, false, why)
}

// makeRoom ends the template that was used longest ago when there are too many.
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
		k.end(oldest, "another environment needs its place")
	}
}

// end ends the template of an owner, if there is one.
func (k *Keeper) end(owner, why string) {
	k.mu.Lock()
	one := k.owners[owner]
	k.mu.Unlock()
	if one != nil {
		k.drop(owner, one, why)
	}
}

func (k *Keeper) drop(owner string, one *kept, why string) {
	k.mu.Lock()
	here := k.owners[owner] == one
	if here {
		delete(k.owners, owner)
	}
	k.mu.Unlock()
	if here {
		one.idle.Stop()
		one.stop()
		k.tell(owner, why)
	}
}

// Forget ends the template of an owner that is no more.
func (k *Keeper) Forget(owner string) { k.end(owner, "the environment is no more") }

// Close ends all templates and waits until they are gone.
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
