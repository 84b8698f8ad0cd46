package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/bench/ordeal"
)

// A thousand resources are deployed again and again while the server, its
// executors and its database are killed at points that the seed gives. In the end
// all are in their state, none ran again after the record had it as deployed,
// and nothing is left behind. `go run ./bench/soak` does the same for longer.
func TestOrdeal(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills servers")
	}
	t.Parallel()
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	report, err := ordeal.Run(t.Context(), ordeal.Config{
		Binary: os.Args[0], Dir: dir, Env: []string{"ORDAIN_CONFIG_CACHE_DIR=" + filepath.Join(cache, "ordain-tests")},
		Rounds: 5, Seed: 20261121, Patience: patience,
	})
	if err != nil {
		t.Error(err)
	}
	for _, trouble := range report.Troubles {
		t.Error(trouble)
	}
	var faults int
	for _, n := range report.Faults {
		faults += n
	}
	if faults < 5 {
		t.Errorf("only %d faults struck", faults)
	}
	t.Log(report.String())
}
