package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/intent"
)

// screen is the output of a command. Tests wait for text that appears on it.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	seen  int
	moved chan struct{}
}

func newScreen() *screen { return &screen{moved: make(chan struct{}, 1)} }

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.moved <- struct{}{}:
	default:
	}
	return s.text.Write(b)
}

// wait waits until a text appears after the text of the last wait.
func (s *screen) wait(t *testing.T, want string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		s.mu.Lock()
		text := s.text.String()
		i := strings.Index(text[s.seen:], want)
		if i >= 0 {
			s.seen += i + len(want)
		}
		s.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-s.moved:
		case <-late:
			t.Fatalf("%q does not appear:\n%s", want, text)
		}
	}
}

// A person works on a model. Each save compiles it again, also after an error, when an
// editor replaces the file, and when a module is added. An interrupt is not a failure.
func TestCompileOnEverySave(t *testing.T) {
	dir := project(t, map[string]string{"main.cf": "x = 1\n"})
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		// As editors do: a new file replaces the old one.
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	s, ended := newScreen(), make(chan error, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	c := newRoot()
	c.SetOut(io.Discard)
	c.SetErr(s)
	c.SetArgs([]string{"compile", "--watch", "--no-std", "--project", dir, "--cache-dir", t.TempDir()})
	go func() { ended <- c.ExecuteContext(ctx) }()
	s.wait(t, "compiled in ")
	write("main.cf", "x = y\n")
	s.wait(t, "main.cf changed ────")
	s.wait(t, "failed after ")
	if err := os.Remove(filepath.Join(dir, "main.cf")); err != nil {
		t.Fatal(err)
	}
	write("main.cf", "entity A:\nend\nimplementation a for A:\nend\nimplement A using a\nA()\n")
	s.wait(t, "compiled in ")
	s.wait(t, ": 1 instance")
	write("project.yml", "name: [\n")
	s.wait(t, "project.yml changed ────")
	write("project.yml", "name: test\nmodulepath: libs\n")
	s.wait(t, ": 1 instance")
	write("libs/m/module.yml", "name: m\nversion: 1.0\nlicense: x\n")
	write("libs/m/model/_init.cf", "z = 1\n")
	s.wait(t, "changed ────")
	write("main.cf", "import m\n")
	s.wait(t, ": 0 instances")
	write("libs/m/model/_init.cf", "z = q\n")
	s.wait(t, "libs/m/model/_init.cf") // with main.cf, if that one was seen late
	s.wait(t, "failed after ")
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("an interrupt ends it with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// From the second save on, a compile starts from a copy of a Python process that has
// done the imports already.
func TestWatchingUsesWarmWorkers(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":           "name: test\nmodulepath: libs\n",
		"main.cf":               "import m\nm::say(0)\n",
		"libs/m/module.yml":     "name: m\nversion: 1.0\nlicense: x\n",
		"libs/m/model/_init.cf": "",
		"libs/m/plugins/__init__.py": `import sys
from inmanta.plugins import plugin

@plugin
def say(n: "int") -> None:
    print("began", "warm" if "ordain_worker.template_role" in sys.modules else "cold", n)
`,
	})
	s, ended := newScreen(), make(chan error, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	c := newRoot()
	c.SetOut(s)
	c.SetErr(s)
	c.SetArgs(
		[]string{
			"compile",
			"--watch",
			"--no-std",
			"--project",
			dir,
			"--cache-dir",
			t.TempDir(),
			"--python",
			plugintest.Python(t),
		},
	)
	go func() { ended <- c.ExecuteContext(ctx) }()
	s.wait(t, "began cold 0")
	s.wait(t, "compiled in ")
	warm := false
	for n := 1; n < 100 && !warm; n++ { // how soon depends on the machine
		if err := os.WriteFile(filepath.Join(dir, "main.cf"), fmt.Appendf(nil, "import m\nm::say(%d)\n", n),
			0o644); err != nil {
			t.Fatal(err)
		}
		s.wait(t, fmt.Sprintf(" %d\n", n))
		s.wait(t, "compiled in ")
		s.mu.Lock()
		warm = strings.Contains(s.text.String(), "began warm")
		s.mu.Unlock()
	}
	if !warm {
		t.Error("no compile began warm")
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// With --export, watch names the resources that changed since the last successful export.
func TestWatchNamesChangedResources(t *testing.T) {
	outcome := func(resources ...[2]string) *compiler.Outcome {
		doc := export.NewDocument()
		for _, r := range resources {
			id := intent.ResourceID{Type: "m::R", Agent: "a", Attribute: "n", Value: r[0]}
			doc.Resources = append(doc.Resources, export.Resource{ID: id, AttributeHash: r[1]})
		}
		return &compiler.Outcome{Document: doc}
	}
	var out bytes.Buffer
	w := &watcher{compileFlags: &compileFlags{}, out: &out}
	say := func(o *compiler.Outcome, want string) {
		t.Helper()
		out.Reset()
		if w.compare(o); out.String() != want {
			t.Errorf("%q and not %q", out.String(), want)
		}
	}
	say(outcome([2]string{"1", "x"}, [2]string{"2", "x"}), "")
	say(outcome([2]string{"1", "x"}, [2]string{"2", "x"}), "no resource changed\n")
	say(outcome([2]string{"2", "y"}, [2]string{"3", "x"}), "  - m::R[a,n=1]\n  ~ m::R[a,n=2]\n  + m::R[a,n=3]\n")
}
