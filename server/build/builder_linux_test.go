package build_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/job"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/build/warm"
)

// This test binary is also the program: the builder starts it as the compiler.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "compile" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "huge" {
		os.Exit(writeHugeExport())
	}
	if os.Getenv("ORDAIN_TEST_BUILDER_DIR") != "" {
		waitToBeKilled()
	}
	os.Exit(racedetector.Main(m))
}

// writeHugeExport is a compiler whose export has more than 1 GiB; most of it is a hole, so it takes no room.
func writeHugeExport() int {
	j, err := job.Read(os.Stdin)
	if err == nil {
		err = os.WriteFile(j.ExportFile, nil, 0o600)
	}
	if err == nil {
		err = os.Truncate(j.ExportFile, 1<<30+1<<20)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// patience bounds how long a test waits for what should come.
const patience = 20 * time.Second

// change is what the keeper of warm workers tells.
type change struct {
	ready bool
	why   string
}

// shop is a builder with one environment.
type shop struct {
	t       testing.TB
	builder *build.Builder
	layout  *layout.Layout
	job     build.Job
	changes chan change
	printed strings.Builder
	mu      sync.Mutex
}

// openShop makes a builder and the folders of an environment, whose project is
// an archive.
func openShop(t testing.TB, archive string, options ...func(*build.Config)) *shop {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newShop(dir, options...)
	if err != nil {
		t.Fatal(err)
	}
	s.t = t
	t.Cleanup(s.builder.Close)
	s.furnish(archive)
	return s
}

// furnish writes the project and makes the virtual environment.
func (s *shop) furnish(archive string) {
	s.t.Helper()
	s.write(archive)
	link := s.layout.Environment(s.job.Environment.ID).CompilerVenvLink()
	if out, err := exec.Command(plugintest.Python(s.t), "-m", "venv", "--without-pip",
		link).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

func newShop(dir string, options ...func(*build.Config)) (*shop, error) {
	s := &shop{changes: make(chan change, 100)}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	l, err := layout.New(
		layout.Config{
			StateDir: filepath.Join(dir, "state"),
			LogDir:   filepath.Join(dir, "log"),
			CacheDir: filepath.Join(dir, "cache"),
		},
	)
	if err != nil {
		return nil, err
	}
	s.layout = l
	maker, err := venv.New(
		venv.Config{CacheDir: l.CacheDir(), ToolsDir: filepath.Join(l.CacheDir(), "tools"), Logger: log},
	)
	if err != nil {
		return nil, err
	}
	modules, err := gitsync.New(gitsync.Config{Mirrors: l.Mirrors(), Logger: log})
	if err != nil {
		return nil, err
	}
	c := build.Config{
		Layout:  l,
		Maker:   maker,
		Git:     modules,
		Program: []string{os.Args[0]},
		Logger:  log,
		// As the server does it, as far as the kernel and this user allow it.
		Isolation: &isolation.Config{Support: isolation.Detect(), FirstUser: 2_000_000_000},
		Warm: warm.Config{
			Delay: -1, OnChange: func(_ string, ready bool, why string) { s.changes <- change{ready, why} },
		},
	}
	for _, option := range options {
		option(&c)
	}
	if s.builder, err = build.New(c); err != nil {
		return nil, err
	}
	return s, s.move("9b7b1d8c-0000-4000-8000-000000000001")
}

// move makes another environment the one that is compiled.
func (s *shop) move(name string) error {
	id, err := uuid.Parse(name)
	if err != nil {
		return err
	}
	env := s.layout.Environment(id)
	if err := env.Prepare(); err != nil {
		return err
	}
	s.job = build.Job{
		Environment: intent.Environment{ID: id, Name: "here"},
		Dir:         env.Compiler(),
		ProjectDir:  env.Compiler(),
	}
	return nil
}

// write writes files of the project.
func (s *shop) write(archive string) {
	s.t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(s.job.ProjectDir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

// compile compiles and gives what the model printed.
func (s *shop) compile() string {
	s.t.Helper()
	doc := s.document()
	if !doc.Success {
		s.t.Fatalf("the compile failed:\n%s", s.text())
	}
	return strings.Join(doc.Output, "\n")
}

func (s *shop) document() *export.Document {
	s.t.Helper()
	doc, _, err := s.builder.Compile(s.t.Context(), s.job, s.keep)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.text())
	}
	return doc
}

// keep keeps what is printed.
func (s *shop) keep(stdout, stderr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printed.WriteString(stdout + stderr)
}

func (s *shop) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.printed.String()
}

// ready waits for a warm worker.
func (s *shop) ready() {
	s.t.Helper()
	if c := s.next(); !c.ready {
		s.t.Fatalf("no warm worker: %s", c.why)
	}
}

func (s *shop) next() change {
	s.t.Helper()
	select {
	case c := <-s.changes:
		return c
	case <-time.After(patience):
		s.t.Fatal("the keeper of warm workers says nothing")
		panic("unreachable")
	}
}

// What a model with errors says comes back as a result, with a place; a
// compile that takes too long is stopped with all that it started.
func TestCompilesThatGoWrong(t *testing.T) {
	tool.Heavy(t, "compiles many times")
	s := openShop(t, waits+"-- main.cf --\nx = y\n")
	doc := s.document()
	if doc.Success || len(doc.Diagnostics) == 0 || doc.Diagnostics[0].Location.String() != "main.cf:1:3" {
		t.Errorf("a model with an error: %+v", doc.Diagnostics)
	}

	slow := openShop(
		t,
		"",
		func(c *build.Config) { c.Timeout = 6 * time.Second },
	) // in which Python starts on a busy machine too
	slow.furnish(strings.Replace(waits, "SECONDS", "600", 1))
	if _, _, err := slow.builder.Compile(t.Context(), slow.job, slow.keep); err == nil ||
		!strings.Contains(err.Error(), "took longer than 6s") {
		t.Errorf("a compile that takes too long: %v", err)
	}
	var pid int
	if _, err := fmt.Sscanf(slow.text(), "worker %d", &pid); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// An export that would fill the server's memory is not read; the message gives its size, the bound and a way out.
func TestAnExportThatIsTooLarge(t *testing.T) {
	s := openShop(t, "-- project.yml --\nname: test\n-- main.cf --\n", func(c *build.Config) {
		c.Program = []string{os.Args[0], "huge"}
	})
	_, _, err := s.builder.Compile(t.Context(), s.job, s.keep)
	if !fault.Is(err, fault.Exhausted) {
		t.Fatalf("the error is %v\n%s", err, s.text())
	}
	for _, want := range []string{"1025 MiB", "1024 MiB at most", "several environments"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q says nothing of %q", err, want)
		}
	}
}

const waits = `
-- project.yml --
name: test
modulepath: libs
-- libs/std/module.yml --
name: std
version: 1.0.0
license: none
-- libs/std/model/_init.cf --
-- libs/std/plugins/__init__.py --
import os
import sys
import time

from inmanta.plugins import plugin

@plugin
def wait() -> None:
    print("worker", os.getpid(), file=sys.stderr, flush=True)
    time.sleep(SECONDS)
-- main.cf --
std::wait()
`

// caching is a project whose plug-in looks for a file in the cache of its compile, and then writes it.
const caching = `
-- project.yml --
name: test
modulepath: libs
-- libs/std/module.yml --
name: std
license: test
version: 1.0
-- libs/std/model/_init.cf --
-- libs/std/plugins/__init__.py --
import os
import inmanta
from inmanta.plugins import plugin

@plugin
def poison() -> "string":
    cache = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(inmanta.__file__))))
    name = os.path.join(cache, "poisoned")
    found = os.path.exists(name)
    open(name, "w").close()
    print("found" if found else "clean", "in", os.path.basename(cache))
    return "done"
-- main.cf --
import std
x = std::poison()
`

// Previews run code that nobody has merged. What it leaves in the cache, from which later compiles start code, is found
// by later previews only, never by a compile; and nothing of a compile's cache is found by previews.
func TestPreviewsHaveACacheOfTheirOwn(t *testing.T) {
	s := openShop(t, caching)
	if !isolation.Detect().Namespaces {
		t.Skip("without isolation, all compiles use the cache of the server")
	}
	compile := func(preview bool) string {
		t.Helper()
		s.mu.Lock()
		s.printed.Reset()
		s.mu.Unlock()
		own, place := s.job, s.layout.Environment(s.job.Environment.ID)
		if preview {
			place = place.Preview()
			s.job.Preview, s.job.Dir, s.job.ProjectDir = true, place.Compiler(), place.Compiler()
			if err := os.MkdirAll(place.Compiler(), 0o755); err != nil {
				t.Fatal(err)
			}
			s.furnish(caching)
			if out, err := exec.Command(plugintest.Python(t), "-m", "venv", "--without-pip",
				place.CompilerVenvLink()).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		s.compile()
		s.job = own
		if strings.Contains(s.text(), "found in") {
			return "found"
		}
		if strings.Contains(s.text(), "clean in") {
			return "clean"
		}
		t.Fatal(s.text())
		return ""
	}
	for i, each := range []struct {
		preview bool
		want    string
	}{{true, "clean"}, {false, "clean"}, {true, "found"}, {false, "found"}} {
		if got := compile(each.preview); got != each.want {
			t.Errorf("%d. (a preview: %v): the cache is %s, want %s", i+1, each.preview, got, each.want)
		}
	}
}
