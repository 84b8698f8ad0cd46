package venv

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// shared returns a configuration whose cache outlives the test run, so that wheels
// and uv are fetched once per machine.
func shared(t *testing.T) Config {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = t.TempDir()
	}
	base = filepath.Join(base, "ordain-test")
	return Config{CacheDir: base, ToolsDir: filepath.Join(base, "tools")}
}

func maker(t *testing.T, c Config) *Maker {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ensure builds an environment. It skips the test where no package index can be reached.
func ensure(t *testing.T, m *Maker, s Spec) Result {
	t.Helper()
	r, err := m.Ensure(t.Context(), s)
	if fault.Is(err, fault.Unavailable) {
		tool.Missing(t, "cannot reach a package index: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, report(r))
	}
	return r
}

func report(r Result) string {
	var b strings.Builder
	for _, s := range r.Steps {
		b.WriteString("$ " + s.Command + "\n" + s.Output + s.ErrOutput)
	}
	return b.String()
}

// python evaluates an expression in an environment.
func python(t *testing.T, r Result, code string) string {
	t.Helper()
	out, err := exec.Command(r.Python, "-I", "-c", code).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// pythons returns the interpreters of this machine that work, by version.
func pythons(t *testing.T) map[string]Interpreter {
	t.Helper()
	out := map[string]Interpreter{}
	names := []string{"python3", "python3.11", "python3.12", "python3.13"}
	if home, err := os.UserHomeDir(); err == nil { // versions of pyenv that are not on PATH
		found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[1-9]*/bin/python3"))
		names = append(names, found...)
	}
	for _, name := range names {
		if i, err := Find(t.Context(), name); err == nil && i.HasVenv {
			out[i.Minor] = i
		}
	}
	if len(out) == 0 {
		tool.Missing(t, "there is no Python 3.11 or newer with venv on this machine")
	}
	return out
}

// stdModule requires a published module, in a version that the Python can run.
var stdModule = []string{
	`inmanta-module-std==7.0.0; python_version < "3.12"`,
	`inmanta-module-std==8.7.5; python_version >= "3.12"`,
}

// A published module that requires inmanta-core installs without it: with uv on
// every Python version of this machine, and with pip, which is slow, on one.
func TestModulesComeWithoutCore(t *testing.T) {
	tool.Long(t, "installs modules for every Python, and with pip")
	for version, i := range pythons(t) {
		t.Run("uv/"+version, func(t *testing.T) {
			r := comesWithoutCore(t, shared(t), i.Path)
			for _, s := range r.Steps {
				if strings.Contains(s.Command, "-m pip install --no-compile -r") {
					t.Errorf("uv fell back to pip:\n%s", report(r))
				}
			}
		})
	}
	t.Run("pip", func(t *testing.T) {
		if testing.Short() {
			t.Skip("installing with pip takes half a minute")
		}
		c := shared(t)
		c.NoUV = true
		comesWithoutCore(t, c, "")
	})
}

func comesWithoutCore(t *testing.T, c Config, interpreter string) Result {
	t.Helper()
	r := ensure(t, maker(t, c), Spec{
		Dir: filepath.Join(t.TempDir(), "venv"), Python: interpreter, Requirements: stdModule,
	})
	if got := r.Installed["inmanta-core"]; got != CoreVersion {
		t.Errorf("inmanta-core is %q, want ours", got)
	}
	if r.Installed["inmanta-module-std"] == "" || r.Installed["jinja2"] == "" {
		t.Errorf("installed: %v", r.Installed)
	}
	const imports = "import jinja2, pydantic, yaml, importlib.metadata as m; print(m.version('inmanta-core'))"
	if got := python(t, r, imports); got != CoreVersion {
		t.Errorf("the environment says inmanta-core is %q", got)
	}
	return r
}

// An older Python does not get releases whose code only newer ones can read.
func TestReleasesThatDoNotSayWhichPythonTheyNeed(t *testing.T) {
	for _, c := range []struct {
		minor string
		want  []string
	}{
		{"3.11", []string{"a<2", "inmanta-module-std!=8.5.0"}},
		{"3.12", []string{"a<2"}},
		{"3.13", []string{"a<2"}},
	} {
		asked := Spec{Constraints: []string{"a<2"}}
		if got := asked.fitting(Interpreter{Minor: c.minor}).Constraints; !cmp.Equal(got, c.want) ||
			len(asked.Constraints) != 1 {
			t.Errorf("Python %s gets %q", c.minor, got)
		}
	}
}

// An environment is built once, found again in milliseconds, and built anew when
// the requirements change or somebody damages it.
func TestEnsureLifecycle(t *testing.T) {
	tool.Heavy(t, "makes virtual environments")
	m := maker(t, shared(t))
	dir := filepath.Join(t.TempDir(), "deep", "venv")
	s := Spec{Dir: dir, Requirements: []string{"more-itertools==9.1.0"}}
	r := ensure(t, m, s)
	if !r.Built || len(r.Steps) == 0 {
		t.Fatalf("%+v", r)
	}
	started := time.Now()
	if r = ensure(t, m, s); r.Built || len(r.Steps) != 0 {
		t.Errorf("built again: %s", report(r))
	}
	t.Logf("unchanged: %s", time.Since(started))
	if LastUsed(dir).Before(started.Add(-time.Second)) {
		t.Error("the time of the last use is old")
	}

	s.Requirements = []string{"more-itertools==10.5.0"}
	if r = ensure(t, m, s); !r.Built || r.Installed["more-itertools"] != "10.5.0" {
		t.Errorf("after a change: %v, %s", r.Built, r.Installed["more-itertools"])
	}
	for name, damage := range map[string]func() error{
		"interpreter gone": func() error { return os.Remove(pythonOf(dir)) },
		"marker gone":      func() error { return os.Remove(filepath.Join(dir, markerName)) },
		"packages gone":    func() error { return os.RemoveAll(r.SitePackages) },
		"all gone":         func() error { return os.RemoveAll(dir) },
		"a package gone":   func() error { return os.RemoveAll(filepath.Join(r.SitePackages, "more_itertools")) },
		"another Python": func() error { // one was installed over it, or the link led elsewhere
			fake := filepath.Join(t.TempDir(), "python")
			if err := os.WriteFile(fake, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
				return err
			}
			if err := os.Remove(pythonOf(dir)); err != nil {
				return err
			}
			return os.Symlink(fake, pythonOf(dir))
		},
		"half written": func() error { // the power failed: names without their folders
			return errors.Join(os.RemoveAll(filepath.Join(dir, "lib")), os.MkdirAll(r.SitePackages, 0o755))
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if r = ensure(t, m, s); !r.Built {
			t.Errorf("%s: not noticed", name)
		}
		python(t, r, "import more_itertools")
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("also in the folder: %v", left)
	}
	s.Update = true
	if r = ensure(t, m, s); !r.Built {
		t.Error("an update did nothing")
	}
}

// A second environment with the same wheels takes less than a second, because nothing is
// fetched or compiled again. It shares no file with the first one.
func TestSecondEnvironmentIsACopy(t *testing.T) {
	tool.Heavy(t, "makes virtual environments")
	m := maker(t, shared(t))
	base := filepath.Join(shared(t).CacheDir, "venvs")
	t.Cleanup(func() { os.RemoveAll(base) })
	requirements := append([]string{"inmanta-module-fs==1.2.0"}, stdModule...)
	one := ensure(t, m, Spec{Dir: filepath.Join(base, "one"), Requirements: requirements})
	started := time.Now()
	two := ensure(t, m, Spec{Dir: filepath.Join(base, "two"), Requirements: requirements})
	t.Logf("the second one: %s", time.Since(started))
	if last := two.Steps[len(two.Steps)-1]; !strings.Contains(last.Command, "--offline") {
		t.Errorf("the index was asked again:\n%s", report(two))
	}
	cached := "jinja2/__pycache__/sandbox.cpython-" + strings.ReplaceAll(one.Interpreter.Minor, ".", "") + ".pyc"
	for _, file := range []string{"jinja2/__init__.py", cached} {
		a, errA := os.ReadFile(filepath.Join(one.SitePackages, file))
		b, errB := os.ReadFile(filepath.Join(two.SitePackages, file))
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s: not the same content: %v, %v", file, errA, errB)
		}
	}
	files, err := survey(filepath.Join(base, "two"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Lstat(filepath.Join(base, "two", f.path))
		if err != nil || info.Sys().(*syscall.Stat_t).Nlink != 1 {
			t.Errorf("%s has another name elsewhere: %v", f.path, err)
		}
	}
}

// When eight callers of two makers, as of two processes, ask at once, one builds.
func TestConcurrentRequestsBuildOnce(t *testing.T) {
	makers := []*Maker{maker(t, shared(t)), maker(t, shared(t))}
	s := Spec{Dir: filepath.Join(t.TempDir(), "venv"), Requirements: []string{"more-itertools==10.5.0"}}
	ensure(t, makers[0], Spec{Dir: filepath.Join(t.TempDir(), "warm"), Requirements: s.Requirements})
	var mu sync.Mutex
	built := 0
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			r, err := makers[n%2].Ensure(context.Background(), s)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Built {
				built++
			}
		})
	}
	all.Wait()
	if built != 1 {
		t.Errorf("built %d times", built)
	}
}

// TestBuilder is not a test but a process that TestServersBuildOnce starts.
func TestBuilder(t *testing.T) {
	dir := os.Getenv("PYENV_TEST_BUILD")
	if dir == "" {
		t.Skip("only for TestServersBuildOnce")
	}
	r, err := maker(t, shared(t)).Ensure(t.Context(), Spec{Dir: dir, Requirements: []string{"more-itertools==10.5.0"}})
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(map[bool]string{true: "built\n", false: "found\n"}[r.Built])
}

// When two server processes want the same environment at once, one builds it and
// the other waits and finds it complete.
func TestServersBuildOnce(t *testing.T) {
	ensure(
		t,
		maker(t, shared(t)),
		Spec{Dir: filepath.Join(t.TempDir(), "warm"), Requirements: []string{"more-itertools==10.5.0"}},
	)
	dir := filepath.Join(t.TempDir(), "venv")
	outputs := make([]string, 2)
	var both sync.WaitGroup
	for n := range outputs {
		both.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestBuilder$")
			cmd.Env = append(os.Environ(), "PYENV_TEST_BUILD="+dir)
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			outputs[n], _, _ = strings.Cut(string(out), "\n")
		})
	}
	both.Wait()
	if got := strings.Join(outputs, " "); got != "built found" && got != "found built" {
		t.Errorf("the servers say %q", got)
	}
}

// When a package does not exist, the old environment stays, the error has the
// installer's words, and the steps have the commands.
func TestFailureLeavesWhatWasThere(t *testing.T) {
	m := maker(t, shared(t))
	dir := filepath.Join(t.TempDir(), "venv")
	good := Spec{Dir: dir, Requirements: []string{"more-itertools==10.5.0"}}
	ensure(t, m, good)
	r, err := m.Ensure(t.Context(), Spec{Dir: dir, Requirements: []string{"ordain-no-such-package-at-all==9"}})
	if err == nil || !strings.Contains(err.Error(), "ordain-no-such-package-at-all") ||
		!strings.Contains(err.Error(), "project.yml") {
		t.Errorf("got %v", err)
	}
	if last := r.Steps[len(r.Steps)-1]; last.ReturnCode == 0 || !strings.Contains(last.Command, "pip compile") {
		t.Errorf("steps:\n%s", report(r))
	}
	if r := ensure(t, m, good); r.Built {
		t.Error("the good environment is gone")
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("also in the folder: %v", left)
	}
}

func TestNoPython(t *testing.T) {
	m := maker(t, shared(t))
	_, err := m.Ensure(t.Context(), Spec{Dir: filepath.Join(t.TempDir(), "venv"), Python: "/nowhere/python3"})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "install Python") {
		t.Errorf("got %v", err)
	}
	fake := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), fake); err == nil {
		t.Error("a program that is not Python was accepted")
	}
}

// The wheel that stands for inmanta-core is the same bytes every time.
func TestCoreWheelIsReproducible(t *testing.T) {
	a, errA := coreWheel()
	b, errB := coreWheel()
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Error(errA, errB)
	}
	for requirement, want := range map[string]bool{
		"inmanta-core": true, "Inmanta_Core>=15": true, " inmanta.core [debug]": true,
		"inmanta-core-extra": false, "inmanta": false,
	} {
		if ownsCore([]string{requirement}) != want {
			t.Errorf("ownsCore(%q) is %v", requirement, !want)
		}
	}
}

// The project's setting of pre-releases wins, in either direction. A project
// without one takes the machine's, if it uses the machine's configuration.
func TestPreReleases(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		project *bool
		system  bool
		machine string
		uv, pip string // UV_PRERELEASE, PIP_PRE
	}{
		"nobody says":                {nil, true, "", "", ""},
		"the machine says":           {nil, true, "PIP_PRE=1", "allow", "1"},
		"the machine is not asked":   {nil, false, "PIP_PRE=1", "", ""},
		"the project allows":         {&yes, false, "", "allow", "1"},
		"the project forbids":        {&no, true, "PIP_PRE=1", "if-necessary-or-explicit", ""},
		"against the machine's none": {&yes, true, "PIP_PRE=0", "allow", "1"},
	} {
		environ := []string{"HOME=" + t.TempDir(), c.machine}
		m := readMachine(environ, "")
		s := m.choose(intent.PipConfig{Pre: c.project, UseSystemConfig: c.system})
		for variable, want := range map[string]string{"UV_PRERELEASE": c.uv, "PIP_PRE": c.pip} {
			env := m.uvEnv(environ, s, "/cache", c.system)
			if variable == "PIP_PRE" {
				env = m.pipEnv(environ, s)
			}
			got := ""
			for _, entry := range env {
				if v, is := strings.CutPrefix(entry, variable+"="); is {
					got = v
				}
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", name, variable, got, want)
			}
		}
	}
}

// The machine's certificates, proxy and folders of wheels always count, its
// indexes only when the project says so. No credential appears in an argument.
func TestMachineConfiguration(t *testing.T) {
	home := t.TempDir()
	conf := filepath.Join(home, ".config", "pip", "pip.conf")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "[global]\ncert = /certs/ca.pem\nindex_url: https://user:pw@machine/simple\n" +
		"extra-index-url =\n   https://a/simple\n   https://b/simple\n" +
		"[install]\ntimeout=7\n[freeze]\ntimeout=99\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m := readMachine([]string{"HOME=" + home, "PIP_PROXY=http://proxy:3128", "PIP_FIND_LINKS=/wheels /more"}, "")
	closed := m.choose(intent.PipConfig{IndexURL: "https://project/simple"})
	wheels := []string{"/wheels", "/more"}
	want := sources{index: "https://project/simple", findLinks: wheels}
	if diff := cmp.Diff(want, closed, cmp.AllowUnexported(sources{})); diff != "" {
		t.Error(diff)
	}
	open := m.choose(intent.PipConfig{UseSystemConfig: true, ExtraIndexURL: []string{"https://x/simple"}})
	extra := []string{"https://x/simple", "https://a/simple", "https://b/simple"}
	want = sources{index: "https://user:pw@machine/simple", extra: extra, findLinks: wheels}
	if diff := cmp.Diff(want, open, cmp.AllowUnexported(sources{})); diff != "" {
		t.Error(diff)
	}
	environ := []string{
		"HOME=" + home,
		"PATH=/bin",
		"ORDAIN_DATABASE=postgres://secret",
		"UV_INDEX=https://evil",
		"PIP_INDEX_URL=https://evil",
	}
	for name, env := range map[string][]string{
		"uv":  m.uvEnv(environ, closed, "/cache", false),
		"pip": m.pipEnv(environ, closed),
	} {
		all := strings.Join(env, "\n")
		for _, want := range map[string][]string{
			"uv": {
				"SSL_CERT_FILE=/certs/ca.pem", "ALL_PROXY=http://proxy:3128", "UV_HTTP_TIMEOUT=7",
				"UV_DEFAULT_INDEX=https://project/simple", "UV_FIND_LINKS=/wheels,/more", "PATH=/bin",
			},
			"pip": {
				"PIP_CERT=/certs/ca.pem", "PIP_PROXY=http://proxy:3128", "PIP_TIMEOUT=7",
				"PIP_INDEX_URL=https://project/simple", "PIP_FIND_LINKS=/wheels /more", "PATH=/bin",
			},
		}[name] {
			if !strings.Contains(all, want) {
				t.Errorf("%s misses %s in\n%s", name, want, all)
			}
		}
		if strings.Contains(all, "secret") || strings.Contains(all, "evil") {
			t.Errorf("%s sees what it must not:\n%s", name, all)
		}
	}
	got := Redact("GET https://user:p%40ss@host/x and git+ssh://git@h/y")
	if got != "GET https://***@host/x and git+ssh://***@h/y" {
		t.Error(got)
	}
}

// A context that ends stops the installer, which waits for an index that does not answer,
// and leaves nothing behind.
func TestCancel(t *testing.T) {
	c := shared(t)
	m := maker(t, c)
	ensure(t, m, Spec{Dir: filepath.Join(t.TempDir(), "warm")})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel(); <-over }))
	t.Cleanup(func() { close(over); silent.Close() })
	dir := filepath.Join(t.TempDir(), "venv")
	s := Spec{
		Dir: dir, Owner: "cancelled", Requirements: []string{"ordain-silent"},
		Pip: intent.PipConfig{IndexURL: silent.URL},
	}
	if _, err := m.Ensure(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(c.CacheDir, "builds", "cancelled", "work-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := m.Forget("cancelled"); err != nil {
		t.Error(err)
	}
}

// The marker lists what is installed, as JSON that people can read.
func TestMarkerIsJSON(t *testing.T) {
	m := maker(t, shared(t))
	dir := filepath.Join(t.TempDir(), "venv")
	ensure(t, m, Spec{Dir: dir, Requirements: []string{"more-itertools==10.5.0"}})
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	var mark marker
	if err != nil || json.Unmarshal(text, &mark) != nil || mark.Installed["more-itertools"] == "" {
		t.Errorf("%s, %v", text, err)
	}
}

// pip.conf may hold any text.
func FuzzPipConf(f *testing.F) {
	f.Add("[global]\nindex-url = https://a\n  more\n[install]\nextra_index_url: b c\n")
	f.Add("[\n=\n :\n[]\nx")
	f.Fuzz(func(t *testing.T, text string) {
		m := machine{}
		m.parse(text)
		for option, values := range m {
			if option != strings.ToLower(option) || strings.Contains(option, "_") {
				t.Errorf("option %q", option)
			}
			for _, v := range values {
				if v != strings.TrimSpace(v) {
					t.Errorf("%s = %q", option, v)
				}
			}
		}
		m.choose(intent.PipConfig{UseSystemConfig: true})
	})
}
