package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const secret = "s3cr3t-of-the-hook"

// board is a server with environments, which notes who was notified.
type board struct {
	targets  []Target
	lookup   error
	refuse   map[string]error // by environment name
	notified []string         // "name: message"
}

func (b *board) Targets(context.Context) ([]Target, error) { return b.targets, b.lookup }

func (b *board) Notify(_ context.Context, env intent.EnvironmentID, trigger intent.Trigger) error {
	for _, t := range b.targets {
		if t.Environment == env {
			if err := b.refuse[t.Name]; err != nil {
				return err
			}
			b.notified = append(b.notified, t.Name+": "+trigger.Type+": "+trigger.Message)
		}
	}
	return nil
}

func (b *board) add(name, url, branch string, secrets ...string) {
	t := Target{Environment: uuid.New(), Name: name, Source: intent.Source{URL: url, Branch: branch}}
	for _, s := range secrets {
		t.Secrets = append(t.Secrets, []byte(s))
	}
	b.targets = append(b.targets, t)
}

// door is the handler behind a real server, with its log.
type door struct {
	t   *testing.T
	url string
	log *bytes.Buffer
}

func open(t *testing.T, b *board) *door {
	t.Helper()
	d := &door{t: t, log: &bytes.Buffer{}}
	h, err := New(Config{Server: b, Logger: slog.New(slog.NewTextHandler(d.log, nil)), MaxBody: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	d.url = server.URL + "/hooks"
	return d
}

// send posts a payload and gives status and answer; neither answer nor log
// may show a secret.
func (d *door) send(path string, body []byte, headers map[string]string) (int, Answer) {
	d.t.Helper()
	return d.do(http.MethodPost, path, bytes.NewReader(body), headers)
}

func (d *door) do(method, path string, body io.Reader, headers map[string]string) (int, Answer) {
	d.t.Helper()
	req, err := http.NewRequest(method, d.url+path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil || a.Message == "" || a.Started == nil {
		d.t.Errorf("the answer is not as promised: %s (%v)", text, err)
	}
	for _, s := range []string{secret, "another-secret"} {
		if strings.Contains(string(text), s) || strings.Contains(d.log.String(), s) {
			d.t.Errorf("a secret is shown: %s\n%s", text, d.log)
		}
	}
	return res.StatusCode, a
}

func signed(body []byte, event string) map[string]string {
	return map[string]string{HeaderSignature: Sign(body, []byte(secret)), HeaderGitHubEvent: event, "Content-Type": "application/json"}
}

func payload(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A push recorded from GitHub reaches the environments on its repository and
// branch, however their source is spelled, whose secret the sender knows. The
// answer says who.
func TestGitHubPush(t *testing.T) {
	b := &board{}
	b.add("https", "https://github.com/Codertocat/Hello-World.git", "master", secret)
	b.add("no suffix", "https://github.com/codertocat/hello-world", "", "another-secret", secret)
	b.add("ssh", "git@github.com:Codertocat/Hello-World.git", "master", secret)
	b.add("other branch", "https://github.com/Codertocat/Hello-World.git", "next", secret)
	b.add("other secret", "https://github.com/Codertocat/Hello-World.git", "master", "another-secret")
	b.add("no secret", "https://github.com/Codertocat/Hello-World.git", "master")
	b.add("other repository", "https://github.com/Codertocat/Hello-World-2.git", "master", secret)
	b.add("other host", "https://github.example.com/Codertocat/Hello-World.git", "master", secret)
	b.add("no source", "", "", secret)
	d := open(t, b)
	body := payload(t, "github-push.json")
	status, a := d.send("/github", body, signed(body, "push"))
	if status != http.StatusAccepted || a.Message != "3 environments were notified" || a.Repository != "Codertocat/Hello-World" || a.Branch != "master" {
		t.Fatalf("%d %+v", status, a)
	}
	var names []string
	for _, s := range a.Started {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, ", "); got != "https, no suffix, ssh" {
		t.Errorf("started %s", got)
	}
	if len(a.Skipped) != 1 || a.Skipped[0].Name != "other branch" {
		t.Errorf("skipped %+v", a.Skipped)
	}
	if len(b.notified) != 3 || !strings.HasPrefix(b.notified[0], "https: webhook: Codertocat pushed 6113728 to master: ") {
		t.Errorf("notified %q", b.notified)
	}
	for _, want := range []string{"has no webhook secret", "ordain environment secret", "not that of the environment"} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, d.log)
		}
	}
	// GitHub's other content type.
	form := []byte(url.Values{"payload": {string(body)}}.Encode())
	headers := signed(form, "push")
	headers["Content-Type"] = "application/x-www-form-urlencoded"
	if status, a := d.send("/github", form, headers); status != http.StatusAccepted || len(a.Started) != 3 {
		t.Errorf("as a form: %d %+v", status, a)
	}
}

// A repository on this machine tells of a push as a forge would.
func TestLocalSender(t *testing.T) {
	for _, source := range []string{"/srv/git/site.git", "file:///srv/git/site.git", "file://localhost/srv/git/site.git/"} {
		b := &board{}
		b.add("site", source, "main", secret)
		d := open(t, b)
		body := []byte(`{"ref":"refs/heads/main","after":"1234567890","deleted":false,"repository":{"full_name":"site.git","clone_url":"file:///srv/git/site.git"}}`)
		if status, a := d.send("/github", body, signed(body, "push")); status != 202 || len(a.Started) != 1 {
			t.Errorf("%s: %d %+v", source, status, a)
		}
		if len(b.notified) != 1 || b.notified[0] != "site: webhook: someone pushed 1234567 to main" {
			t.Errorf("%q", b.notified)
		}
	}
}

func TestGitLabPush(t *testing.T) {
	b := &board{}
	b.add("site", "https://gitlab.example.com/ops/site.git", "", secret)
	b.add("other secret", "https://gitlab.example.com/ops/site", "main", "another-secret")
	d := open(t, b)
	body := payload(t, "gitlab-push.json")
	status, a := d.send("/gitlab", body, map[string]string{HeaderGitLabToken: secret, "X-Gitlab-Event": "Push Hook"})
	if status != 202 || len(a.Started) != 1 || a.Repository != "ops/site" || a.Branch != "main" {
		t.Errorf("%d %+v", status, a)
	}
	if len(b.notified) != 1 || b.notified[0] != "site: webhook: Grace Hopper pushed da15608 to main: web: one more host" {
		t.Errorf("%q", b.notified)
	}
	for name, token := range map[string]string{"wrong": "wrong", "prefix": secret[:5], "longer": secret + "x", "missing": ""} {
		headers := map[string]string{}
		if token != "" {
			headers[HeaderGitLabToken] = token
		}
		if status, a := d.send("/gitlab", body, headers); status != 401 || len(a.Started) != 0 {
			t.Errorf("%s token: %d %+v", name, status, a)
		}
	}
	if len(b.notified) != 1 {
		t.Errorf("notified without the token: %q", b.notified)
	}
}

// What must start nothing starts nothing, and says why.
func TestWhatStartsNothing(t *testing.T) {
	push := payload(t, "github-push.json")
	deletedBranch := bytes.Replace(push, []byte(`"deleted": false`), []byte(`"deleted": true`), 1)
	tests := []struct {
		name    string
		path    string
		body    []byte
		headers func(body []byte) map[string]string
		status  int
		want    string
	}{
		{"ping", "/github", payload(t, "github-ping.json"), func(b []byte) map[string]string { return signed(b, "ping") }, 202, "no environment uses this repository"},
		{"ping for an environment", "/github", bytes.ReplaceAll(payload(t, "github-ping.json"), []byte("Octocoders"), []byte("Codertocat")),
			func(b []byte) map[string]string { return signed(b, "ping") }, 202, "set up well"},
		{"ping with a wrong secret", "/github", bytes.ReplaceAll(payload(t, "github-ping.json"), []byte("Octocoders"), []byte("Codertocat")),
			func(b []byte) map[string]string {
				return map[string]string{HeaderSignature: Sign(b, []byte("wrong")), HeaderGitHubEvent: "ping"}
			}, 401, "does not prove"},
		{"new tag", "/github", payload(t, "github-tag.json"), func(b []byte) map[string]string { return signed(b, "push") }, 202, "refs/tags/simple-tag is not a branch"},
		{"deleted tag", "/github", payload(t, "github-tag-deleted.json"), func(b []byte) map[string]string { return signed(b, "push") }, 202, "not a branch"},
		{"deleted branch", "/github", deletedBranch, func(b []byte) map[string]string { return signed(b, "push") }, 202, "deleted"},
		{"another event", "/github", push, func(b []byte) map[string]string { return signed(b, "star") }, 202, `"star" start nothing`},
		{"unknown repository", "/github", bytes.ReplaceAll(push, []byte("Codertocat"), []byte("Stranger")), func(b []byte) map[string]string { return signed(b, "push") }, 202, "no environment uses"},
		{"wrong secret", "/github", push, func(b []byte) map[string]string {
			return map[string]string{HeaderSignature: Sign(b, []byte("wrong")), HeaderGitHubEvent: "push"}
		}, 401, "does not prove"},
		{"empty secret", "/github", push, func(b []byte) map[string]string {
			return map[string]string{HeaderSignature: Sign(b, nil), HeaderGitHubEvent: "push"}
		}, 401, "does not prove"},
		{"signature of another body", "/github", push, func([]byte) map[string]string { return signed([]byte("{}"), "push") }, 401, "does not prove"},
		{"no signature", "/github", push, func([]byte) map[string]string { return map[string]string{HeaderGitHubEvent: "push"} }, 401, "not signed"},
		{"SHA-1 signature", "/github", push, func([]byte) map[string]string {
			return map[string]string{HeaderGitHubEvent: "push", HeaderSignature: "sha1=" + strings.Repeat("0", 40)}
		}, 401, "64 hexadecimal digits"},
		{"not hexadecimal", "/github", push, func([]byte) map[string]string {
			return map[string]string{HeaderGitHubEvent: "push", HeaderSignature: "sha256=" + strings.Repeat("z", 64)}
		}, 401, "64 hexadecimal digits"},
		{"no event", "/github", push, func(b []byte) map[string]string {
			return map[string]string{HeaderSignature: Sign(b, []byte(secret))}
		}, 400, HeaderGitHubEvent + " is missing"},
		{"empty", "/github", nil, func(b []byte) map[string]string { return signed(b, "push") }, 400, "it is empty"},
		{"not JSON", "/github", []byte(`{"ref": `), func(b []byte) map[string]string { return signed(b, "push") }, 400, "not JSON, at byte 8"},
		{"wrong type", "/github", []byte(`{"ref": 5}`), func(b []byte) map[string]string { return signed(b, "push") }, 400, "Ref cannot be a JSON number"},
		{"no repository", "/github", []byte(`{"ref":"refs/heads/x"}`), func(b []byte) map[string]string { return signed(b, "push") }, 400, "repository.clone_url is missing"},
		{"no ref", "/github", []byte(`{"repository":{"clone_url":"https://x/y"}}`), func(b []byte) map[string]string { return signed(b, "push") }, 400, "ref is missing"},
		{"form without payload", "/github", []byte(`a=b`), func(b []byte) map[string]string {
			h := signed(b, "push")
			h["Content-Type"] = "application/x-www-form-urlencoded"
			return h
		}, 400, "no field payload"},
		{"too big", "/github", bytes.Repeat([]byte(" "), 64<<10+1), func(b []byte) map[string]string { return signed(b, "push") }, 413, "bigger than 65536 bytes"},
		{"GitLab deletes a branch", "/gitlab", bytes.Replace(payload(t, "gitlab-push.json"), []byte(`"after": "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"`),
			[]byte(`"after": "0000000000000000000000000000000000000000"`), 1), func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} }, 202, "deleted"},
		{"GitLab pushes a tag", "/gitlab", bytes.Replace(bytes.Replace(payload(t, "gitlab-push.json"), []byte(`"refs/heads/main"`), []byte(`"refs/tags/v1"`), 1),
			[]byte(`"object_kind": "push"`), []byte(`"object_kind": "tag_push"`), 1), func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} }, 202, "not a branch"},
		{"GitLab tells of something else", "/gitlab", bytes.Replace(payload(t, "gitlab-push.json"), []byte(`"object_kind": "push"`), []byte(`"object_kind": "issue"`), 1),
			func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} }, 202, `"issue" start nothing`},
		{"GitLab malformed", "/gitlab", []byte(`[]`), func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} }, 400, "malformed"},
		{"GitLab without kind", "/gitlab", []byte(`{}`), func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} }, 400, "object_kind"},
		{"another forge", "/bitbucket", push, func(b []byte) map[string]string { return signed(b, "push") }, 404, "/hooks/github"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &board{}
			b.add("one", "https://github.com/Codertocat/Hello-World.git", "", secret)
			b.add("two", "https://gitlab.example.com/ops/site.git", "", secret)
			d := open(t, b)
			status, a := d.send(tt.path, tt.body, tt.headers(tt.body))
			if status != tt.status || !strings.Contains(a.Message, tt.want) || len(a.Started) != 0 {
				t.Errorf("%d %+v, want %d %q", status, a, tt.status, tt.want)
			}
			if len(b.notified) != 0 {
				t.Errorf("notified %q", b.notified)
			}
		})
	}
}

func TestOnlyPost(t *testing.T) {
	d := open(t, &board{})
	for _, path := range []string{"/github", "/gitlab"} {
		if status, a := d.do(http.MethodGet, path, nil, nil); status != 405 || !strings.Contains(a.Message, "POST") {
			t.Errorf("%s: %d %+v", path, status, a)
		}
	}
}

// The database is away, or one environment is halted: the forge learns to
// send it again, or that it need not.
func TestWhenTheServerCannot(t *testing.T) {
	body := payload(t, "github-push.json")
	const source = "https://github.com/Codertocat/Hello-World.git"

	b := &board{lookup: errors.New("database away")}
	if status, a := open(t, b).send("/github", body, signed(body, "push")); status != 503 || !strings.Contains(a.Message, "send it again") {
		t.Errorf("%d %+v", status, a)
	}

	b = &board{refuse: map[string]error{"halted": fault.New("x", fault.Conflict, "the environment is halted")}}
	b.add("halted", source, "", secret)
	b.add("runs", source, "", secret)
	status, a := open(t, b).send("/github", body, signed(body, "push"))
	if status != 202 || len(a.Started) != 1 || len(a.Skipped) != 1 || a.Skipped[0].Reason != "the environment is halted" {
		t.Errorf("%d %+v", status, a)
	}

	b = &board{refuse: map[string]error{"broken": errors.New("disk on fire at /var/secret")}}
	b.add("broken", source, "", secret)
	b.add("runs", source, "", secret)
	d := open(t, b)
	status, a = d.send("/github", body, signed(body, "push"))
	if status != 503 || len(a.Started) != 1 || len(a.Skipped) != 1 || strings.Contains(a.Skipped[0].Reason, "fire") {
		t.Errorf("%d %+v", status, a)
	}
	if !strings.Contains(d.log.String(), "disk on fire") {
		t.Error("the log does not say why")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{"Server": {Logger: slog.Default()}, "Logger": {Server: &board{}}, "MaxBody": {Server: &board{}, Logger: slog.Default(), MaxBody: -1}} {
		if _, err := New(cfg); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSameRepository(t *testing.T) {
	same := [][]string{
		{"https://github.com/A/B.git", "https://github.com/a/b", "http://github.com:80/a/b/", "https://user:pw@GitHub.com/a/b.git", "git@github.com:a/b.git",
			"ssh://git@github.com/a/b.git", "ssh://git@github.com:2222/a/b", "git://github.com/a/b.git", "github.com:a/b"},
		{"https://git.example:8443/a/b"},
		{"https://github.com/a/b/c"},
		{"/srv/a.git", "file:///srv/a.git", "file:///srv//x/../a.git/", "file://localhost/srv/a.git"},
		{"/srv/a", "/srv/a/.git"},
		{"/srv/A"},
	}
	for i, group := range same {
		for j, other := range same {
			for _, x := range group {
				for _, y := range other {
					if equal := repositoryKey(x) == repositoryKey(y); equal != (i == j) {
						t.Errorf("%s and %s: equal is %v", x, y, equal)
					}
				}
			}
		}
	}
	for _, none := range []string{"", "https://github.com", "https://github.com/", "relative/path", "ftp://a/b", "file://host/a", "https://%zz/a", "x:"} {
		if key := repositoryKey(none); key != "" {
			t.Errorf("%q gives %q", none, key)
		}
	}
}
