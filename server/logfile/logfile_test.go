package logfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// log opens a file with a clock that the test sets.
func log(t *testing.T, policy *Policy) (*File, *time.Time) {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "odd [name]*.log"), func() Policy { return *policy })
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	f.now = func() time.Time { return at }
	t.Cleanup(func() { _ = f.Close() })
	return f, &at
}

func write(t *testing.T, f *File, text string) {
	t.Helper()
	if n, err := f.Write([]byte(text)); err != nil || n != len(text) {
		t.Fatalf("wrote %d of %d, %v", n, len(text), err)
	}
}

// files returns the contents of the files in the folder, by what follows the log's name.
func files(t *testing.T, f *File) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(f.path), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(e.Name(), filepath.Base(f.path))] = string(text)
	}
	return out
}

func want(t *testing.T, f *File, expected map[string]string) {
	t.Helper()
	if got := files(t, f); fmt.Sprint(got) != fmt.Sprint(expected) {
		t.Errorf("the folder holds %q, want %q", got, expected)
	}
}

// Full files are rotated: earlier ones get the next numbers, and superfluous ones
// are removed. A write is never split.
func TestFullFilesAreRotated(t *testing.T) {
	f, _ := log(t, &Policy{Size: 10, Keep: 2})
	write(t, f, "one\n")
	write(t, f, "two\n")
	want(t, f, map[string]string{"": "one\ntwo\n"})
	write(t, f, "three\n")
	want(t, f, map[string]string{"": "three\n", ".1": "one\ntwo\n"})
	write(t, f, "a line that is longer than a file may be\n")
	write(t, f, "five\n")
	want(t, f, map[string]string{"": "five\n", ".1": "a line that is longer than a file may be\n", ".2": "three\n"})
}

// A file is rotated when its first line is old, even if the program was restarted
// meanwhile. Rotated files are removed when they are old; other files stay.
func TestOldFilesAreRotated(t *testing.T) {
	policy := &Policy{Age: time.Hour, Keep: 3, Retention: 24 * time.Hour}
	f, at := log(t, policy)
	write(t, f, "morning\n")
	*at = at.Add(time.Hour - time.Minute)
	write(t, f, "noon\n")
	*at = at.Add(2 * time.Minute)
	write(t, f, "afternoon\n")
	want(t, f, map[string]string{"": "afternoon\n", ".1": "morning\nnoon\n"})

	own := f.path + ".old.gz"
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	*at = time.Now().Add(23 * time.Hour)
	if err := f.Clean(); err != nil {
		t.Fatal(err)
	}
	want(t, f, map[string]string{"": "afternoon\n", ".1": "morning\nnoon\n", ".old.gz": ""})
	*at = time.Now().Add(25 * time.Hour)
	if err := f.Clean(); err != nil {
		t.Fatal(err)
	}
	want(t, f, map[string]string{"": "afternoon\n", ".old.gz": ""})
}

// After a restart the age of a file counts from when the file before it was rotated.
func TestAgeSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	long := time.Now().Add(-3 * time.Hour)
	for _, name := range []string{path, path + ".1"} {
		if err := os.WriteFile(name, []byte("before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(path+".1", long, long); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, func() Policy { return Policy{Age: 2 * time.Hour, Keep: 2} })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, f, "after\n")
	want(t, f, map[string]string{"": "after\n", ".1": "before\n", ".2": "before\n"})
}

// When another program rotates the file or a person deletes it, the next lines go
// to a new file under its name.
func TestTheFileIsTakenAway(t *testing.T) {
	f, at := log(t, &Policy{})
	write(t, f, "one\n")
	if err := os.Rename(f.path, f.path+"-2026"); err != nil {
		t.Fatal(err)
	}
	*at = at.Add(2 * checkEvery)
	write(t, f, "two\n")
	want(t, f, map[string]string{"": "two\n", "-2026": "one\n"})
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	*at = at.Add(2 * checkEvery)
	write(t, f, "three\n")
	want(t, f, map[string]string{"": "three\n", "-2026": "one\n"})
}

// Many goroutines write while files are rotated, and every line ends up complete in one of them.
func TestManyWriters(t *testing.T) {
	f, _ := log(t, &Policy{Size: 200, Keep: 1000})
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := range 50 {
				_, _ = fmt.Fprintf(f, "writer %d line %02d\n", w, i)
			}
		})
	}
	group.Wait()
	lines := map[string]int{}
	for name, text := range files(t, f) {
		if len(text) > 200 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for line := range strings.Lines(text) {
			lines[line]++
		}
	}
	if len(lines) != 400 {
		t.Errorf("%d different lines, want 400", len(lines))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a write after the end: %v", err)
	}
}

// The logs of many environments share a folder, so Clean does not list it each time it is
// called: only when a rotated file has become too old, the policy is another one, or an hour
// has passed.
func TestCleanLooksWhenSomethingIsDue(t *testing.T) {
	policy := &Policy{Size: 1, Keep: 9, Retention: 30 * time.Minute}
	f, at := log(t, policy)
	clean := func() {
		t.Helper()
		if err := f.Clean(); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(f.path+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clean()
	put(".50")
	clean()
	want(t, f, map[string]string{"": "", ".50": ""}) // it was not looked for

	policy.Keep = 8
	clean()
	want(t, f, map[string]string{"": ""})

	write(t, f, "one\n")
	write(t, f, "two\n")
	put(".60")
	*at = time.Now().Add(31 * time.Minute) // the retention of number 1 is over
	clean()
	want(t, f, map[string]string{"": "two\n"})

	put(".70")
	clean()
	want(t, f, map[string]string{"": "two\n", ".70": ""})
	*at = at.Add(lookAgain)
	clean()
	want(t, f, map[string]string{"": "two\n"})
}
