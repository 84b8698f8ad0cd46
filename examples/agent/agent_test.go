// Package agent has a remote agent in Python, to show what docs/agent-protocol.md asks of one.
package agent

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/agent/conformance"
)

// The agent stays small: this is how little an agent has to do.
func TestItIsSmall(t *testing.T) {
	text, err := os.ReadFile("agent.py")
	if err != nil {
		t.Fatal(err)
	}
	var code int
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			code++
		}
	}
	if code >= 300 {
		t.Errorf("agent.py has %d lines of code", code)
	}
}

// It passes the suite that every agent has to pass. By default only the checks that take little time are made;
// `make agents` makes all of them.
func TestConformance(t *testing.T) {
	tool.Need(t, "openssl")
	python := withWebSockets(t)
	c := conformance.Config{
		Program: []string{python, "agent.py"},
		Only: []string{
			"join", "hello", "ping", "wrong-content", "refused", "prepare", "deploy", "dryrun", "facts", "variables", "call",
			"big-answer", "twice", "cancel", "cut", "killed", "stranger",
		},
		Report: func(r conformance.Result) { t.Logf("%s: %v %s", r.Name, r.Took, r.Failed) },
	}
	if os.Getenv("ORDAIN_AGENTS") == "all" {
		c.Only = nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	results, err := conformance.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Failed != "" {
			t.Errorf("%s: %s", r.Name, r.Failed)
		}
	}
}

// withWebSockets returns a Python with the package that the agent needs. It is made once per machine.
func withWebSockets(t *testing.T) string {
	t.Helper()
	python := tool.Need(t, "python3")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "ordain-test", "examples-agent")
	made := filepath.Join(dir, "bin", "python")
	if exec.Command(made, "-c", "import websockets.sync.client").Run() == nil {
		return made
	}
	for _, command := range [][]string{
		{python, "-m", "venv", "--clear", dir}, {made, "-m", "pip", "install", "--quiet", "websockets==15.0.1"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			tool.Missing(t, "%s: %v: %s", strings.Join(command, " "), err, out)
		}
	}
	return made
}
