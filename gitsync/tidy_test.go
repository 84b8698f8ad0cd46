package gitsync

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Of four mirrors, one is used by an environment, one was used lately, one is being fetched,
// and one is unused. Only the last is removed, and is fetched again when it is needed.
func TestMirrorsThatNobodyUsesAreRemoved(t *testing.T) {
	base := t.TempDir()
	s := newSyncer(t, func(c *Config) { c.Mirrors = base })
	age := func(dir string) {
		long := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(dir+".lock", long, long); err != nil {
			t.Fatal(err)
		}
	}
	src := map[string]Source{}
	dir := map[string]string{}
	for _, name := range []string{"used", "recent", "fetching", "unused"} {
		o := newOrigin(t)
		o.push("first", map[string]string{"a": name})
		src[name] = Source{URL: o.bare, Branch: "main"}
		fetch(t, s, src[name])
		dir[name] = s.MirrorPath(o.bare)
		age(dir[name])
	}
	rev, _ := fetch(t, s, src["unused"])
	age(dir["unused"])
	if err := os.MkdirAll(filepath.Join(dir["unused"]+".new-1", "objects"), 0o755); err != nil { // of a killed clone
		t.Fatal(err)
	}
	head, _ := fetch(t, s, src["recent"])
	age(dir["recent"])
	checkout(t, s, src["recent"], head.Commit, filepath.Join(t.TempDir(), "c")) // using it counts, fetched or not
	unlock, err := lockFile(t.Context(), dir["fetching"]+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Tidy(t.Context(), []Use{{Source: src["used"]}, {Source: Source{URL: "gopher://x"}}},
		time.Now().Add(-time.Hour))
	if err != nil {
		t.Error(err)
	}
	unlock()
	for name := range src {
		if got := s.Has(src[name], ""); got == (name == "unused") {
			t.Errorf("%s: there is a mirror: %v", name, got)
		}
	}
	if left, _ := filepath.Glob(dir["unused"] + "*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	again, report := fetch(t, s, src["unused"])
	if again.Commit != rev.Commit || !report.Cloned {
		t.Errorf("%+v, %+v", again, report)
	}
	if err := newSyncer(t).Tidy(t.Context(), nil, time.Now()); err != nil {
		t.Errorf("no mirrors at all: %v", err)
	}
}

// If the lock file is removed while somebody waits for it, the waiter locks the new file.
// Otherwise two would hold the lock.
func TestALockThatIsRemovedWhileOneWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.git.lock")
	unlock, err := lockFile(t.Context(), path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	got := make(chan func(), 1)
	go func() {
		u, err := lockFile(t.Context(), path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Error(err)
		}
		got <- u
	}()
	for opened(t, path) < 3 { // the one who holds it, old, and the one who waits
		runtime.Gosched()
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	unlock()
	second := <-got
	defer second()
	if inPlace(old, path) {
		t.Error("the removed file counts as the lock")
	}
	now, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("the second holds a file that is not there: %v", err)
	}
	defer now.Close()
	if free, err := flock(now, false); free || err != nil {
		t.Errorf("a third got the lock too: %v, %v", free, err)
	}
}

// opened returns how often this process has a file open.
func opened(t *testing.T, path string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not tell which files are open")
	}
	for _, fd := range all {
		if at, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && at == path {
			n++
		}
	}
	return n
}
