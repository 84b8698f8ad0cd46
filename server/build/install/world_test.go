package install_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/python/pep440"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/build/install"
)

// world is where a project is installed from: a package index with small wheels, and
// Git repositories, both served over HTTP on loopback.
type world struct {
	t         *testing.T
	index     *httptest.Server
	git       *httptest.Server
	remotes   string
	project   string
	installer *install.Installer
	said      strings.Builder

	mu     sync.Mutex
	wheels map[string][]byte // file name to content
	asked  []string          // of Git
	away   bool              // Git answers nobody
}

func newWorld(t *testing.T) *world {
	t.Helper()
	gitProgram, err := exec.LookPath("git")
	if err != nil {
		tool.Missing(t, "the git program is needed to make repositories for this test")
	}
	w := &world{t: t, remotes: t.TempDir(), project: t.TempDir(), wheels: map[string][]byte{}}
	w.index = httptest.NewServer(http.HandlerFunc(w.serveIndex))
	t.Cleanup(w.index.Close)
	backend := &cgi.Handler{Path: gitProgram, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + w.remotes, "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	w.git = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.Path)
		away := w.away
		w.mu.Unlock()
		if away {
			http.Error(rw, "gone fishing", http.StatusServiceUnavailable)
			return
		}
		if user, password, ok := r.BasicAuth(); strings.HasPrefix(r.URL.Path, "/private-") &&
			(!ok || user != "ada" || password != "s3cr3t-token") {
			rw.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.git.Close)
	w.wheel("inmanta-module-std", "8.7.5", "")
	w.installer = w.newInstaller()
	return w
}

// newInstaller makes an installer. Only uv is kept from one run of the tests to the next.
func (w *world) newInstaller() *install.Installer {
	w.t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = w.t.TempDir()
	}
	maker, err := venv.New(venv.Config{CacheDir: w.t.TempDir(), ToolsDir: filepath.Join(base, "ordain-test", "tools")})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := maker.Interpreter(w.t.Context(), ""); err != nil {
		tool.Missing(w.t, "%v", err)
	}
	log := slog.New(slog.DiscardHandler)
	syncer, err := gitsync.New(gitsync.Config{Mirrors: filepath.Join(w.t.TempDir(), "mirrors"), Logger: log})
	if err != nil {
		w.t.Fatal(err)
	}
	installer, err := install.New(install.Config{Maker: maker, Git: syncer, Logger: log})
	if err != nil {
		w.t.Fatal(err)
	}
	return installer
}

func (w *world) serveIndex(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if content, ok := w.wheels[path.Base(r.URL.Path)]; ok {
		http.ServeContent(rw, r, "", time.Time{}, bytes.NewReader(content))
		return
	}
	name := path.Base(r.URL.Path)
	found := false
	for file := range w.wheels {
		dist, _, _ := strings.Cut(file, "-")
		if pep440.Normal(dist) == name {
			if !found {
				rw.Header().Set("Content-Type", "text/html")
			}
			found = true
			fmt.Fprintf(rw, `<a href="/f/%s">%s</a><br>`, file, file)
		}
	}
	if !found {
		http.NotFound(rw, r)
	}
}

// wheel adds a module to the index, or a plain package if the name is not a module's.
func (w *world) wheel(name, version, model string, requires ...string) {
	w.t.Helper()
	dist := strings.ReplaceAll(name, "-", "_")
	files := map[string]string{dist + ".py": "version = '" + version + "'\n"}
	if module, ok := strings.CutPrefix(dist, "inmanta_module_"); ok {
		base := "inmanta_plugins/" + module + "/"
		files = map[string]string{
			base + "__init__.py":    "",
			base + "model/_init.cf": model,
			base + "setup.cfg": "[metadata]\nname = " + name + "\nversion = " + version + "\nlicense = x\n" +
				"[options]\ninstall_requires =\n  " + strings.Join(requires, "\n  ") + "\n",
		}
	}
	info := dist + "-" + version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	files[info+"METADATA"] = metadata
	files[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	record := ""
	for name := range files {
		record += name + ",,\n"
	}
	files[info+"RECORD"] = record + info + "RECORD,,\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		out, err := z.Create(name)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := io.WriteString(out, text); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wheels[dist+"-"+version+"-py3-none-any.whl"] = b.Bytes()
}

// remote commits a version of a module to its repository and tags it. A
// version that ends in ! is committed without a tag.
func (w *world) remote(repo, version string, files map[string]string) {
	w.t.Helper()
	bare := filepath.Join(w.remotes, repo+".git")
	work := filepath.Join(w.remotes, "work-"+repo)
	if _, err := os.Stat(bare); err != nil {
		w.run(w.remotes, "git", "init", "-q", "--bare", "-b", "main", bare)
		w.run(w.remotes, "git", "clone", "-q", bare, work)
		w.run(work, "git", "checkout", "-q", "-b", "main")
	}
	version, untagged := strings.CutSuffix(version, "!")
	name := repo[strings.LastIndexByte(repo, '-')+1:]
	all := map[string]string{
		"module.yml":     "name: " + name + "\nversion: " + version + "\nlicense: x\n",
		"model/_init.cf": "",
	}
	for file, text := range files {
		if more, ok := strings.CutPrefix(text, "+"); ok {
			text = all[file] + more
		}
		all[file] = text
	}
	w.write(work, all)
	w.run(work, "git", "add", "-A")
	w.run(work, "git", "commit", "-q", "--allow-empty", "-m", version)
	if !untagged {
		w.run(work, "git", "tag", version)
	}
	w.run(work, "git", "push", "-q", "--tags", "origin", "main")
}

func (w *world) run(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada",
		"GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(dir string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// give writes the project. $INDEX and $GIT stand for the addresses of the servers.
func (w *world) give(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		files[name] = strings.NewReplacer("$INDEX", w.index.URL+"/simple", "$GIT", w.git.URL).Replace(text)
	}
	w.write(w.project, files)
}

func (w *world) install(change ...func(*install.Request)) (install.Result, error) {
	w.t.Helper()
	w.said.Reset()
	req := install.Request{
		Dir: w.project, Venv: filepath.Join(w.project, ".env"), InPlace: true, Refresh: true,
		Out: func(stdout, stderr string) { w.said.WriteString(stdout + stderr) },
	}
	for _, c := range change {
		c(&req)
	}
	return w.installer.Install(w.t.Context(), req)
}

func (w *world) must(change ...func(*install.Request)) install.Result {
	w.t.Helper()
	result, err := w.install(change...)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.said.String())
	}
	return result
}

// modules returns the name, version and generation of all modules of the model.
func modules(r install.Result) string {
	var all []string
	for _, m := range r.Scan.Modules {
		all = append(all, fmt.Sprintf("%s %s v%d", m.Name, m.Version, m.Generation))
	}
	for _, m := range r.Scan.Missing {
		all = append(all, m.Name+" missing")
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func update(r *install.Request) { r.Update = true }
