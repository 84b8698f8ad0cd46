package gitsync

import (
	"github.com/go-git/go-git/v5/plumbing"

	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// A module is cloned at a tag. The working copy has the history, the tags and the remote,
// is clean for git, and works without the mirror.
func TestCloneStandsAlone(t *testing.T) {
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s, dir := newSyncer(t), filepath.Join(t.TempDir(), "libs", "m")
		src, err := ParseSource(url)
		if err != nil {
			t.Fatal(err)
		}
		one := o.push("one", map[string]string{"module.yml": "version: 1\n"})
		o.git("tag", "-a", "-m", "signed off", "1.0")
		o.push("two", map[string]string{"module.yml": "version: 2\n"})
		o.git("push", "-q", "origin", "1.0")
		refs, err := s.Refs(context.Background(), src, false)
		if err != nil {
			t.Fatal(err)
		}
		if refs.Tags["1.0"] != one || refs.Main != "main" || len(refs.Tags) != 1 {
			t.Fatalf("refs %+v, want 1.0 at %s", refs, one)
		}
		if text, err := s.ReadFile(src, one, "module.yml"); err != nil || string(text) != "version: 1\n" {
			t.Errorf("module.yml of 1.0: %q, %v", text, err)
		}
		if err := s.Clone(context.Background(), src, one, dir); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, map[string]string{"module.yml": "version: 1\n"})
		if err := os.RemoveAll(s.MirrorPath(src.URL)); err != nil {
			t.Fatal(err)
		}
		if got := o.run(dir, "describe", "--tags", "--exact-match"); got != "1.0" {
			t.Errorf("git describe says %s", got)
		}
		if got := o.run(dir, "status", "--porcelain") + o.run(dir, "fsck"); got != "" {
			t.Errorf("git status and fsck say %s", got)
		}
		if got := o.run(dir, "log", "--format=%s", "origin/main"); got != "two\none" {
			t.Errorf("git log says %s", got)
		}
		if got := o.run(dir, "remote", "get-url", "origin"); got != src.URL || strings.Contains(got, "s3cr3t") {
			t.Errorf("the remote is %s", got)
		}
		if err := s.Clone(context.Background(), src, one, dir); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second clone to the same place: %v", err)
		}
	})
}

// A mirror that was fetched for one scope serves no other: not its references, not its files, not its commits, not as
// a submodule. Here the repository is gone, as it is for somebody without credentials.
func TestScopesShareNoMirror(t *testing.T) {
	o := newOrigin(t)
	s := newSyncer(t)
	one := o.push("one", map[string]string{"secret": "1"})
	mine := Source{URL: o.bare, Trust: Trust{Scope: "mine"}}
	theirs := Source{URL: o.bare, Trust: Trust{Scope: "theirs"}}
	if _, err := s.Refs(t.Context(), mine, false); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(o.bare, o.bare+".away"); err != nil {
		t.Fatal(err)
	}
	if refs, err := s.Refs(t.Context(), mine, false); err != nil || refs.Head != one {
		t.Errorf("the own mirror: %+v, %v", refs, err)
	}
	if err := s.Clone(t.Context(), mine, one, filepath.Join(t.TempDir(), "m")); err != nil {
		t.Errorf("a clone of the own mirror: %v", err)
	}
	if refs, err := s.Refs(t.Context(), theirs, false); err == nil {
		t.Errorf("another's references: %+v", refs)
	}
	if text, err := s.ReadFile(theirs, one, "secret"); err == nil {
		t.Errorf("another's file: %q", text)
	}
	if _, err := s.Checkout(t.Context(), theirs, one, filepath.Join(t.TempDir(), "c")); err == nil {
		t.Error("another's commit is checked out")
	}
	place, err := theirs.locate()
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.lend(t.Context(), place, plumbing.NewHash(one)); err == nil {
		m.close()
		t.Error("another's commit is lent to a submodule")
	}
}

// A module is switched to a newer tag, but not if that would lose somebody's work: a
// changed file, a new file that the tag has too, or a commit of their own.
func TestSwitchLosesNothing(t *testing.T) {
	o := newOrigin(t)
	s, dir := newSyncer(t), filepath.Join(t.TempDir(), "m")
	src := Source{URL: o.bare}
	one := o.push("one", map[string]string{"a": "1", ".gitignore": "*.pyc\n"})
	if _, err := s.Refs(t.Context(), src, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Clone(t.Context(), src, one, dir); err != nil {
		t.Fatal(err)
	}
	two := o.push("two", map[string]string{"a": "2", "fresh": "2"})
	o.git("tag", "2.0")
	o.git("push", "-q", "origin", "2.0")
	if refs, err := s.Refs(t.Context(), src, true); err != nil || refs.Tags["2.0"] != two {
		t.Fatal(refs, err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(why string) {
		t.Helper()
		if err := s.Switch(t.Context(), src, two, dir); !fault.Is(err, fault.Conflict) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want a refusal with %q", err, why)
		}
	}
	put("a", "mine")
	refused("changes that are not committed: a")
	o.run(dir, "checkout", "-q", "a")
	put("fresh", "mine")
	refused("changes that are not committed: fresh")
	o.run(dir, "-c", "user.name=M", "-c", "user.email=m@x", "add", "fresh")
	o.run(dir, "-c", "user.name=M", "-c", "user.email=m@x", "commit", "-qm", "mine")
	refused("has commits that")
	o.run(dir, "reset", "-q", "--hard", one)
	o.run(dir, "branch", "mine")
	put("notes", "kept")
	put("x.pyc", "kept")
	if err := s.Switch(t.Context(), src, two, dir); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir,
		map[string]string{"a": "2", "fresh": "2", ".gitignore": "*.pyc\n", "notes": "kept", "x.pyc": "kept"})
	if got := o.run(dir, "rev-parse", "HEAD", "mine"); got != two+"\n"+one {
		t.Errorf("HEAD and the branch of theirs are at %s", got)
	}
}

// A module whose files .gitattributes converts is switched to another commit and back,
// and is as a clone of git each time. Changes in it are still changes.
func TestSwitchOfConvertedFiles(t *testing.T) {
	o := newOrigin(t)
	s, dir := newSyncer(t), filepath.Join(t.TempDir(), "m")
	src := Source{URL: o.bare}
	one := o.push("one", map[string]string{
		".gitattributes": "*.txt eol=crlf\n", "a.txt": "1\n", "same.txt": "s\n", "b": "1\n", "gone.txt": "x\n",
	})
	first := o.cloned(t)
	o.git("rm", "-q", "gone.txt")
	two := o.push("two", map[string]string{".gitattributes": "*.txt eol=crlf\nb eol=crlf\n", "a.txt": "2\n"})
	second := o.cloned(t)
	if _, err := s.Refs(t.Context(), src, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Clone(t.Context(), src, one, dir); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, first)
	if second["b"] != "1\r\n" {
		t.Fatalf("git wrote %q", second)
	}
	for range 2 {
		if err := s.Switch(t.Context(), src, two, dir); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, second)
		if err := s.Switch(t.Context(), src, one, dir); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, first)
	}
	if got := o.run(dir, "status", "--porcelain"); got != "" {
		t.Errorf("git finds changes: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("mine\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantFault(t, s.Switch(t.Context(), src, two, dir), fault.Conflict, "not committed: a.txt")
	if got := tree(t, dir)["a.txt"]; got != "mine\r\n" {
		t.Errorf("a.txt is %q", got)
	}
}

// A module with a file that is larger than allowed is neither cloned nor switched to, and
// the fault names the file.
func TestAModuleWithAHugeFile(t *testing.T) {
	o := newOrigin(t)
	s, dir := newSyncer(t), filepath.Join(t.TempDir(), "m")
	src := Source{URL: o.bare, MaxFile: 1 << 20}
	fine := o.push("fine", map[string]string{"a": "1"})
	huge := o.push("huge", map[string]string{"big": noise(1<<20 + 1)})
	if _, err := s.Refs(t.Context(), src, true); err != nil {
		t.Fatal(err)
	}
	words := []string{huge[:7], o.bare, `"big" has 2 MiB`, "git_max_file"}
	wantFault(t, s.Clone(t.Context(), src, huge, dir), fault.Invalid, words...)
	if err := s.Clone(t.Context(), src, fine, dir); err != nil {
		t.Fatal(err)
	}
	wantFault(t, s.Switch(t.Context(), src, huge, dir), fault.Invalid, words...)
	wantTree(t, dir, map[string]string{"a": "1"})
	src.MaxFile = 0
	if err := s.Switch(t.Context(), src, huge, dir); err != nil {
		t.Error(err)
	}
}
