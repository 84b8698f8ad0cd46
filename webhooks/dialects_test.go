package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// noon is the present of these tests.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// sender returns the headers that a forge sends with a body when it has this secret.
type sender func(body []byte, secret string) http.Header

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func bare(body []byte, secret string) string {
	return Sign(body, []byte(secret))[len(signaturePrefix):]
}

func standardHeaders(body []byte, key []byte, id string, at time.Time) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return headers(
		HeaderStandardID,
		id,
		HeaderStandardTime,
		stamp,
		HeaderStandardSignature,
		"v1a,xyz v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	)
}

// senders returns how each forge sends one event.
func senders(event, delivery string) map[string]sender {
	return map[string]sender{
		"github": func(b []byte, s string) http.Header {
			return headers(HeaderSignature, Sign(b, []byte(s)), HeaderGitHubEvent, event, "X-GitHub-Delivery", delivery)
		},
		"gitlab": func(_ []byte, s string) http.Header {
			return headers(HeaderGitLabToken, s, "Idempotency-Key", delivery)
		},
		"gitea": func(b []byte, s string) http.Header {
			return headers("X-Gitea-Signature", bare(b, s), "X-Gitea-Event", event, "X-Gitea-Delivery", delivery)
		},
		"forgejo": func(b []byte, s string) http.Header {
			return headers("X-Forgejo-Signature", bare(b, s), "X-Forgejo-Event", event, "X-Forgejo-Delivery", delivery)
		},
		"gogs": func(b []byte, s string) http.Header {
			return headers("X-Gogs-Signature", bare(b, s), "X-Gogs-Event", event, "X-Gogs-Delivery", delivery)
		},
		"bitbucket": func(b []byte, s string) http.Header {
			return headers("X-Hub-Signature", Sign(b, []byte(s)), "X-Event-Key", event, "X-Request-UUID", delivery)
		},
		"bitbucket-server": func(b []byte, s string) http.Header {
			return headers("X-Hub-Signature", Sign(b, []byte(s)), "X-Event-Key", event, "X-Request-Id", delivery)
		},
		"azure": func(_ []byte, s string) http.Header {
			return headers("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("anybody:"+s)))
		},
		"generic": func(b []byte, s string) http.Header {
			return headers(HeaderGenericSignature, Sign(b, []byte(s)), HeaderGenericDelivery, delivery)
		},
		"standard": func(b []byte, s string) http.Header { return standardHeaders(b, []byte(s), delivery, noon) },
	}
}

const (
	one = "33b55f7cb7e7e245323987634f960cf4a6e6bc74"
	two = "aad331d8d3b131fa9ae03cf5e53965b51942618a"
)

var own = []byte(
	`{"repository":"https://git.example.org/ops/site.git","ref":"main","before":"` + two + `","after":"` + one +
		`","sender":"ada","message":"two doors\n\nmore","paths":["main.cf"]}`,
)

// Payloads of every forge are understood, their signature is checked, and the forge's id of the delivery is kept.
func TestDialects(t *testing.T) {
	for _, tt := range []struct {
		forge, event string
		file         string // or own
		source       string
		want         string // kind, ref or number and action, commit, sender or author
		key          string
	}{
		{
			"github", "push", "github-push.json",
			"https://github.com/Codertocat/Hello-World.git",
			"push refs/heads/master 6113728 Codertocat", "d1",
		},
		{
			"github", "create", "github-create.json",
			"https://github.com/Codertocat/Hello-World.git",
			"tag refs/tags/simple-tag - Codertocat", "d1",
		},
		{
			"github", "delete", "github-delete.json",
			"https://github.com/Codertocat/Hello-World.git",
			"tag refs/tags/simple-tag deleted Codertocat", "d1",
		},
		{
			"github", "pull_request", "github-pull-opened.json",
			"git@github.com:Codertocat/Hello-World",
			"pull 2 opened changes@ec26c3e into master by Codertocat OWNER", "d1",
		},
		{
			"github", "pull_request", "github-pull-synchronize.json",
			"git@github.com:Codertocat/Hello-World",
			"pull 2 updated changes@ec26c3e into master by Codertocat OWNER", "d1",
		},
		{
			"github", "pull_request", "github-pull-closed.json",
			"git@github.com:Codertocat/Hello-World",
			"pull 2 closed changes@ec26c3e into master by Codertocat OWNER", "d1",
		},
		{
			"gitlab", "", "gitlab-push.json",
			"http://example.com/mike/diaspora",
			"push refs/heads/master da15608 jsmith", "d1",
		},
		{
			"gitlab", "", "gitlab-tag.json",
			"git@example.com:jsmith/example.git",
			"tag refs/tags/v1.0.0 82b3d5a jsmith", "d1",
		},
		{
			"gitlab", "", "gitlab-system-push.json",
			"git@example.com:mike/diaspora.git",
			"push refs/heads/master da15608 John Smith", "d1",
		},
		{
			"gitlab", "", "gitlab-merge.json",
			"http://example.com/gitlabhq/gitlab-test.git",
			"pull 1 opened ms-viewport@da15608 into master by", "d1",
		},
		{
			"gitlab", "", "gitlab-system-merge.json",
			"http://example.com/jsmith/example.git",
			"pull 1 edited ms-viewport@ba3e0d8 into master by", "d1",
		},
		{
			"gitea", "push", "gitea-push.json",
			"http://localhost:3000/example/example",
			"push refs/heads/master 67b5658 example", "d1",
		},
		{
			"gitea", "create", "gitea-create.json",
			"http://localhost:3000/example/example",
			"push refs/heads/master 67b5658 example", "d1",
		},
		{
			"gitea", "delete", "gitea-delete.json",
			"http://localhost:3000/example/example",
			"push refs/heads/example3 deleted example", "d1",
		},
		{
			"forgejo", "push", "gitea-push.json",
			"http://localhost:3000/example/example",
			"push refs/heads/master 67b5658 example", "d1",
		},
		{
			"gogs", "push", "gogs-push.json",
			"http://localhost:3000/unknwon/webhooks",
			"push refs/heads/develop bffeb74 unknwon", "d1",
		},
		{
			"gitea", "pull_request", "gitea-pull.json",
			"http://localhost:3000/example/example",
			"pull 2 opened master@48e773f into master by example2 fork", "d1",
		},
		{
			"bitbucket", "repo:push", "bitbucket-push.json",
			"git@bitbucket.org:team_name/repo_name.git",
			"push refs/heads/name-of-branch 709d658 emmap1", "d1",
		},
		{
			"bitbucket", "pullrequest:created", "bitbucket-pull.json",
			"https://ada@bitbucket.org/team_name/repo_name.git",
			"pull 1 opened branch2@ into master by emmap1", "d1",
		},
		{
			"bitbucket-server", "repo:refs_changed", "bitbucket-server-push.json",
			"ssh://git@server.bitbucket.local:7999/~gopher/webhook-test.git",
			"push refs/heads/feature/wip deleted gopher", "d1",
		},
		{
			"bitbucket-server", "repo:refs_changed", "bitbucket-server-push.json",
			"https://server.bitbucket.local/scm/~Gopher/webhook-test.git",
			"push refs/heads/feature/wip deleted gopher", "d1",
		},
		{
			"bitbucket-server", "pr:opened", "bitbucket-server-pull.json",
			"https://server.bitbucket.local/scm/~gopher/webhook-test.git",
			"pull 5 opened feature/wip@32a0b8a into master by gopher", "d1",
		},
		{
			"bitbucket-server", "pr:merged", "bitbucket-server-pull-merged.json",
			"https://server.bitbucket.local/scm/~gopher/webhook-test.git",
			"pull 5 merged feature/wip@32a0b8a into master by gopher", "d1",
		},
		{
			"azure", "", "azure-push.json",
			"https://me@dev.azure.com/fabrikam-fiber-inc/Fabrikam-Fiber-Git/_git/Fabrikam-Fiber-Git",
			"push refs/heads/main 33b55f7 Jamal Hartnett", "03c164c2-8912-4d5e-8009-3707d5f83734",
		},
		{
			"azure", "", "azure-push.json",
			"git@ssh.dev.azure.com:v3/fabrikam-fiber-inc/Fabrikam-Fiber-Git/Fabrikam-Fiber-Git",
			"push refs/heads/main 33b55f7 Jamal Hartnett", "03c164c2-8912-4d5e-8009-3707d5f83734",
		},
		{
			"azure", "", "azure-pull.json",
			"https://dev.azure.com/fabrikam/_git/Fabrikam",
			"pull 1 opened mytopic@53d54ac into master by fabrikamfiber4@hotmail.com",
			"2ab4e3d3-b7a6-425e-92b1-5a9982c1269e",
		},
		{
			"azure", "", "azure-pull-completed.json",
			"https://fabrikam.visualstudio.com/Fabrikam/_git/Fabrikam",
			"pull 1 merged mytopic@53d54ac into master by fabrikamfiber4@hotmail.com",
			"af07be1b-f3ad-44c8-a7f1-c4835f2df06b",
		},
		{
			"generic", "", "",
			"https://git.example.org/ops/site",
			"push refs/heads/main 33b55f7 ada", "d1",
		},
		{
			"standard", "", "",
			"https://git.example.org/ops/site",
			"push refs/heads/main 33b55f7 ada", "d1",
		},
	} {
		t.Run(tt.forge+" "+tt.event+" "+tt.file, func(t *testing.T) {
			b := &board{}
			b.add("site", tt.source, "main", "old-secret", secret)
			b.add("guarded", tt.source, "main", "another-secret")
			d := open(t, b)
			body := own
			if tt.file != "" {
				body = payload(t, tt.file)
			}
			send := senders(tt.event, "d1")[tt.forge]
			if status, a := d.post(tt.forge, body, send(body, "wrong")); status != 401 || len(b.waiting()) != 0 {
				t.Fatalf("with a wrong secret: %d %+v", status, a)
			}
			if status, a := d.post(
				tt.forge, body,
				headers(HeaderGitHubEvent, "push", "X-Event-Key", "repo:push", "X-Gitea-Event", "push"),
			); status != 401 ||
				len(b.waiting()) != 0 {
				t.Fatalf("without one: %d %+v", status, a)
			}
			status, a := d.post(tt.forge, body, send(body, secret))
			if status != 202 || namesOf(a) != "site" || len(b.waiting()) != 1 {
				t.Fatalf("%d %+v", status, a)
			}
			got := b.waiting()[0]
			if shown := show(got.Event); shown != tt.want {
				t.Errorf("understood %q, want %q", shown, tt.want)
			}
			if got.Key != tt.key || got.Forge != tt.forge {
				t.Errorf("delivery %q of %s", got.Key, got.Forge)
			}
			if status, _ := d.post(tt.forge, body, send(body, secret)); status != 200 || len(b.waiting()) != 1 {
				t.Errorf("again: %d", status)
			}
			if status, _ := d.post(tt.forge, body, send(body, "old-secret")); status != 200 {
				t.Errorf("with the other secret of the environment: %d", status)
			}
			for _, broken := range [][]byte{nil, []byte("{"), []byte(`[]`), []byte(`"x"`), body[:len(body)/2]} {
				if status, a := d.post(tt.forge, broken, send(broken, secret)); status != 400 ||
					!strings.Contains(a.Message, "malformed") {
					t.Errorf("%.20q: %d %+v", broken, status, a)
				}
			}
		})
	}
}

// post sends to a forge's address.
func (d *door) post(forge string, body []byte, h http.Header) (int, Answer) {
	d.t.Helper()
	flat := map[string]string{}
	for k := range h {
		flat[k] = h.Get(k)
	}
	return d.send("/"+forge, body, flat)
}

func short(commit string) string { return commit[:min(7, len(commit))] }

// show writes an event in one line.
func show(e Event) string {
	if p := e.Pull; p != nil {
		line := fmt.Sprintf(
			"pull %d %s %s@%s into %s by %s %s",
			p.Number,
			p.Action,
			p.Head.Ref,
			short(p.Head.Commit),
			p.Base.Ref,
			p.Author,
			p.Association,
		)
		if p.Fork {
			line = strings.TrimRight(line, " ") + " fork"
			if p.Author == "" {
				line = strings.Replace(line, "by fork", "by  fork", 1)
			}
		}
		return strings.TrimRight(line, " ")
	}
	at := short(e.Commit)
	if e.Deleted {
		at = "deleted"
	} else if at == "" {
		at = "-"
	}
	line := fmt.Sprintf("%s %s %s %s", e.Kind, e.Ref, at, e.Sender)
	for _, m := range e.More {
		line += " + " + show(m)
	}
	return line
}

// Fields of the published payloads with values that these do not show.
func TestDialectsVaried(t *testing.T) {
	tag := `"checkout_sha": "82b3d5ae55f7080f1e6022629cdb57bfae7cccc7"`
	for _, tt := range []struct {
		forge, event, file string
		change             []string // old and new
		want               string
	}{
		{ // annotated
			"gitlab", "", "gitlab-tag.json",
			[]string{tag, `"checkout_sha": "5937ac0a7beb003549fc5fd26fc247adbce4a52e"`},
			"tag refs/tags/v1.0.0 5937ac0 jsmith",
		},
		{
			"gitlab", "", "gitlab-tag.json",
			[]string{
				tag, `"checkout_sha": null`, `"82b3d5ae55f7080f1e6022629cdb57bfae7cccc7"`,
				`"` + strings.Repeat("0", 40) + `"`,
			},
			"tag refs/tags/v1.0.0 deleted jsmith",
		},
		{
			"gitlab", "", "gitlab-merge.json",
			[]string{`"action": "open"`, `"action": "update", "oldrev": "` + one + `"`},
			"pull 1 updated ms-viewport@da15608 into master by",
		},
		{
			"gitlab", "", "gitlab-merge.json",
			[]string{`"action": "open"`, `"action": "update"`},
			"pull 1 edited ms-viewport@da15608 into master by",
		},
		{
			"gitlab", "", "gitlab-merge.json",
			[]string{`"action": "open"`, `"action": "approved"`},
			"pull 1 other ms-viewport@da15608 into master by",
		},
		{
			"gitlab", "", "gitlab-merge.json",
			[]string{
				`"action": "open"`, `"action": "merge"`, `"author_id": 51`, `"author_id": 1`,
				`"source_project_id": 14`, `"source_project_id": 21`,
			},
			"pull 1 merged ms-viewport@da15608 into master by user1 fork",
		},
		{
			"gitea", "pull_request", "gitea-pull.json",
			[]string{`"action": "opened"`, `"action": "synchronized"`},
			"pull 2 updated master@48e773f into master by example2 fork",
		},
		{
			"gitea", "pull_request", "gitea-pull.json",
			[]string{`"action": "opened"`, `"action": "closed"`, `"merged": false`, `"merged": true`},
			"pull 2 merged master@48e773f into master by example2 fork",
		},
		{
			"bitbucket", "repo:push", "bitbucket-push.json",
			[]string{`"changes":[`, `"changes":[
				{"old":null,"new":{"type":"tag","name":"v1","target":{"hash":"` + one + `","message":"x"}}},
				{"old":{"type":"branch","name":"old","target":{"hash":"` + two + `"}},"new":null},`},
			"tag refs/tags/v1 33b55f7 emmap1 + push refs/heads/old deleted  + push refs/heads/name-of-branch 709d658 "},
		{
			"bitbucket", "pullrequest:fulfilled", "bitbucket-pull.json",
			nil,
			"pull 1 merged branch2@ into master by emmap1",
		},
		{
			"bitbucket", "pullrequest:rejected", "bitbucket-pull.json",
			nil,
			"pull 1 closed branch2@ into master by emmap1",
		},
		{
			"bitbucket", "pullrequest:comment_created", "bitbucket-pull.json",
			nil,
			"pull 1 other branch2@ into master by emmap1",
		},
		{
			"bitbucket-server", "repo:refs_changed", "bitbucket-server-push.json",
			[]string{`"toHash": "` + strings.Repeat("0", 40) + `"`, `"toHash": "` + one + `"`, `"DELETE"`, `"UPDATE"`},
			"push refs/heads/feature/wip 33b55f7 gopher",
		},
		{
			"bitbucket-server", "pr:from_ref_updated", "bitbucket-server-pull.json",
			nil,
			"pull 5 updated feature/wip@32a0b8a into master by gopher",
		},
		{
			"azure", "", "azure-pull-completed.json",
			[]string{`"status": "completed"`, `"status": "active"`},
			"pull 1 updated mytopic@53d54ac into master by fabrikamfiber4@hotmail.com",
		},
		{
			"azure", "", "azure-pull-completed.json",
			[]string{`"status": "completed"`, `"status": "abandoned"`},
			"pull 1 closed mytopic@53d54ac into master by fabrikamfiber4@hotmail.com",
		},
	} {
		body := string(payload(t, tt.file))
		for i := 0; i < len(tt.change); i += 2 {
			if !strings.Contains(body, tt.change[i]) {
				t.Fatalf("%s has no %s", tt.file, tt.change[i])
			}
			body = strings.Replace(body, tt.change[i], tt.change[i+1], 1)
		}
		e, _, err := dialectsByName(nowIsNoon)[tt.forge].parse(
			headers("X-Event-Key", tt.event, "X-Gitea-Event", tt.event),
			[]byte(body),
		)
		if shown := show(e); err != nil || shown != tt.want {
			t.Errorf("%s %s %s %q: %q, %v; want %q", tt.forge, tt.event, tt.file, tt.change, shown, err, tt.want)
		}
	}
}

// A repository on Azure DevOps is found by every address that people clone it from.
func TestAzureAddresses(t *testing.T) {
	for _, remote := range []string{
		"https://dev.azure.com/acme/My%20Shop/_git/site", "https://acme@dev.azure.com/acme/My%20Shop/_git/site",
		"https://acme.visualstudio.com/DefaultCollection/My%20Shop/_git/site",
	} {
		for _, source := range []string{
			"https://dev.azure.com/acme/My%20Shop/_git/site",
			"https://me@dev.azure.com/acme/My%20Shop/_git/site",
			"https://acme.visualstudio.com/My%20Shop/_git/site", "git@ssh.dev.azure.com:v3/acme/My%20Shop/site",
			"acme@vs-ssh.visualstudio.com:v3/acme/My%20Shop/site",
			"ssh://acme@vs-ssh.visualstudio.com:22/DefaultCollection/My%20Shop/_ssh/site",
		} {
			targets := newTargets([]intent.HookTarget{{Name: "1", Source: intent.Source{URL: source}}})
			if len(targets.using([]string{remote})) != 1 {
				t.Errorf("%s is not found by %s", source, remote)
			}
		}
	}
}

// GitLab signs with a signing token, sends a secret token, or both; a stale
// signature proves nothing.
func TestGitLabSigns(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	signing := "whsec_" + base64.StdEncoding.EncodeToString(key)
	b := &board{}
	b.add("site", "http://example.com/mike/diaspora.git", "", signing)
	d := open(t, b)
	body := payload(t, "gitlab-push.json")
	both := standardHeaders(body, key, "m2", noon)
	both.Set(HeaderGitLabToken, "wrong")
	old := standardHeaders(body, key, "m3", noon.Add(-standardTolerance-time.Second))
	token := headers(HeaderGitLabToken, signing)
	for name, tt := range map[string]struct {
		h    http.Header
		want int
	}{
		"signed":                    {standardHeaders(body, key, "m1", noon), 202},
		"signed, and another token": {both, 202},
		"stale":                     {old, 401},
		"token":                     {token, 202},
		"another key":               {standardHeaders(body, []byte("x"), "m4", noon), 401},
		"another body":              {standardHeaders([]byte("{}"), key, "m5", noon), 401},
	} {
		if status, a := d.post("gitlab", body, tt.h); status != tt.want {
			t.Errorf("%s: %d %+v", name, status, a)
		}
	}
}

// The paths of a push are kept only if the payload has all of them.
func TestPathsOfAPush(t *testing.T) {
	paths := func(body string) []string {
		e, err := parseHub("push", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return e.Paths
	}
	const head = `{"ref":"refs/heads/main","repository":{"clone_url":"https://x/y/z"},"after":"` + one + `",`
	const commits = `"commits":[{"id":"` + two + `","added":["a"]},{"id":"` + one +
		`","modified":["b"],"removed":["a"]}]}`
	if got := paths(head + `"before":"` + two + `",` + commits); strings.Join(got, " ") != "a b" {
		t.Errorf("%q", got)
	}
	for name, body := range map[string]string{
		"forced":          head + `"forced":true,"before":"` + two + `",` + commits,
		"created":         head + `"before":"` + strings.Repeat("0", 40) + `",` + commits,
		"a merge":         head + `"commits":[{"id":"` + one + `"}]}`,
		"another tip":     head + `"commits":[{"id":"` + two + `","added":["a"]}]}`,
		"more than shown": head + `"total_commits":30,` + commits,
		"twenty": head + `"commits":[` + strings.Repeat(`{"id":"`+one+`","added":["a"]},`, 19) + `{"id":"` +
			one + `","added":["a"]}]}`,
	} {
		if got := paths(body); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A webhook of Standard Webhooks is refused when its time is not now, its id is
// another, or the key is read otherwise than it was made.
func TestStandardWebhooks(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	b := &board{}
	b.add("site", "https://git.example.org/ops/site", "main", secret)
	d := open(t, b)
	other := standardHeaders(own, key, "m9", noon)
	other.Set(HeaderStandardID, "m10")
	for name, h := range map[string]http.Header{
		"old":         standardHeaders(own, key, "m2", noon.Add(-standardTolerance-time.Second)),
		"of tomorrow": standardHeaders(own, key, "m3", noon.Add(standardTolerance+time.Second)),
		"other id":    other,
		"raw key":     standardHeaders(own, []byte(secret), "m4", noon),
		"no time":     headers(HeaderStandardID, "m", HeaderStandardSignature, "v1,x"),
		"bad time":    headers(HeaderStandardID, "m", HeaderStandardTime, "noon", HeaderStandardSignature, "v1,x"),
		"huge time": headers(
			HeaderStandardID, "m", HeaderStandardTime, "9223372036854775807", HeaderStandardSignature, "v1,x",
		),
		"bad list": headers(
			HeaderStandardID, "m", HeaderStandardTime, strconv.FormatInt(noon.Unix(), 10),
			HeaderStandardSignature, "v1,x v2",
		),
	} {
		if status, a := d.post("standard", own, h); status != 401 || len(b.waiting()) != 0 {
			t.Errorf("%s: %d %+v", name, status, a)
		}
	}
	if status, a := d.post("standard", own, standardHeaders(own, key, "m1", noon.Add(-time.Minute))); status != 202 {
		t.Errorf("%d %+v", status, a)
	}
}

// A sender of too many webhooks has to wait; others do not.
func TestRateLimit(t *testing.T) {
	now := noon
	l := newLimiter(2, 3, func() time.Time { return now })
	for i := range 3 {
		if wait := l.take("a"); wait != 0 {
			t.Fatalf("%d. waits %s", i+1, wait)
		}
	}
	if wait := l.take("a"); wait != 500*time.Millisecond {
		t.Errorf("waits %s", wait)
	}
	if wait := l.take("b"); wait != 0 {
		t.Errorf("another waits %s", wait)
	}
	now = now.Add(500 * time.Millisecond)
	if wait := l.take("a"); wait != 0 {
		t.Errorf("after the wait: %s", wait)
	}
	for i := range maxSenders + 10 {
		l.take(strconv.Itoa(i))
	}
	if len(l.senders) > maxSenders {
		t.Errorf("%d sources are remembered", len(l.senders))
	}

	b := &board{}
	d := open(t, b)
	d.handler.senders = newLimiter(1, 2, func() time.Time { return now })
	for i, want := range []int{401, 401, 429} {
		status, a := d.send("/github", nil, nil)
		if status != want || want == 429 && !strings.Contains(a.Message, "too many") {
			t.Errorf("%d.: %d %+v", i+1, status, a)
		}
	}
	if got := d.handler.Counts(); got.Refused != 2 || got.Limited != 1 {
		t.Errorf("%+v", got)
	}
	if got := senderOf(&http.Request{RemoteAddr: "[2001:db8::1:2:3:4]:99"}); got != "2001:db8::" {
		t.Errorf("%q", got)
	}
}

// A text that Git would not accept as a ref is refused.
func TestRefs(t *testing.T) {
	for _, good := range []string{
		"refs/heads/main", "refs/heads/a/b", "refs/tags/v1.0", "refs/heads/ünï", "refs/heads/-x",
	} {
		if err := checkRef(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "main", "refs/heads/", "refs/heads/a..b", "refs/heads/../../etc", "refs/heads/a b", "refs/heads/a\nb",
		"refs/heads/a\x00", "refs/heads/a~1", "refs/heads/.git", "refs/heads/a.lock", "refs/heads/a//b",
		"refs/heads/a@{1}", "refs/heads/" + strings.Repeat("a", maxRef)} {
		if checkRef(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func nowIsNoon() time.Time { return noon }
