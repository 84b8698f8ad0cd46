package deploys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// A compile does not see a new fact, perhaps because it starts from a warm worker. A
// note has the fact of another note as its text. It is not deployed while the fact is
// missing; each value that is stored is deployed by the next compile, also by one that
// starts from a warm worker.
func TestFactsReachTheModel(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	p := lab.SharedWorld(t).NewPlace(t)
	p.Push("two notes", lab.MergeFiles(lab.Module, map[string]string{"main.cf": `import lab
a = lab::Note(path="` + p.Site + `/a", text="one")
lab::Note(path="` + p.Site + `/b", text=std::getfact(a, "serial"))
lab::Note(path="` + p.Site + `/c", text=std::environment_name())
`}))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	rows := p.Settled()
	if rows["b"].State.Status() != intent.StatusUndefined || p.Note("a") != "one" ||
		p.Note("c") != "TestFactsReachTheModel" {
		t.Fatalf("without the fact: %v, a is %q, c is %q", rows, p.Note("a"), p.Note("c"))
	}
	set := func(value string) {
		t.Helper()
		a := intent.ResourceID{Type: "lab::Note", Agent: "desk", Attribute: "path", Value: filepath.Join(p.Site, "a")}
		if err := p.Control.SetParameter(t.Context(), p.Env,
			intent.Parameter{Name: "serial", Value: value, Source: "fact", Resource: a}); err != nil {
			t.Fatal(err)
		}
		p.Recompile()
		p.CompiledWell()
		p.Settled()
		if got := p.Note("b"); got != value {
			t.Errorf("with the fact %s b is %q", value, got)
		}
	}
	set("41")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		log, _ := os.ReadFile(filepath.Join(p.Dir, "log", "server.log"))
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "warm worker") || strings.Contains(line, "recipe") ||
				strings.Contains(line, "template") {
				t.Log(strings.TrimSpace(line))
			}
		}
	})
	tried := time.Now()
	p.Until("a warm worker", func() bool {
		if time.Since(tried) > 15*time.Second {
			// What the imports led to is not kept while the files of packages are touched, as other tests do
			// when they make virtual environments that share them.
			set("41")
			tried = time.Now()
		}
		log, err := os.ReadFile(filepath.Join(p.Dir, "log", "server.log"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "a warm worker waits") && strings.Contains(line, p.Env.String()) {
				return true
			}
		}
		return false
	})
	set("42")
}
