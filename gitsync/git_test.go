package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// origin is a bare repository and a clone of it that pushes, both made with
// the real git program.
type origin struct {
	t    testing.TB
	bare string
	work string
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		tool.Missing(t, "the git program is needed to make repositories for this test")
	}
	dir := t.TempDir()
	o := &origin{t: t, bare: filepath.Join(dir, "origin.git"), work: filepath.Join(dir, "work")}
	if err := os.CopyFS(dir, os.DirFS(emptyRepositories(t))); err != nil {
		t.Fatal(err)
	}
	config, err := os.OpenFile(filepath.Join(o.work, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(config, "[remote \"origin\"]\n\turl = %s\n"+
		"\tfetch = +refs/heads/*:refs/remotes/origin/*\n", o.bare)
	if err := errors.Join(err, config.Close()); err != nil {
		t.Fatal(err)
	}
	return o
}

// empty holds the folder of emptyRepositories. TestMain removes it.
var empty struct {
	sync.Once
	dir string
}

// emptyRepositories returns a folder with an empty origin.git and an empty work, which
// git made once for all tests.
func emptyRepositories(t testing.TB) string {
	t.Helper()
	empty.Do(func() {
		dir, err := os.MkdirTemp("", "gitsync-test-*")
		if err != nil {
			t.Fatal(err)
		}
		empty.dir = dir
		o := &origin{t: t}
		o.run(dir, "init", "-q", "--template=", "--bare", "-b", "main", "origin.git")
		o.run(dir, "init", "-q", "--template=", "-b", "main", "work")
	})
	return empty.dir
}

func (o *origin) run(dir string, args ...string) string {
	o.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(
		os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada",
		"GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada",
		"GIT_COMMITTER_EMAIL=ada@example.org",
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory",
		"GIT_CONFIG_VALUE_0=*",
	)
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (o *origin) git(args ...string) string { o.t.Helper(); return o.run(o.work, args...) }

// write puts files in the working copy; an empty content removes the file, one
// that begins with -> makes a link, one that begins with #! an executable.
func (o *origin) write(files map[string]string) {
	o.t.Helper()
	// What goes makes room first.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) {
		if files[name] == "" {
			if err := os.RemoveAll(filepath.Join(o.work, name)); err != nil {
				o.t.Fatal(err)
			}
		}
	}
	for name, content := range files {
		if content == "" {
			continue
		}
		path := filepath.Join(o.work, name)
		if info, err := os.Lstat(path); err == nil && (!info.IsDir() || strings.HasPrefix(content, "now")) {
			if err := os.RemoveAll(path); err != nil {
				o.t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			o.t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, path)
		} else if strings.HasPrefix(content, "#!") {
			err = os.WriteFile(path, []byte(content), 0o755)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

// push commits files and pushes the branch that is checked out.
func (o *origin) push(message string, files map[string]string) string {
	o.t.Helper()
	o.write(files)
	o.git("add", "-A", "-f")
	o.git("commit", "-q", "--allow-empty", "-m", message)
	o.git("push", "-q", "--force", "origin", "HEAD")
	return o.head()
}

// head returns the commit that is checked out. It reads the files of the working copy,
// because most tests ask for it many times.
func (o *origin) head() string {
	o.t.Helper()
	text, err := os.ReadFile(filepath.Join(o.work, ".git", "HEAD"))
	if ref, ok := strings.CutPrefix(string(text), "ref: "); ok && err == nil {
		text, err = os.ReadFile(filepath.Join(o.work, ".git", strings.TrimSpace(ref)))
	}
	if err != nil {
		return o.git("rev-parse", "HEAD") // the branch is packed
	}
	return strings.TrimSpace(string(text))
}

// plant makes a commit of hand-made tree entries, as git's own commands
// refuse to make them, and pushes it. Entries are "mode type hash\tpath" lines.
func (o *origin) plant(entries ...string) string {
	o.t.Helper()
	tree := o.treeOf(entries...)
	commit := o.git("-c", "user.name=M", "-c", "user.email=m@x", "commit-tree", "-m", "planted", tree)
	o.git("push", "-q", "--force", "origin", commit+":refs/heads/main")
	return commit
}

func (o *origin) blob(content string) string {
	o.t.Helper()
	return o.feed(content, "hash-object", "-w", "--stdin", "--literally")
}

// feed runs git with something to read.
func (o *origin) feed(input string, args ...string) string {
	o.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = o.work
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// serve serves the repository over HTTP, through the real git http-backend. If there is a
// password, user ada must send it.
func (o *origin) serve(password string) *httptest.Server {
	o.t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		tool.Missing(o.t, "there is no git")
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(o.bare), "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if password != "" {
			user, given, ok := r.BasicAuth()
			if !ok || user != "ada" || given != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
		}
		backend.ServeHTTP(w, r)
	}))
	o.t.Cleanup(server.Close)
	return server
}

func newSyncer(t testing.TB, change ...func(*Config)) *Syncer {
	t.Helper()
	cfg := Config{
		Mirrors: filepath.Join(t.TempDir(), "mirrors"),
		Keep:    []string{".env", ".env-py3.*"},
		Logger:  slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.closeIdle)
	return s
}

func fetch(t testing.TB, s *Syncer, src Source) (intent.Revision, Report) {
	t.Helper()
	rev, report, err := s.Fetch(context.Background(), src)
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	return rev, report
}

func checkout(t testing.TB, s *Syncer, src Source, commit, dir string) Report {
	t.Helper()
	report, err := s.Checkout(context.Background(), src, commit, dir)
	if err != nil {
		t.Fatalf("checkout: %v", err)
	}
	return report
}

// tree reads a folder without .git, in the notation of origin.write.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		switch {
		case rel == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if rel != "." {
				found[rel+"/"] = ""
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			found[rel] = "->" + to
			return err
		}
		content, err := os.ReadFile(p)
		info, _ := d.Info()
		if strings.HasPrefix(string(content), "#!") != (info.Mode()&0o100 != 0) {
			found[rel] = fmt.Sprintf("mode %v: ", info.Mode())
		}
		found[rel] += string(content)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantTree(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	got := tree(t, dir)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && !strings.HasSuffix(name, "/") {
			t.Errorf("%s should not be there", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %q, want %q", name, got[name], want[name])
		}
	}
}

// wantFault checks the kind and the words of a fault, and that it shows no secret.
func wantFault(t testing.TB, err error, kind fault.Kind, words ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault of kind %s", err, kind)
	}
	if f.Kind != kind {
		t.Errorf("kind %q, want %q: %v", f.Kind, kind, err)
	}
	text := fmt.Sprintf("%v %+v %#v", err, err, f.Message+f.Advice)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
	for _, secret := range []string{"s3cr3t", "czNjcjN0"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q shows a secret", err)
		}
	}
	if f.Advice == "" {
		t.Errorf("%q does not say what to do", err)
	}
}
