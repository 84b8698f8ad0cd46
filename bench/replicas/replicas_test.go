package main

import (
	"io"
	"net/http"
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

// This test binary is also the processes that it kills, and their compilers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"serve", "compile", "agent"}, os.Args[1]) {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(racedetector.Main(m))
}

// Three processes share the environments, two others answer, a sixth serves remote agents.
// Some of all are killed or paused while people push, the bus is replaced, and the network
// of the agents is cut; in the end everything is deployed, once.
func TestNothingIsLostWhenProcessesAre(t *testing.T) {
	tool.Long(t, "three rounds of kills, pauses and partitions")
	if testing.Short() {
		t.Skip("starts and kills servers")
	}
	in := newTestInstallation(t, 3, 2)
	troubles, err := in.rounds(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, trouble := range troubles {
		t.Error(trouble)
	}
	t.Log(in.struck())
}

// While no process has the role process, people are answered all the same; what they
// asked for happens, in the order in which they asked, when one is there again.
func TestRequestsWaitForAProcess(t *testing.T) {
	tool.Heavy(t, "runs two servers")
	if testing.Short() {
		t.Skip("starts servers")
	}
	in := newTestInstallation(t, 1, 0)
	ctx, env := t.Context(), in.environs[0]
	for _, p := range in.places {
		if p.roles == "process" {
			p.now.Stop()
			p.now = nil
		}
	}
	api := in.api()
	call := func(method, path string, body any) {
		t.Helper()
		if err := api.Call(ctx, method, path, env.id, body, nil); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	if err := env.repo.Change(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := env.repo.Push(ctx); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(in.siteOf(0), "item1") // of the agent a1
	if err := os.WriteFile(damaged, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	call(http.MethodPost, "/api/v2/agent/a0/pause", nil)
	call(http.MethodPost, "/api/v2/agent/a1/pause", nil)
	call(http.MethodPost, "/api/v1/deploy", map[string]any{"agent_trigger_method": "push_full_deploy"})
	call(http.MethodPost, "/api/v2/agent/a1/unpause", nil)
	call(http.MethodPost, "/api/v1/notify/"+env.id, map[string]any{"update": true})
	call(http.MethodPut, "/api/v2/environment", map[string]any{
		"project_id": api.Project(), "name": "later", "repository": env.repo.Bare, "branch": "main", "halted": true,
	})
	if content, err := os.ReadFile(damaged); err != nil || string(content) != "damaged" {
		t.Fatalf("something was carried out: %q, %v", content, err)
	}
	for _, p := range in.places {
		if p.name == "process1" {
			if err := in.start(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	value := func(name string) string {
		content, _ := os.ReadFile(filepath.Join(in.siteOf(0), name))
		return string(content)
	}
	deadline := time.Now().Add(in.patience)
	for value("item1") != "0" {
		if time.Now().After(deadline) {
			t.Fatalf("item1 was not repaired: %q", value("item1"))
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := value("item3"); got != "0" { // of a0, which is paused
		t.Errorf("item3 of the paused agent is %q", got)
	}
	call(http.MethodPost, "/api/v2/agent/a0/unpause", nil)
	if err := in.settle(ctx); err != nil {
		t.Error(err)
	}
}

func newTestInstallation(t *testing.T, environments, agents int) *installation {
	t.Helper()
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
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	in, err := newInstallation(t.Context(), config{
		dir: dir, binary: os.Args[0], env: []string{"ORDAIN_CONFIG_CACHE_DIR=" + filepath.Join(cache, "ordain-tests")},
		rounds: 3, seed: 20261125, environments: environments, agents: agents, items: 9, pause: 13 * time.Second,
		patience: 2 * time.Minute, out: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.stop)
	return in
}
