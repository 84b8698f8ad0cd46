package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ordain.dev/ordain/bench/peer"
	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
)

// This test binary is also the server that it kills, and the server starts it as
// its compiler.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "up" || os.Args[1] == "compile") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(racedetector.Main(m))
}

// The server, its executors and its database are killed again and again while a
// thousand resources are deployed, at points that the seed determines. In the end
// every resource is in its state, no handler ran again for a resource that was
// recorded as deployed, and nothing is left behind.
func TestNothingIsLostOrDoneTwice(t *testing.T) {
	tool.Long(t, "five rounds of kills during deployments of a thousand resources")
	if testing.Short() {
		t.Skip("starts and kills servers")
	}
	dir, err := peer.Directory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(func() { racedetector.Check(t) })
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	report, err := runOrdeal(t.Context(), config{
		binary: os.Args[0], dir: dir, env: []string{"ORDAIN_CONFIG_CACHE_DIR=" + filepath.Join(cache, "ordain-tests")},
		rounds: 4, seed: 20261121, resources: 1000, agents: 4, patience: 4 * time.Minute, out: io.Discard,
	})
	if err != nil {
		t.Error(err)
	}
	for _, trouble := range report.troubles {
		t.Error(trouble)
	}
	var faults int
	for _, n := range report.faults {
		faults += n
	}
	if faults < 5 {
		t.Errorf("only %d faults struck", faults)
	}
	t.Log(report.String())
}
