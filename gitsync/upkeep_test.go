package gitsync

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// grow adds commits that each change one file. It is quicker than pushing them.
func (o *origin) grow(repository string, from, to int) {
	o.t.Helper()
	var in strings.Builder
	for n := from; n < to; n++ {
		text := fmt.Sprintf("number %d\n", n)
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 1\nx\n", 1_800_000_000+n)
		if n == from {
			in.WriteString("from refs/heads/main^0\n")
		}
		fmt.Fprintf(&in, "M 100644 inline grown\ndata %d\n%s\n", len(text), text)
	}
	cmd := exec.Command("git", "-C", repository, "fast-import", "--quiet", "--force")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("git fast-import: %v\n%s", err, out)
	}
}

// Every push adds a pack to the mirror. When there are many, they are combined, and the first
// and the newest commit can still be checked out.
func TestAMirrorOfManyPushesHasFewPacks(t *testing.T) {
	tool.Long(t, "hundreds of pushes")
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s := newSyncer(t)
		first := o.push("first", map[string]string{"a": "1"})
		src := Source{URL: url, Branch: "main"}
		fetch(t, s, src)
		repository, most := o.bare, 0
		if strings.HasSuffix(url, o.work) {
			repository = o.work
		}
		for n := range 36 {
			o.grow(repository, n, n+1)
			fetch(t, s, src)
			packs, err := filepath.Glob(filepath.Join(s.MirrorPath(url), "objects/pack/*.pack"))
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, len(packs))
		}
		if most > 17 || most < 5 {
			t.Errorf("there were %d packs", most)
		}
		rev, _ := fetch(t, s, src)
		dir := filepath.Join(t.TempDir(), "c")
		checkout(t, s, src, rev.Commit, dir)
		wantTree(t, dir, map[string]string{"a": "1", "grown": "number 35\n"})
		checkout(t, s, src, first, dir)
		wantTree(t, dir, map[string]string{"a": "1"})
		o.run(s.MirrorPath(url), "fsck", "--strict", "--full")
	})
}

// After a force-push and the deletion of a branch, the old commits can be checked out for a
// while. Then they are removed, and the rest of the mirror stays.
func TestWhatBranchesLeaveBehindGoesAfterATime(t *testing.T) {
	o := newOrigin(t)
	base := t.TempDir()
	s := newSyncer(t, func(c *Config) { c.Mirrors = base })
	o.push("first", map[string]string{"a": "1"})
	old := o.push("old", map[string]string{"a": "old", "secret": noise(5000)})
	o.git("checkout", "-q", "-b", "side", "HEAD~1")
	side := o.push("side", map[string]string{"b": "side"})
	o.git("checkout", "-q", "main")
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
	fetch(t, s, src)
	o.git("reset", "-q", "--hard", "HEAD~1")
	next := o.push("next", map[string]string{"a": "next"})
	o.git("push", "-q", "origin", ":side")
	if _, report := fetch(t, s, src); !report.Rewritten {
		t.Errorf("%+v", report)
	}
	mirror := s.MirrorPath(src.URL)
	dir := filepath.Join(t.TempDir(), "c")
	tidy := func(since time.Time) {
		t.Helper()
		if err := s.Tidy(t.Context(), []Use{{Source: src}}, since); err != nil {
			t.Fatal(err)
		}
		o.run(mirror, "fsck", "--strict", "--full")
		checkout(t, s, src, next, dir)
		wantTree(t, dir, map[string]string{"a": "next"})
	}
	tidy(time.Now().Add(-time.Hour))
	for commit, want := range map[string]map[string]string{
		side: {"a": "1", "b": "side"}, old: {"a": "old", "secret": noise(5000)},
	} {
		checkout(t, s, src, commit, dir)
		wantTree(t, dir, want)
	}
	tidy(time.Now().Add(time.Hour))
	for _, commit := range []string{side, old} {
		_, err := s.Checkout(t.Context(), src, commit, dir)
		wantFault(t, err, fault.NotFound, commit[:7], "force-pushed")
	}
	if text, err := os.ReadFile(filepath.Join(mirror, retiredFile)); err != nil || len(text) > 0 {
		t.Errorf("still noted: %q, %v", text, err)
	}
	// When the same commit is pushed again, it comes back.
	o.git("push", "-q", "--force", "origin", old+":refs/heads/main")
	fetch(t, s, src)
	checkout(t, s, src, old, dir)
	wantTree(t, dir, map[string]string{"a": "old", "secret": noise(5000)})
}

// A commit that an environment deployed stays, even if its branch was rewritten long ago. It
// is removed when no environment uses it any more and some time has passed.
func TestACommitInUseStays(t *testing.T) {
	o := newOrigin(t)
	base := t.TempDir()
	s := newSyncer(t, func(c *Config) { c.Mirrors = base })
	o.push("first", map[string]string{"a": "1"})
	deployed := o.push("deployed", map[string]string{"a": "deployed"})
	tip := o.push("tip", map[string]string{"a": "tip"})
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
	fetch(t, s, src)
	o.git("reset", "-q", "--hard", "HEAD~2")
	next := o.push("next", map[string]string{"a": "next"})
	fetch(t, s, src)
	dir := filepath.Join(t.TempDir(), "c")
	tidy := func(use ...Use) {
		t.Helper()
		later := time.Now().Add(time.Hour) // all that was left behind so far is old then
		if err := s.Tidy(t.Context(), append(use, Use{Source: src}), later); err != nil {
			t.Fatal(err)
		}
		o.run(s.MirrorPath(src.URL), "fsck", "--strict", "--full")
	}
	gone := func(commit string) {
		t.Helper()
		_, err := s.Checkout(t.Context(), src, commit, dir)
		wantFault(t, err, fault.NotFound, commit[:7])
	}
	for range 2 {
		tidy(Use{Source: src, Commits: []string{deployed, "no commit", strings.Repeat("1", 40)}})
		gone(tip)
		checkout(t, s, src, deployed, dir)
		wantTree(t, dir, map[string]string{"a": "deployed"})
		// Verify can compare with it, to find that history was rewritten.
		_, err := s.Verify(t.Context(), src, intent.Revision{Commit: next}, intent.GitPolicy{Base: deployed})
		if refusal := (*intent.Refusal)(nil); !errors.As(err, &refusal) || refusal.Kind != intent.GitRewritten {
			t.Errorf("a rewrite: %v", err)
		}
	}
	tidy()
	gone(deployed)
	checkout(t, s, src, next, dir)
}

// When the packs of a mirror are damaged, the next fetch or checkout notices, and makes the
// mirror again, once.
func TestDamagedPacks(t *testing.T) {
	damages := map[string]func(t *testing.T, base string){
		"index cut": func(t *testing.T, base string) {
			chop(t, base+".idx")
		},
		"index lost":  func(t *testing.T, base string) { remove(t, base+".idx") },
		"index empty": func(t *testing.T, base string) { overwrite(t, "", base+".idx") },
		"pack lost":   func(t *testing.T, base string) { remove(t, base+".pack") },
		"pack cut":    func(t *testing.T, base string) { chop(t, base+".pack") },
		"pack zeros": func(t *testing.T, base string) {
			content, err := os.ReadFile(base + ".pack")
			if err != nil {
				t.Fatal(err)
			}
			clear(content[12 : len(content)-20])
			overwrite(t, string(content), base+".pack")
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
			commit := o.push("first", map[string]string{"a": "1", "b": "2"})
			src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
			fetch(t, s, src)
			mirror := s.MirrorPath(src.URL)
			packs, err := filepath.Glob(filepath.Join(mirror, "objects/pack/*.pack"))
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			damage(t, strings.TrimSuffix(packs[0], ".pack"))
			rev, fetched, err := s.Fetch(t.Context(), src)
			if err != nil || rev.Commit != commit {
				t.Fatalf("%+v, %v", rev, err)
			}
			report := checkout(t, s, src, commit, dir)
			wantTree(t, dir, map[string]string{"a": "1", "b": "2"})
			if out := fetched.Output + report.Output; name != "index lost" && strings.Count(out, "was damaged") != 1 {
				t.Errorf("it is not said once: %q", out)
			}
			o.run(mirror, "fsck", "--strict")
		})
	}
}

func chop(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, string(content[:len(content)*2/3]), path)
}

// A server is killed when half of a push has been received. The next one finds the mirror as
// it was before, fetches the push, and removes the leftovers.
func TestKilledInTheMiddleOfAFetch(t *testing.T) {
	if mirrors := os.Getenv("ORDAIN_TEST_MIRRORS"); mirrors != "" {
		s := newSyncer(t, func(c *Config) { c.Mirrors = mirrors })
		_, _, err := s.Fetch(t.Context(), Source{URL: os.Getenv("ORDAIN_TEST_URL"), Branch: "main"})
		t.Fatalf("the fetch ended: %v", err)
	}
	o := newOrigin(t)
	behind, err := url.Parse(o.serve("").URL)
	if err != nil {
		t.Fatal(err)
	}
	half, hold := make(chan bool, 1), false
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		if hold && r.Request.Method == http.MethodPost {
			r.Body = &halfBody{ReadCloser: r.Body, left: 20_000, done: half, gone: r.Request.Context().Done()}
		}
		return nil
	}
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	server := httptest.NewServer(proxy)
	defer server.Close()
	mirrors := t.TempDir()
	s := newSyncer(t, func(c *Config) { c.Mirrors = mirrors })
	src := Source{URL: server.URL + "/origin.git", Branch: "main"}
	first := o.push("first", map[string]string{"a": "1"})
	fetch(t, s, src)
	next := o.push("second", map[string]string{"b": noise(300 << 10)})
	hold = true
	child := exec.Command(os.Args[0], "-test.run=^TestKilledInTheMiddleOfAFetch$")
	child.Env = append(os.Environ(), "ORDAIN_TEST_MIRRORS="+mirrors, "ORDAIN_TEST_URL="+src.URL)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-half
	partial := filepath.Join(s.MirrorPath(src.URL), "objects/pack/tmp_*")
	for found, _ := filepath.Glob(partial); len(found) == 0; found, _ = filepath.Glob(partial) {
		if t.Context().Err() != nil {
			t.Fatal("nothing arrived")
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	dir := filepath.Join(t.TempDir(), "c")
	checkout(t, s, src, first, dir)
	wantTree(t, dir, map[string]string{"a": "1"})
	hold = false
	rev, report := fetch(t, s, src)
	if rev.Commit != next || report.Rebuilt || report.Cloned {
		t.Errorf("%+v, %+v", rev, report)
	}
	checkout(t, s, src, next, dir)
	if left, _ := filepath.Glob(partial); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	o.run(s.MirrorPath(src.URL), "fsck", "--strict")
}

// halfBody returns a number of bytes, and then blocks until its reader is gone.
type halfBody struct {
	io.ReadCloser
	left int
	done chan<- bool
	gone <-chan struct{}
}

func (b *halfBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		select {
		case b.done <- true:
		default:
		}
		<-b.gone
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
