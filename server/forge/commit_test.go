package forge_test

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/forge/forgetest"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store/storetest"
)

// estate is an environment whose repository lies on a forge: the API of the forge is a fake one, the repository and the
// program that serves it are Git's own.
type estate struct {
	*forgetest.Server
	t       *testing.T
	bare    string
	service *forge.Service
	env     intent.Environment
}

func newEstate(t *testing.T, kind string, token bool) *estate {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		tool.Missing(t, "the git program serves the repository of this test")
	}
	root := t.TempDir()
	x := &estate{Server: forgetest.New(t, kind), t: t, bare: filepath.Join(root, "acme", "shop.git")}
	x.git(root, "init", "-q", "--bare", "-b", "main", x.bare)
	x.git(x.bare, "config", "http.receivepack", "true")
	work := filepath.Join(root, "work")
	x.git(root, "init", "-q", "-b", "main", work)
	must(t, os.MkdirAll(filepath.Join(work, "clusters"), 0o755))
	must(t, os.WriteFile(filepath.Join(work, "clusters", "web.yaml"), []byte("nodes: 1\n"), 0o644))
	x.git(work, "add", "-A")
	x.git(work, "commit", "-q", "-m", "first")
	x.git(work, "push", "-q", x.bare, "main")
	x.Other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		}}).ServeHTTP(w, r)
	})

	records := storetest.Open(t)
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	must(t, err)
	sources := source.NewOpener(records, key)
	log := storetest.Logger(t)
	mirrors, err := gitsync.New(gitsync.Config{Mirrors: filepath.Join(t.TempDir(), "mirrors"), Logger: log})
	must(t, err)
	x.service = forge.NewService(forge.Config{
		Store: records, Bus: &bus.Bus{}, Logger: log, Sources: sources, Now: time.Now, Keepers: noKeepers{},
		Git: mirrors, Forges: &forge.Opener{Sources: sources},
	})
	p := intent.Project{ID: uuid.New(), Name: "p"}
	must(t, records.CreateProject(t.Context(), p))
	x.env = intent.Environment{
		ID: uuid.New(), ProjectID: p.ID, Name: "prod", Settings: map[string]any{"forge": kind},
		Source: intent.Source{URL: x.URL + "/acme/shop.git", Branch: "main"},
	}
	must(t, records.CreateEnvironment(t.Context(), x.env, nil))
	if token {
		sealed, err := sources.Seal(x.env.ID, source.SecretForgeToken, forgetest.Token)
		must(t, err)
		must(t, records.SetSecret(t.Context(), x.env.ID, source.SecretForgeToken, sealed))
	}
	return x
}

func (x *estate) git(dir string, args ...string) string {
	x.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (x *estate) tip() string { x.t.Helper(); return x.git(x.bare, "rev-parse", "main") }

// refuses lets the repository refuse commits on main, as forges do.
func (x *estate) refuses() {
	x.t.Helper()
	must(x.t, os.MkdirAll(filepath.Join(x.bare, "hooks"), 0o755))
	must(x.t, os.WriteFile(filepath.Join(x.bare, "hooks", "pre-receive"),
		[]byte("#!/bin/sh\necho 'You are not allowed to push code to protected branches.' >&2\nexit 1\n"), 0o755))
}

// twoNodes is the change that Ida asks for in these stories.
func twoNodes(base string) forge.Write {
	return forge.Write{
		Topic: "cluster-Web", Base: base, Author: gitsync.Identity{Name: "Ida Rhodes", Email: "ida@example.org"},
		Message: "clusters: web has two nodes\n\nThe shop is busy.",
		Files:   []gitsync.FileChange{{Path: "clusters/web.yaml", Content: []byte("nodes: 2\n")}},
	}
}

func (x *estate) commit(w forge.Write) forge.Written {
	x.t.Helper()
	got, err := x.service.Commit(x.t.Context(), x.env, w)
	if err != nil {
		x.t.Fatal(err)
	}
	return got
}

// wantProposal checks that a change went into a pull request, and that the branch stayed as it was.
func (x *estate) wantProposal(got forge.Written, tip string) {
	x.t.Helper()
	if !strings.HasPrefix(got.PullRequest, x.URL) || got.Commit != "" ||
		!strings.HasPrefix(got.Branch, "ordain/cluster-web-") || x.tip() != tip {
		x.t.Errorf("%+v; main is at %s, and was at %s", got, x.tip(), tip)
	}
	for _, call := range x.Calls() {
		if title, ok := call.Body["title"].(string); ok {
			body, _ := call.Body["body"].(string)
			if body == "" {
				body, _ = call.Body["description"].(string)
			}
			if title != "clusters: web has two nodes" || !strings.HasPrefix(body, "The shop is busy.\n\n") ||
				!strings.Contains(body, "Ida Rhodes") || !strings.Contains(body, "`prod`") {
				x.t.Errorf("%q: %q", title, body)
			}
			return
		}
	}
	x.t.Error("no pull request was opened")
}

// everywhere tells a story on every forge.
func everywhere(t *testing.T, story func(t *testing.T, x *estate)) {
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			story(t, newEstate(t, kind, true))
		})
	}
}

// Ida changes a cluster. The branch is open to Ordain: her change is a commit in her name, and no pull request. Asked
// again, it is there already. When somebody else changed the cluster after she saw it, nothing is written over theirs.
func TestAChangeIsACommitInAPersonsName(t *testing.T) {
	everywhere(t, func(t *testing.T, x *estate) {
		before := x.tip()
		got := x.commit(twoNodes(before))
		if got != (forge.Written{Branch: "main", Commit: x.tip()}) || got.Commit == before {
			t.Errorf("%+v; main is at %s", got, x.tip())
		}
		said := x.git(x.bare, "log", "-1", "--format=%an <%ae>|%cn|%B", "main")
		if said != "Ida Rhodes <ida@example.org>|Ordain|clusters: web has two nodes\n\nThe shop is busy." {
			t.Error(said)
		}
		if again := x.commit(twoNodes(before)); again != got || x.tip() != got.Commit {
			t.Errorf("again: %+v", again)
		}
		late := twoNodes(before)
		late.Files[0].Content = []byte("nodes: 3\n")
		_, err := x.service.Commit(t.Context(), x.env, late)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "clusters/web.yaml changed since") {
			t.Errorf("over the change of another: %v", err)
		}
		for _, call := range x.Calls() {
			if call.Method != http.MethodGet {
				t.Errorf("the forge was asked to %s %s", call.Method, call.Path)
			}
		}
	})
}

// The forge says that the branch is protected. The change becomes one pull request, also when it is asked for twice,
// and another change another one.
func TestAChangeOfAProtectedBranchIsAPullRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, x *estate) {
		x.Protect("main", forgetest.GuardRule)
		tip := x.tip()
		got := x.commit(twoNodes(tip))
		x.wantProposal(got, tip)
		if again := x.commit(twoNodes(tip)); again != got {
			t.Errorf("again: %+v, not %+v", again, got)
		}
		other := twoNodes(tip)
		other.Files[0].Content = []byte("nodes: 3\n")
		if other := x.commit(other); other.Branch == got.Branch || other.PullRequest == got.PullRequest {
			t.Errorf("another change is the same pull request: %+v", other)
		}
		// A change that changes nothing is no pull request.
		same := twoNodes(tip)
		same.Files[0].Content = []byte("nodes: 1\n")
		if same := x.commit(same); same != (forge.Written{Branch: "main", Commit: tip}) {
			t.Errorf("nothing changed: %+v", same)
		}
	})
}

// The forge does not say it, and the repository refuses the commit.
func TestAChangeThatTheRepositoryRefusesIsAPullRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, x *estate) {
		x.refuses()
		tip := x.tip()
		x.wantProposal(x.commit(twoNodes("")), tip)
	})
}

// The environment wants pull requests always, or signatures, which Ordain does not give.
func TestSettingsThatAskForPullRequests(t *testing.T) {
	for name, value := range map[string]string{intent.ClusterChanges: intent.ByPullRequest, "git_verify": "tip"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newEstate(t, "gitea", true)
			x.env.Settings[name] = value
			tip := x.tip()
			x.wantProposal(x.commit(twoNodes("")), tip)
		})
		t.Run(name+" without a forge", func(t *testing.T) {
			t.Parallel()
			x := newEstate(t, "gitea", false)
			x.env.Settings[name] = value
			_, err := x.service.Commit(t.Context(), x.env, twoNodes(""))
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), name) ||
				!strings.Contains(err.Error(), "forge-token") || errors.Is(err, gitsync.ErrProtected) {
				t.Error(err)
			}
		})
	}
}

// Without a forge, a commit is all there is: it is made, or a person is told what to do.
func TestAChangeWithoutAForge(t *testing.T) {
	t.Parallel()
	x := newEstate(t, "github", false)
	tip := x.tip()
	if got := x.commit(twoNodes(tip)); got.Commit != x.tip() || got.Commit == tip {
		t.Errorf("%+v", got)
	}
	x.refuses()
	w := twoNodes("")
	w.Files[0].Content = []byte("nodes: 3\n")
	_, err := x.service.Commit(t.Context(), x.env, w)
	if !fault.Is(err, fault.Conflict) || !errors.Is(err, gitsync.ErrProtected) {
		t.Errorf("%v", err)
	}
	for _, words := range []string{"not allowed to push code to protected branches", "branch main", "forge-token"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q lacks %q", err, words)
		}
	}
}

// A forge whose API is down does not keep a change from the repository.
func TestAChangeWhileTheForgesAPIIsDown(t *testing.T) {
	t.Parallel()
	x := newEstate(t, "gitlab", true)
	x.Answer(func(*http.Request) (int, http.Header, string) { return 500, nil, `{"message":"oops"}` })
	if got := x.commit(twoNodes("")); got.Commit != x.tip() {
		t.Errorf("%+v", got)
	}
	x.refuses()
	w := twoNodes("")
	w.Files[0].Content = []byte("nodes: 3\n")
	if _, err := x.service.Commit(t.Context(), x.env, w); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a pull request at a forge that is down: %v", err)
	}
}

// The Git credentials may only read. A person learns that pull requests need no others.
func TestAChangeWithCredentialsThatMayOnlyRead(t *testing.T) {
	t.Parallel()
	x := newEstate(t, "github", true)
	x.git(x.bare, "config", "http.receivepack", "false")
	tip := x.tip()
	_, err := x.service.Commit(t.Context(), x.env, twoNodes(""))
	if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "may only be read") ||
		!strings.Contains(err.Error(), "set cluster_changes to pull_request") {
		t.Errorf("%v", err)
	}
	x.env.Settings[intent.ClusterChanges] = intent.ByPullRequest
	x.wantProposal(x.commit(twoNodes("")), tip)
}
