package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A Git checkout touches a thousand files over a while: it is told once, when
// it is over, and what comes while a compile runs is told after it, together.
func TestWhatHappensTogetherIsOneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := make(chan []string), make(chan []string)
		go settle(in, out, Quiet)
		began := time.Now()
		for i := range 1000 {
			in <- []string{"f" + strconv.Itoa(i%10)}
			time.Sleep(Quiet / 2) // in the bubble's time
		}
		if got := <-out; len(got) != 10 || !slices.IsSorted(got) {
			t.Errorf("%v", got)
		}
		if took := time.Since(began); took < 1000*Quiet/2 {
			t.Errorf("it was told after %v, in the midst of it", took)
		}
		in <- []string{"b"}
		time.Sleep(time.Hour) // a long compile
		in <- []string{"a"}
		if got := <-out; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%v", got)
		}
		close(in)
		if _, more := <-out; more {
			t.Error("something after the end")
		}
	})
}

// An editor saves by renaming, somebody makes a folder with a module in it, a
// compiler writes its cache: only what a compile reads is told.
func TestWhatIsSavedIsTold(t *testing.T) {
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
	w, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	// told waits for all of these files, in one change or in several.
	told := func(names ...string) {
		t.Helper()
		missing := map[string]bool{}
		for _, name := range names {
			missing[path(name)] = true
		}
		for len(missing) > 0 {
			select {
			case got := <-w.Changes():
				for _, p := range got {
					if !Matters(p) {
						t.Errorf("%s was told", p)
					}
					delete(missing, p)
				}
			case <-time.After(time.Minute):
				t.Fatalf("nobody told of %v", missing)
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
	told("main.cf")
	write("libs/new/model/_init.cf")
	write("libs/new/templates/motd")
	told("libs/new/model/_init.cf", "libs/new/templates/motd")
	write("libs/new/model/_init.cf") // the folder that came is watched too
	told("libs/new/model/_init.cf")
	other := filepath.Join(t.TempDir(), "editable")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	w.Add(other, filepath.Join(dir, "nowhere"))
	if err := os.WriteFile(filepath.Join(other, "plugin.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := <-w.Changes(); !slices.Contains(got, filepath.Join(other, "plugin.py")) {
		t.Errorf("%v", got)
	}
	if err := os.Remove(path("main.cf")); err != nil {
		t.Fatal(err)
	}
	told("main.cf")
}

func TestNoFolder(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a folder that is not there is watched")
	}
}
