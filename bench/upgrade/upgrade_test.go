package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ordain.dev/ordain/bench/peer"
	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
)

// This test binary is also the new program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"serve", "compile"}, os.Args[1]) {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(racedetector.Main(m))
}

// A server of the release before is replaced by this one on the same database, one process at
// a time, while people push: everything is deployed in each step, once.
func TestARollingUpgradeFromTheReleaseBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the release before, and starts servers")
	}
	tool.Long(t, "builds the release before, and upgrades from it")
	tool.Need(t, "git")
	if !hasCommit(t.Context(), releaseBefore) {
		if shallow, err := git(t.Context(), "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true\n" {
			t.Skip("the history of this checkout is cut off")
		}
		t.Fatalf("the release before, %s, is not in the history", releaseBefore)
	}
	dir, err := peer.Directory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the files are kept in", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	t.Cleanup(func() { racedetector.Check(t) })
	old, err := buildCommit(t.Context(), dir, releaseBefore)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	var told bytes.Buffer
	err = upgrade(t.Context(), config{
		dir: dir, oldBinary: old, newBinary: os.Args[0], cache: filepath.Join(cache, "ordain-tests"),
		environments: 3, items: 6, patience: 2 * time.Minute, out: &told,
	})
	t.Log(told.String())
	if err != nil {
		t.Fatal(err)
	}
}

// A commit that is not there is told by its name, before anything is built.
func TestAnUnknownCommitIsTold(t *testing.T) {
	tool.Need(t, "git")
	_, err := buildCommit(context.Background(), t.TempDir(), "0123456789abcdef0123456789abcdef01234567")
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("0123456789abcdef")) {
		t.Errorf("the error is %v", err)
	}
}
