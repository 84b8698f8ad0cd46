package gitsync

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// everyWay runs a story against the ways to reach a repository.
func everyWay(t *testing.T, story func(t *testing.T, o *origin, url string)) {
	t.Run("path", func(t *testing.T) { o := newOrigin(t); story(t, o, o.bare) })
	t.Run("file URL", func(t *testing.T) { o := newOrigin(t); story(t, o, "file://"+o.bare) })
	t.Run("working copy", func(t *testing.T) { o := newOrigin(t); story(t, o, o.work) })
	t.Run("http", func(t *testing.T) { o := newOrigin(t); story(t, o, o.serve("").URL+"/origin.git") })
	t.Run("http with password", func(t *testing.T) {
		o := newOrigin(t)
		story(t, o, strings.Replace(o.serve("s3cr3t").URL, "://", "://ada:s3cr3t@", 1)+"/origin.git")
	})
}

// A project is pushed and checked out. A second push changes, removes and adds files, and
// only these are touched. A third fetch changes nothing.
func TestPushedCommitsReachTheCheckout(t *testing.T) {
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s, dir := newSyncer(t), filepath.Join(t.TempDir(), "compiler")
		src, err := ParseSource(url)
		if err != nil {
			t.Fatal(err)
		}
		src.Branch = "main"
		first := map[string]string{
			"project.yml":    "name: x\n",
			"main.cf":        "a = 1\n",
			"libs/m/init.cf": "m\n",
			"bin/run":        "#!/bin/sh\n",
			"gone/a":         "1",
			"current":        "->libs/m",
			"deep/er/link":   "->../../main.cf",
			"swap":           "file",
			"swop/x":         "in a folder",
			"ünï.txt":        "ü",
		}
		one := o.push("first", first)
		rev, report := fetch(t, s, src)
		if rev.Commit != one || rev.Branch != "main" || rev.Author != "Ada" || rev.Email != "ada@example.org" ||
			rev.Subject != "first" ||
			rev.Time.IsZero() {
			t.Errorf("revision %+v, want %s", rev, one)
		}
		if !report.Cloned || !strings.HasPrefix(report.Command, "git clone --mirror ") ||
			!strings.Contains(report.Output, "main is at "+one[:7]+" first") {
			t.Errorf("report %+v", report)
		}
		co := checkout(t, s, src, rev.Commit, dir)
		wantTree(t, dir, first)
		if co.Written != len(first) || co.Removed != 0 {
			t.Errorf("report %+v", co)
		}

		two := o.push(
			"second",
			map[string]string{"main.cf": "a = 2\n", "gone/a": "", "new/b/c": "3", "current": "->new",
				"swap": "", "swap/now": "a folder", "swop/x": "", "swop": "now a file",
				"bin/run": "no longer executable"},
		)
		rev, report = fetch(t, s, src)
		if rev.Commit != two || report.Cloned || report.Rewritten ||
			!strings.Contains(
				report.Command,
				"fetch --prune origin",
			) || !strings.Contains(report.Output, one[:7]+" to "+two[:7]) {
			t.Errorf("revision %+v, report %+v", rev, report)
		}
		second := map[string]string{
			"project.yml":    "name: x\n",
			"main.cf":        "a = 2\n",
			"libs/m/init.cf": "m\n",
			"bin/run":        "no longer executable",
			"new/b/c":        "3",
			"current":        "->new",
			"deep/er/link":   "->../../main.cf",
			"swap/now":       "a folder",
			"swop":           "now a file",
			"ünï.txt":        "ü",
		}
		co = checkout(t, s, src, two, dir)
		wantTree(t, dir, second)
		if co.Written != 6 || co.Unchanged != 4 {
			t.Errorf("report %+v", co)
		}
		if _, err := os.Lstat(filepath.Join(dir, "gone")); err == nil {
			t.Error("the empty folder stays")
		}

		rev, report = fetch(t, s, src)
		if rev.Commit != two || !strings.Contains(report.Output, "unchanged at "+two[:7]) {
			t.Errorf("revision %+v, report %+v", rev, report)
		}
		if co = checkout(t, s, src, two, dir); co.Written+co.Removed != 0 {
			t.Errorf("report %+v", co)
		}
		// Back to the first: any commit of the mirror can be had.
		checkout(t, s, src, one, dir)
		wantTree(t, dir, first)
		for _, text := range []string{
			report.Command, report.Output, co.Command, co.Output, fmt.Sprintf("%v %+v %#v", src, src, src),
		} {
			if strings.Contains(text, "s3cr3t") {
				t.Errorf("%q shows the password", text)
			}
		}
		assertNoSecret(t, dir)
	})
}

// assertNoSecret looks for the password of the tests in every file below a folder.
func assertNoSecret(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{".git/config", ".git/packed-refs", ".git/HEAD"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(content), "s3cr3t") {
			t.Errorf("%s shows the password", name)
		}
	}
}

// For git, the checkout is a clean working copy.
func TestGitUnderstandsTheCheckout(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "compiler")
	one := o.push("first", map[string]string{"a": "1", "b/c": "#!x", "l": "->a"})
	src := Source{URL: "file://" + o.bare, Branch: "main"}
	fetch(t, s, src)
	checkout(t, s, src, one, dir)
	if err := os.Symlink("/elsewhere", filepath.Join(dir, ".env")); err != nil {
		t.Fatal(err)
	}
	if got := o.run(dir, "status", "--porcelain", "-b"); got != "## main...origin/main" {
		t.Errorf("git status: %s", got)
	}
	if got := o.run(dir, "log", "-1", "--format=%H %s"); got != one+" first" {
		t.Errorf("git log: %s", got)
	}
	if got := o.run(dir, "remote", "get-url", "origin"); got != "file://"+o.bare {
		t.Errorf("origin: %s", got)
	}
	o.run(dir, "fsck", "--strict")
	two := o.push("second", map[string]string{"a": "2"})
	fetch(t, s, src)
	checkout(t, s, src, two, dir)
	if got := o.run(dir, "status", "--porcelain", "-b"); got != "## main...origin/main" {
		t.Errorf("git status: %s", got)
	}
	// The mirror is one to git, too.
	mirror := s.MirrorPath(src.URL)
	o.run(mirror, "fsck", "--strict")
	if got := o.run(mirror, "rev-parse", "HEAD"); got != two {
		t.Errorf("HEAD of the mirror: %s", got)
	}
}

// People edited, added and deleted files in the checkout, and one has the same size and was
// written in the same second. The next checkout restores the commit, and keeps what belongs
// to the compiler.
func TestCheckoutIsClean(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "compiler")
	files := map[string]string{"a": "aaaa", "b": "bbbb", "c/d": "dddd", "x": "#!x", "l": "->a"}
	one := o.push("first", files)
	src := Source{URL: o.bare}
	fetch(t, s, src)
	checkout(t, s, src, one, dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	must(err)
	must(os.WriteFile(filepath.Join(dir, "a"), []byte("AAAA"), 0o644)) // same size,
	must(os.Chtimes(filepath.Join(dir, "a"), info.ModTime(), info.ModTime()))
	must(os.Remove(filepath.Join(dir, "b")))
	must(os.MkdirAll(filepath.Join(dir, "b/in/the/way"), 0o755))
	must(os.Chmod(filepath.Join(dir, "x"), 0o644))
	must(os.Remove(filepath.Join(dir, "l")))
	must(os.Symlink("/etc/passwd", filepath.Join(dir, "l")))
	outside := t.TempDir()
	must(os.WriteFile(filepath.Join(outside, "d"), []byte("precious"), 0o644))
	must(os.RemoveAll(filepath.Join(dir, "c")))
	must(os.Symlink(outside, filepath.Join(dir, "c"))) // a folder of the commit leads elsewhere
	must(os.MkdirAll(filepath.Join(dir, "stray/__pycache__"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "stray/__pycache__/a.pyc"), []byte("x"), 0o400))
	must(os.Chmod(filepath.Join(dir, "stray/__pycache__"), 0o500))
	must(os.WriteFile(filepath.Join(dir, "stray.txt"), []byte("x"), 0o644))
	must(os.MkdirAll(filepath.Join(dir, ".env-py3.13/bin"), 0o755))
	must(os.Symlink(".env-py3.13", filepath.Join(dir, ".env")))

	checkout(t, s, src, one, dir)
	files[".env"] = "->.env-py3.13"
	wantTree(t, dir, files)
	if _, err := os.Stat(filepath.Join(dir, ".env-py3.13/bin")); err != nil {
		t.Error("the virtual environment is gone")
	}
	if content, _ := os.ReadFile(filepath.Join(outside, "d")); string(content) != "precious" {
		t.Errorf("a file outside became %q", content)
	}
}

func TestCheckoutRefusesAFolderOfOthers(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), t.TempDir()
	one := o.push("first", map[string]string{"a": "1"})
	src := Source{URL: o.bare}
	fetch(t, s, src)
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := s.Checkout(t.Context(), src, one, dir)
	wantFault(t, err, "conflict", dir, "thesis.txt", "not a Git checkout")
	if got := tree(t, dir); len(got) != 1 {
		t.Errorf("the folder became %v", got)
	}
}

// A source can name a branch, a tag, the default branch, or a commit.
func TestWhatABranchCanBe(t *testing.T) {
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s := newSyncer(t)
		one := o.push("first", map[string]string{"a": "1"})
		o.git("tag", "v1")
		o.git("tag", "-a", "-m", "annotated", "v1-signed")
		o.git("checkout", "-q", "-b", "feature/x")
		two := o.push("second", map[string]string{"a": "2"})
		o.git("push", "-q", "--tags", "origin")
		o.git("checkout", "-q", "main")
		for branch, want := range map[string][2]string{
			"": {one, "main"}, "main": {one, "main"}, "feature/x": {two, "feature/x"}, "v1": {one, "v1"},
			"v1-signed": {one, "v1-signed"}, "refs/heads/feature/x": {two, "feature/x"}, two: {two, two}} {
			rev, _ := fetch(t, s, Source{URL: url, Branch: branch})
			if rev.Commit != want[0] || rev.Branch != want[1] {
				t.Errorf("%q: %+v, want %v", branch, rev, want)
			}
			tip, err := s.Tip(t.Context(), Source{URL: url, Branch: branch})
			if err != nil || tip != want[0] {
				t.Errorf("tip of %q: %s, %v; want %s", branch, tip, err, want[0])
			}
		}
	})
}

// With Abbreviated, the beginning of a hash names a commit. If it is ambiguous, the fault
// names the candidates. A branch of that name takes precedence. Without Abbreviated it names
// nothing, so that an environment whose branch is deleted does not follow a commit by chance.
func TestABeginningOfACommit(t *testing.T) {
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s := newSyncer(t)
		// Seventeen commits: two of them begin with the same digit.
		o.push("commit", map[string]string{"a": "1"})
		o.grow(o.work, 1, 17)
		o.git("reset", "-q", "--hard")
		o.git("push", "-q", "origin", "HEAD")
		all := strings.Fields(o.git("rev-list", "--reverse", "HEAD"))
		byDigit := map[byte][]string{}
		for _, c := range all {
			byDigit[c[0]] = append(byDigit[c[0]], c)
		}
		ask := func(branch string) (intent.Revision, error) {
			rev, _, err := s.Fetch(t.Context(), Source{URL: url, Branch: branch, Abbreviated: true})
			return rev, err
		}
		one := all[3]
		for _, digits := range []string{one[:8], strings.ToUpper(one[:9]), one[:39], one} {
			if rev, err := ask(digits); err != nil || rev.Commit != one {
				t.Errorf("%s: %+v, %v", digits, rev, err)
			}
		}
		p, err := locate(url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = withMirror(s.MirrorPath(p.shown), func(m *mirror) (struct{}, error) {
			for digit, commits := range byDigit {
				h, found, err := m.withPrefix(p, string(digit))
				if len(commits) == 1 && (err != nil || !found || h.String() != commits[0]) {
					t.Errorf("%c: %s %v", digit, h, err)
				}
				if len(commits) > 1 {
					wantFault(t, err, fault.Invalid, "ambiguous", commits[0], commits[1])
				}
			}
			return struct{}{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tree := strings.TrimSpace(o.git("rev-parse", "HEAD^{tree}"))
		for _, none := range []string{one[:3], one + "0", "zzzzzzz", "0000000", tree[:12], one[:7] + "g"} {
			_, err := ask(none)
			wantFault(t, err, fault.NotFound, "there is no branch or tag")
		}
		if _, _, err := s.Fetch(t.Context(), Source{URL: url, Branch: one[:8]}); !fault.Is(err, fault.NotFound) {
			t.Errorf("a branch that is gone: %v", err)
		}
		o.git("branch", one[:8])
		o.git("push", "-q", "origin", "refs/heads/"+one[:8])
		if rev, err := ask(one[:8]); err != nil || rev.Commit != all[16] {
			t.Errorf("the branch of that name: %+v, %v", rev, err)
		}
	})
}

// HEAD of the bare repository names master, but people pushed only trunk.
func TestDefaultBranchOfACarelesslyMadeRepository(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.git("checkout", "-q", "-b", "trunk")
	one := o.push("first", map[string]string{"a": "1"})
	if rev, _ := fetch(t, s, Source{URL: o.bare}); rev.Commit != one || rev.Branch != "trunk" {
		t.Errorf("%+v", rev)
	}
	o.git("checkout", "-q", "-b", "other")
	o.push("second", map[string]string{"a": "1"})
	_, _, err := s.Fetch(t.Context(), Source{URL: o.bare})
	wantFault(t, err, "not found", o.bare, "default branch", "other, trunk")
}

// After a force-push the new tip is checked out, and the report says that history was
// rewritten. A deleted branch disappears from the mirror.
func TestForcePush(t *testing.T) {
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s, dir, src := newSyncer(t), filepath.Join(t.TempDir(), "c"), Source{URL: url, Branch: "main"}
		o.push("base", map[string]string{"a": "0"})
		old := o.push("first", map[string]string{"a": "1"})
		fetch(t, s, src)
		checkout(t, s, src, old, dir)
		o.git("reset", "-q", "--hard", "HEAD~1")
		now := o.push("rewritten", map[string]string{"a": "2", "b": "2"})
		rev, report := fetch(t, s, src)
		if rev.Commit != now || !report.Rewritten ||
			!strings.Contains(report.Output, old[:7]+" to "+now[:7]+" rewritten; its history was rewritten") {
			t.Errorf("%+v, %+v", rev, report)
		}
		checkout(t, s, src, now, dir)
		wantTree(t, dir, map[string]string{"a": "2", "b": "2"})
		_, report = fetch(t, s, src)
		if report.Rewritten {
			t.Error("said twice")
		}
	})
}

// A linked worktree, a repository that borrows objects, and a packed one can be fetched from
// like other local repositories.
func TestUnusualLocalRepositories(t *testing.T) {
	o := newOrigin(t)
	o.push("first", map[string]string{"a": "1"})
	two := o.push("second", map[string]string{"a": "2", "b/c": "3"})
	base := t.TempDir()
	linked, borrowing, shallow := filepath.Join(base,
		"linked"), filepath.Join(base, "borrowing"), filepath.Join(base, "shallow")
	o.git("worktree", "add", "-q", "-b", "side", linked)
	o.run(base, "clone", "-q", "--shared", o.bare, borrowing)
	o.run(base, "clone", "-q", "--depth", "1", "file://"+o.bare, shallow)
	o.run(o.bare, "gc", "-q")
	for name, path := range map[string]string{
		"linked": linked, "borrowing": borrowing, "shallow": shallow, "packed": o.bare,
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newSyncer(t), filepath.Join(t.TempDir(), "c")
			rev, _ := fetch(t, s, Source{URL: path, Branch: "main"})
			if rev.Commit != two {
				t.Fatalf("%+v", rev)
			}
			checkout(t, s, Source{URL: path}, two, dir)
			wantTree(t, dir, map[string]string{"a": "2", "b/c": "3"})
		})
	}
}

// The index has every file, so that the next checkout does not read files that nobody
// touched. Files that changed in the clock tick in which it was written are read.
func TestIndexRemembersUntouchedFiles(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	commit := o.push("first", map[string]string{"a": "1", "b/c": "#!x", "l": "->a"})
	src := Source{URL: o.bare}
	fetch(t, s, src)
	checkout(t, s, src, commit, dir)
	entries, written := readIndex(filepath.Join(dir, ".git", "index"))
	if len(entries) != 3 {
		t.Fatalf("%d entries", len(entries))
	}
	for name, e := range entries {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !untouched(e, info, written.Add(time.Hour)) {
			t.Errorf("%s counts as touched", name)
		}
		if untouched(e, info, info.ModTime()) {
			t.Errorf("%s is believed though it is as young as the index", name)
		}
	}
	path := filepath.Join(dir, "a")
	before, _ := os.Lstat(path)
	if err := os.WriteFile(path, []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	// The kernel's clock has ticks of some milliseconds.
	if after, _ := os.Lstat(path); entryOf(after).created != entryOf(before).created &&
		untouched(entries["a"], after, written.Add(time.Hour)) {
		t.Error("a changed file with an old time counts as untouched")
	}
}
