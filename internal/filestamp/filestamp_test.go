package filestamp_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ordain.dev/ordain/internal/filestamp"
)

// A file that another one replaces has another stamp, even if length and time of change are the
// same.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	of := func() filestamp.Stamp {
		t.Helper()
		s, err := filestamp.Of(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := of(); s != (filestamp.Stamp{}) {
		t.Fatalf("no file has the stamp %v", s)
	}
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("x = 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1700000000, 5)); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-time.Second) // the kernel's clock for files is a coarse one
	write(path)
	first := of()
	if first != of() {
		t.Error("the same file has two stamps")
	}
	if first[0] != 6 || first[1] != 1700000000*1e9+5 {
		t.Errorf("size and time of content: %v", first)
	}
	if first.Changed().Before(before) {
		t.Errorf("changed %v, before it was written", first.Changed())
	}
	write(path + ".new")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if second := of(); second == first {
		t.Errorf("another file has the same stamp %v", second)
	}
	if _, err := filestamp.Of(filepath.Join(path, "below")); err != nil {
		t.Errorf("below a file is nothing, which is no error: %v", err)
	}
	if _, err := filestamp.Of(path + "\x00"); err == nil {
		t.Error("a path that cannot be has a stamp")
	}
}
