package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A Git checkout touches a thousand files over a while: that is one change, which
// is reported when it is over. What is saved during a compile is one change after it.
func TestFilesSavedTogetherAreOneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := make(chan []string), make(chan []string)
		go debounce(in, out, quietTime)
		began := time.Now()
		for i := range 1000 {
			in <- []string{"f" + strconv.Itoa(i%10)}
			time.Sleep(quietTime / 2) // in the bubble's time
		}
		if got := <-out; len(got) != 10 || !slices.IsSorted(got) {
			t.Errorf("%v", got)
		}
		if took := time.Since(began); took < 1000*quietTime/2 {
			t.Errorf("it was reported after %v, in the middle of the checkout", took)
		}
		in <- []string{"b"}
		time.Sleep(time.Hour) // a long compile, in the bubble's time
		in <- []string{"a"}
		if got := <-out; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%v", got)
		}
		close(in)
		if _, more := <-out; more {
			t.Error("there was a change after the end")
		}
	})
}

// An editor saves by renaming, a person adds a folder with a module, and the
// compiler writes its cache: only files that a compile reads are reported.
func TestOnlyFilesThatACompileReadsAreReported(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path(name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main.cf")
	write(".git/HEAD")
	w, err := newFileWatcher(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	// wait waits for changes of all these files, in one report or in several.
	wait := func(names ...string) {
		t.Helper()
		missing := map[string]bool{}
		for _, name := range names {
			missing[path(name)] = true
		}
		for len(missing) > 0 {
			select {
			case got := <-w.changes:
				for _, p := range got {
					if !compileReads(p) {
						t.Errorf("%s was reported", p)
					}
					delete(missing, p)
				}
			case <-time.After(time.Minute):
				t.Fatalf("these changes were not reported: %v", missing)
			}
		}
	}
	write(".git/index")
	write("out.json")
	write(".main.cf.swp")
	write("main.cf.tmp")
	if err := os.Rename(path("main.cf.tmp"), path("main.cf")); err != nil {
		t.Fatal(err)
	}
	wait("main.cf")
	write("libs/new/model/_init.cf")
	write("libs/new/templates/motd")
	wait("libs/new/model/_init.cf", "libs/new/templates/motd")
	write("libs/new/model/_init.cf") // the new folder is watched too
	wait("libs/new/model/_init.cf")
	other := filepath.Join(t.TempDir(), "editable")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	w.add(other, filepath.Join(dir, "nowhere"))
	if err := os.WriteFile(filepath.Join(other, "plugin.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := <-w.changes; !slices.Contains(got, filepath.Join(other, "plugin.py")) {
		t.Errorf("%v", got)
	}
	if err := os.Remove(path("main.cf")); err != nil {
		t.Fatal(err)
	}
	wait("main.cf")
}

func TestWatchingAMissingFolderFails(t *testing.T) {
	if _, err := newFileWatcher(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a missing folder is watched")
	}
}
