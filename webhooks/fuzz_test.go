package webhooks

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"ordain.dev/ordain/internal/intent"
)

// checkEvent holds what every parsed event must hold.
func checkEvent(t *testing.T, e Event, err error) {
	t.Helper()
	line := func(what, s string) {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\x00") || len(s) > 8000 {
			t.Fatalf("the %s is not one line of text: %q", what, s)
		}
	}
	if err != nil {
		line("error", err.Error())
		return
	}
	if e.Kind == "" {
		t.Fatal("an event without a kind")
	}
	if (e.Kind == intent.HookPush || e.Kind == intent.HookTag) && (len(e.URLs) == 0 || checkRef(e.Ref) != nil) {
		t.Fatalf("an incomplete push passed: %+v", e)
	}
	if (e.Kind == intent.HookPull) != (e.Pull != nil) {
		t.Fatalf("a pull request without one, or the other way round: %+v", e)
	}
	for _, commit := range []string{e.Before, e.Commit} {
		if commit != "" && commitOf(commit) != commit {
			t.Fatalf("%q is no commit", commit)
		}
	}
	for what, s := range map[string]string{
		"name": e.Name, "repository": e.Repository, "ref": e.Ref, "sender": e.Sender, "subject": e.Subject,
		"default branch": e.DefaultBranch,
	} {
		line(what, s)
	}
	for _, u := range e.URLs {
		line("URL", u)
	}
	if p := e.Pull; p != nil {
		if p.Number <= 0 || p.Action == "" {
			t.Fatalf("%+v", p)
		}
		for what, s := range map[string]string{
			"title": p.Title, "page": p.URL, "author": p.Author, "association": p.Association,
			"head": p.Head.Ref, "base": p.Base.Ref, "head's URL": p.Head.URL, "base's URL": p.Base.URL,
		} {
			line(what, s)
		}
	}
	for _, more := range e.More {
		more.URLs = e.URLs
		checkEvent(t, more, nil)
	}
	newTargets([]intent.HookTarget{{}}).using(e.URLs)
}

func FuzzGitHubPayload(f *testing.F) {
	for _, name := range []string{
		"github-push.json", "github-ping.json", "github-tag.json", "github-tag-deleted.json",
	} {
		f.Add("push", "application/json", payload(f, name))
	}
	f.Add("push", "application/x-www-form-urlencoded", []byte("payload=%7B%22ref%22%3A%22x%22%7D"))
	f.Fuzz(func(t *testing.T, kind, media string, body []byte) {
		e, _, err := parseGitHub(
			http.Header{HeaderGitHubEvent: {kind}, "X-Github-Event": {kind}, "Content-Type": {media}},
			body,
		)
		checkEvent(t, e, err)
	})
}

func FuzzGitLabPayload(f *testing.F) {
	for _, name := range []string{
		"gitlab-push.json", "gitlab-tag.json", "gitlab-merge.json", "gitlab-system-merge.json",
	} {
		f.Add(payload(f, name))
	}
	f.Add([]byte(`{"event_name":"push","ref":"refs/heads/x","repository":{"homepage":"http://a/b"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, _, err := parseGitLab(http.Header{}, body)
		checkEvent(t, e, err)
	})
}

func FuzzSignature(f *testing.F) {
	f.Add(Sign([]byte("body"), []byte("secret")), []byte("body"), []byte("secret"))
	f.Add("sha256=", []byte{}, []byte{})
	f.Add("sha1=00", []byte("body"), []byte("secret"))
	f.Fuzz(func(t *testing.T, header string, body, secret []byte) {
		right := Sign(body, secret)
		signature, err := parseSignature(HeaderSignature, signaturePrefix, header)
		if err != nil {
			if header == right {
				t.Fatal("a right signature was refused")
			}
			return
		}
		if verifySignature(signature, body, secret) != (strings.EqualFold(header, right) && len(secret) > 0) {
			t.Fatalf("header %q, right %q", header, right)
		}
		if len(secret) > 0 && verifySignature(signature, append(bytes.Clone(body), 'x'), secret) &&
			verifySignature(signature, body, secret) {
			t.Fatal("one signature verifies two bodies")
		}
	})
}

func FuzzRepositoryKey(f *testing.F) {
	for _, s := range []string{
		"https://github.com/a/b.git", "git@github.com:a/b", "/srv/a.git", "file:///srv/a", "ssh://git@h:22/a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key := repositoryKey(s)
		if key == "" || strings.ContainsAny(s, "?#") {
			return
		}
		// A slash at the end never makes another repository of it.
		if again := repositoryKey(strings.TrimSpace(s) + "/"); again != key {
			t.Fatalf("%q gives %q, with a slash %q", s, key, again)
		}
	})
}
