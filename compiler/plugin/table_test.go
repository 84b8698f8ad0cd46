package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/filestamp"
	"ordain.dev/ordain/internal/python/runtime"
)

// checkout is a project on disk that is compiled again and again.
type checkout struct {
	t      testing.TB
	config Config
	order  []string
	early  bool     // the worker starts before it is known what there is to load
	below  []string // namespaces below modules that the model loads
}

func newCheckout(t testing.TB, archive string) *checkout {
	t.Helper()
	unpacked, err := runtime.Unpack(filepath.Join(os.TempDir(), "ordain-plugin-test"))
	if err != nil {
		t.Fatal(err)
	}
	site := t.TempDir()
	c := &checkout{t: t, config: Config{
		Python: plugintest.Python(t), RuntimeDir: unpacked, ProjectDir: t.TempDir(), ProjectName: "test",
		Path: []string{site}, Env: []string{"PATH=/usr/bin:/bin"}, CallTimeout: time.Minute, CacheDir: t.TempDir(),
	}}
	c.config.ModulePath = []string{filepath.Join(c.config.ProjectDir, "libs")}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		c.write(f.Name, string(f.Data))
		if name, _, _ := strings.Cut(f.Name, "/"); !slices.Contains(c.order, name) {
			c.order = append(c.order, name)
		}
	}
	return c
}

func (c *checkout) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.config.ProjectDir, "libs", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// compile loads the modules as a compile does. The host is closed by done.
func (c *checkout) compile() *project {
	c.t.Helper()
	host := New(c.t.Context(), c.config)
	if c.early {
		host.Anticipate()
	}
	var code []eval.ModuleCode
	for _, name := range c.order {
		root := filepath.Join(c.config.ProjectDir, "libs", name)
		m := eval.ModuleCode{Name: name, Root: root, Dir: filepath.Join(root, "plugins"), Namespaces: c.below}
		err := filepath.WalkDir(m.Dir, func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".py") {
				m.Files = append(m.Files, path)
			}
			return err
		})
		if err != nil {
			c.t.Fatal(err)
		}
		code = append(code, m)
	}
	loaded, err := host.Load(code)
	if err != nil {
		c.t.Fatal(err)
	}
	p := &project{t: c.t, host: host, heap: newHeap(), plugins: map[string]*eval.Signature{}}
	for _, s := range loaded.Plugins {
		p.plugins[s.Name] = s
	}
	return p
}

// done ends a compile and reports whether it took Python.
func (p *project) done() (python bool) {
	p.t.Helper()
	if err := p.host.Finalize(nil); err != nil {
		p.t.Fatal(err)
	}
	if err := p.host.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.host.began
}

// remembered compiles once more and reports whether that took no Python.
func (c *checkout) remembered() bool {
	c.t.Helper()
	return !c.compile().done()
}

const two = `
-- a/plugins/__init__.py --
from inmanta.plugins import plugin

def inner():
    return "a"

@plugin
def name() -> "string":
    return inner()
-- b/plugins/__init__.py --
import sys
from inmanta.plugins import plugin

@plugin
def modules() -> "list":
    # Written so, for code that asks by its name which modules there are has all of them imported.
    return [each for each in getattr(sys, "mod" + "ules") if each.startswith("inmanta_plugins.")]

@plugin
def old(x: "string") -> "int":
    return 1
`

// The second compile knows the plug-ins without Python. It starts Python for a call, and
// imports only the module of that plug-in.
func TestWhatALoadToldIsRemembered(t *testing.T) {
	c := newCheckout(t, two)
	if c.remembered() {
		t.Fatal("the first compile took no Python")
	}
	first := c.compile()
	if first.host.began || len(first.plugins) != 3 || first.plugins["b::old"].Params[0].Type.Name != "string" {
		t.Fatalf("second compile: Python %v, plug-ins %v", first.host.began, first.plugins)
	}
	got := first.value("b::modules").(*types.List)
	if len(got.Items) != 1 || got.Items[0] != types.Str("inmanta_plugins.b") {
		t.Errorf("imported: %v", got.Items)
	}
	if first.value("a::name") != types.Str("a") {
		t.Error("a::name gave something else")
	}
	first.done()
}

// A project that needed Python the last time gets a worker at once, while the table of the
// load is looked up. The call finds the worker running.
func TestAWorkerStartsWhileItsTableIsRead(t *testing.T) {
	c := newCheckout(t, two)
	first := c.compile()
	first.value("a::name")
	first.done()
	c.early = true
	for range 3 {
		p := c.compile()
		if !p.host.remembered {
			t.Fatal("the table is not remembered")
		}
		if p.value("a::name") != types.Str("a") {
			t.Error("a::name gave something else")
		}
		if !p.done() {
			t.Fatal("no worker was begun")
		}
	}
}

// While a worker imports modules in advance, the compile does not wait for it and may end
// it. Output and errors of these imports do not appear in the compile.
func TestAnImportThatNobodyWaitsFor(t *testing.T) {
	c := newCheckout(t, two)
	c.compile().done()
	for _, ask := range []func(h *Host){
		func(h *Host) { h.TakeOutput() },
		func(h *Host) {
			var reply struct{}
			if err := h.Request("export_code", CodeOf{}, &reply, newHeap(), "the export"); err != nil {
				t.Error(err)
			}
		},
	} {
		p := c.compile()
		p.host.Interrupt()
		p.host.Begin()
		<-p.host.started
		ask(p.host)
		if lines := p.host.TakeOutput(); len(lines) > 0 {
			t.Errorf("printed: %q", lines)
		}
		if err := p.host.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The next load notices every change of something that a load depended on.
func TestNothingStaleIsRemembered(t *testing.T) {
	for name, change := range map[string]func(c *checkout){
		"a plug-in is edited, to the same size, at once": func(c *checkout) {
			c.write("b/plugins/__init__.py", strings.Replace(txtarFile(two, "b/plugins/__init__.py"), `x: "string"`,
				`x: "number"`, 1))
		},
		"a Python file is added": func(c *checkout) {
			c.write("b/plugins/more.py", "from inmanta.plugins import plugin\n\n@plugin\ndef more() -> \"int\":\n  "+
				"  return 1\n")
		},
		"a package is upgraded": func(c *checkout) {
			site := c.config.Path[0]
			if err := os.Rename(filepath.Join(site, "dep-1.0.dist-info"),
				filepath.Join(site, "dep-1.1.dist-info")); err != nil {
				c.t.Fatal(err)
			}
		},
		"a package that was imported is edited": func(c *checkout) {
			if err := os.WriteFile(filepath.Join(c.config.Path[0], "dep.py"), []byte("VALUE = 2\n"),
				0o644); err != nil {
				c.t.Fatal(err)
			}
		},
		"a file that was read at import is edited": func(c *checkout) { c.write("a/plugins/data.txt", "2") },
		"a variable that was read at import is set": func(c *checkout) {
			c.config.Env = append(c.config.Env, "ORDAIN_TEST_FLAVOUR=sweet")
		},
		"another interpreter": func(c *checkout) {
			link := filepath.Join(c.t.TempDir(), "python")
			if err := os.Symlink(c.config.Python, link); err != nil {
				c.t.Fatal(err)
			}
			c.config.Python = link
		},
		"another setting": func(c *checkout) {
			c.config.Settings = map[string]map[string]any{"config": {"environment": "x"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, two)
			c.write("a/plugins/data.txt", "1")
			c.write("a/plugins/__init__.py", `
import os
import dep
from inmanta.plugins import plugin

with open(os.path.join(os.path.dirname(__file__), "data.txt")) as data:
    TEXT = data.read()
FLAVOUR = os.environ.get("ORDAIN_TEST_FLAVOUR")

@plugin
def name() -> "string":
    return TEXT
`)
			site := c.config.Path[0]
			if err := os.Mkdir(filepath.Join(site, "dep-1.0.dist-info"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(site, "dep.py"), []byte("VALUE = 1\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			c.remembered()
			if !c.remembered() {
				t.Fatal("the load was not remembered at all")
			}
			change(c)
			p := c.compile()
			if want := strings.HasPrefix(name,
				"a plug-in is edited"); (p.plugins["b::old"].Params[0].Type.Name == "number") != want {
				t.Errorf("b::old takes %+v", p.plugins["b::old"].Params[0].Type)
			}
			if !p.done() {
				t.Error("the next compile went by what was before")
			}
			if !c.remembered() {
				t.Error("the compile after that does not remember the new state")
			}
		})
	}
}

func txtarFile(archive, name string) string {
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// Modules with side effects outside of Python are imported by every compile.
func TestImportsWithEffectsAreRepeated(t *testing.T) {
	for name, code := range map[string]string{
		"prints":         "print('hello')",
		"complains":      "import sys\nprint('hello', file=sys.stderr)",
		"writes a file":  "open(__file__ + '.out', 'w').close()",
		"runs a program": "import subprocess\nsubprocess.run(['true'])",
		"opens a connexion": "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 1), 1)\nexcept " +
			"OSError:\n    pass",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, two)
			c.write("a/plugins/effect.py", code+"\n")
			c.remembered()
			if c.remembered() {
				t.Error("the second compile did not import the module")
			}
		})
	}
}

// A module that changes other modules is imported before anything is called, together with
// those that it changes. Independent modules still wait.
func TestPatchesAreInPlaceBeforeACall(t *testing.T) {
	for name, patch := range map[string]string{
		"a function of another module": "import inmanta_plugins.a\ninmanta_plugins.a.inner = lambda: 'patched'",
		"the call of a plug-in": "import inmanta_plugins.a\ninmanta_plugins.a.name.__plugin__.call = " +
			"staticmethod(lambda: 'patched')",
		"a class of the runtime": `
from inmanta import plugins
before = plugins.Plugin.call
def call(self, *args, **kwargs):
    found = before(self, *args, **kwargs)
    return "patched" if self.get_full_name() == "a::name" else found
plugins.Plugin.call = call`,
		"a package that both use": "import textwrap\ntextwrap.dedent = lambda text: 'patched'",
		"the environment":         "import os\nos.environ['A_NAME'] = 'patched'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, two)
			c.write("a/plugins/__init__.py", `
import os
import textwrap
from inmanta.plugins import plugin

def inner():
    return textwrap.dedent(os.environ.get("A_NAME", "a"))

@plugin
def name() -> "string":
    return inner()
`)
			c.write("patching/plugins/__init__.py", patch+"\n")
			for _, order := range [][]string{{"a", "b", "patching"}, {"patching", "a", "b"}} {
				c.order = order
				for n := range 2 {
					p := c.compile()
					if p.host.began == (n > 0) {
						t.Fatalf("compile %d with %v: Python %v", n, order, p.host.began)
					}
					if got := p.value("a::name"); got != types.Str("patched") {
						t.Errorf("compile %d with %v: got %v", n, order, got)
					}
					got := p.value("b::modules").(*types.List)
					if !slices.Contains(got.Items, types.Value(types.Str("inmanta_plugins.patching"))) {
						t.Errorf("compile %d with %v: imported %v", n, order, got.Items)
					}
					p.done()
				}
			}
		})
	}
}

// The finalizer of a module runs even if no plug-in of it was called.
func TestFinalizersRunWithoutACall(t *testing.T) {
	c := newCheckout(t, two)
	c.write("a/plugins/__init__.py",
		"from inmanta.compiler import finalizer\n\n@finalizer\ndef end():\n    print('the end')\n")
	for n := range 2 {
		p := c.compile()
		p.done()
		if got := p.host.TakeOutput(); !slices.Equal(got, []string{"the end"}) {
			t.Errorf("compile %d printed %v", n, got)
		}
	}
}

// All finalizers run, and the errors of all of them are reported, also from a remembered load.
func TestFinalizersThatFail(t *testing.T) {
	c := newCheckout(t, two)
	const fails = "from inmanta.compiler import finalizer\n\n@finalizer\ndef end():\n    raise ValueError(__name__)\n"
	c.write("a/plugins/__init__.py", fails)
	for _, want := range []string{
		"Finalizer failed: inmanta_plugins.a",
		"Finalizer failed: inmanta_plugins.a\nFinalizer failed: inmanta_plugins.b",
	} {
		for n := range 2 {
			p := c.compile()
			err := p.host.Finalize(nil)
			if err == nil || err.Error() != want {
				t.Errorf("compile %d: got %v, want %s", n, err, want)
			}
			p.host.Close()
		}
		c.write("b/plugins/__init__.py", fails)
	}
}

// A plug-in that asks for all plug-ins sees all, though only its own module was imported.
func TestAllPluginsAreThereForWhoAsks(t *testing.T) {
	c := newCheckout(t, two)
	c.write("b/plugins/__init__.py", `
from inmanta.plugins import plugin, Context

@plugin
def known(ctx: Context) -> "list":
    return sorted(ctx.get_compiler().get_plugins())
`)
	for range 2 {
		p := c.compile()
		got := p.value("b::known").(*types.List)
		if len(got.Items) != 2 || got.Items[0] != types.Str("a::name") {
			t.Errorf("plug-ins: %v", got.Items)
		}
		p.done()
	}
}

// A plug-in in a file whose namespace the model does not load does not exist. It exists as
// soon as the model loads the namespace, whatever is remembered of the previous load.
func TestPluginsOfNamespacesThatAreNotLoaded(t *testing.T) {
	c := newCheckout(t, two)
	c.write("a/plugins/sub.py",
		"from inmanta.plugins import plugin\n\n@plugin\ndef take(x) -> 'nowhere::T':\n    return x\n")
	c.write("a/plugins/deep/inner.py",
		"from inmanta.plugins import plugin\n\n@plugin\ndef take() -> 'string':\n    return 'inner'\n")
	c.write("b/plugins/__init__.py", `
from inmanta.plugins import plugin, Context

@plugin
def known(ctx: Context) -> "list":
    return sorted(ctx.get_compiler().get_plugins())
`)
	introduced := func(want ...string) {
		t.Helper()
		p := c.compile()
		for name := range p.plugins {
			if !slices.Contains(want, name) {
				t.Errorf("the worker knows %s", name)
			}
		}
		if got := types.Repr(p.value("b::known")); got != "['"+strings.Join(want, "', '")+"']" {
			t.Errorf("plug-ins that a plug-in sees: %s, want %s", got, want)
		}
		p.done()
	}
	for range 2 { // the second time from the table
		introduced("a::name", "b::known")
	}
	c.below = []string{"a::deep", "a::deep::inner"}
	for range 2 {
		introduced("a::deep::inner::take", "a::name", "b::known")
	}
	c.below = []string{"a::deep"}
	introduced("a::name", "b::known")
}

// The Python class for an entity that must be a dataclass is reported, also from a remembered load.
func TestTwins(t *testing.T) {
	c := newCheckout(t, two)
	c.write(
		"a/plugins/sub.py",
		"import os as Module\n\ndef Function(): pass\n\nNumber = 5\n\nclass Made: pass\n\nInstance = "+
			"Made()\n\nNothing = None\n",
	)
	for _, load := range []string{"first", "remembered"} {
		p := c.compile()
		for name, want := range map[string]string{
			"Module": "found module os", "Function": "found function Function", "Number": "refused AttributeError",
			"Instance": "nameless AttributeError", "Nothing": "", "Absent": "",
		} {
			twin, err := p.host.Twin("a::sub", name)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			switch {
			case twin.Found != nil:
				got = "found " + twin.Found.Kind + " " + twin.Found.Called
			case twin.Refused != nil:
				got = "refused " + strings.TrimPrefix(twin.Refused.Class, "builtins.")
			case twin.Nameless != nil:
				got = "nameless " + strings.TrimPrefix(twin.Nameless.Class, "builtins.")
			}
			if got != want {
				t.Errorf("%s load: %s is %q, want %q", load, name, got, want)
			}
		}
		p.done()
	}
}

// Whatever happened to the files of the cache, a compile works.
func TestDamagedTablesAreIgnored(t *testing.T) {
	c := newCheckout(t, two)
	c.remembered()
	files, _ := filepath.Glob(filepath.Join(c.config.CacheDir, "plugins", "*"))
	if len(files) != 2 { // a table and a habit
		t.Fatalf("files: %v", files)
	}
	for name, damage := range map[string]func(text []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(text []byte) []byte { return text[:len(text)/2] },
		"one bit":   func(text []byte) []byte { text[len(text)/2] ^= 1; return text },
		"not ours":  func([]byte) []byte { return []byte("{}") },
		"other sum": func([]byte) []byte { return []byte(checksum([]byte("[1]")) + "\n[1]") },
	} {
		whole := map[string][]byte{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			whole[file] = bytes.Clone(text)
			if err := os.WriteFile(file, damage(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c.remembered() {
			t.Errorf("%s: a damaged table was believed", name)
		}
		if !c.remembered() {
			t.Errorf("%s: it was not replaced", name)
		}
		for file, text := range whole {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Compiles at the same time do not disturb each other.
func TestTwoCompilesAtOnce(t *testing.T) {
	c := newCheckout(t, two)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			p := c.compile()
			if got := p.value("a::name"); got != types.Str("a") {
				t.Errorf("got %v", got)
			}
			p.done()
		})
	}
	all.Wait()
	if !c.remembered() {
		t.Error("nothing is remembered")
	}
}

// FuzzTable reads tables that another program wrote.
func FuzzTable(f *testing.F) {
	text, err := json.Marshal(fullTable())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte{0})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body []byte) {
		s := tables{dir}
		if err := writeSealed(s.path("k"), body); err != nil {
			t.Fatal(err)
		}
		if read := s.read("k"); read != nil {
			read.holds([]string{"A=b"})
			read.loaded()
		}
	})
}

// fullTable is a table that has something in each of its fields.
func fullTable() *table {
	inner := &eval.Annotation{Kind: "dsl", Name: "int", Text: "'int'"}
	t := &table{
		Python:  "3.13.0",
		Plugins: []json.RawMessage{json.RawMessage(`{"name":"a::b"}`)},
		Dataclasses: []eval.Dataclass{{
			Name: "a::D", Class: "b::D", Frozen: true, Plain: true, File: "d.py", Line: 8,
			Fields: []eval.DataclassField{{Name: "f", Type: inner, Default: true}},
		}},
		Warnings:   []remark{{"old", "w.py", 9}},
		Export:     json.RawMessage("null"),
		Code:       map[string][]string{"a::R": {"a"}, "a::S": nil},
		Finalizers: []string{"a.f"}, Shared: []string{}, Early: []string{"b"},
		Salt: "salt", Variables: map[string]string{"A": "b", "C": ""}, Environment: "all",
		Files:   []input{{"/a.py", filestamp.Stamp{1, -2, 3, 4, 1 << 62}, "hash", true}},
		Folders: []input{{Path: "/"}},
	}
	if err := t.parse(); err != nil {
		panic(err)
	}
	return t
}

// A table is read as it was written. A file that was truncated, or that has more than a
// table, is rejected.
func TestTableIsReadAsItWasWritten(t *testing.T) {
	written := fullTable()
	s := tables{t.TempDir()}
	s.write("k", written)
	read := s.read("k")
	if read == nil {
		t.Fatal("it cannot be read")
	}
	if diff := cmp.Diff(written, read, cmp.AllowUnexported(table{})); diff != "" {
		t.Error(diff)
	}
	text, err := readSealed(s.path("k"))
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{nil, text[:len(text)/2], text[:len(text)-1], append(text, '{')} {
		if err := writeSealed(s.path("k"), damaged); err != nil {
			t.Fatal(err)
		}
		if s.read("k") != nil {
			t.Errorf("%d bytes instead of %d are read as a table", len(damaged), len(text))
		}
	}
}

// A template is rejected if the files that it imported may differ from its recipe: because
// the content of one changed, or because one was touched in the meantime, as happens to
// files that virtual environments share.
func TestARecipeKnowsWhatWasTouched(t *testing.T) {
	c := newCheckout(t, two)
	c.compile().done()
	p := c.compile()
	p.value("a::name")
	p.done()
	r := p.host.Recipe()
	if r == nil {
		t.Fatal("no recipe")
	}
	file := filepath.Join(c.config.ProjectDir, "libs", "a", "plugins", "__init__.py")
	since := time.Now().Add(time.Minute)
	if err := r.unchanged(c.config.Env, since); err != nil {
		t.Errorf("untouched: %v", err)
	}
	since = time.Now().Add(-slack)
	if err := errors.Join(os.Link(file, file+".link"), os.Remove(file+".link")); err != nil {
		t.Fatal(err)
	}
	if err := r.unchanged(c.config.Env, since); !errors.Is(err, ErrTouched) {
		t.Errorf("touched: %v", err)
	}
	c.write("a/plugins/__init__.py", txtarFile(two, "a/plugins/__init__.py")+"# more\n")
	if err := r.unchanged(c.config.Env, since); !errors.Is(err, errMoved) {
		t.Errorf("edited: %v", err)
	}
}
