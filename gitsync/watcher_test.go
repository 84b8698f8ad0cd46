package gitsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
)

// forge answers like a remote, and misbehaves on request.
type forge struct {
	mu    sync.Mutex
	tip   string
	err   error
	looks []time.Duration // when it was asked, since it was made
	born  time.Time
}

func (f *forge) Tip(context.Context, Source) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks = append(f.looks, time.Since(f.born))
	return f.tip, f.err
}

func (f *forge) set(tip string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tip, f.err = tip, err
}

func (f *forge) asked() int { return len(f.times()) }

func (f *forge) times() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.looks)
}

// listener keeps the moves that are reported to it.
type listener struct {
	moves chan Move
	mu    sync.Mutex
	fail  error
}

func (l *listener) onMove(_ context.Context, m Move) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.moves <- m
	return nil
}

func newWatcher(t *testing.T, tips Tips) (*Watcher, *listener) {
	t.Helper()
	l := &listener{moves: make(chan Move, 100)}
	w, err := NewWatcher(WatcherConfig{Tips: tips, OnMove: l.onMove, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return w, l
}

func start(t *testing.T, w *Watcher) {
	t.Helper()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

var remoteSource = Source{URL: "https://forge.example/a/b.git", Branch: "main"}

// When a remote repository moves, the next poll reports it once. The time between polls is
// about the interval, but not exactly.
func TestPollsReportMovesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forge{tip: "1111111aaa", born: time.Now()}
		w, l := newWatcher(t, f)
		env := uuid.New()
		w.Watch(env, remoteSource, time.Minute)
		synctest.Wait()
		if f.asked() != 0 {
			t.Fatal("it looked before it was started")
		}
		start(t, w)
		synctest.Wait()
		if m := <-l.moves; m.Environment != env || m.Commit != "1111111aaa" || m.Kind != KindPoll ||
			m.Message != "main is at 1111111" {
			t.Errorf("%+v", m)
		}
		time.Sleep(10 * time.Minute)
		if len(l.moves) != 0 {
			t.Errorf("a move was reported without one: %+v", <-l.moves)
		}
		f.set("2222222bbb", nil)
		time.Sleep(66 * time.Second)
		if m := <-l.moves; m.Commit != "2222222bbb" || m.Message != "main moved from 1111111 to 2222222" {
			t.Errorf("%+v", m)
		}
		time.Sleep(time.Hour)
		if len(l.moves) != 0 {
			t.Error("it was reported twice")
		}
		exact, looks := 0, f.times()
		for i := 1; i < len(looks); i++ {
			gap := looks[i] - looks[i-1]
			if gap < 54*time.Second || gap > 66*time.Second {
				t.Errorf("look %d came after %v", i, gap)
			}
			if gap == time.Minute {
				exact++
			}
		}
		if exact > len(looks)/2 {
			t.Error("there is no jitter")
		}
	})
}

// While webhooks name every commit, polls are ten times less frequent. The first commit
// that a poll finds and no webhook named brings the usual interval back at once, and so
// does a day without webhooks.
func TestPollsAreRarerWhileWebhooksArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forge{tip: "1", born: time.Now()}
		w, l := newWatcher(t, f)
		env := uuid.New()
		w.Heard(env, []string{"1"}) // nobody watches it
		watchKnown(w, env, remoteSource, time.Minute)
		start(t, w)
		looks := func(d time.Duration) int {
			before := f.asked()
			time.Sleep(d)
			return f.asked() - before
		}
		if n := looks(time.Hour); n < 54 || n > 67 {
			t.Errorf("%d looks in an hour without webhooks", n)
		}
		f.set("2", nil)
		w.Heard(env, []string{"2"})
		time.Sleep(2 * time.Minute)
		if n := looks(2 * time.Hour); n < 10 || n > 14 {
			t.Errorf("%d looks in two hours while webhooks arrive", n)
		}
		gap := f.times()
		if first, last := gap[len(gap)-2]-gap[len(gap)-3], gap[len(gap)-1]-gap[len(gap)-2]; first == last {
			t.Error("there is no jitter")
		}
		// A poll may find the commit of a webhook before or after that is handled. It counts as named.
		f.set("3", nil)
		w.Heard(env, []string{"", "3"})
		if n := looks(time.Hour); n < 5 || n > 7 {
			t.Errorf("%d looks in the hour after", n)
		}
		f.set("4", nil) // its webhook is lost
		time.Sleep(11 * time.Minute)
		if n := looks(time.Hour); n < 54 || n > 67 {
			t.Errorf("%d looks in the hour after a commit that no webhook named", n)
		}
		w.Heard(env, []string{"4"})
		time.Sleep(2 * time.Minute)
		if n := looks(time.Hour); n < 5 || n > 7 {
			t.Errorf("%d looks in the hour after webhooks arrive again", n)
		}
		time.Sleep(24 * time.Hour)
		if n := looks(time.Hour); n < 54 || n > 67 {
			t.Errorf("%d looks in an hour after a day without webhooks", n)
		}
		for _, want := range []string{"2", "3", "4"} {
			if m := <-l.moves; m.Commit != want {
				t.Errorf("reported %+v, want %s", m, want)
			}
		}
	})
}

// The longest time between two polls is an hour, unless the interval is longer. Without
// polling, webhooks do not start it.
func TestHowRarePollsBecome(t *testing.T) {
	now := time.Now()
	var p proof
	p.hear(nil, now)
	for normal, want := range map[time.Duration]time.Duration{
		0: 0, time.Minute: 10 * time.Minute, 30 * time.Minute: time.Hour, 2 * time.Hour: 2 * time.Hour,
	} {
		if got := p.interval(normal, now); got != want {
			t.Errorf("%s becomes %s, want %s", normal, got, want)
		}
	}
	for i := range 3 * proofCommits {
		p.hear([]string{fmt.Sprint(i)}, now)
	}
	if len(p.named) != proofCommits || p.found(fmt.Sprint(3*proofCommits-1)) || !p.found("0") {
		t.Errorf("it remembers %d commits", len(p.named))
	}
}

// While the forge is down for an hour, looks become less frequent, up to a limit. The first
// that succeeds reports the move and brings the usual interval back.
func TestBackoffWhileTheForgeIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forge{err: errors.New("connection refused"), born: time.Now()}
		w, l := newWatcher(t, f)
		env := uuid.New()
		watchKnown(w, env, remoteSource, time.Minute)
		start(t, w)
		time.Sleep(5 * time.Hour)
		if n := f.asked(); n < 20 || n > 35 {
			t.Errorf("%d looks in five hours", n)
		}
		looks := f.times()
		last := looks[len(looks)-1] - looks[len(looks)-2]
		if last < 13*time.Minute || last > 17*time.Minute {
			t.Errorf("the last gap is %v, want about the cap", last)
		}
		status, ok := w.Status(env)
		if !ok || status.Failures != f.asked() || status.Err == nil || status.Seen != "1" {
			t.Errorf("%+v", status)
		}
		f.set("2", nil)
		time.Sleep(17 * time.Minute)
		if m := <-l.moves; m.Commit != "2" {
			t.Errorf("%+v", m)
		}
		before := f.asked()
		time.Sleep(10 * time.Minute)
		if n := f.asked() - before; n < 9 {
			t.Errorf("%d looks in the ten minutes after", n)
		}
		if status, _ := w.Status(env); status.Failures != 0 || status.Err != nil || status.Seen != "2" {
			t.Errorf("%+v", status)
		}
	})
}

// A move that OnMove could not handle, because the database is away, is reported again.
func TestAMoveThatCouldNotBeTakenIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWatcher(t, &forge{tip: "2"})
		l.fail = errors.New("database away")
		watchKnown(w, uuid.New(), remoteSource, time.Minute)
		start(t, w)
		time.Sleep(time.Minute)
		l.mu.Lock()
		l.fail = nil
		l.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if m := <-l.moves; m.Commit != "2" || len(l.moves) != 0 {
			t.Errorf("%+v", m)
		}
	})
}

// Without polling, the watcher looks once at the start, to find what moved while nobody
// watched, and then at every poke.
func TestPokes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forge{tip: "1", born: time.Now()}
		w, l := newWatcher(t, f)
		env := uuid.New()
		watchKnown(w, env, remoteSource, 0) // before the start, which looks at once
		start(t, w)
		time.Sleep(24 * time.Hour)
		if f.asked() != 1 {
			t.Fatalf("%d looks in a day without polling", f.asked())
		}
		f.set("2", nil)
		w.Poke(env, "pushed by ada")
		w.Poke(uuid.New(), "to nobody")
		synctest.Wait()
		if m := <-l.moves; m.Kind != KindWebhook || m.Message != "pushed by ada" {
			t.Errorf("%+v", m)
		}
		w.Forget(env)
		w.Poke(env, "late")
		time.Sleep(time.Hour)
		if f.asked() != 2 {
			t.Error("it looked after Forget")
		}
		if _, ok := w.Status(env); ok {
			t.Error("a forgotten source has a status")
		}
	})
}

// Watching the same source again changes nothing. A changed source is looked at at once.
func TestChangeOfSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forge{tip: "1", born: time.Now()}
		w, l := newWatcher(t, f)
		env := uuid.New()
		start(t, w)
		for range 5 {
			w.Watch(env, remoteSource, time.Minute)
			synctest.Wait()
		}
		<-l.moves
		if f.asked() != 1 {
			t.Errorf("%d looks", f.asked())
		}
		f.set("2", nil)
		other := remoteSource
		other.Branch = "next"
		w.Watch(env, other, time.Minute)
		synctest.Wait()
		if m := <-l.moves; m.Source.Branch != "next" {
			t.Errorf("%+v", m)
		}
	})
}

// Start and Stop work in any order; synctest fails when a goroutine is left.
func TestStartAndStopInAnyOrder(t *testing.T) {
	orders := []string{"SX", "X", "XS", "SSXX", "WSX", "SWX", "WX", "XW", "SWXW", "WSXXS", "SWFX", "WFSX"}
	for _, order := range orders {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := newWatcher(t, &forge{tip: "1"})
				defer w.Stop()
				env := uuid.New()
				for _, step := range order {
					switch step {
					case 'S':
						if err := w.Start(t.Context()); err != nil {
							t.Errorf("start: %v", err)
						}
					case 'X':
						w.Stop()
					case 'W':
						w.Watch(env, remoteSource, time.Second)
					case 'F':
						w.Forget(env)
					}
				}
			})
		})
	}
}

func TestWatcherIsAService(t *testing.T) {
	servicetest.Test(t, func(t *testing.T) service.Service {
		w, _ := newWatcher(t, &forge{tip: "1"})
		w.Watch(uuid.New(), remoteSource, time.Minute)
		return w
	})
}

// A watcher that is started again, or whose context ended before, finds what moved
// while it was stopped, and reports nothing twice.
func TestAWatcherIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forge{tip: "1"}
		w, l := newWatcher(t, f)
		defer w.Stop()
		w.Watch(uuid.New(), remoteSource, time.Minute)
		for _, tip := range []string{"1", "2", "3"} {
			f.set(tip, nil)
			ctx, cancel := context.WithCancel(t.Context())
			if err := w.Start(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if m := <-l.moves; m.Commit != tip || len(l.moves) > 0 {
				t.Errorf("%+v and %d more", m, len(l.moves))
			}
			if cancel(); tip == "1" { // the second Start comes after Stop, the third after the end of a context
				w.Stop()
			}
		}
	})
}

// Stop cancels the context of a running OnMove, and waits until it returns.
func TestStopWaitsForOnMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported, ended := make(chan bool), false
		w, err := NewWatcher(
			WatcherConfig{
				Tips:   &forge{tip: "1"},
				Logger: slog.New(slog.DiscardHandler),
				OnMove: func(ctx context.Context, _ Move) error {
					close(reported)
					<-ctx.Done()
					time.Sleep(time.Second)
					ended = true
					return ctx.Err()
				},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		w.Watch(uuid.New(), remoteSource, time.Minute)
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-reported
		w.Stop()
		if !ended {
			t.Error("Stop did not wait")
		}
	})
}

func TestWatcherConfigIsChecked(t *testing.T) {
	full := WatcherConfig{
		Tips:   &forge{},
		OnMove: func(context.Context, Move) error { return nil },
		Logger: slog.Default(),
	}
	for name, spoil := range map[string]func(*WatcherConfig){
		"Tips": func(c *WatcherConfig) { c.Tips = nil }, "OnMove": func(c *WatcherConfig) { c.OnMove = nil },
		"Logger": func(c *WatcherConfig) { c.Logger = nil }, "negative": func(c *WatcherConfig) { c.Debounce = -1 },
	} {
		cfg := full
		spoil(&cfg)
		if _, err := NewWatcher(cfg); !fault.Is(err, fault.Invalid) || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// watchKnown watches a source whose commit "1" was reported already.
func watchKnown(w *Watcher, env intent.EnvironmentID, src Source, interval time.Duration) {
	w.Watch(env, src, interval)
	one := w.watched(env)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.status.Seen = "1"
}
