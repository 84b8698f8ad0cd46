package postgres

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A released lock is free at once, even while other goroutines start processes, which share every open file until
// they execute their own program.
func TestAReleasedLockIsFree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	stop := make(chan struct{})
	var starts sync.WaitGroup
	for range 4 {
		starts.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command("true").Run() // that it is started is all that matters
				}
			}
		})
	}
	defer starts.Wait()
	defer close(stop)
	for n := range 3000 {
		held, err := lock(dir)
		if err != nil {
			t.Fatalf("time %d: %v", n, err)
		}
		must(t, unlock(held))
	}
}
