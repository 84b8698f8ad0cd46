package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/intent"
)

// deployed is a place where one note runs already, so that a failure has
// something that it must not touch.
func deployed(t *testing.T, w *world) *place {
	t.Helper()
	p := w.unbound(t)
	p.push("a note", merge(labModule, p.model([3]string{"a", "one", "calm"})))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	return p
}

// recompile asks for a compile as a person does.
func (p *place) recompile() {
	p.t.Helper()
	_, _, err := p.control.RequestCompile(p.t.Context(), p.env, control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: "api", Message: "a test"}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// The repository is moved away while a note runs: the fetch says that it is
// gone and where it was looked for, and the note stays. When the repository is
// back, all goes on.
func TestRepositoryGone(t *testing.T) {
	t.Parallel()
	p := deployed(t, sharedWorld(t))
	if err := os.Rename(p.bare, p.bare+".away"); err != nil {
		t.Fatal(err)
	}
	p.recompile()
	mentions(t, p.failed(intent.StageFetch), "repo.git", "no")
	if err := os.Rename(p.bare+".away", p.bare); err != nil {
		t.Fatal(err)
	}
	p.recompile()
	p.compiledWell()
}

// A repository that never was.
func TestRepositoryThatNeverWas(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).unbound(t)
	p.bind(intent.Source{URL: "file://" + p.bare + ".none", Branch: "main"}, nil)
	p.recompile()
	mentions(t, p.failed(intent.StageClone), "repo.git.none")
}

// The branch that the environment follows is not there: the message names it
// and the branches that are.
func TestBranchMissing(t *testing.T) {
	t.Parallel()
	p := deployed(t, sharedWorld(t))
	e, err := p.control.Environment(t.Context(), p.env)
	if err != nil {
		t.Fatal(err)
	}
	e.Source.Branch = "release"
	if _, err := p.control.UpdateEnvironment(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	p.recompile()
	mentions(t, p.failed(intent.StageFetch), "release", "main")
}

// An empty repository: nothing to compile yet, said so; the first push helps.
func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).unbound(t)
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.recompile()
	mentions(t, p.failed(intent.StageClone), "empty")
	p.push("the first commit", merge(labModule, p.model([3]string{"a", "one", "calm"})))
	p.compiledWell()
	p.settled()
	if p.note("a") != "one" {
		t.Errorf("after the first push a is %q", p.note("a"))
	}
}

// History is rewritten and pushed by force: the new tip is deployed, and the
// report says that history was rewritten.
func TestForcePush(t *testing.T) {
	t.Parallel()
	p := deployed(t, sharedWorld(t))
	p.git("checkout", "-q", "--orphan", "again")
	p.commit("another history", p.model([3]string{"a", "rewritten", "calm"}))
	p.git("push", "-q", "--force", "origin", "again:main")
	c, stages := p.compiled()
	if !*c.Success {
		t.Fatal(report(stages))
	}
	mentions(t, report(stages), "rewritten")
	p.settled()
	if p.note("a") != "rewritten" {
		t.Errorf("a is %q", p.note("a"))
	}
}

// A repository over HTTP asks for a password: with the right one a push is
// deployed; with a wrong one the fetch says what to do, and the password is in
// no report.
func TestCredentialsOverHTTP(t *testing.T) {
	t.Parallel()
	const user, password = "deploy", "s3cret-Pass/word"
	w := sharedWorld(t)
	p := w.unbound(t)
	url := gitOverHTTP(t, filepath.Dir(p.bare), user, password) + "/repo.git"
	p.push("a note", merge(labModule, p.model([3]string{"a", "one", "calm"})))
	p.bind(intent.Source{URL: url, Branch: "main"}, map[string]string{control.SecretGitUser: user, control.SecretGitPassword: password})
	p.compiledWell()
	p.settled()
	if p.note("a") != "one" {
		t.Errorf("a is %q", p.note("a"))
	}
	if err := p.control.SetSecret(t.Context(), p.env, control.SecretGitPassword, "wrong-"+password); err != nil {
		t.Fatal(err)
	}
	p.recompile()
	said := p.failed(intent.StageFetch)
	mentions(t, said, "credentials")
	if strings.Contains(p.story(), password) {
		t.Error("the password is in a report:\n" + p.story())
	}
	log, err := os.ReadFile(w.server.Layout().ServerLog())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), password) {
		t.Error("the password is in the server's log")
	}
}

// gitOverHTTP serves the repositories of a folder with git's own program.
func gitOverHTTP(t *testing.T, dir, user, password string) string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: git, Args: []string{"http-backend"}, Dir: dir, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, pw, _ := r.BasicAuth(); u != user || pw != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A host that refuses connections is told apart from a repository that is gone.
func TestHostDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s/repo.git", l.Addr())
	_ = l.Close()
	p := sharedWorld(t).unbound(t)
	p.bind(intent.Source{URL: url, Branch: "main"}, nil)
	p.recompile()
	mentions(t, p.failed(intent.StageClone), "refuses connections")
}
