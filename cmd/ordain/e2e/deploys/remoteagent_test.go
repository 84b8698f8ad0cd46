package deploys

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"

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
	w := lab.OwnWorld(t, func(o *config.Config) { o.AgentPort = 0 })
	p := w.NewPlace(t)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "zero", "calm"})))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	e, err := w.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	var token, errs bytes.Buffer
	args := []string{"agent", "token", "create", e.Name, "desk", "--server", w.Server.URL()}
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
	p.Push("another text", p.Model([3]string{"a", "one", "calm"}))
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "one" {
		t.Fatalf("the note is %q", p.Note("a"))
	}
	if code, err := os.ReadDir(filepath.Join(c.StateDir, "server", p.Env.String(), "executors", "code")); err != nil ||
		len(code) == 0 {
		t.Errorf("the agent has no handlers: %v", err)
	}
	stop()
	p.Push("a third text", p.Model([3]string{"a", "two", "calm"}))
	p.CompiledWell()
	p.Until("the note is tried", func() bool { return len(p.Attempts("a")) > 2 && p.Attempts("a")[0].Finished != nil })
	if got := p.Attempts("a")[0]; got.Status != intent.StatusUnavailable || p.Note("a") != "one" {
		t.Errorf("without its agent the note ended as %s and is %q", got.Status, p.Note("a"))
	}
	runAgent(t, c)
	p.Until("the agent deploys it", func() bool {
		_, _, _ = w.Ordain(t, "", "resource", "deploy", e.Name)
		return p.Note("a") == "two"
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
