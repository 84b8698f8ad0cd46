package gitsync

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
)

// inFrontOf is a proxy of a Git server. It serves what check lets pass.
func inFrontOf(t *testing.T, behind string, check func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	to, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if check(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A URL may end with a slash; the server is asked for the same paths as by git.
func TestASlashAtTheEndOfAURL(t *testing.T) {
	o := newOrigin(t)
	commit := o.push("one", map[string]string{"a": "1"})
	server := inFrontOf(t, o.serve("").URL, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "//") { // several forges answer so
			http.NotFound(w, r)
			return false
		}
		return true
	})
	for _, end := range []string{"/", "//"} {
		if rev, _ := fetch(t, newSyncer(t), Source{URL: server + "/origin.git" + end}); rev.Commit != commit {
			t.Errorf("%q: %+v", end, rev)
		}
	}
}

// Characters that a path has to escape reach the server as they were written.
func TestEscapedCharactersOfAURL(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.EscapedPath())
		http.NotFound(w, r)
	}))
	defer server.Close()
	_, err := newSyncer(t).Tip(t.Context(), Source{URL: server.URL + "/My%20Shop/_git/100%25%2Fa"})
	wantFault(t, err, fault.NotFound)
	if got := strings.Join(asked, " "); got != "/My%20Shop/_git/100%25%2Fa/info/refs" {
		t.Errorf("asked for %s", got)
	}
}

// Servers that insist on version 2 of the protocol are fetched from as well, whatever
// way they have to refuse the older one.
func TestServersThatInsistOnVersion2(t *testing.T) {
	tool.Long(t, "a server for each way to refuse version 1 of the protocol")
	for name, refuse := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"by a status": func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "use version 2", http.StatusBadRequest)
			return false
		},
		"by forbidding it": func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "use version 2", http.StatusForbidden)
			return false
		},
		"by an error of the protocol": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, err := w.Write([]byte("001e# service=git-upload-pack\n0000" + "0016ERR use version 2\n"))
			if err != nil {
				t.Error(err)
			}
			return false
		},
		"by answering in it": func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Set("Git-Protocol", "version=2")
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			insists := func(w http.ResponseWriter, r *http.Request) bool {
				return r.Header.Get("Git-Protocol") == "version=2" || refuse(w, r)
			}
			server := inFrontOf(t, o.serve("s3cret").URL, insists)
			for _, depth := range []int{0, 1} {
				s, dir := newSyncer(t), filepath.Join(t.TempDir(), "c")
				src := Source{
					URL: server + "/origin.git", Depth: depth,
					Credentials: Credentials{Username: "ada", Password: "s3cret"},
				}
				for n := range 4 {
					text := strconv.Itoa(depth*10 + n + 1)
					if n == 3 {
						o.git("reset", "-q", "--hard", "HEAD~2")
					}
					commit := o.push("push "+text, map[string]string{"a": text, "f" + text: text})
					o.git("tag", "-a", "-m", "x", "v"+text)
					o.git("push", "-q", "origin", "v"+text)
					if rev, report := fetch(t, s, src); rev.Commit != commit || rev.Branch != "main" || report.Rebuilt {
						t.Fatalf("%+v, %+v", rev, report)
					}
					tagged := src
					tagged.Branch = "v" + text
					if tip, err := s.Tip(t.Context(), tagged); err != nil || tip != commit {
						t.Errorf("the tag points to %s, want %s: %v", tip, commit, err)
					}
					checkout(t, s, src, commit, dir)
					if got := tree(t, dir); got["a"] != text || got["f"+text] != text {
						t.Errorf("%v", got)
					}
				}
				src.Credentials.Password = "wrong"
				_, err := s.Tip(t.Context(), src)
				if depth == 0 && name == "by answering in it" {
					wantFault(t, err, fault.Unauthorized, "refused the credentials")
				}
			}
		})
	}
}

// A server that refuses both versions is reported as it refused the usual one.
func TestServersThatRefuseAllVersions(t *testing.T) {
	httpFault(t, http.StatusForbidden, fault.Forbidden, "may not be read")
	httpFault(t, http.StatusNotImplemented, fault.Unavailable, "501")
}
