package secret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"
)

const token = "gl/pat+7Gh=§kü!"

func TestRedactorMasksEncodedForms(t *testing.T) {
	r := NewRedactor(token, "", "other-secret")
	quoted, _ := json.Marshal(token)
	for name, text := range map[string]string{
		"plain": "password " + token + " refused",
		"twice": token + token,
		"query": "https://h/?t=" + url.QueryEscape(token),
		"path":  "https://u:" + url.PathEscape(token) + "@h/",
		"lower path": "https://u:" + strings.ToLower(url.PathEscape("gl/pat+7")) + "@h/" +
			url.QueryEscape("other-secret"),
		"base64":       base64.StdEncoding.EncodeToString([]byte(token)),
		"base64url":    base64.RawURLEncoding.EncodeToString([]byte(token)),
		"basic auth 1": "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+token)),
		"basic auth 2": "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+token+"x")),
		"basic auth 3": "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+token+"xy")),
		"json":         `{"token":` + string(quoted) + "}",
	} {
		got := r.Text(text)
		if !strings.Contains(got, Mask) {
			t.Errorf("%s: nothing masked in %q", name, got)
		}
		if strings.Contains(got, token) || strings.Contains(got, "other-secret") {
			t.Errorf("%s: still shows it: %q", name, got)
		}
	}
	if text := "nothing to hide: gl/pat+7"; r.Text(text) != text {
		t.Error("innocent text was changed")
	}
	if got := (*Redactor)(nil).Text("x"); got != "x" {
		t.Error("a nil redactor changes text")
	}
}

func TestRedactorMasksLinesOfAKey(t *testing.T) {
	pem := "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
	got := NewRedactor(pem).Text("line 1: hkiG9w0BAQEFAASC!")
	if got != "line 1: "+Mask+"!" {
		t.Error(got)
	}
}

func TestRedactedErrorMatchesItsCause(t *testing.T) {
	r := NewRedactor("hunter2-hunter2")
	err := r.Error(
		fmt.Errorf("open hunter2-hunter2: %w", &fs.PathError{Op: "x", Path: "hunter2-hunter2", Err: fs.ErrNotExist}),
	)
	if strings.Contains(fmt.Sprintf("%v %+v", err, err), "hunter2-hunter2") {
		t.Errorf("%v", err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("its cause is lost")
	}
	if plain := errors.New("x"); r.Error(plain) != plain {
		t.Error("an innocent error was wrapped")
	}
}

// A worker prints a secret in two halves, and another secret with the same beginning.
func TestWriterMasksAcrossWrites(t *testing.T) {
	r := NewRedactor("abcabcabd", "abca")
	text := "x abcabcabd y abcabcabc z abc"
	want := r.Text(text)
	if want != "x "+Mask+" y "+Mask+"bcabc z abc" {
		t.Fatal(want)
	}
	for i := range text {
		for j := i; j < len(text); j++ {
			var out strings.Builder
			w := r.Writer(&out)
			for _, part := range []string{text[:i], text[i:j], text[j:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Fatalf("split at %d and %d: %q, want %q", i, j, out.String(), want)
			}
		}
	}
}

func FuzzWriterEqualsText(f *testing.F) {
	f.Add("secret", "the secret is out", 7, 9)
	f.Fuzz(func(t *testing.T, secret, text string, i, j int) {
		r := NewRedactor(secret, "abab")
		if len(text) == 0 {
			return
		}
		i, j = abs(i)%len(text), abs(j)%len(text)
		if i > j {
			i, j = j, i
		}
		var out strings.Builder
		w := r.Writer(&out)
		for _, part := range []string{text[:i], text[i:j], text[j:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		if out.String() != r.Text(text) {
			t.Fatalf("stream %q, text %q", out.String(), r.Text(text))
		}
		if !strings.Contains(secret, "*") && len(secret) > 4 && strings.Contains(r.Text(text), secret) {
			t.Fatalf("secret survives")
		}
	})
}

func abs(i int) int {
	if i < 0 {
		return max(-i, 0)
	}
	return i
}
