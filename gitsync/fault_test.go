package gitsync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
)

// deployed makes a repository, fetches it and checks it out. The returned
// check fails the test if anything of the checkout changed, its index included.
func deployed(t *testing.T, o *origin, s *Syncer, url string) (src Source, dir string, unchanged func()) {
	t.Helper()
	commit := o.push("first", map[string]string{"a": "1", "b/c": "2"})
	src, dir = Source{URL: url, Branch: "main"}, filepath.Join(t.TempDir(), "compiler")
	fetch(t, s, src)
	checkout(t, s, src, commit, dir)
	before, index := tree(t, dir), stamp(t, dir)
	return src, dir, func() {
		t.Helper()
		if after := tree(t, dir); !maps.Equal(before, after) {
			t.Errorf("the checkout changed from %v to %v", before, after)
		}
		if now := stamp(t, dir); now != index {
			t.Errorf(".git changed from %s to %s", index, now)
		}
	}
}

func stamp(t *testing.T, dir string) string {
	t.Helper()
	head, err := os.ReadFile(filepath.Join(dir, ".git", "packed-refs"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %v %v", head, info.ModTime(), entries)
}

// The fault says what is wrong with the repository, and the checkout stays as it was.
func TestRepositoryFaults(t *testing.T) {
	t.Run("gone, local", func(t *testing.T) {
		o, s := newOrigin(t), newSyncer(t)
		src, _, unchanged := deployed(t, o, s, "file://"+o.bare)
		if err := os.Rename(o.bare, o.bare+".away"); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Fetch(t.Context(), src)
		wantFault(t, err, fault.NotFound, "no Git repository at file://"+o.bare, "check the path")
		_, err = s.Tip(t.Context(), src)
		wantFault(t, err, fault.NotFound, "no Git repository at file://"+o.bare)
		unchanged()
	})
	t.Run("gone, http", func(t *testing.T) {
		o, s := newOrigin(t), newSyncer(t)
		server := o.serve("")
		src, _, unchanged := deployed(t, o, s, server.URL+"/origin.git")
		if err := os.Rename(o.bare, o.bare+".away"); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Fetch(t.Context(), src)
		wantFault(t, err, fault.NotFound, "no Git repository at "+server.URL, "private repository")
		unchanged()
	})
	t.Run("not a repository", func(t *testing.T) {
		_, _, err := newSyncer(t).Fetch(t.Context(), Source{URL: t.TempDir()})
		wantFault(t, err, fault.NotFound, "no Git repository at")
	})
	t.Run("branch missing", func(t *testing.T) {
		everyWay(t, func(t *testing.T, o *origin, url string) {
			s := newSyncer(t)
			src, _, unchanged := deployed(t, o, s, url)
			src.Branch = "release"
			_, _, err := s.Fetch(t.Context(), src)
			wantFault(t, err, fault.NotFound, `no branch or tag "release"`, "main")
			_, err = s.Tip(t.Context(), src)
			wantFault(t, err, fault.NotFound, `no branch or tag "release"`)
			unchanged()
		})
	})
	t.Run("empty", func(t *testing.T) {
		everyWay(t, func(t *testing.T, o *origin, url string) {
			_, _, err := newSyncer(t).Fetch(t.Context(), Source{URL: url})
			wantFault(t, err, fault.NotFound, "is empty", "push a first commit")
		})
	})
	t.Run("credentials missing, wrong, then right", func(t *testing.T) {
		o, s := newOrigin(t), newSyncer(t)
		url := o.serve("s3cr3t-right").URL + "/origin.git"
		o.push("first", map[string]string{"a": "1"})
		_, _, err := s.Fetch(t.Context(), Source{URL: url})
		wantFault(t, err, fault.Unauthorized, url+" asks for credentials", "set the environment's Git user name")
		_, _, err = s.Fetch(t.Context(),
			Source{URL: url, Credentials: Credentials{Username: "ada", Password: "s3cr3t-wrong"}})
		wantFault(t, err, fault.Unauthorized, url+" refused the credentials", "expired")
		_, _, err = s.Fetch(t.Context(), Source{URL: strings.Replace(url, "://", "://ada:s3cr3t-wrong@", 1)})
		wantFault(t, err, fault.Unauthorized, url+" refused the credentials")
		rev, _ := fetch(t, s, Source{URL: url, Credentials: Credentials{Username: "ada", Password: "s3cr3t-right"}})
		if rev.Subject != "first" {
			t.Errorf("%+v", rev)
		}
		// Somebody without credentials gets nothing, though there is a mirror now.
		_, _, err = s.Fetch(t.Context(), Source{URL: url})
		wantFault(t, err, fault.Unauthorized, "asks for credentials")
	})
	t.Run("forbidden", func(t *testing.T) { httpFault(t, 403, fault.Forbidden, "may not be read") })
	t.Run("server error", func(t *testing.T) { httpFault(t, 502, fault.Unavailable, "HTTP status 502") })
	t.Run("rate limit", func(t *testing.T) { httpFault(t, 429, fault.Unavailable, "HTTP status 429") })
	t.Run("web page",
		func(t *testing.T) { httpFault(t, 200, fault.Invalid, "is not a Git server", "the one to clone from") })
	t.Run("connection refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		url := "http://ada:s3cr3t@" + l.Addr().String() + "/x.git"
		_, _, err = newSyncer(t).Fetch(t.Context(), Source{URL: url})
		wantFault(t, err, fault.Unavailable, "the host of http://"+l.Addr().String()+"/x.git refuses connections")
	})
	t.Run("unknown host", func(t *testing.T) {
		_, _, err := newSyncer(
			t,
			func(c *Config) { c.AskTimeout = 10 * time.Second },
		).Fetch(t.Context(), Source{URL: "https://ada:s3cr3t@no-such-host.invalid/x.git"})
		var f *fault.Error
		if !errors.As(err, &f) ||
			f.Kind != fault.Unavailable && f.Kind != fault.Exhausted && f.Kind != fault.Forbidden ||
			strings.Contains(err.Error(), "s3cr3t") ||
			!strings.Contains(err.Error(), "https://no-such-host.invalid/x.git") {
			t.Errorf("%v", err)
		}
	})
	t.Run("certificate", func(t *testing.T) {
		server := httptest.NewTLSServer(http.NotFoundHandler())
		server.Config.ErrorLog = nil
		defer server.Close()
		_, _, err := newSyncer(t).Fetch(t.Context(), Source{URL: server.URL + "/x.git"})
		wantFault(t, err, fault.Unavailable, "certificate of "+server.URL, "not trusted")
	})
	t.Run("no answer", func(t *testing.T) {
		release := make(chan bool)
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer server.Close()
		defer close(release)
		s := newSyncer(t, func(c *Config) { c.AskTimeout = 50 * time.Millisecond })
		_, _, err := s.Fetch(t.Context(), Source{URL: server.URL + "/x.git"})
		wantFault(t, err, fault.Exhausted, server.URL+"/x.git did not answer in time")
	})
	t.Run("cancelled", func(t *testing.T) {
		asked, release := make(chan bool, 1), make(chan bool)
		server := httptest.NewServer(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- true; <-release }),
		)
		defer server.Close()
		defer close(release)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		_, _, err := newSyncer(t).Fetch(ctx, Source{URL: server.URL + "/x.git"})
		wantFault(t, err, fault.Unavailable, "cancelled")
		if !errors.Is(err, context.Canceled) {
			t.Error("it does not say so to programs")
		}
	})
	t.Run("the remote breaks off", func(t *testing.T) {
		o, s := newOrigin(t), newSyncer(t)
		o.push("first", map[string]string{"a": strings.Repeat("many different words ", 5000)})
		backend := o.serve("")
		cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			backend.Config.Handler.ServeHTTP(rec, r)
			maps.Copy(w.Header(), rec.Header())
			body := rec.Body.Bytes()
			if r.Method == http.MethodPost {
				body = body[:len(body)/2]
			}
			_, _ = w.Write(body)
		}))
		defer cut.Close()
		_, _, err := s.Fetch(t.Context(), Source{URL: cut.URL + "/origin.git"})
		wantFault(t, err, fault.Unavailable, cut.URL, "broke off")
		if s.Has(Source{URL: cut.URL + "/origin.git"}, "") {
			t.Error("half a mirror is left")
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.MirrorPath("")), "*.new-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("a damaged repository", func(t *testing.T) {
		o, s := newOrigin(t), newSyncer(t)
		o.push("first", map[string]string{"a": "one of a kind"})
		blob := o.git("rev-parse", "HEAD:a")
		if err := os.Remove(filepath.Join(o.bare, "objects", blob[:2], blob[2:])); err != nil {
			t.Fatal(err)
		}
		src := Source{URL: o.bare, Branch: "main"}
		rev, _, err := s.Fetch(t.Context(), src)
		if err == nil { // copied as it is: noticed when it is needed
			_, err = s.Checkout(t.Context(), src, rev.Commit, filepath.Join(t.TempDir(), "c"))
		}
		wantFault(t, err, fault.Invalid, "repository "+o.bare+" is damaged", "git fsck")
	})
	t.Run("SHA-256", func(t *testing.T) {
		o := newOrigin(t)
		dir := filepath.Join(t.TempDir(), "sha256.git")
		o.run(o.work, "init", "-q", "--bare", "--object-format=sha256", dir)
		_, _, err := newSyncer(t).Fetch(t.Context(), Source{URL: dir})
		wantFault(t, err, fault.Invalid, dir, "format that is not supported")
	})
}

// httpFault lets a server answer with a status and a page that repeats the
// password, as some do.
func httpFault(t *testing.T, status int, kind fault.Kind, words ...string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "<html>sorry, %s %s</html>", password, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	_, _, err := newSyncer(t).Fetch(t.Context(), Source{URL: server.URL +
		"/x.git", Credentials: Credentials{Username: "ada", Password: "s3cr3t-pw"}})
	wantFault(t, err, kind, append(words, server.URL+"/x.git")...)
}

// A redirect to another host must not carry the password there.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	var got string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got += r.Header.Get("Authorization")
		http.NotFound(w, r)
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer server.Close()
	_, _, err := newSyncer(t).Fetch(t.Context(), Source{URL: server.URL +
		"/x.git", Credentials: Credentials{Username: "ada", Password: "s3cr3t"}})
	if err == nil || got != "" {
		t.Errorf("%v; the other host got %q", err, got)
	}
}

// Wrong arguments give faults.
func TestCheckoutArguments(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	src, dir, unchanged := deployed(t, o, s, o.bare)
	_, err := s.Checkout(t.Context(), src, "main", dir)
	wantFault(t, err, fault.Invalid, `"main" is not a full commit hash`)
	_, err = s.Checkout(t.Context(), src, strings.Repeat("1", 40), dir)
	wantFault(t, err, fault.NotFound, "commit 1111111 is not in "+o.bare, "force-pushed")
	_, err = s.Checkout(t.Context(), Source{URL: "ftp://x"}, strings.Repeat("1", 40), dir)
	wantFault(t, err, fault.Invalid, "not supported")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	commit := o.push("second", map[string]string{"a": "2"})
	fetch(t, s, src)
	if _, err = s.Checkout(ctx, src, commit, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	unchanged()
}

// Damage to the mirror is noticed, and repaired once without a person.
func TestDamagedMirrors(t *testing.T) {
	tool.Long(t, "damages a mirror in each of many ways")
	damages := map[string]func(t *testing.T, mirror, blob, commit string){
		"no HEAD":        func(t *testing.T, m, _, _ string) { remove(t, m, "HEAD") },
		"HEAD cut":       func(t *testing.T, m, _, _ string) { overwrite(t, "", m, "HEAD") },
		"no refs":        func(t *testing.T, m, _, _ string) { remove(t, m, "packed-refs") },
		"refs cut":       func(t *testing.T, m, _, _ string) { overwrite(t, refsHeader+"1234 ref", m, "packed-refs") },
		"no objects":     func(t *testing.T, m, _, _ string) { remove(t, m, "objects") },
		"a file is lost": func(t *testing.T, m, blob, _ string) { remove(t, m, "objects", blob[:2], blob[2:]) },
		"a file is zeros": func(t *testing.T, m, blob, _ string) {
			overwrite(t, "\x00\x00\x00", m, "objects", blob[:2], blob[2:])
		},
		"a file is cut": func(t *testing.T, m, blob, _ string) {
			overwrite(t, "x\x9cK\xca\xc9O", m, "objects", blob[:2], blob[2:])
		},
		"a commit is lost": func(t *testing.T, m, _, commit string) { remove(t, m, "objects", commit[:2], commit[2:]) },
		"a commit is zeros": func(t *testing.T, m, _, commit string) {
			overwrite(t, "\x00\x00", m, "objects", commit[:2], commit[2:])
		},
		"a pack index is garbage": func(t *testing.T, m, _, _ string) {
			overwrite(t, "garbage", m, "objects", "pack", "pack-1234567890123456789012345678901234567890.idx")
			overwrite(t, "garbage", m, "objects", "pack", "pack-1234567890123456789012345678901234567890.pack")
		},
		"it is a file": func(t *testing.T, m, _, _ string) { remove(t, m); overwrite(t, "x", m) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
			commit := o.push("first", map[string]string{"a": "1", "b": "2"})
			src := Source{URL: o.bare, Branch: "main"}
			fetch(t, s, src)
			mirror := s.MirrorPath(o.bare)
			damage(t, mirror, o.git("rev-parse", "HEAD:a"), commit)
			rev, fetched, err := s.Fetch(t.Context(), src)
			if err != nil || rev.Commit != commit {
				t.Fatalf("%+v, %v", rev, err)
			}
			report := checkout(t, s, src, commit, dir)
			wantTree(t, dir, map[string]string{"a": "1", "b": "2"})
			if fetched.Rebuilt == report.Rebuilt && name != "a commit is lost" {
				t.Errorf("rebuilt at the fetch %v, at the checkout %v; want it once", fetched.Rebuilt, report.Rebuilt)
			}
			if out := fetched.Output + report.Output; !strings.Contains(out, "was damaged") &&
				name != "a commit is lost" {
				t.Errorf("nobody says it: %q", out)
			}
			_, fetched, err = s.Fetch(t.Context(), src)
			if err != nil || fetched.Rebuilt {
				t.Errorf("again: %+v, %v", fetched, err)
			}
			o.run(mirror, "fsck", "--strict")
		})
	}
}

// When the mirror is damaged and the remote is away, the fault is about the remote, and
// nothing is removed.
func TestDamagedMirrorOfAVanishedRepository(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	src, dir, unchanged := deployed(t, o, s, o.bare)
	next := o.push("second", map[string]string{"a": "2"})
	fetch(t, s, src)
	mirror := s.MirrorPath(o.bare)
	blob := o.git("rev-parse", "HEAD:a")
	remove(t, mirror, "objects", blob[:2], blob[2:])
	if err := os.Rename(o.bare, o.bare+".away"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Checkout(t.Context(), src, next, dir)
	wantFault(t, err, fault.NotFound, "no Git repository at "+o.bare)
	unchanged()
	if !s.Has(Source{URL: o.bare}, "") {
		t.Error("the mirror is gone")
	}
	if err := os.Rename(o.bare+".away", o.bare); err != nil {
		t.Fatal(err)
	}
	checkout(t, s, src, next, dir)
	wantTree(t, dir, map[string]string{"a": "2", "b/c": "2"})
}

// The leftovers of a server that was killed while it cloned, fetched or checked out do not
// disturb the next one.
func TestLeftoversOfAKilledServer(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	mirror := s.MirrorPath(o.bare)
	overwrite(t, "x", mirror+".new-123", "objects", "xx")
	overwrite(t, "x", mirror+".old", "HEAD")
	src, dir, _ := deployed(t, o, s, o.bare)
	for _, left := range []string{mirror + ".new-123", mirror + ".old"} {
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s is left", left)
		}
	}
	overwrite(t, "half", mirror, "objects", "pack", "tmp_pack_1")
	overwrite(t, "half", dir, staging, "0")
	overwrite(t, "garbage", dir, ".git", "index")
	overwrite(t, "half written", dir, "b", "c")
	remove(t, dir, ".git", "HEAD")
	commit := o.push("second", map[string]string{"a": "2"})
	fetch(t, s, src)
	if left, _ := filepath.Glob(filepath.Join(mirror, "objects", "pack", "tmp_*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	checkout(t, s, src, commit, dir)
	wantTree(t, dir, map[string]string{"a": "2", "b/c": "2"})
	if got := o.run(dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
}

func remove(t *testing.T, path ...string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, content string, path ...string) {
	t.Helper()
	full := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(full)
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
