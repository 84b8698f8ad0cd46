package deploys

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/agent/target"
	"ordain.dev/ordain/server/config"
)

// The server deploys what a push says. Then the agent `desk` joins and is remote from then on: the next push is
// deployed there, and the server only sends it.
// When the agent is stopped, its resources are unavailable and not deployed by the server in its place; when it is
// back, they are.
func TestARemoteAgentDeploysAPush(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
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
	c := joinAgent(t, w, e.Name, "desk")
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

// The model says of the agent `rack` that the server must not run it. While no agent of this name
// has joined, its note is unavailable and says how one joins; the note of `desk`, whose
// configuration does not say so, is deployed by the server. When the agent has joined, it deploys.
func TestAgentConfigLeavesResourcesToARemoteAgent(t *testing.T) {
	t.Parallel()
	tool.Long(t, "starts a server and an agent")
	w := lab.OwnWorld(t, func(o *config.Config) { o.AgentPort = 0 })
	p := w.NewPlace(t)
	model := func(text string) map[string]string {
		return map[string]string{"main.cf": fmt.Sprintf(`import std
import lab
std::AgentConfig(agentname="rack", autostart=false)
std::AgentConfig(agentname="desk")
lab::Note(agent="desk", path="%[1]s/here", text="%[2]s")
lab::Note(agent="rack", path="%[1]s/there", text="%[2]s")
`, p.Site, text)}
	}
	p.Push("two notes", lab.MergeFiles(lab.Module, model("one")))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	if p.Note("here") != "one" {
		t.Errorf("the server did not deploy the note of the agent desk: %s", p.Note("here"))
	}
	if _, err := os.Stat(filepath.Join(p.Site, "there")); err == nil {
		t.Error("the server deployed the note of the agent rack")
	}
	e, err := w.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	tried := p.Action("lab::Note", "there")
	if tried.Status != intent.StatusUnavailable {
		t.Errorf("the note of the agent rack is %s", tried.Status)
	}
	lab.Mentions(t, lab.LogText(tried), "autostart = false", "no remote agent of this name",
		"ordain agent token create "+e.Name+" rack")

	c := joinAgent(t, w, e.Name, "rack")
	runAgent(t, c)
	p.Push("another text", model("two"))
	p.CompiledWell()
	p.Settled()
	if p.Note("here") != "two" || p.Note("there") != "two" {
		t.Errorf("the notes are %q and %q", p.Note("here"), p.Note("there"))
	}
	if code, err := os.ReadDir(filepath.Join(c.StateDir, "server", p.Env.String(), "executors", "code")); err != nil ||
		len(code) == 0 {
		t.Errorf("the agent has no handlers: %v", err)
	}
}

// joinAgent makes a join token with the command line, and joins with it. The agent does not run yet.
func joinAgent(t *testing.T, w *lab.World, environment, agent string) target.Config {
	t.Helper()
	token := w.Must(t, "agent", "token", "create", environment, agent)
	at := strings.Index(token, "ordain-join.")
	if at < 0 {
		t.Fatalf("no join token in %q", token)
	}
	c := target.Config{StateDir: t.TempDir(), Program: "ordain test"}
	if err := target.Join(t.Context(), c, strings.Fields(token[at:])[0]); err != nil {
		t.Fatal(err)
	}
	return c
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
