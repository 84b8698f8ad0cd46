package webhooks

import (
	"bytes"
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

// sender sends as a forge does, with a secret.
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
	return headers(HeaderStandardID, id, HeaderStandardTime, stamp, HeaderStandardSignature, "v1a,xyz v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// senders are how each forge tells of one event.
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

var own = []byte(`{"repository":"https://git.example.org/ops/site.git","ref":"main","before":"` + two + `","after":"` + one + `","sender":"ada","message":"two doors\n\nmore","paths":["main.cf"]}`)

// Every forge's payloads are understood, its signature is checked and its id of the delivery kept.
func TestDialects(t *testing.T) {
	for _, tt := range []struct {
		forge, event string
		file         string // or own
		source       string
		want         string // kind, ref or number and action, commit, sender or author
		key          string
	}{
		{"github", "push", "github-push.json", "https://github.com/Codertocat/Hello-World.git", "push refs/heads/master 6113728 Codertocat", "d1"},
		{"github", "create", "github-create.json", "https://github.com/Codertocat/Hello-World.git", "tag refs/tags/simple-tag - Codertocat", "d1"},
		{"github", "delete", "github-delete.json", "https://github.com/Codertocat/Hello-World.git", "tag refs/tags/simple-tag deleted Codertocat", "d1"},
		{"github", "pull_request", "github-pull-opened.json", "git@github.com:Codertocat/Hello-World", "pull 2 opened changes@ec26c3e into master by Codertocat OWNER", "d1"},
		{"github", "pull_request", "github-pull-synchronize.json", "git@github.com:Codertocat/Hello-World", "pull 2 updated changes@ec26c3e into master by Codertocat OWNER", "d1"},
		{"github", "pull_request", "github-pull-closed.json", "git@github.com:Codertocat/Hello-World", "pull 2 closed changes@ec26c3e into master by Codertocat OWNER", "d1"},
		{"gitlab", "", "gitlab-push.json", "https://gitlab.example.com/ops/site.git", "push refs/heads/main da15608 grace", "d1"},
		{"gitlab", "", "gitlab-system-push.json", "git@gitlab.example.com:ops/site.git", "push refs/heads/main da15608 grace", "d1"},
		{"gitlab", "", "gitlab-merge.json", "https://gitlab.example.com/ops/site.git", "pull 5 updated hosts@da15608 into main by  fork", "d1"},
		{"gitea", "push", "gitea-push.json", "https://git.example.org/ops/site", "push refs/heads/main bffeb74 ada", "d1"},
		{"forgejo", "push", "gitea-push.json", "https://git.example.org/ops/site", "push refs/heads/main bffeb74 ada", "d1"},
		{"gogs", "push", "gitea-push.json", "https://git.example.org/ops/site", "push refs/heads/main bffeb74 ada", "d1"},
		{"gitea", "pull_request", "gitea-pull.json", "https://git.example.org/ops/site", "pull 3 updated doors@bffeb74 into main by eve fork", "d1"},
		{"bitbucket", "repo:push", "bitbucket-push.json", "git@bitbucket.org:ops/site.git", "push refs/heads/main 709d658 ada + tag refs/tags/v1 709d658  + push refs/heads/old deleted ", "d1"},
		{"bitbucket", "pullrequest:created", "bitbucket-pull.json", "https://ada@bitbucket.org/ops/site.git", "pull 8 opened doors@ into main by eve fork", "d1"},
		{"bitbucket-server", "repo:refs_changed", "bitbucket-server-push.json", "ssh://git@stash.example.org:7999/ops/site.git", "push refs/heads/main 178864a ada", "d1"},
		{"bitbucket-server", "repo:refs_changed", "bitbucket-server-push.json", "https://stash.example.org/scm/OPS/site.git", "push refs/heads/main 178864a ada", "d1"},
		{"bitbucket-server", "pr:opened", "bitbucket-server-pull.json", "https://stash.example.org/scm/ops/site.git", "pull 11 opened doors@ddc19f7 into main by eve", "d1"},
		{"azure", "", "azure-push.json", "https://dev.azure.com/acme/ops/_git/site", "push refs/heads/main 33b55f7 Ada Byron", "03c164c2-8912-4d5e-8009-3707d5f83734"},
		{"azure", "", "azure-push.json", "git@ssh.dev.azure.com:v3/acme/ops/site", "push refs/heads/main 33b55f7 Ada Byron", "03c164c2-8912-4d5e-8009-3707d5f83734"},
		{"azure", "", "azure-pull.json", "https://dev.azure.com/acme/ops/_git/site", "pull 21 merged doors@53d54ac into main by eve@example.org", "2ab4e3d3-b7a6-425e-92b1-5a9982c1269e"},
		{"generic", "", "", "https://git.example.org/ops/site", "push refs/heads/main 33b55f7 ada", "d1"},
		{"standard", "", "", "https://git.example.org/ops/site", "push refs/heads/main 33b55f7 ada", "d1"},
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
			if status, a := d.post(tt.forge, body, headers(HeaderGitHubEvent, "push", "X-Event-Key", "repo:push", "X-Gitea-Event", "push")); status != 401 || len(b.waiting()) != 0 {
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
				if status, a := d.post(tt.forge, broken, send(broken, secret)); status != 400 || !strings.Contains(a.Message, "malformed") {
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
		line := fmt.Sprintf("pull %d %s %s@%s into %s by %s %s", p.Number, p.Action, p.Head.Ref, short(p.Head.Commit), p.Base.Ref, p.Author, p.Association)
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

// The paths of a push are kept only where they are all.
func TestPathsOfAPush(t *testing.T) {
	told := func(body string) []string {
		e, err := parseHub("push", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return e.Paths
	}
	const head = `{"ref":"refs/heads/main","repository":{"clone_url":"https://x/y/z"},"after":"` + one + `",`
	const commits = `"commits":[{"id":"` + two + `","added":["a"]},{"id":"` + one + `","modified":["b"],"removed":["a"]}]}`
	if got := told(head + `"before":"` + two + `",` + commits); strings.Join(got, " ") != "a b" {
		t.Errorf("%q", got)
	}
	for name, body := range map[string]string{
		"forced":          head + `"forced":true,"before":"` + two + `",` + commits,
		"created":         head + `"before":"` + strings.Repeat("0", 40) + `",` + commits,
		"a merge":         head + `"commits":[{"id":"` + one + `"}]}`,
		"another tip":     head + `"commits":[{"id":"` + two + `","added":["a"]}]}`,
		"more than shown": head + `"total_commits":30,` + commits,
		"twenty":          head + `"commits":[` + strings.Repeat(`{"id":"`+one+`","added":["a"]},`, 19) + `{"id":"` + one + `","added":["a"]}]}`,
	} {
		if got := told(body); got != nil {
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
		"huge time":   headers(HeaderStandardID, "m", HeaderStandardTime, "9223372036854775807", HeaderStandardSignature, "v1,x"),
		"bad list":    headers(HeaderStandardID, "m", HeaderStandardTime, strconv.FormatInt(noon.Unix(), 10), HeaderStandardSignature, "v1,x v2"),
	} {
		if status, a := d.post("standard", own, h); status != 401 || len(b.waiting()) != 0 {
			t.Errorf("%s: %d %+v", name, status, a)
		}
	}
	if status, a := d.post("standard", own, standardHeaders(own, key, "m1", noon.Add(-time.Minute))); status != 202 {
		t.Errorf("%d %+v", status, a)
	}
}

// One that sends too much has to wait; others do not.
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
	for i := range maxSources + 10 {
		l.take(strconv.Itoa(i))
	}
	if len(l.buckets) > maxSources {
		t.Errorf("%d sources are remembered", len(l.buckets))
	}

	b := &board{}
	d := open(t, b)
	d.handler.sources = newLimiter(1, 2, func() time.Time { return now })
	for i, want := range []int{401, 401, 429} {
		status, a := d.send("/github", nil, nil)
		if status != want || want == 429 && !strings.Contains(a.Message, "too many") {
			t.Errorf("%d.: %d %+v", i+1, status, a)
		}
	}
	if got := d.handler.Counts(); got.Refused != 2 || got.Limited != 1 {
		t.Errorf("%+v", got)
	}
	if got := sourceOf(&http.Request{RemoteAddr: "[2001:db8::1:2:3:4]:99"}); got != "2001:db8::" {
		t.Errorf("%q", got)
	}
}

// Many that prove nothing are refused, and few of them recorded.
func TestAFloodOfRefusals(t *testing.T) {
	b := &board{}
	b.add("site", "https://git.example.org/ops/site", "main", secret)
	d := open(t, b)
	for range 50 {
		if status, _ := d.post("generic", own, senders("", "")["generic"](own, "wrong")); status != 401 {
			t.Fatal(status)
		}
	}
	if len(b.recorded) != 20 || b.recorded[0].Verified || b.recorded[0].Outcomes[0].State != intent.OutcomeRefused {
		t.Errorf("%d were recorded", len(b.recorded))
	}
	if n := bytes.Count(d.log.Bytes(), []byte("was refused")); n != 20 {
		t.Errorf("%d lines of log", n)
	}
}

// What Git would not take for a ref is refused.
func TestRefs(t *testing.T) {
	for _, good := range []string{"refs/heads/main", "refs/heads/a/b", "refs/tags/v1.0", "refs/heads/ünï", "refs/heads/-x"} {
		if err := checkRef(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "main", "refs/heads/", "refs/heads/a..b", "refs/heads/../../etc", "refs/heads/a b", "refs/heads/a\nb", "refs/heads/a\x00", "refs/heads/a~1", "refs/heads/.git", "refs/heads/a.lock", "refs/heads/a//b",
		"refs/heads/a@{1}", "refs/heads/" + strings.Repeat("a", maxRef)} {
		if checkRef(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func nowIsNoon() time.Time { return noon }
