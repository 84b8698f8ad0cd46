package gitsync

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Move says that the branch of an environment points to another commit.
type Move struct {
	Environment intent.EnvironmentID
	Source      Source
	Commit      string
	Kind        string // how it was noticed, in the words of intent.Trigger: poll, watch or webhook
	Message     string // for people
}

// Kinds of moves.
const (
	KindPoll    = "poll"
	KindWatch   = "watch"
	KindWebhook = "webhook"
)

// Tips asks repositories what commit a branch points to. A Syncer does.
type Tips interface {
	Tip(ctx context.Context, src Source) (string, error)
}

// WatcherConfig is what a Watcher needs.
type WatcherConfig struct {
	Tips Tips
	// OnMove is told of moves, once each; after an error it is told again
	// later. It is called for several environments at once, and must not call
	// Stop. Its context ends with the watcher.
	OnMove func(ctx context.Context, m Move) error
	// OnLook is told how looks at a source go, when one goes otherwise than the
	// one before: nil when it could be read. May be nil.
	OnLook func(ctx context.Context, env intent.EnvironmentID, err error)
	Logger *slog.Logger
	// Debounce is how long a local repository must be quiet before it is looked
	// at; 25 ms when zero.
	Debounce time.Duration
	// MaxBackoff bounds the time between two looks at a repository that fails;
	// 15 minutes when zero.
	MaxBackoff time.Duration
}

// Watcher notices that sources move: it looks at each from time to time, and
// at local ones as soon as their branches change on the disk. Whatever is
// missed by one way is found by the next look.
//
//	timer (jitter, back-off) ─┐
//	fsnotify, when quiet ─────┼─▶ Tip ─▶ not what was seen? ─▶ OnMove
//	Poke ─────────────────────┘
type Watcher struct {
	cfg  WatcherConfig
	busy chan struct{} // bounds the looks at one time
	done sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context // nil until started
	cancel  context.CancelFunc
	stopped bool
	sources map[intent.EnvironmentID]*watched
	files   *notifier
}

// WatchStatus is how the watching of a source goes.
type WatchStatus struct {
	Checked  time.Time // last look; zero before the first
	Seen     string    // commit that was seen last
	Failures int       // looks in a row that failed
	Err      error     // of the last look
}

type watched struct {
	env      intent.EnvironmentID
	source   Source
	interval time.Duration
	pokes    chan poke // holds at most one: they all mean "look now"
	cancel   context.CancelFunc
	disarmed bool // guarded by the notifier

	mu     sync.Mutex
	status WatchStatus
	proof  proof
}

type poke struct{ kind, message string }

// NewWatcher checks the configuration and makes a watcher, which looks at
// nothing before Start.
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
	return &Watcher{cfg: cfg, busy: make(chan struct{}, 8), sources: map[intent.EnvironmentID]*watched{}}, nil
}

// Start begins to watch. It may be called again; after Stop it is a fault.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return fault.New("gitsync.Start", fault.Conflict, "the watcher was stopped").Hint("make a new one")
	}
	if w.ctx != nil {
		return nil
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	for _, s := range w.sources {
		w.begin(s)
	}
	return nil
}

// Stop ends all watching and waits until it has ended. It may be called at
// any time, and again.
func (w *Watcher) Stop() {
	w.mu.Lock()
	w.stopped = true
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.done.Wait()
}

// Watch begins to watch the source of an environment, or changes what is
// watched. seen is the commit that is known; empty when none is. An interval
// of zero leaves it, after one look, at local changes and pokes.
func (w *Watcher) Watch(env intent.EnvironmentID, src Source, interval time.Duration, seen string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if old := w.sources[env]; old != nil {
		if old.source == src && old.interval == interval {
			return
		}
		w.forget(old)
	}
	s := &watched{env: env, source: src, interval: interval, pokes: make(chan poke, 1), status: WatchStatus{Seen: seen}}
	w.sources[env] = s
	if w.ctx != nil {
		w.begin(s)
	}
}

// Forget ends the watching of an environment. A move that is being told is
// told to its end.
func (w *Watcher) Forget(env intent.EnvironmentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sources[env]; s != nil {
		w.forget(s)
	}
}

// Poke looks at a source now, for a webhook told that it moved.
func (w *Watcher) Poke(env intent.EnvironmentID, message string) {
	w.mu.Lock()
	s := w.sources[env]
	w.mu.Unlock()
	if s != nil {
		s.poke(poke{KindWebhook, message})
	}
}

// Status tells how the watching of an environment goes; false when it is not watched.
func (w *Watcher) Status(env intent.EnvironmentID) (WatchStatus, bool) {
	w.mu.Lock()
	s := w.sources[env]
	w.mu.Unlock()
	if s == nil {
		return WatchStatus{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, true
}

func (s *watched) poke(p poke) {
	select {
	case s.pokes <- p:
	default: // one is waiting already
	}
}

// forget ends one; w.mu is held.
func (w *Watcher) forget(s *watched) {
	if s.cancel != nil {
		s.cancel()
	}
	if w.files != nil {
		w.files.disarm(s)
	}
	delete(w.sources, s.env)
}

// begin starts one; w.mu is held.
func (w *Watcher) begin(s *watched) {
	ctx, cancel := context.WithCancel(w.ctx)
	s.cancel = cancel
	var files *notifier
	var path string
	if p, err := locate(s.source.URL); err == nil && p.local != "" {
		if w.files == nil {
			var err error
			if w.files, err = newNotifier(w.ctx, w.cfg.Logger, &w.done); err != nil {
				w.cfg.Logger.Warn("local repositories are not watched, only looked at from time to time", "error", err,
					"hint", "raise fs.inotify.max_user_instances and max_user_watches")
			}
		}
		files, path = w.files, p.local
	}
	w.done.Go(func() {
		defer cancel()
		w.run(ctx, s, files, path)
	})
}

// run watches one source until ctx ends.
func (w *Watcher) run(ctx context.Context, s *watched, files *notifier, path string) {
	timer := time.NewTimer(0) // one look at the start, whatever the interval: what moved while nobody watched is found
	defer timer.Stop()
	for {
		why := poke{kind: KindPoll}
		select {
		case <-ctx.Done():
			return
		case why = <-s.pokes:
		case <-timer.C:
		}
		if why.kind == KindWatch {
			var ok bool
			if why, ok = w.settle(ctx, s, why); !ok {
				return
			}
		}
		if files != nil {
			files.arm(s, path) // before the look, so that nothing falls between
		}
		next := w.look(ctx, s, why)
		if ctx.Err() != nil {
			return
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// settle waits until a local repository is quiet, but not for ever: a
// repository may be pushed to all the time.
func (w *Watcher) settle(ctx context.Context, s *watched, why poke) (poke, bool) {
	quiet, enough := time.NewTimer(w.cfg.Debounce), time.NewTimer(10*w.cfg.Debounce)
	defer quiet.Stop()
	defer enough.Stop()
	for {
		select {
		case <-ctx.Done():
			return why, false
		case <-quiet.C:
			return why, true
		case <-enough.C:
			return why, true
		case p := <-s.pokes:
			if p.kind == KindWebhook {
				return p, true
			}
			quiet.Reset(w.cfg.Debounce)
		}
	}
}

// look asks for the tip and tells of a move. It gives the time until the
// next look; zero for never.
func (w *Watcher) look(ctx context.Context, s *watched, why poke) time.Duration {
	select {
	case w.busy <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	tip, err := w.cfg.Tips.Tip(ctx, s.source)
	read := err
	<-w.busy
	if ctx.Err() != nil {
		return 0
	}
	s.mu.Lock()
	seen := s.status.Seen
	lost := err == nil && why.kind == KindPoll && tip != seen && s.proof.found(tip)
	s.mu.Unlock()
	if lost {
		w.cfg.Logger.Warn(
			"a commit came that no webhook told of; the repository is looked at as often as before",
			"environment",
			s.env,
			"commit",
			short(tip),
			"hint",
			"look at the deliveries of the webhook at the forge",
		)
	}
	if err == nil && tip != seen {
		err = w.cfg.OnMove(
			ctx,
			Move{
				Environment: s.env,
				Source:      s.source,
				Commit:      tip,
				Kind:        why.kind,
				Message:     why.describe(s.source, seen, tip),
			},
		)
		if err == nil {
			seen = tip
		}
		if ctx.Err() != nil {
			return 0
		}
	}
	s.mu.Lock()
	before := s.status
	s.status = WatchStatus{Checked: time.Now(), Seen: seen, Err: err}
	if err != nil {
		s.status.Failures = before.Failures + 1
	}
	s.mu.Unlock()
	if w.cfg.OnLook != nil && (text(before.Err) != text(err) || before.Checked.IsZero()) {
		w.cfg.OnLook(ctx, s.env, read)
	}
	if err == nil {
		if before.Failures > 0 {
			w.cfg.Logger.Info("a source can be read again", "environment", s.env, "failures", before.Failures)
		}
		s.mu.Lock()
		every := s.proof.interval(s.interval, time.Now())
		s.mu.Unlock()
		return jitter(every)
	}
	wait := w.backoff(s.interval, before.Failures+1)
	if text(before.Err) != text(err) {
		w.cfg.Logger.Warn(
			"a source cannot be read",
			"environment",
			s.env,
			"error",
			err,
			"next",
			wait.Round(time.Second),
		)
	}
	return wait
}

// text of an error; empty for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// backoff gives the wait after some failures in a row.
func (w *Watcher) backoff(interval time.Duration, failures int) time.Duration {
	wait := 10 * time.Second
	if interval > 0 {
		wait = min(interval, wait)
	}
	for range failures - 1 {
		if wait *= 2; wait >= w.cfg.MaxBackoff {
			break
		}
	}
	return jitter(min(wait, w.cfg.MaxBackoff))
}

// jitter spreads looks, so that many environments do not look all at once.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - d/10 + rand.N(d/5+1)
}

func (p poke) describe(src Source, from, to string) string {
	if p.message != "" {
		return p.message
	}
	branch := src.Branch
	if branch == "" {
		branch = "the default branch"
	}
	if from == "" {
		return fmt.Sprintf("%s is at %s", branch, short(to))
	}
	return fmt.Sprintf("%s moved from %s to %s", branch, short(from), short(to))
}
