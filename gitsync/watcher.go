package gitsync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Move says that the branch of an environment points to another commit.
type Move struct {
	Environment intent.EnvironmentID
	Source      Source
	Commit      string // full hash
	Kind        string // how it was noticed: KindPoll, KindWatch or KindWebhook
	Message     string // for people
}

// Kinds of moves, in the words of intent.Trigger.
const (
	KindPoll    = "poll"
	KindWatch   = "watch" // a change on the disk
	KindWebhook = "webhook"
)

// Tips asks a repository which commit a branch points to. A Syncer implements it.
type Tips interface {
	Tip(ctx context.Context, src Source) (string, error)
}

// WatcherConfig is what a Watcher needs.
type WatcherConfig struct {
	Tips Tips
	// OnMove is called once for each move, and again later when it returns an
	// error. Calls for different environments run at the same time. It must not
	// call Stop. Its context ends with the watcher.
	OnMove func(ctx context.Context, m Move) error
	// OnLook is called with the result of each look at a source. err is nil when the
	// source could be read; otherwise failures counts the looks in a row that failed,
	// this one included. It may be nil.
	OnLook func(ctx context.Context, env intent.EnvironmentID, failures int, err error)
	Logger *slog.Logger
	// Debounce is how long a local repository must be unchanged before it is
	// looked at; 25 ms when zero.
	Debounce time.Duration
	// MaxBackoff is the longest time between two looks at a repository that
	// cannot be read; 15 minutes when zero.
	MaxBackoff time.Duration
}

// Watcher notices that sources move: it looks at each of them from time to time,
// and at local ones as soon as their branches change on the disk. What one way
// misses is found by the next look.
//
//	timer (jitter, back-off) ─┐
//	fsnotify, when quiet ─────┼─▶ Tip ─▶ another commit? ─▶ OnMove
//	Poke ─────────────────────┘
//
// Its methods may be called at any time, in any order, by several goroutines.
type Watcher struct {
	cfg   WatcherConfig
	looks chan struct{} // bounds how many sources are looked at, at a time

	mu      sync.Mutex
	sources map[intent.EnvironmentID]*watched
	session *session // nil until Start, and after Stop
}

// session is the time between Start and Stop.
type session struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup // Go is called while ctx has not ended and Watcher.mu is held
	files  *notifier      // nil as long as no local repository is watched
}

// WatchStatus is how the watching of a source goes.
type WatchStatus struct {
	Checked  time.Time // the last look; zero before the first
	Seen     string    // the commit that was reported last
	Failures int       // how many looks in a row failed
	Err      error     // of the last look
}

// watched is a source that is watched.
type watched struct {
	env      intent.EnvironmentID
	source   Source
	interval time.Duration
	pokes    chan poke          // holds at most one: they all mean "look now"
	cancel   context.CancelFunc // nil before it begins
	disarmed bool               // guarded by the notifier

	mu     sync.Mutex
	status WatchStatus
	proof  proof
}

// poke asks for a look. kind and message go into the Move that it finds.
type poke struct{ kind, message string }

// NewWatcher checks the configuration and makes a watcher.
func NewWatcher(cfg WatcherConfig) (*Watcher, error) {
	const op = "gitsync.NewWatcher"
	switch {
	case cfg.Tips == nil:
		return nil, fault.New(op, fault.Invalid, "WatcherConfig.Tips is missing")
	case cfg.OnMove == nil:
		return nil, fault.New(op, fault.Invalid, "WatcherConfig.OnMove is missing")
	case cfg.Logger == nil:
		return nil, fault.New(op, fault.Invalid, "WatcherConfig.Logger is missing")
	case cfg.Debounce < 0 || cfg.MaxBackoff < 0:
		return nil, fault.New(op, fault.Invalid, "a duration is negative")
	}
	if cfg.Debounce == 0 {
		cfg.Debounce = 25 * time.Millisecond
	}
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = 15 * time.Minute
	}
	return &Watcher{cfg: cfg, looks: make(chan struct{}, 8), sources: map[intent.EnvironmentID]*watched{}}, nil
}

// Start begins to watch the sources that were given to Watch, and those that are
// given later, until ctx ends or Stop is called. While the watcher runs, Start
// does nothing. It never fails.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.session != nil {
		if w.session.ctx.Err() == nil {
			return nil
		}
		w.end()
	}
	w.session = &session{}
	w.session.ctx, w.session.cancel = context.WithCancel(ctx)
	for _, s := range w.sources {
		w.begin(s)
	}
	return nil
}

// Stop ends all watching and waits until it has ended. The sources stay known,
// for another Start.
func (w *Watcher) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != nil {
		w.end()
	}
}

// end ends the session, and waits for that without w.mu, which is held.
func (w *Watcher) end() {
	ending := w.session
	ending.cancel()
	w.mu.Unlock()
	ending.done.Wait()
	w.mu.Lock()
	if w.session == ending {
		w.session = nil
	}
}

// Watch begins to watch the source of an environment, or changes what is watched
// for it. With an interval of zero the source is not polled: it is looked at once, and then on
// local changes and pokes.
func (w *Watcher) Watch(env intent.EnvironmentID, src Source, interval time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.sources[env]; old != nil {
		if old.source == src && old.interval == interval {
			return
		}
		w.forget(old)
	}
	s := &watched{env: env, source: src, interval: interval, pokes: make(chan poke, 1)}
	w.sources[env] = s
	if w.session != nil && w.session.ctx.Err() == nil {
		w.begin(s)
	}
}

// Forget ends the watching of an environment. A call of OnMove that is running
// may still end after that.
func (w *Watcher) Forget(env intent.EnvironmentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sources[env]; s != nil {
		w.forget(s)
	}
}

// Poke looks at the source of an environment now, because a webhook said that it
// moved. message becomes that of the Move.
func (w *Watcher) Poke(env intent.EnvironmentID, message string) {
	if s := w.watched(env); s != nil {
		s.poke(poke{KindWebhook, message})
	}
}

// Heard notes that a verified webhook arrived for an environment, and the commits
// that the webhook and the look that followed it named. While webhooks arrive,
// polls may be less frequent.
func (w *Watcher) Heard(env intent.EnvironmentID, commits []string) {
	if s := w.watched(env); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.proof.hear(commits, time.Now())
	}
}

// Status returns how the watching of an environment goes; false when it is not watched.
func (w *Watcher) Status(env intent.EnvironmentID) (WatchStatus, bool) {
	s := w.watched(env)
	if s == nil {
		return WatchStatus{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, true
}

// watched returns the watched source of an environment; nil when there is none.
func (w *Watcher) watched(env intent.EnvironmentID) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sources[env]
}

func (s *watched) poke(p poke) {
	select {
	case s.pokes <- p:
	default: // one is waiting already
	}
}

// forget ends the watching of a source; w.mu is held.
func (w *Watcher) forget(s *watched) {
	if s.cancel != nil {
		s.cancel()
	}
	if w.session != nil && w.session.files != nil {
		w.session.files.disarm(s)
	}
	delete(w.sources, s.env)
}

// begin begins to watch a source in the session; w.mu is held.
func (w *Watcher) begin(s *watched) {
	now := w.session
	ctx, cancel := context.WithCancel(now.ctx)
	s.cancel = cancel
	var files *notifier
	var path string
	if p, err := locate(s.source.URL); err == nil && p.local != "" {
		if now.files == nil {
			var err error
			if now.files, err = newNotifier(now.ctx, w.cfg.Logger, &now.done); err != nil {
				w.cfg.Logger.Warn("local repositories cannot be watched; they are only polled", "error", err,
					"hint", "raise fs.inotify.max_user_instances and max_user_watches")
			}
		}
		files, path = now.files, p.local
	}
	now.done.Go(func() {
		defer cancel()
		w.watch(ctx, s, files, path)
	})
}
