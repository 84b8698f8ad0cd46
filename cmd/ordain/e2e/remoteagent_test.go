package e2e

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/target"
	"ordain.dev/ordain/server/config"
)

// The server deploys what a push says. Then the agent `desk` joins and is remote from then on: the next push is
// deployed there, and the server only sends it.
// When the agent is stopped, its resources are unavailable and not deployed by the server in its place; when it is
// back, they are.
func TestARemoteAgentDeploysAPush(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, func(o *config.Config) { o.AgentPort = 0 })
	p := w.newPlace(t)
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "zero", "calm"})))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	e, err := w.store.Environment(t.Context(), p.env)
	if err != nil {
		t.Fatal(err)
	}
	var token, errs bytes.Buffer
	args := []string{"agent", "token", "create", e.Name, "desk", "--server", w.server.URL()}
	if code := cli.Main(args, strings.NewReader(""), io.MultiWriter(&token), &errs); code != 0 {
		t.Fatalf("no join token: %s%s", token.String(), errs.String())
	}
	at := strings.Index(token.String(), "ordain-join.")
	if at < 0 {
		t.Fatalf("no join token in %q", token.String())
	}
	c := target.Config{StateDir: t.TempDir(), Program: "ordain test"}
	if err := target.Join(t.Context(), c, strings.Fields(token.String()[at:])[0]); err != nil {
		t.Fatal(err)
	}
	stop := runAgent(t, c)
	p.push("another text", p.model([3]string{"a", "one", "calm"}))
	p.compiledWell()
	p.settled()
	if p.note("a") != "one" {
		t.Fatalf("the note is %q", p.note("a"))
	}
	if code, err := os.ReadDir(filepath.Join(c.StateDir, "server", p.env.String(), "executors", "code")); err != nil ||
		len(code) == 0 {
		t.Errorf("the agent has no handlers: %v", err)
	}
	stop()
	p.push("a third text", p.model([3]string{"a", "two", "calm"}))
	p.compiledWell()
	p.until("the note is tried", func() bool { return len(p.attempts("a")) > 2 && p.attempts("a")[0].Finished != nil })
	if got := p.attempts("a")[0]; got.Status != intent.StatusUnavailable || p.note("a") != "one" {
		t.Errorf("without its agent the note ended as %s and is %q", got.Status, p.note("a"))
	}
	runAgent(t, c)
	p.until("the agent deploys it", func() bool {
		_, _, _ = w.ordain(t, "", "resource", "deploy", e.Name)
		return p.note("a") == "two"
	})
}

// runAgent runs an agent that has joined until the returned function is called.
func runAgent(t *testing.T, c target.Config) (stop func()) {
	t.Helper()
	a, err := target.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return stop
}
