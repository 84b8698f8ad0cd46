package executor

import (
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/worker"
)

// Handlers that fork without end, whether their children stay in the process
// group or not, are ended with all that they started. The resource says why, and
// the next task works.
func TestForkBomb(t *testing.T) {
	for _, name := range []string{"near", "far"} {
		t.Run(name, func(t *testing.T) {
			b, blue, _ := roughBench(t, func(c *Config) { c.ChildrenMax = 40 })
			bad := task(blue, "host", name, map[string]any{"what": "bomb"})
			bad.Timeout = 30 * time.Second
			expect(t, b.Run(t.Context(), bad), intent.StatusFailed, "processes running", "executor-children-max")
			if n := worker.KillMarked(b.mark()); n > 0 {
				t.Errorf("%d processes outlived the bomb", n)
			}
			expect(t, b.Run(t.Context(), task(blue, "host", "next", nil)), intent.StatusDeployed)
		})
	}
}
