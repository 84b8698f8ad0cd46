package gitsync

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// next waits for a move that was noticed on the disk. The poll interval of these tests is
// far too long to find it.
func next(t *testing.T, l *listener, want string) Move {
	t.Helper()
	select {
	case m := <-l.moves:
		if m.Commit != want {
			t.Fatalf("reported %s, want %s", m.Commit, want)
		}
		return m
	case <-time.After(20 * time.Second):
		t.Fatalf("%s was not reported", want)
		return Move{}
	}
}

// A push to a local repository is reported at once, however its branches are written:
// loose, in a new folder, packed, in a working copy, or after the repository was deleted
// and created again.
func TestLocalPushesAreToldAtOnce(t *testing.T) {
	o := newOrigin(t)
	one := o.push("one", map[string]string{"a": "1"})
	w, l := newWatcher(t, newSyncer(t))
	start(t, w)
	env := uuid.New()
	w.Watch(env, Source{URL: "file://" + o.bare, Branch: "main"}, time.Hour)
	next(t, l, one)
	two := o.push("two", map[string]string{"a": "2"})
	if m := next(t, l, two); m.Kind != KindWatch {
		t.Errorf("%+v", m)
	}
	o.run(o.bare, "gc", "-q")
	o.run(o.bare, "pack-refs", "--all")
	three := o.push("three", map[string]string{"a": "3"})
	next(t, l, three)

	// Another environment watches the working copy, for a branch in a folder that does not
	// exist yet.
	side := uuid.New()
	w.Watch(side, Source{URL: o.work, Branch: "team/ada"}, time.Hour)
	waitFor(t, w, side, func(s WatchStatus) bool { return s.Failures > 0 })
	o.git("checkout", "-q", "-b", "team/ada")
	if m := next(t, l, three); m.Environment != side {
		t.Errorf("%+v", m)
	}
	o.git("commit", "-q", "--allow-empty", "-m", "four")
	next(t, l, o.git("rev-parse", "HEAD"))
	w.Forget(side)

	if err := os.RemoveAll(o.bare); err != nil {
		t.Fatal(err)
	}
	waitFor(t, w, env, func(s WatchStatus) bool { // half of it gone it was an empty repository
		return fault.Is(s.Err, fault.NotFound) && strings.Contains(s.Err.Error(), "no Git repository at file://"+o.bare)
	})
	o.run(o.work, "init", "-q", "--bare", "-b", "main", o.bare)
	o.git("checkout", "-q", "main")
	next(t, l, o.push("anew", map[string]string{"a": "5"}))
}

// A repository may be created slowly: the watcher looks when there is only a folder. A
// later push is reported nevertheless.
func TestARepositoryInTheMaking(t *testing.T) {
	for name, working := range map[string]bool{"bare": false, "with a working copy": true} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			path := filepath.Join(t.TempDir(), "slow.git")
			w, l := newWatcher(t, newSyncer(t))
			start(t, w)
			env := uuid.New()
			w.Watch(env, Source{URL: "file://" + path, Branch: "main"}, time.Hour)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			failures := 0
			failed := func() {
				t.Helper()
				waitFor(t, w, env, func(s WatchStatus) bool { return s.Failures > failures })
				status, _ := w.Status(env)
				failures = status.Failures
			}
			failed()
			must(os.Mkdir(path, 0o755))
			failed()
			dot := path
			if working {
				dot = filepath.Join(path, ".git")
				must(os.Mkdir(dot, 0o755))
				failed()
			}
			must(os.Mkdir(filepath.Join(dot, "refs"), 0o755))
			failed()
			must(os.Mkdir(filepath.Join(dot, "objects"), 0o755))
			must(os.WriteFile(filepath.Join(dot, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
			failed() // it has no branches
			one := o.push("one", map[string]string{"a": "1"})
			o.run(dot, "fetch", "-q", "--update-head-ok", o.bare, "main:main")
			if m := next(t, l, one); m.Kind != KindWatch {
				t.Errorf("%+v", m)
			}
		})
	}
}

// waitFor waits until the status of an environment is good.
func waitFor(t *testing.T, w *Watcher, env intent.EnvironmentID, good func(WatchStatus) bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, ok := w.Status(env); ok && good(s) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s, _ := w.Status(env)
			t.Fatalf("the status stays %+v", s)
		}
	}
}

// A thousand repositories may lie in one folder. What happens to one of them wakes the sources
// of that one, and not those of its neighbours.
func TestNeighboursAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer done.Wait()
	defer cancel()
	n, err := newNotifier(ctx, slog.New(slog.DiscardHandler), &done)
	if err != nil {
		t.Fatal(err)
	}
	one, other := &watched{pokes: make(chan poke, 1)}, &watched{pokes: make(chan poke, 1)}
	n.arm(one, filepath.Join(dir, "one.git"))
	n.arm(other, filepath.Join(dir, "other.git"))
	for _, step := range []struct {
		name           string
		woken, sleeper *watched
	}{{"other.git", other, one}, {"one.git", one, other}} {
		if err := os.Mkdir(filepath.Join(dir, step.name), 0o755); err != nil {
			t.Fatal(err)
		}
		select {
		case <-step.woken.pokes:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s was created, and its source was not poked", step.name)
		}
		n.mu.Lock() // until all sources of the event were poked
		if len(step.sleeper.pokes) > 0 {
			t.Errorf("%s was created, and the source of its neighbour was poked", step.name)
		}
		n.mu.Unlock()
	}
}
