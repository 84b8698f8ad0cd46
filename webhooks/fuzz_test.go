package webhooks

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkEvent holds what every parsed event must hold.
func checkEvent(t *testing.T, e event, err error) {
	if err != nil {
		if !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("the error is not one line of text: %q", err)
		}
		return
	}
	if e.kind == "" {
		t.Fatal("an event without a kind")
	}
	if e.kind == kindPush && (len(e.urls) == 0 || e.ref == "") {
		t.Fatalf("an incomplete push passed: %+v", e)
	}
	branch, _ := strings.CutPrefix(e.ref, "refs/heads/")
	if m := e.message(branch); strings.ContainsAny(m, "\n\r\x00") || len(m) > 2000 {
		t.Fatalf("the message is not one short line: %q", m)
	}
	targetsOf([]Target{{}}, e.urls)
}

func FuzzGitHubPayload(f *testing.F) {
	for _, name := range []string{"github-push.json", "github-ping.json", "github-tag.json", "github-tag-deleted.json"} {
		f.Add("push", "application/json", payload(f, name))
	}
	f.Add("push", "application/x-www-form-urlencoded", []byte("payload=%7B%22ref%22%3A%22x%22%7D"))
	f.Fuzz(func(t *testing.T, kind, media string, body []byte) {
		e, err := parseGitHub(http.Header{HeaderGitHubEvent: {kind}, "X-Github-Event": {kind}, "Content-Type": {media}}, body)
		checkEvent(t, e, err)
	})
}

func FuzzGitLabPayload(f *testing.F) {
	f.Add(payload(f, "gitlab-push.json"))
	f.Add([]byte(`{"event_name":"push","ref":"refs/heads/x","repository":{"homepage":"http://a/b"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := parseGitLab(nil, body)
		checkEvent(t, e, err)
	})
}

func FuzzSignature(f *testing.F) {
	f.Add(Sign([]byte("body"), []byte("secret")), []byte("body"), []byte("secret"))
	f.Add("sha256=", []byte{}, []byte{})
	f.Add("sha1=00", []byte("body"), []byte("secret"))
	f.Fuzz(func(t *testing.T, header string, body, secret []byte) {
		right := Sign(body, secret)
		signature, err := parseSignature(header)
		if err != nil {
			if header == right {
				t.Fatal("a right signature was refused")
			}
			return
		}
		if verifySignature(signature, body, secret) != (strings.EqualFold(header, right) && len(secret) > 0) {
			t.Fatalf("header %q, right %q", header, right)
		}
		if len(secret) > 0 && verifySignature(signature, append(bytes.Clone(body), 'x'), secret) && verifySignature(signature, body, secret) {
			t.Fatal("one signature verifies two bodies")
		}
	})
}

func FuzzRepositoryKey(f *testing.F) {
	for _, s := range []string{"https://github.com/a/b.git", "git@github.com:a/b", "/srv/a.git", "file:///srv/a", "ssh://git@h:22/a"} {
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
