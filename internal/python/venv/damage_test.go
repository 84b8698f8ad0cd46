package venv

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// private returns a configuration with a cache of its own, and the tools of all tests.
func private(t *testing.T) Config {
	t.Helper()
	return Config{CacheDir: t.TempDir(), ToolsDir: shared(t).ToolsDir}
}

// goods are packages with a file of each kind that Python loads.
func goods(t *testing.T) map[string][]byte {
	t.Helper()
	return map[string][]byte{"ordaingood-1.0-py3-none-any.whl": wheel(t, "ordaingood", "1.0",
		[2]string{"ordaingood/native.so", "\x7fELF not really"},
		[2]string{"ordaingood.pth", "# nothing\n"},
		[2]string{"ordaingood/data.txt", "data\n"})}
}

// overwrite changes a file in place, to a text of the same length, and hides that as far
// as a program without privileges can.
func overwrite(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{'#'}, int(info.Size())))
	return errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// contents returns the files of an environment, apart from those that name its folder.
func contents(t *testing.T, r Result) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(r.SitePackages, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, r.SitePackages)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameContents(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	for path, text := range want {
		if got[path] != text {
			t.Errorf("%s: %s is %q", what, path, short(got[path]))
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: %s was added", what, path)
		}
	}
}

// A handler of one environment damages a file of each kind in its virtual environment,
// and hides it. The other environment and new ones have what was published, and the next
// start mends the damaged one and says what was damaged, without the package index.
func TestDamageStaysWhereItWasMade(t *testing.T) {
	tool.Heavy(t, "makes virtual environments")
	c := private(t)
	m := maker(t, c)
	files := goods(t)
	url := indexOf(t, files)
	spec := func(owner string) Spec {
		return Spec{
			Dir: filepath.Join(t.TempDir(), "venv"), Owner: owner, Requirements: []string{"ordaingood"},
			Pip: intent.PipConfig{IndexURL: url},
		}
	}
	a, b := spec("a"), spec("b")
	ra, rb := ensure(t, m, a), ensure(t, m, b)
	want := contents(t, rb)
	bytecode := "ordaingood/__pycache__/__init__.cpython-" + strings.ReplaceAll(ra.Interpreter.Minor, ".", "") + ".pyc"
	for _, file := range []string{
		"ordaingood/__init__.py", "ordaingood/native.so", "ordaingood.pth", bytecode, "ordaingood/data.txt",
	} {
		t.Run(file, func(t *testing.T) {
			if err := overwrite(filepath.Join(ra.SitePackages, file)); err != nil {
				t.Fatal(err)
			}
			delete(files, "ordaingood-1.0-py3-none-any.whl") // the index is of no help
			defer func() { files["ordaingood-1.0-py3-none-any.whl"] = goods(t)["ordaingood-1.0-py3-none-any.whl"] }()
			if r := ensure(t, m, b); r.Built || r.Damage != "" {
				t.Errorf("the other environment: built %v, damage %q", r.Built, r.Damage)
			}
			sameContents(t, "the other environment", want, contents(t, rb))
			sameContents(t, "a new environment", want, contents(t, ensure(t, m, spec("c"))))
			r := ensure(t, m, a)
			if !r.Built || !strings.HasSuffix(r.Damage, file+" was changed") {
				t.Errorf("built %v, damage %q", r.Built, r.Damage)
			}
			sameContents(t, "the mended environment", want, contents(t, r))
			if r = ensure(t, m, a); r.Built || r.Damage != "" {
				t.Errorf("after that: built %v, damage %q", r.Built, r.Damage)
			}
		})
	}
	t.Run("a file is added", func(t *testing.T) {
		pth := filepath.Join(ra.SitePackages, "evil.pth")
		if err := os.WriteFile(pth, []byte("import evil\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := ensure(t, m, a); r.Built || !strings.HasSuffix(r.Damage, "evil.pth was added by something else") {
			t.Errorf("built %v, damage %q", r.Built, r.Damage)
		}
		sameContents(t, "the mended environment", want, contents(t, ra))
	})
	t.Run("the environment says that it is intact", func(t *testing.T) {
		if err := overwrite(filepath.Join(ra.SitePackages, "ordaingood/__init__.py")); err != nil {
			t.Fatal(err)
		}
		if err := overwrite(filepath.Join(a.Dir, markerName)); err != nil {
			t.Fatal(err)
		}
		if r := ensure(t, maker(t, c), a); r.Damage == "" {
			t.Error("not noticed by another server")
		}
	})
	t.Run("only times change", func(t *testing.T) {
		now := time.Now()
		if err := os.Chtimes(filepath.Join(ra.SitePackages, "ordaingood.pth"), now, now); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if r := ensure(t, m, a); r.Built || r.Damage != "" {
				t.Errorf("built %v, damage %q", r.Built, r.Damage)
			}
		}
	})
}

// The cache itself is damaged, as by a bad disk. New environments get what was published.
func TestDamageOfTheCacheIsNoticed(t *testing.T) {
	c := private(t)
	m := maker(t, c)
	s := Spec{
		Dir: filepath.Join(t.TempDir(), "venv"), Requirements: []string{"ordaingood"},
		Pip: intent.PipConfig{IndexURL: indexOf(t, goods(t))},
	}
	want := contents(t, ensure(t, m, s))
	var spoiled int
	err := filepath.WalkDir(c.CacheDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (d.Name() == "native.so" || filepath.Ext(path) == "" &&
			strings.Contains(path, "bytecode")) {
			spoiled++
			return overwrite(path)
		}
		return err
	})
	if err != nil || spoiled < 2 {
		t.Fatalf("spoiled %d files, %v", spoiled, err)
	}
	for n := range 2 {
		s.Dir = filepath.Join(t.TempDir(), "venv")
		r := ensure(t, m, s)
		sameContents(t, "a new environment", want, contents(t, r))
		if again := strings.Contains(report(r), "cache clean"); again != (n == 0) {
			t.Errorf("environment %d: fetched again: %v", n, again)
		}
	}
}

// sdist packs a package whose build backend runs some code.
func sdist(t *testing.T, name, version, code string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	backend := code + fmt.Sprintf(`
import zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    attack()
    file, info = %[1]q + "-" + %[2]q + "-py3-none-any.whl", %[1]q + "-" + %[2]q + ".dist-info/"
    with zipfile.ZipFile(directory + "/" + file, "w") as z:
        z.writestr(%[1]q + ".py", "built = True\n")
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %[3]s\nVersion: %[4]s\n")
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")
    return file
`, name, version, name, version)
	for file, text := range map[string]string{
		"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n" +
			"[project]\nname = \"" + name + "\"\nversion = \"" + version + "\"\n",
		"backend.py": backend,
		"PKG-INFO":   "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n",
	} {
		head := &tar.Header{Name: name + "-" + version + "/" + file, Mode: 0o644, Size: int64(len(text))}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// spoil is an attack: it appends to every Python file in the caches of the installer, and
// prints what it has of the server's environment.
const spoil = `
import os, sys
def attack():
    print("HOME is", os.environ.get("HOME"), file=sys.stderr)
    for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "HOME"):
        for folder, _, files in os.walk(os.environ.get(name, "/nowhere")):
            for file in files:
                if file.endswith((".py", ".so", ".pth", ".whl")):
                    with open(os.path.join(folder, file), "a") as f:
                        f.write("spoiled\n")
    assert not [n for n in os.environ if n.startswith("ORDAIN_")]
`

// A package that is built from source writes into the caches that its build can find. The
// environment of another owner, which needs the same packages and one more, is not
// reached, whether uv or pip installs.
func TestABuildCannotReachAnotherEnvironment(t *testing.T) {
	tool.Long(t, "builds packages from source")
	for name, noUV := range map[string]bool{"uv": false, "pip": true} {
		t.Run(name, func(t *testing.T) {
			if noUV && testing.Short() {
				t.Skip("installing with pip takes half a minute")
			}
			t.Setenv("HOME", t.TempDir())
			t.Setenv("ORDAIN_DATABASE", "postgres://secret")
			c := private(t)
			c.NoUV = noUV
			m := maker(t, c)
			files := goods(t)
			files["ordainevil-1.0.tar.gz"] = sdist(t, "ordainevil", "1.0", spoil)
			pip := intent.PipConfig{IndexURL: indexOf(t, files)}
			spec := func(owner string, requirements ...string) Spec {
				return Spec{
					Dir: filepath.Join(t.TempDir(), "venv"), Owner: owner, Requirements: requirements, Pip: pip,
				}
			}
			want := contents(t, ensure(t, m, spec("b", "ordaingood")))["/ordaingood/__init__.py"]
			evil := ensure(t, m, spec("a", "ordaingood", "ordainevil"))
			if got := python(t, evil, "import ordainevil; print(ordainevil.built)"); got != "True" {
				t.Errorf("the hostile package was not built: %s", got)
			}
			for _, owner := range []string{"b", "c"} {
				r := ensure(t, m, spec(owner, "ordaingood"))
				if got := contents(t, r)["/ordaingood/__init__.py"]; got != want {
					t.Errorf("the environment of %s has %q, want %q", owner, got, want)
				}
			}
			if err := m.Forget("a"); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(c.CacheDir, "builds", "a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the builds of a are still there: %v", err)
			}
		})
	}
}

// Commands that may run code of packages are confined to folders of their owner, without
// credentials of the server; those that only unpack wheels are not. If a command cannot be
// confined, it does not run.
func TestWhatMayRunCodeOfPackagesIsConfined(t *testing.T) {
	tool.Heavy(t, "makes virtual environments")
	t.Setenv("NETRC", "/srv/netrc")
	t.Setenv("SSH_AUTH_SOCK", "/srv/agent")
	c := private(t)
	var ran []string
	started, ended := 0, 0
	c.Confine = func(cmd *exec.Cmd, s Sandbox) (func() (func(), error), error) {
		ran = append(ran, strings.Join(cmd.Args[1:3], " "))
		own := filepath.Join(c.CacheDir, "builds", "a")
		for _, dir := range s.Write {
			if s.Owner != "a" || !strings.HasPrefix(dir, own+"/") {
				t.Errorf("owner %s may write %s", s.Owner, dir)
			}
		}
		for _, entry := range cmd.Env {
			name, value, _ := strings.Cut(entry, "=")
			switch name {
			case "HOME", "TMPDIR", "UV_CACHE_DIR", "PIP_CACHE_DIR":
				if !strings.HasPrefix(value, own+"/") {
					t.Errorf("%s leads out of the workshop", entry)
				}
			case "NETRC", "SSH_AUTH_SOCK":
				t.Errorf("%s is passed", entry)
			}
		}
		return func() (func(), error) {
			if started++; cmd.Process == nil {
				t.Error("it has not started")
			}
			return func() {
				if ended++; cmd.ProcessState == nil {
					t.Error("it has not ended")
				}
			}, nil
		}, nil
	}
	files := goods(t)
	files["ordainsource-1.0.tar.gz"] = sdist(t, "ordainsource", "1.0", "def attack():\n    pass\n")
	pip := intent.PipConfig{IndexURL: indexOf(t, files)}
	spec := func(requirements ...string) Spec {
		return Spec{Dir: filepath.Join(t.TempDir(), "venv"), Owner: "a", Requirements: requirements, Pip: pip}
	}
	m := maker(t, c)
	ensure(t, m, spec("ordaingood"))
	if got := strings.Join(ran, ", "); got != "pip compile" {
		t.Errorf("wheels: confined %s", got)
	}
	ran = nil
	if said := report(ensure(t, m, spec("ordainsource"))); strings.Contains(said, "No solution") {
		t.Errorf("the report has an error that is none:\n%s", said)
	}
	if got := strings.Join(ran, ", "); got != "pip compile, venv --quiet, pip install" {
		t.Errorf("a source: confined %s", got)
	}
	if started != 4 || ended != 4 {
		t.Errorf("started %d, ended %d, want 4 of each", started, ended)
	}
	c.Confine = func(*exec.Cmd, Sandbox) (func() (func(), error), error) {
		return nil, errors.New("no kernel for that")
	}
	r, err := maker(t, c).Ensure(t.Context(), spec("ordaingood", "ordainsource"))
	if err == nil || !strings.Contains(err.Error(), "no kernel for that") {
		t.Errorf("got %v\n%s", err, report(r))
	}
}

// Requirements that lead to files of the server are refused before a program runs,
// wherever they come from.
func TestRequirementsThatReadFilesAreRefused(t *testing.T) {
	m := maker(t, private(t))
	for _, line := range []string{
		"-r /etc/passwd", "--requirement=/etc/passwd", "-e /srv", "-f /srv", "x @ file:///etc/passwd", "/etc/passwd",
		"git+file:///srv/repo", "--index-url=file:///srv", "x @ https://host/${HOME}",
	} {
		for kind, s := range map[string]Spec{
			"requirement": {Requirements: []string{"ok", line}}, "constraint": {Constraints: []string{line}},
		} {
			s.Dir = filepath.Join(t.TempDir(), "venv")
			if r, err := m.Ensure(t.Context(), s); !fault.Is(err, fault.Invalid) || len(r.Steps) > 0 {
				t.Errorf("%s %s: %v, ran %s", kind, line, err, report(r))
			}
		}
	}
	for _, pip := range []intent.PipConfig{
		{IndexURL: "/srv/packages"}, {IndexURL: "file:///srv"}, {ExtraIndexURL: []string{"https://a/ file:///srv"}},
	} {
		s := Spec{Dir: filepath.Join(t.TempDir(), "venv"), Pip: pip}
		if r, err := m.Ensure(t.Context(), s); !fault.Is(err, fault.Invalid) || len(r.Steps) > 0 {
			t.Errorf("%+v: %v, ran %s", pip, err, report(r))
		}
	}
}

// What a build leaves behind is copied without the links by which the server would read
// other files, and without pipes, at which it would wait.
func TestWhatABuildMadeIsCopied(t *testing.T) {
	base := t.TempDir()
	from, to := filepath.Join(base, "from"), filepath.Join(base, "to")
	for _, dir := range []string{"bin", "lib/x"} {
		if err := os.MkdirAll(filepath.Join(from, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "lib/x/tool"), []byte("x"), 0o4700); err != nil {
		t.Fatal(err)
	}
	for name, leads := range map[string]string{
		"bin/python": "/usr/bin/python3", "lib64": "lib", "lib/x/near": "../x/tool", "lib/x/key": "/etc/passwd",
		"lib/up": "../../elsewhere", "bin/up": "../../elsewhere",
	} {
		if err := os.Symlink(leads, filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(from, "lib/pipe"), 0o600),
		os.Link(filepath.Join(from, "lib/x/tool"), filepath.Join(base, "held"))); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to); err != nil {
		t.Fatal(err)
	}
	files, err := survey(to)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.path+" "+f.mode.String())
	}
	want := "bin/python Lrwxrwxrwx, bin/up Lrwxrwxrwx, lib/x/near Lrwxrwxrwx, lib/x/tool -rwxr-xr-x, lib64 Lrwxrwxrwx"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}
	if err := os.WriteFile(filepath.Join(base, "held"), []byte("changed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "lib/x/tool")); err != nil || string(text) != "x" {
		t.Errorf("the copy is %q, %v", text, err)
	}
}

// A project names an index for which the server's account has a password: no command uses it, whether it is confined
// or not. What a person installs, keeps the person's passwords.
func TestNoIndexGetsPasswordsOfTheServersAccount(t *testing.T) {
	tool.Heavy(t, "makes virtual environments")
	behind, err := url.Parse(indexOf(t, goods(t)))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked, given := map[string]int{}, 0
	// The trap asks for a password from the second time on, when the versions are known and what is unconfined begins.
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		refuse := asked["/simple/ordaingood/"] > 1
		if _, password, _ := r.BasicAuth(); password == "of-the-server" {
			given++
			refuse = false
		}
		mu.Unlock()
		if refuse {
			w.Header().Set("WWW-Authenticate", `Basic realm="index"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: behind.Host})
		}}).ServeHTTP(w, r)
	}))
	t.Cleanup(trap.Close)
	home := t.TempDir()
	secrets := "machine 127.0.0.1 login server password of-the-server\n"
	for _, name := range []string{".netrc", "elsewhere"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(secrets), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free := func(cmd *exec.Cmd, _ Sandbox) (func() (func(), error), error) {
		return func() (func(), error) { return func() {}, nil }, nil
	}
	t.Setenv("HOME", home)
	t.Setenv("NETRC", filepath.Join(home, "elsewhere"))
	spec := func(owner string) Spec {
		return Spec{Dir: filepath.Join(t.TempDir(), "venv"), Owner: owner, Requirements: []string{"ordaingood"},
			Pip: intent.PipConfig{IndexURL: trap.URL + "/simple/"}}
	}
	for name, confine := range map[string]func(*exec.Cmd, Sandbox) (func() (func(), error), error){
		"confined": free, "not confined": nil,
	} {
		c := private(t)
		c.Confine = confine
		asked, given = map[string]int{}, 0
		_, err := maker(t, c).Ensure(t.Context(), spec("a"))
		if err == nil || len(asked) < 2 || given != 0 {
			t.Errorf("%s: %v; the index was asked for %v, and got the password %d times", name, err, asked, given)
		}
	}
	asked, given = map[string]int{"/simple/ordaingood/": 1}, 0
	if ensure(t, maker(t, private(t)), spec("")); given == 0 {
		t.Error("the trap does not work: a person's password is not sent either")
	}
}
