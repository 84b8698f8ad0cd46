package runtime

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Many processes may unpack at once, and a damaged copy is replaced.
func TestUnpack(t *testing.T) {
	cache := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Unpack(cache); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	dir, err := Unpack(cache)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ordain_worker", "frames.py")
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if again, err := Unpack(cache); err != nil || again != dir {
		t.Fatalf("%s, %v", again, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() == 10 {
		t.Errorf("the damaged file is still there: %v", err)
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 {
		t.Errorf("other entries: %v, %v", entries, err)
	}
}
