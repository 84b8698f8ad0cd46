package folders

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
)

// folder is a project folder, and a folder that its handlers write to.
type folder struct {
	t    *testing.T
	dir  string
	site string
	env  []string
	user *syscall.Credential // nil: the user of the tests
	// program is the program that is run; this one, unless that is out of reach.
	program string
}

func newFolder(t *testing.T, files ...map[string]string) *folder {
	t.Helper()
	f := &folder{
		t: t, dir: filepath.Join(t.TempDir(), "shelf"), site: t.TempDir(), env: os.Environ(), program: os.Args[0],
	}
	// The database runs as another user if this is root.
	for _, dir := range []string{filepath.Dir(f.dir), filepath.Dir(f.site)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, some := range files {
		f.write(some)
	}
	return f
}

// notes is a folder with the notes of the lab: a name, a text and a mood each.
func notes(t *testing.T, list ...[3]string) *folder {
	t.Helper()
	files := maps.Clone(lab.Module)
	f := newFolder(t, files)
	f.notes(list...)
	return f
}

func (f *folder) notes(list ...[3]string) {
	f.t.Helper()
	var b strings.Builder
	b.WriteString("import lab\n")
	for _, n := range list {
		fmt.Fprintf(&b, "lab::Note(path=%q, text=%q, mood=%q)\n", filepath.Join(f.site, n[0]), n[1], n[2])
	}
	f.write(map[string]string{"main.cf": b.String()})
}

func (f *folder) write(files map[string]string) {
	f.t.Helper()
	for name, text := range files {
		path := filepath.Join(f.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "SITE", f.site)), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
}

// command is one run of `ordain deploy`.
type command struct {
	t     *testing.T
	cmd   *exec.Cmd
	code  int
	out   string
	ended chan struct{}

	mu   sync.Mutex
	errs bytes.Buffer
	more chan struct{} // something was printed
}

func (r *command) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	return r.errs.Write(p)
}

func (r *command) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs.String()
}

// start begins a run.
func (f *folder) start(args ...string) *command {
	f.t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	r := &command{t: f.t, more: make(chan struct{}, 1), ended: make(chan struct{})}
	r.cmd = exec.Command(f.program, append([]string{"deploy", "--project", f.dir}, args...)...)
	if f.user == nil {
		r.cmd.Args = append(r.cmd.Args, "--cache-dir", filepath.Join(cache, "ordain-tests"))
	}
	r.cmd.Env, r.cmd.Dir = f.env, f.dir
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: f.user}
	var out bytes.Buffer
	r.cmd.Stdout, r.cmd.Stderr = &out, r
	if err := r.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		err := r.cmd.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			r.code = exit.ExitCode()
		} else if err != nil {
			r.code = -1
		}
		r.out = out.String()
		close(r.ended)
	}()
	f.t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.ended })
	return r
}

// wait waits for the end of a run, which has to have this exit status.
func (r *command) wait(want int) *command {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(lab.Patience):
		r.t.Fatalf("the run does not end\n%s", r.printed())
	}
	if r.code != want {
		r.t.Fatalf("exit status %d, want %d\n%s\n%s", r.code, want, r.out, r.printed())
	}
	return r
}

// says waits until a run has printed a text.
func (r *command) says(text string) {
	r.t.Helper()
	late := time.After(lab.Patience)
	for !strings.Contains(r.printed(), text) {
		select {
		case <-r.more:
		case <-r.ended:
			if !strings.Contains(r.printed(), text) {
				r.t.Fatalf("it ended without saying %q\n%s\n%s", text, r.out, r.printed())
			}
		case <-late:
			r.t.Fatalf("it does not say %q\n%s", text, r.printed())
		}
	}
}

// deploy runs to the end.
func (f *folder) deploy(want int, args ...string) *command {
	f.t.Helper()
	return f.start(args...).wait(want)
}

// contains checks the summary and what was printed on the way.
func (r *command) contains(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		if all := r.out + r.printed(); !strings.Contains(all, text) {
			r.t.Errorf("%q is missing in\n%s", text, all)
		}
	}
}

// json decodes the result of a run with -o json.
func (r *command) json(into any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		r.t.Fatalf("%v in %s", err, r.out)
	}
}

// has checks the content of a file at the site; an empty text: there is none.
func (f *folder) has(name, want string) {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.site, filepath.FromSlash(name)))
	if err != nil && want != "" || string(text) != want {
		f.t.Errorf("%s has %q, want %q: %v", name, text, want, err)
	}
}
