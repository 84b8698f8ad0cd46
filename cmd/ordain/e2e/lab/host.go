package lab

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge/forgetest"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/webhooks"
)

// Host is a whole forge: its API (a fake), its repositories over HTTP (the real git
// http-backend), and its webhooks. When a client pushes, it updates the refs of pull
// requests and sends webhooks before the push returns.
type Host struct {
	*forgetest.Server
	t      *testing.T
	root   string // of the repositories, such as acme/shop.git
	server string // where webhooks go; empty: there are none yet
	secret string

	mu       sync.Mutex
	requests map[int]*request
}

// request is a pull request with the repository and branch of its head.
type request struct {
	forgetest.Pull
	repo, branch string
}

const (
	hostPassword = "a-password-of-git-at-the-forge"
	HostRepo     = "acme/shop"
	Nowhere      = "0000000000000000000000000000000000000000"
)

func newHost(t *testing.T, kind string) *Host {
	t.Helper()
	key := "0123456789abcdef0123456789abcdef"
	if kind == "gitlab" { // a signing token
		key = "whsec_" + base64.StdEncoding.EncodeToString([]byte(key))
	}
	h := &Host{
		Server:   forgetest.New(t, kind),
		t:        t,
		root:     t.TempDir(),
		secret:   key,
		requests: map[int]*request{},
	}
	h.Other = http.HandlerFunc(h.serveGit)
	h.Create(HostRepo)
	return h
}

// Create makes a bare repository to which everybody with the password can push.
func (h *Host) Create(name string) {
	h.git("", "init", "-q", "--bare", "-b", "main", filepath.Join(h.root, name+".git"))
	h.git(name, "config", "http.receivepack", "true")
}

// CloneURL returns the URL from which a user clones a repository.
func (h *Host) CloneURL(user, name string) string {
	u, err := url.Parse(h.URL)
	if err != nil {
		h.t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(user, hostPassword), "/"+name+".git"
	return u.String()
}

// git runs git in a repository of the host.
func (h *Host) git(repo string, args ...string) string {
	h.t.Helper()
	out, err := h.tryGit(repo, args...)
	if err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (h *Host) tryGit(repo string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	if cmd.Dir = h.root; repo != "" {
		cmd.Dir = filepath.Join(h.root, repo+".git")
	}
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=forge", "GIT_AUTHOR_EMAIL=forge@example.org", "GIT_COMMITTER_NAME=forge",
		"GIT_COMMITTER_EMAIL=forge@example.org")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// refs returns the branches and tags of a repository, with their commits.
func (h *Host) refs(repo string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(h.git(repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads",
		"refs/tags")) {
		name, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = commit
	}
	return out
}

func (h *Host) serveGit(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if password != hostPassword {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	path, err := exec.LookPath("git")
	if err != nil {
		h.t.Error(err)
		return
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + h.root, "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	repo, service, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	if service != "git-receive-pack" {
		backend.ServeHTTP(w, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.refs(repo)
	backend.ServeHTTP(w, r)
	h.pushed(repo, user, before)
}

// pushed sends webhooks for what changed in a repository.
func (h *Host) pushed(repo, user string, before map[string]string) {
	after := h.refs(repo)
	for _, ref := range slices.Sorted(maps.Keys(union(before, after))) {
		old, now := before[ref], after[ref]
		if old == now {
			continue
		}
		if repo == HostRepo {
			h.sendPush(ref, user, old, now)
		}
		for _, n := range slices.Sorted(maps.Keys(h.requests)) {
			q := h.requests[n]
			if q.State != "open" {
				continue
			}
			if q.repo == repo && "refs/heads/"+q.branch == ref && now != "" {
				was := q.Head
				q.Head = now
				h.refresh(q)
				h.sendPull(q, "synchronize", was)
			} else if repo == HostRepo && "refs/heads/"+q.Base == ref {
				h.refresh(q)
			}
		}
	}
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// refresh updates the refs of a pull request, and what the API says about it.
func (h *Host) refresh(q *request) {
	at := fmt.Sprintf("refs/pull/%d/", q.Number)
	if h.Kind == "gitlab" {
		at = fmt.Sprintf("refs/merge-requests/%d/", q.Number)
	}
	h.git(HostRepo, "fetch", "-q", filepath.Join(h.root, q.repo+".git"), "+refs/heads/"+q.branch+":"+at+"head")
	if tree, err := h.tryGit(HostRepo, "merge-tree", "--write-tree", "refs/heads/"+q.Base, q.Head); err != nil {
		q.Unmergeable = true
		h.git(HostRepo, "update-ref", "-d", at+"merge")
	} else {
		q.Unmergeable = false
		merge := h.git(HostRepo, "commit-tree", tree, "-p", "refs/heads/"+q.Base, "-p", q.Head, "-m", "Merge")
		if h.Kind != "gitea" { // which has no ref for the merge
			h.git(HostRepo, "update-ref", at+"merge", merge)
		}
	}
	h.Put(q.Pull)
}

// Opens opens a pull request of a branch towards main.
func (h *Host) Opens(number int, author, repo, branch string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	head := h.git(repo, "rev-parse", "refs/heads/"+branch)
	q := &request{
		forgetest.Pull{
			Number: number,
			State:  "open",
			Title:  "A change",
			Author: author,
			Fork:   repo != HostRepo,
			Base:   "main",
			Head:   head,
		},
		repo,
		branch,
	}
	h.requests[number] = q
	h.refresh(q)
	h.sendPull(q, "opened", "")
}

// Closes closes a pull request; merged puts its merge on its base first.
func (h *Host) Closes(number int, merged bool) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.requests[number]
	q.State = "closed"
	if merged {
		before := h.refs(HostRepo)
		tree := h.git(HostRepo, "merge-tree", "--write-tree", "refs/heads/"+q.Base, q.Head)
		merge := h.git(HostRepo, "commit-tree", tree, "-p", "refs/heads/"+q.Base, "-p", q.Head, "-m", "Merge a change")
		h.git(HostRepo, "update-ref", "refs/heads/"+q.Base, merge)
		h.pushed(HostRepo, q.Author, before)
		q.State = "merged"
	}
	h.Put(q.Pull)
	h.sendPull(q, "closed", "")
}

// payload reads a webhook of the forge, as it was recorded or published.
func (h *Host) payload(name string) map[string]any {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "webhooks", "testdata", name))
	if err != nil {
		h.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// set changes a field of a payload. The test fails if the payload does not have it.
func (h *Host) set(payload map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := payload[name].(map[string]any)
		if !ok {
			h.t.Fatalf("the payload has no %s", path)
		}
		payload = inner
	}
	last := names[len(names)-1]
	if _, ok := payload[last]; !ok {
		h.t.Fatalf("the payload has no %s", path)
	}
	payload[last] = value
}

func (h *Host) place(payload map[string]any, at, repo string) {
	h.set(payload, at+".full_name", repo)
	h.set(payload, at+".clone_url", h.URL+"/"+repo+".git")
	h.set(payload, at+".html_url", h.URL+"/"+repo)
	h.set(payload, at+".ssh_url", "git@forge.example.org:"+repo+".git")
	h.set(payload, at+".default_branch", "main")
}

// project does what place does, for payloads of GitLab.
func (h *Host) project(payload map[string]any, at, repo string) {
	h.set(payload, at+".path_with_namespace", repo)
	for _, name := range []string{"git_http_url", "http_url"} {
		h.set(payload, at+"."+name, h.URL+"/"+repo+".git")
	}
	for _, name := range []string{"git_ssh_url", "ssh_url"} {
		h.set(payload, at+"."+name, "git@forge.example.org:"+repo+".git")
	}
	for _, name := range []string{"web_url", "homepage"} {
		h.set(payload, at+"."+name, h.URL+"/"+repo)
	}
	h.set(payload, at+".default_branch", "main")
}

func (h *Host) sendPush(ref, user, before, after string) {
	p := h.payload(h.Kind + "-push.json")
	if before == "" {
		before = Nowhere
	}
	if after == "" {
		after = Nowhere
	}
	h.set(p, "ref", ref)
	h.set(p, "before", before)
	h.set(p, "after", after)
	h.set(p, "commits", []any{})
	if h.Kind == "gitlab" {
		h.set(p, "user_username", user)
		h.project(p, "project", HostRepo)
		h.set(p, "repository", p["project"])
		h.set(p, "total_commits_count", 0)
	} else {
		h.place(p, "repository", HostRepo)
		h.set(p, "head_commit", nil)
		if h.Kind == "github" {
			h.set(p, "deleted", after == Nowhere)
			h.set(p, "pusher.name", user)
		} else {
			h.set(p, "pusher.login", user)
		}
	}
	h.send("push", p)
}

func (h *Host) sendPull(q *request, action, before string) {
	name := "github-pull-" + action + ".json"
	switch h.Kind {
	case "gitea":
		name = "gitea-pull.json"
		if action == "synchronize" {
			action = "synchronized"
		}
	case "gitlab":
		h.sendMerge(q, action, before)
		return
	}
	p := h.payload(name)
	h.set(p, "action", action)
	h.set(p, "number", q.Number)
	h.set(p, "pull_request.number", q.Number)
	h.set(p, "pull_request.title", q.Title)
	h.set(p, "pull_request.user.login", q.Author)
	h.set(p, "pull_request.merged", q.State == "merged")
	h.set(p, "pull_request.html_url", fmt.Sprintf("%s/acme/shop/pulls/%d", h.URL, q.Number))
	h.set(p, "pull_request.head.ref", q.branch)
	h.set(p, "pull_request.head.sha", q.Head)
	h.set(p, "pull_request.base.ref", q.Base)
	h.place(p, "pull_request.head.repo", q.repo)
	h.place(p, "pull_request.base.repo", HostRepo)
	h.place(p, "repository", HostRepo)
	h.send("pull_request", p)
}

func (h *Host) sendMerge(q *request, action, before string) {
	p := h.payload("gitlab-merge.json")
	attributes := p["object_attributes"].(map[string]any)
	h.set(p, "object_attributes.action",
		map[string]string{"opened": "open", "synchronize": "update", "closed": "close"}[action])
	if q.State == "merged" {
		h.set(p, "object_attributes.action", "merge")
	}
	if before != "" {
		attributes["oldrev"] = before // as documented, where code was pushed
	}
	h.set(p, "object_attributes.iid", q.Number)
	h.set(p, "object_attributes.title", q.Title)
	h.set(p, "object_attributes.source_branch", q.branch)
	h.set(p, "object_attributes.target_branch", q.Base)
	h.set(p, "object_attributes.last_commit.id", q.Head)
	h.set(p, "object_attributes.target_project_id", 1)
	source := 1
	if q.Fork {
		source = 2
	}
	h.set(p, "object_attributes.source_project_id", source)
	h.set(p, "user.username", q.Author)
	h.project(p, "project", HostRepo)
	h.project(p, "object_attributes.target", HostRepo)
	h.project(p, "object_attributes.source", q.repo)
	h.send("Merge Request Hook", p)
}

// send signs and sends a webhook as the forge does. The server must accept it.
func (h *Host) send(event string, payload map[string]any) {
	if h.server == "" {
		return
	}
	body, err := json.Marshal(payload)
	if err != nil {
		h.t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, h.server+"/hooks/"+h.Kind, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	id := uuid.NewString()
	req.Header.Set("Content-Type", "application/json")
	switch h.Kind {
	case "github":
		req.Header.Set("X-GitHub-Event", event)
		req.Header.Set("X-GitHub-Delivery", id)
		req.Header.Set("X-Hub-Signature-256", webhooks.Sign(body, []byte(h.secret)))
	case "gitea":
		mac := hmac.New(sha256.New, []byte(h.secret))
		mac.Write(body)
		for _, name := range []string{"X-Gitea", "X-Gogs", "X-GitHub"} {
			req.Header.Set(name+"-Event", event)
			req.Header.Set(name+"-Delivery", id)
		}
		req.Header.Set("X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
		req.Header.Set("X-Gogs-Signature", hex.EncodeToString(mac.Sum(nil)))
		req.Header.Set("X-Hub-Signature-256", webhooks.Sign(body, []byte(h.secret)))
	case "gitlab":
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.secret, "whsec_"))
		if err != nil {
			h.t.Fatal(err)
		}
		stamp := fmt.Sprint(time.Now().Unix())
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		req.Header.Set("X-Gitlab-Event", event)
		req.Header.Set("Idempotency-Key", id)
		req.Header.Set("Webhook-Id", id)
		req.Header.Set("Webhook-Timestamp", stamp)
		req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Error(err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		text, _ := io.ReadAll(res.Body)
		h.t.Errorf("the webhook %s was answered %d: %s", event, res.StatusCode, text)
	}
}

// Hosted makes a place whose repository is at a forge. Its first commit, with this
// module and the note kept, is deployed. The environment learns of pushes only by
// webhooks.
func (w *World) Hosted(t *testing.T, kind string, module map[string]string) (*Place, *Host) {
	t.Helper()
	p := w.NewPlace(t)
	h := newHost(t, kind)
	h.Writer("ida")
	p.Git("remote", "set-url", "origin", h.CloneURL("ida", HostRepo))
	p.Push("the first", MergeFiles(module, p.Model([3]string{"kept", "one", "calm"})))
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	project, err := p.Control.CreateProject(t.Context(), intent.Project{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Control.CreateEnvironment(t.Context(), control.NewEnvironment{
		Environment: intent.Environment{
			ProjectID: project.ID,
			Name:      name,
			Source:    intent.Source{URL: h.URL + "/" + HostRepo + ".git", Branch: "main"},
		},
		Secrets: map[string]string{source.SecretForgeToken: forgetest.Token, source.SecretWebhook: h.secret,
			source.SecretGitUser: "ordain", source.SecretGitPassword: hostPassword},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Env, h.server = e.ID, w.Server.URL() // a webhook is set up once the environment has its secret
	for name, value := range map[string]any{"forge": kind, "pull_previews": "trusted", "git_poll_interval": 0} {
		if err := p.Control.SetSetting(t.Context(), p.Env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	p.CompiledWell()
	p.Settled()
	return p, h
}

// Branch makes a branch from a commit, commits files on it and pushes it. It returns
// the new head.
func (p *Place) Branch(to, name, from string, files map[string]string) string {
	p.T.Helper()
	p.Git("checkout", "-q", "-B", "work", from)
	p.Commit("a change on "+name, files)
	p.Git("push", "-q", "-f", to, "HEAD:refs/heads/"+name)
	head := p.Head()
	p.Git("checkout", "-q", "main")
	return head
}
