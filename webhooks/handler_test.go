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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const secret = "s3cr3t-of-the-hook"

// board is a server with environments, which notes what was recorded.
type board struct {
	mu       sync.Mutex
	targets  []intent.HookTarget
	lookup   error // of Targets
	broken   error // of Record
	lookups  int
	recorded []intent.Delivery
	had      map[string]bool
	noted    chan struct{} // gets something after each record; may be nil
}

func (b *board) HookTargets(context.Context) ([]intent.HookTarget, error) {
	b.lookups++
	return slices.Clone(b.targets), b.lookup
}

func (b *board) RecordDelivery(_ context.Context, d intent.Delivery) (took []intent.EnvironmentID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil, b.broken
	}
	if b.had == nil {
		b.had = map[string]bool{}
	}
	for _, o := range d.Outcomes {
		key := d.Forge + d.Key + o.Environment.String()
		if d.Key == "" || !b.had[key] || o.State == intent.OutcomeRefused {
			took = append(took, o.Environment)
		}
		b.had[key] = b.had[key] || d.Verified // as the place of record does
	}
	if len(took) > 0 {
		b.recorded = append(b.recorded, d)
		if b.noted != nil {
			b.noted <- struct{}{}
		}
	}
	return took, nil
}

// waiting returns what was recorded for environments to act on.
func (b *board) waiting() (out []intent.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.recorded {
		if d.Verified {
			out = append(out, d)
		}
	}
	return out
}

// namesOf returns the environments of an answer.
func namesOf(a Answer) string {
	var out []string
	for _, e := range a.Environments {
		out = append(out, e.Name)
	}
	return strings.Join(out, ", ")
}

func (b *board) add(name, url, branch string, secrets ...string) {
	t := intent.HookTarget{Environment: uuid.New(), Name: name, Source: intent.Source{URL: url, Branch: branch}}
	for _, s := range secrets {
		t.Secrets = append(t.Secrets, []byte(s))
	}
	b.targets = append(b.targets, t)
}

// journal keeps what is logged, also by refusals that are recorded later.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// door is the handler behind a real server, with its log.
type door struct {
	t       *testing.T
	url     string
	log     *journal
	handler *Handler
}

func open(t *testing.T, b *board) *door {
	t.Helper()
	d := &door{t: t, log: &journal{}}
	h, err := New(
		Config{Server: b, Logger: slog.New(slog.NewTextHandler(d.log, nil)), MaxBody: 64 << 10, Now: nowIsNoon},
	)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	d.url, d.handler = server.URL+"/hooks", h
	return d
}

// send posts a payload and returns status and answer; neither answer nor log
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
	if err := json.Unmarshal(text, &a); err != nil || a.Message == "" || a.Environments == nil {
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
	return map[string]string{
		HeaderSignature:   Sign(body, []byte(secret)),
		HeaderGitHubEvent: event,
		"Content-Type":    "application/json",
	}
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
	if status != http.StatusAccepted || a.Message != "recorded for 4 environments" ||
		a.Repository != "Codertocat/Hello-World" ||
		a.Ref != "refs/heads/master" ||
		a.Delivery == nil {
		t.Fatalf("%d %+v", status, a)
	}
	if got := namesOf(a); got != "https, no suffix, ssh, other branch" {
		t.Errorf("recorded for %s", got)
	}
	if len(b.recorded) != 1 {
		t.Fatalf("recorded %+v", b.recorded)
	}
	got := b.recorded[0]
	if e := got.Event; e.Kind != intent.HookPush || e.Ref != "refs/heads/master" ||
		e.Commit != "6113728f27ae82c7b1a177c8d03f9e96e0adf246" || e.Sender != "Codertocat" ||
		e.DefaultBranch != "master" ||
		got.Size != int64(len(body)) ||
		got.Forge != "github" ||
		!got.Verified {
		t.Errorf("recorded %+v", got)
	}
	// GitHub's other content type.
	form := []byte(url.Values{"payload": {string(body)}}.Encode())
	headers := signed(form, "push")
	headers["Content-Type"] = "application/x-www-form-urlencoded"
	if status, a := d.send("/github", form, headers); status != http.StatusAccepted || len(a.Environments) != 4 {
		t.Errorf("as a form: %d %+v", status, a)
	}
}

// A repository on this machine reports a push as a forge does.
func TestLocalSender(t *testing.T) {
	for _, source := range []string{
		"/srv/git/site.git", "file:///srv/git/site.git", "file://localhost/srv/git/site.git/",
	} {
		b := &board{}
		b.add("site", source, "main", secret)
		d := open(t, b)
		body := []byte(
			`{"ref":"refs/heads/main","after":"1234567890123456789012345678901234567890","deleted":false,` +
				`"repository":{"full_name":"site.git","clone_url":"file:///srv/git/site.git"}}`,
		)
		if status, a := d.send("/github", body, signed(body, "push")); status != 202 || namesOf(a) != "site" {
			t.Errorf("%s: %d %+v", source, status, a)
		}
		if w := b.waiting(); len(w) != 1 || w[0].Event.Ref != "refs/heads/main" {
			t.Errorf("%+v", w)
		}
	}
}

func TestGitLabPush(t *testing.T) {
	b := &board{}
	b.add("site", "http://example.com/mike/diaspora.git", "", secret)
	b.add("other secret", "http://example.com/mike/diaspora", "master", "another-secret")
	d := open(t, b)
	body := payload(t, "gitlab-push.json")
	status, a := d.send("/gitlab", body, map[string]string{HeaderGitLabToken: secret, "X-Gitlab-Event": "Push Hook"})
	if status != 202 || namesOf(a) != "site" || a.Repository != "mike/diaspora" || a.Ref != "refs/heads/master" {
		t.Errorf("%d %+v", status, a)
	}
	if w := b.waiting(); len(w) != 1 || w[0].Event.Sender != "jsmith" || w[0].Event.Subject != "fixed readme" ||
		w[0].Event.Commit[:7] != "da15608" {
		t.Errorf("%+v", w)
	}
	for name, token := range map[string]string{
		"wrong": "wrong", "prefix": secret[:5], "longer": secret + "x", "missing": "",
	} {
		headers := map[string]string{}
		if token != "" {
			headers[HeaderGitLabToken] = token
		}
		if status, a := d.send("/gitlab", body, headers); status != 401 || len(a.Environments) != 0 {
			t.Errorf("%s token: %d %+v", name, status, a)
		}
	}
	if len(b.waiting()) != 1 {
		t.Errorf("recorded without the token: %+v", b.recorded)
	}
}

// A request that proves nothing, concerns no environment or is malformed leaves nothing to
// act on, and the answer says why.
func TestWhatIsRefused(t *testing.T) {
	push := payload(t, "github-push.json")
	tests := []struct {
		name    string
		path    string
		body    []byte
		headers func(body []byte) map[string]string
		status  int
		want    string
	}{
		{
			"ping",
			"/github",
			payload(t, "github-ping.json"),
			func(b []byte) map[string]string { return signed(b, "ping") },
			202,
			"no environment uses this repository",
		},
		{
			"ping with a wrong secret",
			"/github",
			bytes.ReplaceAll(payload(t, "github-ping.json"), []byte("Octocoders"), []byte("Codertocat")),
			func(b []byte) map[string]string {
				return map[string]string{HeaderSignature: Sign(b, []byte("wrong")), HeaderGitHubEvent: "ping"}
			},
			401,
			"does not prove",
		},
		{
			"unknown repository",
			"/github",
			bytes.ReplaceAll(push, []byte("Codertocat"), []byte("Stranger")),
			func(b []byte) map[string]string { return signed(b, "push") },
			202,
			"no environment uses",
		},
		{"wrong secret", "/github", push, func(b []byte) map[string]string {
			return map[string]string{HeaderSignature: Sign(b, []byte("wrong")), HeaderGitHubEvent: "push"}
		}, 401, "does not prove"},
		{"empty secret", "/github", push, func(b []byte) map[string]string {
			return map[string]string{HeaderSignature: Sign(b, nil), HeaderGitHubEvent: "push"}
		}, 401, "does not prove"},
		{
			"signature of another body",
			"/github",
			push,
			func([]byte) map[string]string { return signed([]byte("{}"), "push") },
			401,
			"does not prove",
		},
		{
			"no signature",
			"/github",
			push,
			func([]byte) map[string]string { return map[string]string{HeaderGitHubEvent: "push"} },
			401,
			"not signed",
		},
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
		{
			"not JSON",
			"/github",
			[]byte(`{"ref": `),
			func(b []byte) map[string]string { return signed(b, "push") },
			400,
			"not JSON, at byte 8",
		},
		{
			"wrong type",
			"/github",
			[]byte(`{"ref": 5}`),
			func(b []byte) map[string]string { return signed(b, "push") },
			400,
			"Ref cannot be a JSON number",
		},
		{
			"no repository",
			"/github",
			[]byte(`{"ref":"refs/heads/x"}`),
			func(b []byte) map[string]string { return signed(b, "push") },
			400,
			"repository.clone_url is missing",
		},
		{
			"no ref",
			"/github",
			[]byte(`{"repository":{"clone_url":"https://x/y"}}`),
			func(b []byte) map[string]string { return signed(b, "push") },
			400,
			"ref is missing",
		},
		{"form without payload", "/github", []byte(`a=b`), func(b []byte) map[string]string {
			h := signed(b, "push")
			h["Content-Type"] = "application/x-www-form-urlencoded"
			return h
		}, 400, "no field payload"},
		{
			"too big",
			"/github",
			bytes.Repeat([]byte(" "), 64<<10+1),
			func(b []byte) map[string]string { return signed(b, "push") },
			413,
			"bigger than 65536 bytes",
		},
		{
			"GitLab malformed",
			"/gitlab",
			[]byte(`[]`),
			func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} },
			400,
			"malformed",
		},
		{
			"GitLab without kind",
			"/gitlab",
			[]byte(`{}`),
			func([]byte) map[string]string { return map[string]string{HeaderGitLabToken: secret} },
			400,
			"object_kind",
		},
		{
			"another forge",
			"/sourceforge",
			push,
			func(b []byte) map[string]string { return signed(b, "push") },
			404,
			"generic, gitea, github, gitlab",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &board{}
			b.add("one", "https://github.com/Codertocat/Hello-World.git", "", secret)
			b.add("two", "https://gitlab.example.com/ops/site.git", "", secret)
			d := open(t, b)
			status, a := d.send(tt.path, tt.body, tt.headers(tt.body))
			if status != tt.status || !strings.Contains(a.Message, tt.want) || len(a.Environments) != 0 {
				t.Errorf("%d %+v, want %d %q", status, a, tt.status, tt.want)
			}
			if w := b.waiting(); len(w) != 0 {
				t.Errorf("recorded %+v", w)
			}
		})
	}
}

// Nothing in a payload is read before its signature is checked: a payload that is
// no JSON at all gets the same answer as any other without a secret.
func TestTheSignatureComesFirst(t *testing.T) {
	b := &board{}
	b.add("site", "https://github.com/Codertocat/Hello-World.git", "", secret)
	d := open(t, b)
	for _, body := range [][]byte{nil, []byte("{"), payload(t, "github-push.json")} {
		wrong := map[string]string{HeaderSignature: Sign(body, []byte("wrong")), HeaderGitHubEvent: "push"}
		if status, a := d.send("/github", body, wrong); status != 401 ||
			!strings.Contains(a.Message, "does not prove") {
			t.Errorf("%.20q: %d %+v", body, status, a)
		}
	}
}

// Who knows the secret of one environment does not learn which repositories other environments use.
func TestOthersRepositoriesStaySecret(t *testing.T) {
	b := &board{}
	b.add("mine", "https://gitlab.example.com/ops/site.git", "", secret)
	b.add("theirs", "https://github.com/Codertocat/Hello-World.git", "", "their own")
	d := open(t, b)
	used := payload(t, "github-push.json")
	unused := bytes.ReplaceAll(used, []byte("Codertocat"), []byte("Stranger"))
	status, a := d.send("/github", used, signed(used, "push"))
	otherStatus, other := d.send("/github", unused, signed(unused, "push"))
	if status != otherStatus || a.Message != other.Message || len(b.waiting()) != 0 {
		t.Errorf("used by others: %d %+v, used by nobody: %d %+v", status, a, otherStatus, other)
	}
}

// Environments are read once for a burst of webhooks. When nobody's secret
// verifies a request, they are read again, because one of them may be new.
func TestEnvironmentsAreReadOncePerBurst(t *testing.T) {
	b := &board{}
	b.add("first", "https://github.com/Codertocat/Hello-World.git", "", secret)
	d := open(t, b)
	body := payload(t, "github-push.json")
	for range 20 {
		if status, _ := d.send("/github", body, signed(body, "push")); status != 202 {
			t.Fatal(status)
		}
	}
	if b.lookups > 5 { // once a second
		t.Errorf("%d lookups for 20 webhooks", b.lookups)
	}
	b.add("second", "https://github.com/Codertocat/Hello-World.git", "", "new-secret")
	headers := signed(body, "push")
	headers[HeaderSignature] = Sign(body, []byte("new-secret"))
	if status, a := d.send("/github", body, headers); status != 202 || namesOf(a) != "second" {
		t.Errorf("%d %+v", status, a)
	}
}

// A test of a webhook that names no repository still shows whether the secret is right.
func TestAPingWithoutARepository(t *testing.T) {
	b := &board{}
	b.add("site", "https://bitbucket.example.org/scm/ops/site.git", "", secret)
	d := open(t, b)
	body := []byte(`{"test": true}`)
	for key, want := range map[string]int{secret: 202, "wrong": 401} {
		status, a := d.send("/bitbucket-server", body, map[string]string{
			headerBitbucketSignature: Sign(body, []byte(key)), headerBitbucketEvent: "diagnostics:ping",
		})
		if status != want || strings.Contains(a.Message, "the secret is right") != (want == 202) {
			t.Errorf("%d %+v, want %d", status, a, want)
		}
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

// When the database is away, the forge is asked to send the webhook again, and does not learn why.
func TestWhenTheServerCannot(t *testing.T) {
	body := payload(t, "github-push.json")
	b := &board{lookup: errors.New("database away")}
	if status, a := open(t, b).send("/github", body, signed(body, "push")); status != 503 ||
		!strings.Contains(a.Message, "send it again") {
		t.Errorf("%d %+v", status, a)
	}
	b = &board{broken: errors.New("disk on fire at /var/secret")}
	b.add("broken", "https://github.com/Codertocat/Hello-World.git", "", secret)
	d := open(t, b)
	if status, a := d.send("/github", body, signed(body, "push")); status != 503 ||
		strings.Contains(a.Message, "fire") ||
		len(a.Environments) != 0 {
		t.Errorf("%d %+v", status, a)
	}
	if !strings.Contains(d.log.String(), "disk on fire") {
		t.Error("the log does not say why")
	}
}

// A delivery that a forge sends again is recorded once.
func TestTheSameDeliveryAgain(t *testing.T) {
	b := &board{}
	b.add("site", "https://github.com/Codertocat/Hello-World.git", "", secret)
	d := open(t, b)
	body := payload(t, "github-push.json")
	headers := signed(body, "push")
	headers["X-GitHub-Delivery"] = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	for i, want := range []int{202, 200, 200} {
		if status, a := d.send("/github", body, headers); status != want || len(a.Environments) != 1-min(i, 1) ||
			(a.Delivery != nil) != (i == 0) {
			t.Errorf("%d. time: %d %+v", i+1, status, a)
		}
	}
	if len(b.recorded) != 1 {
		t.Errorf("recorded %+v", b.recorded)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"Server": {Logger: slog.Default()}, "Logger": {Server: &board{}},
		"MaxBody": {Server: &board{}, Logger: slog.Default(), MaxBody: -1},
	} {
		if _, err := New(cfg); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSameRepository(t *testing.T) {
	same := [][]string{
		{
			"https://github.com/A/B.git",
			"https://github.com/a/b",
			"http://github.com:80/a/b/",
			"https://user:pw@GitHub.com/a/b.git",
			"git@github.com:a/b.git",
			"ssh://git@github.com/a/b.git",
			"ssh://git@github.com:2222/a/b",
			"git://github.com/a/b.git",
			"github.com:a/b",
			"ssh://git@ssh.github.com:443/a/b.git",
			"git@ssh.github.com:a/b.git",
			"[git@ssh.github.com:443]:a/b.git",
			"https://www.github.com/a//b.git/",
			"HTTPS://github.com./a/b.git//",
		},
		{
			"https://gitlab.com/ops/web/site.git",
			"git@gitlab.com:Ops/web/site",
			"ssh://git@altssh.gitlab.com:443/ops/web/site.git/",
		},
		{
			"https://me@bitbucket.org/acme/site.git",
			"git@bitbucket.org:acme/site.git",
			"ssh://git@altssh.bitbucket.org:443/acme/site.git",
		},
		{
			"https://dev.azure.com/Acme/My%20Shop/_git/site",
			"https://acme@dev.azure.com/acme/My%20Shop/_git/site/",
			"https://dev.azure.com/acme/DefaultCollection/My%20Shop/_git/site",
			"https://acme.visualstudio.com/My%20Shop/_git/site",
			"https://acme.visualstudio.com/DefaultCollection/My%20Shop/_git/site",
			"https://acme.visualstudio.com/DefaultCollection/My%20Shop/_git/_optimized/site",
			"git@ssh.dev.azure.com:v3/acme/My%20Shop/site",
			"ssh://git@ssh.dev.azure.com/v3/acme/My%20Shop/site",
			"ssh://git@ssh.dev.azure.com:22/v3/acme/My%20Shop/site/",
			"acme@vs-ssh.visualstudio.com:v3/acme/My%20Shop/site",
			"ssh://acme@vs-ssh.visualstudio.com/v3/acme/My%20Shop/site",
			"ssh://acme@vs-ssh.visualstudio.com:22/My%20Shop/_ssh/site",
			"ssh://acme@vs-ssh.visualstudio.com:22/DefaultCollection/My%20Shop/_ssh/site",
			"ssh://acme@acme.visualstudio.com:22/DefaultCollection/My%20Shop/_git/site",
		},
		{ // the project is named like the repository
			"https://dev.azure.com/acme/site/_git/site",
			"https://dev.azure.com/acme/_git/site",
			"https://acme.visualstudio.com/_git/site",
			"https://acme.visualstudio.com/DefaultCollection/_git/site",
			"git@ssh.dev.azure.com:v3/acme/site/site",
			"acme@vs-ssh.visualstudio.com:v3/acme/site/site",
			"ssh://acme@vs-ssh.visualstudio.com:22/_ssh/site",
		},
		{ // and like the organisation
			"https://dev.azure.com/acme/_git/acme",
			"https://acme.visualstudio.com/_git/acme",
			"git@ssh.dev.azure.com:v3/acme/acme/acme",
		},
		{"git@ssh.dev.azure.com:v3/other/site/site", "https://other.visualstudio.com/_git/site"},
		{"git@ssh.dev.azure.com:v3/acme/shop/site", "https://acme.visualstudio.com/shop/_git/site"},
		{
			"https://tfs.example/tfs/DefaultCollection/Shop/_git/Shop",
			"https://tfs.example/tfs/DefaultCollection/_git/Shop",
			"ssh://tfs.example:22/tfs/DefaultCollection/_git/Shop",
		},
		{"https://tfs.example/tfs/Other/_git/Shop"},
		{"git@[2001:db8::1]:a/b.git", "https://[2001:db8::1]/a/b"},
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
	for _, none := range []string{
		"", "https://github.com", "https://github.com/", "relative/path", "ftp://a/b", "file://host/a",
		"https://%zz/a", "x:", "git@[host:a/b", "https://github.com/.git",
	} {
		if key := repositoryKey(none); key != "" {
			t.Errorf("%q gives %q", none, key)
		}
	}
}
