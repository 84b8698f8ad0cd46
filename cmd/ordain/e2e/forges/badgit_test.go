package forges

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// The repository is moved away while a note is deployed. Nobody pushes or asks for
// anything, and still people hear of it: a report says which repository is missing, a
// notification and the pages of the environment say so, and the note stays. When the
// repository is back, that shows as well, and the next push is deployed.
func TestRepositoryGone(t *testing.T) {
	t.Parallel()
	tool.Long(t, "five repairs of a repository")
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	if err := os.Rename(p.Bare, p.Bare+".away"); err != nil {
		t.Fatal(err)
	}
	lab.Mentions(t, p.FailsIn(intent.StageFetch), "repo.git", "no")
	newest := func() string {
		t.Helper()
		page, err := p.Store.Notifications(t.Context(), p.Env, intent.ListQuery{Sort: "last", Desc: true})
		if err != nil || len(page.Items) == 0 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Items[0].Title
	}
	if title := newest(); title != "Pulling updates during compile failed" {
		t.Errorf("the newest notification is %q", title)
	}
	overview := "/e/" + p.Env.String()
	lab.Mentions(t, p.Fetch(overview), "The repository cannot be read.", "repo.git")
	e, err := p.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	lab.Mentions(t, p.Must(t, "git", "status", e.Name), "failing", "repo.git")
	if err := os.Rename(p.Bare+".away", p.Bare); err != nil {
		t.Fatal(err)
	}
	p.CompiledWell()
	if title := newest(); title != "The repository can be read again" {
		t.Errorf("the newest notification is %q", title)
	}
	if strings.Contains(p.Fetch(overview), "The repository cannot be read.") {
		t.Error("the overview still says that the repository cannot be read")
	}
	p.Push("a fix", p.Model([3]string{"a", "two", "calm"}))
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "two" {
		t.Errorf("a is %q", p.Note("a"))
	}
}

// The repository is still empty. That is no failure, but a compile that somebody asks for says so, and the first push
// is deployed.
func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	tool.Long(t, "a deployment from nothing")
	p := lab.SharedWorld(t).NewPlace(t)
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.Recompile()
	lab.Mentions(t, p.FailsIn(intent.StageClone), "empty")
	p.Push("the first commit", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "one" {
		t.Errorf("after the first push a is %q", p.Note("a"))
	}
}

// History is rewritten and pushed by force. The new tip is rejected and nothing
// changes until a person accepts it.
func TestForcePush(t *testing.T) {
	t.Parallel()
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	p.Git("checkout", "-q", "--orphan", "again")
	p.Commit("another history", p.Model([3]string{"a", "rewritten", "calm"}))
	p.Git("push", "-q", "--force", "origin", "again:main")
	lab.Mentions(t, p.FailsIn(intent.StageVerify), "does not descend from", "ordain git accept")
	commit := strings.TrimSpace(p.Git("rev-parse", "again"))
	if _, err := p.Control.AcceptCommit(control.As(t.Context(), "ida", "a secret had to go"), p.Env,
		commit); err != nil {
		t.Fatal(err)
	}
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "rewritten" {
		t.Errorf("a is %q", p.Note("a"))
	}
}

// The password of a repository could end up in reports or logs. With the right one, a
// push is deployed; with a wrong one, the fetch says what to do. Neither password is
// in any report or log.
func TestCredentialsOverHTTP(t *testing.T) {
	t.Parallel()
	tool.Long(t, "a server of Git, and a deployment")
	const user, password = "deploy", "s3cret-Pass/word"
	w := lab.SharedWorld(t)
	p := w.NewPlace(t)
	url := gitOverHTTP(t, filepath.Dir(p.Bare), user, password) + "/repo.git"
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	p.Bind(intent.Source{URL: url, Branch: "main"},
		map[string]string{source.SecretGitUser: user, source.SecretGitPassword: password})
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "one" {
		t.Errorf("a is %q", p.Note("a"))
	}
	if err := p.Control.SetSecret(t.Context(), p.Env, source.SecretGitPassword, "wrong-"+password); err != nil {
		t.Fatal(err)
	}
	p.Recompile()
	said := p.FailsIn(intent.StageFetch)
	lab.Mentions(t, said, "credentials")
	if strings.Contains(p.Story(), password) {
		t.Error("the password is in a report:\n" + p.Story())
	}
	log, err := os.ReadFile(w.Server.Layout().ServerLog())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), password) {
		t.Error("the password is in the server's log")
	}
}

// gitOverHTTP serves the repositories of a folder with git http-backend.
func gitOverHTTP(t *testing.T, dir, user, password string) string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Dir:  dir,
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
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

// An unsigned commit slips in. Only commits that an allowed signer has signed are
// deployed, and the version names the signer.
func TestOnlySignedCommits(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	t.Parallel()
	tool.Need(t, "ssh-keygen")
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f",
		key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{
		"git_verify": "all", "git_allowed_signers": "ada@example.com " + string(public),
	} {
		if err := p.Control.SetSetting(t.Context(), p.Env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	base := strings.TrimSpace(p.Git("rev-parse", "HEAD"))
	p.Push("unsigned", p.Model([3]string{"a", "slipped in", "calm"}))
	lab.Mentions(t, p.FailsIn(intent.StageVerify), "not signed", "git_allowed_signers")
	if p.Note("a") == "slipped in" {
		t.Error("an unsigned commit was deployed")
	}
	p.Git("reset", "-q", "--hard", base)
	p.Git("config", "gpg.format", "ssh")
	p.Git("config", "user.signingkey", key)
	p.Commit("signed", p.Model([3]string{"a", "signed", "calm"}))
	p.Git("commit", "-q", "--amend", "--no-edit", "-S")
	p.Git("push", "-q", "--force", "origin", "HEAD")
	c := p.CompiledWell()
	p.Settled()
	v, err := p.Store.Version(t.Context(), p.Env, *c.Version)
	if err != nil || v.Provenance.Signer != "ada@example.com" || !strings.HasPrefix(v.Provenance.SignerKey, "SHA256:") {
		t.Errorf("%+v, %v", v.Provenance, err)
	}
	if p.Note("a") != "signed" {
		t.Errorf("a is %q", p.Note("a"))
	}
}

// A bad commit is deployed and rolled back from the command line. The note is as it
// was before, nothing deploys the bad commit again, and the fix on top of it is
// deployed like any push.
func TestRollback(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	t.Parallel()
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	e, err := p.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	p.Push("bad", p.Model([3]string{"a", "bad", "calm"}))
	p.CompiledWell()
	p.Settled()
	bad := p.Head()
	if p.Note("a") != "bad" {
		t.Fatalf("a is %q", p.Note("a"))
	}
	if code, _, errs := p.Ordain(t, "", "rollback", e.Name); code == 0 || !strings.Contains(errs, "--reason") {
		t.Errorf("without a reason it ends with %d: %s", code, errs)
	}
	lab.Mentions(t, p.Must(t, "rollback", e.Name, "--by", "ida", "--reason", "the note is wrong"), "version 3",
		"content of version 1", bad+" is blocked")
	p.Settled()
	if p.Note("a") != "one" {
		t.Errorf("after the rollback a is %q", p.Note("a"))
	}
	lab.Mentions(t, p.Must(t, "git", "status", e.Name), "blocked", bad, "the note is wrong", "git unblock")
	lab.Mentions(t, p.Must(t, "git", "blocks", e.Name), bad, "ida")
	p.Recompile()
	lab.Mentions(t, p.FailsIn(intent.StageVerify), "is blocked", "the note is wrong")
	p.Push("fix", p.Model([3]string{"a", "fixed", "calm"}))
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "fixed" {
		t.Errorf("after the fix a is %q", p.Note("a"))
	}
	lab.Mentions(t, p.Must(t, "git", "status", e.Name), "ok")
	lab.Mentions(t, p.Must(t, "override", "history", e.Name), "rollback", "block", "ida", "the note is wrong")
	lab.Mentions(t, p.Must(t, "git", "unblock", e.Name, bad[:10], "--reason", "it is gone anyway"), bad+" is free")
}

// Commits that must not be checked out, and a branch that is deleted. Each failure is
// reported, the deployed note stays as it is, and the next good push is deployed.
func TestCommitsThatAreRefused(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	t.Parallel()
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	if err := p.Control.SetSetting(t.Context(), p.Env, "git_max_file", 1); err != nil {
		t.Fatal(err)
	}
	link := func(name, target string) func() {
		return func() {
			path := filepath.Join(p.Work, name)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		do    func()
		words []string
	}{
		"project.yml is a link to outside": {link("project.yml", "../../../etc/passwd"),
			[]string{`"project.yml" leads to`, "outside of the repository"}},
		"the modules are a link to outside": {link("libs", "/usr/lib"),
			[]string{`"libs" leads to`, "outside of the repository"}},
		"a huge file": {func() {
			if err := os.WriteFile(filepath.Join(p.Work, "huge"), make([]byte, 1<<20+1), 0o644); err != nil {
				t.Fatal(err)
			}
		}, []string{`"huge" has 2 MiB`, "git_max_file"}},
	} {
		ok := t.Run(name, func(t *testing.T) {
			p.T = t
			tt.do()
			p.Push(name, nil)
			lab.Mentions(t, p.FailsIn(intent.StageCheckout), tt.words...)
			p.Git("revert", "--no-edit", "HEAD")
			p.Git("push", "-q", "origin", "main")
			p.CompiledWell()
		})
		p.T = t
		if !ok {
			return
		}
	}
	p.Git("push", "-q", "origin", "main:other")
	p.Git("-C", p.Bare, "update-ref", "-d", "refs/heads/main")
	lab.Mentions(t, p.FailsIn(intent.StageFetch), `"main"`, "other")
	p.Git("-C", p.Bare, "update-ref", "-d", "refs/heads/other")
	lab.Mentions(t, p.FailsIn(intent.StageFetch), "empty")
	p.Push("it is back", p.Model([3]string{"a", "back", "calm"}))
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "back" {
		t.Errorf("a is %q", p.Note("a"))
	}
}

// The author and the message of a commit are not UTF-8 and contain escape sequences
// and HTML, and so does a file name. The commit is deployed, and the API, the console
// and the command line show it without harm.
func TestHostileTextInCommits(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	t.Parallel()
	w := lab.SharedWorld(t)
	p := lab.NewDeployedPlace(t, w)
	model := p.Model([3]string{"a", "two", "calm"})
	for name, text := range map[string]string{"main.cf": model["main.cf"], "caf\xe9": "x", "\x1b[2J": "x"} {
		if err := os.WriteFile(filepath.Join(p.Work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.Git("add", "-A")
	const evil = "\x1b]0;owned\x07 <script>alert(1)</script> \u202e caf\xe9"
	p.Git("-c", "user.name=Ad\xe9 \x1b[31m <b>", "commit", "-q", "--no-verify", "-m", evil)
	p.Git("push", "-q", "origin", "main")
	done := p.CompiledWell()
	p.Settled()
	if p.Note("a") != "two" || done.Revision.Commit != p.Head() {
		t.Errorf("%q, %+v", p.Note("a"), done.Revision)
	}
	e, err := p.Store.Environment(t.Context(), p.Env)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{
		"git status":   w.Must(t, "git", "status", e.Name),
		"version list": w.Must(t, "version", "list", e.Name),
	}
	for what, path := range map[string]string{
		"page Git":        "/e/" + p.Env.String() + "/git",
		"page of the run": "/e/" + p.Env.String() + "/runs/" + done.ID.String(),
		"API":             "/api/v2/compilereport/" + done.ID.String(),
	} {
		seen[what] = p.Fetch(path)
	}
	shown := 0
	for what, text := range seen {
		if strings.Contains(text, "owned") {
			shown++
		}
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Contains(text, `\u001b`) ||
			strings.Contains(text, "<script>alert") && what != "API" && what[0] == 'p' {
			t.Errorf("%s does harm:\n%q", what, text)
		}
	}
	if shown < 3 {
		t.Errorf("only %d places show the commit: %q", shown, seen)
	}
}
