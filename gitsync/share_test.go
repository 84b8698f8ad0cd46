package gitsync

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate passes requests for the branches one by one, and counts them.
type gate struct {
	backend http.Handler
	arrived chan bool
	open    chan bool
	asked   atomic.Int32
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/info/refs") {
		g.asked.Add(1)
		g.arrived <- true
		<-g.open
	}
	g.backend.ServeHTTP(w, r)
}

// Thirty environments fetch a repository at once while a fetch of it is running. They share
// one more fetch, and each sees what was pushed before its call.
func TestManyEnvironmentsShareOneFetch(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	g := &gate{backend: o.serve("").Config.Handler, arrived: make(chan bool, 100), open: make(chan bool, 100)}
	server := httptest.NewServer(g)
	defer server.Close()
	src := Source{URL: server.URL + "/origin.git", Branch: "main"}
	o.push("one", map[string]string{"a": "1"})

	first := make(chan error, 1)
	go func() {
		_, _, err := s.Fetch(context.Background(), src)
		first <- err
	}()
	<-g.arrived // the first one is under way
	two := o.push("two", map[string]string{"a": "2"})
	var group sync.WaitGroup
	errs := make(chan error, 30)
	joined := make(chan bool, 30)
	for range 30 {
		group.Go(func() {
			joined <- true
			rev, _, err := s.Fetch(context.Background(), src)
			if err == nil && rev.Commit != two {
				err = fmt.Errorf("it got %s, want %s", rev.Commit, two)
			}
			errs <- err
		})
	}
	for range 30 {
		<-joined
	}
	waitUntil(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range s.flights {
			return f.next != nil && f.next.waiting == 30
		}
		return false
	})
	g.open <- true
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	g.open <- true
	group.Wait()
	for range 30 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := g.asked.Load(); n != 2 {
		t.Errorf("the remote was asked %d times, want 2", n)
	}
	if len(s.flights) != 0 {
		t.Errorf("%d fetches are left over", len(s.flights))
	}
}

// When one caller gives up, the others still get their result.
func TestOneGivesUpTheOthersDoNot(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	g := &gate{backend: o.serve("").Config.Handler, arrived: make(chan bool, 100), open: make(chan bool, 100)}
	server := httptest.NewServer(g)
	defer server.Close()
	src := Source{URL: server.URL + "/origin.git", Branch: "main"}
	o.push("one", map[string]string{"a": "1"})
	gone, leave := context.WithCancel(context.Background())
	results := make(chan error, 3)
	for _, ctx := range []context.Context{context.Background(), gone, context.Background()} {
		go func() {
			_, _, err := s.Fetch(ctx, src)
			results <- err
		}()
	}
	<-g.arrived
	waitUntil(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range s.flights {
			return f.next != nil && f.waiting+f.next.waiting == 3
		}
		return false
	})
	leave()
	if err := <-results; err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the one who left: %v", err)
	}
	g.open <- true
	g.open <- true
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// waitUntil waits for a state inside the Syncer for which there is no signal.
func waitUntil(t *testing.T, good func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !good() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it never came about")
		}
	}
}

// During a push there is a lock file beside the branch, which is empty at first and then has
// the new value. It is not taken for a branch.
func TestLocksOfAPushAreNoBranches(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	commit := o.push("one", map[string]string{"a": "1"})
	lock := filepath.Join(o.bare, "refs", "heads", "main.lock")
	for _, held := range []string{"", commit + "\n"} {
		if err := os.WriteFile(lock, []byte(held), 0o644); err != nil {
			t.Fatal(err)
		}
		rev, _ := fetch(t, s, Source{URL: o.bare, Branch: "main"})
		if rev.Commit != commit {
			t.Errorf("got %s, want %s", rev.Commit, commit)
		}
		if rev, _, err := s.Fetch(context.Background(), Source{URL: o.bare, Branch: "main.lock"}); err == nil {
			t.Errorf("the lock is taken for a branch at %s", rev.Commit)
		}
	}
}

// Several processes with environments of their own sync the same repository into the same
// mirror while it is pushed to.
func TestProcessesShareAMirror(t *testing.T) {
	if dir := os.Getenv("GITSYNC_TEST_DIR"); dir != "" {
		s := newSyncer(t, func(c *Config) { c.Mirrors = filepath.Join(dir, "mirrors") })
		src := Source{URL: os.Getenv("GITSYNC_TEST_URL"), Branch: "main"}
		for i := range 10 {
			rev, _ := fetch(t, s, src)
			checkout(t, s, src, rev.Commit, filepath.Join(dir, os.Getenv("GITSYNC_TEST_NAME")))
			checkout(t, s, src, rev.Commit, filepath.Join(dir, "shared", fmt.Sprint(i%2)))
		}
		return
	}
	o := newOrigin(t)
	o.push("0", map[string]string{"a": "0"})
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "shared"), 0o755); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	out := make([][]byte, 3)
	errs := make([]error, 3)
	for i := range 3 {
		group.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestProcessesShareAMirror$")
			cmd.Env = append(os.Environ(), "GITSYNC_TEST_DIR="+dir, "GITSYNC_TEST_URL="+o.bare,
				fmt.Sprintf("GITSYNC_TEST_NAME=env%d", i))
			out[i], errs[i] = cmd.CombinedOutput()
		})
	}
	for i := range 10 {
		o.push(fmt.Sprint(i), map[string]string{"a": fmt.Sprint(i), fmt.Sprintf("f%d", i): "x"})
	}
	group.Wait()
	for i := range 3 {
		if errs[i] != nil {
			t.Errorf("process %d: %v\n%s", i, errs[i], out[i])
		}
	}
	mirror := newSyncer(t, func(c *Config) { c.Mirrors = filepath.Join(dir, "mirrors") }).MirrorPath(o.bare)
	o.run(mirror, "fsck", "--strict")
	for _, c := range []string{"env0", "env1", "env2", "shared/0", "shared/1"} {
		if got := o.run(filepath.Join(dir, c), "status", "--porcelain"); got != "" {
			t.Errorf("%s: %s", c, got)
		}
	}
}
