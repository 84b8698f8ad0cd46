package gitsync

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
)

// When the branch and then all branches are deleted, the fault says so, and the checkout
// stays.
func TestBranchDeletedAndRepositoryEmptied(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	src, _, unchanged := deployed(t, o, s, o.bare)
	o.run(o.bare, "branch", "other", "main")
	o.run(o.bare, "update-ref", "-d", "refs/heads/main")
	_, _, err := s.Fetch(t.Context(), src)
	wantFault(t, err, fault.NotFound, `"main"`, "other")
	unchanged()
	o.run(o.bare, "update-ref", "-d", "refs/heads/other")
	_, _, err = s.Fetch(t.Context(), src)
	wantFault(t, err, fault.NotFound, o.bare)
	unchanged()
}

// A commit with a file that is larger than the setting allows, at the top or in a
// submodule, is refused before the file is read. With another setting it is checked out.
func TestAHugeFileIsRefused(t *testing.T) {
	tool.Long(t, "makes huge files")
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s := newSyncer(t)
		src, dir, unchanged := deployed(t, o, s, url)
		src.MaxFile = 1 << 20
		small := strings.Repeat("x", 1<<20)
		commit := o.push("as large as it may be", map[string]string{"a": "1", "large": small})
		fetch(t, s, src)
		checkout(t, s, src, commit, filepath.Join(t.TempDir(), "c"))
		huge := noise(1<<20 + 1)
		commit = o.push("larger", map[string]string{"a": "2", "b/huge": huge})
		fetch(t, s, src)
		_, err := s.Checkout(t.Context(), src, commit, dir)
		wantFault(t, err, fault.Invalid, commit[:7], `"b/huge" has 2 MiB`, "git_max_file allows 1",
			"raise git_max_file")
		unchanged()
		src.MaxFile = 2 << 20
		checkout(t, s, src, commit, dir)
		if got := tree(t, dir); got["b/huge"] != huge || got["a"] != "2" {
			t.Errorf("%d files", len(got))
		}
		src.MaxFile = 0
		checkout(t, s, src, commit, filepath.Join(t.TempDir(), "c"))
	})
}

// Names of files, authors and messages may be invalid UTF-8 or hold control sequences of
// terminals. Files keep their names, and everything that is shown is harmless.
func TestNamesAndMessagesThatAreNoText(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	files := map[string]string{
		"caf\xe9.txt": "latin\n",
		"line\nbreak": "x",
		"\x1b[2J":     "clear",
		`back\slash`:  "y",
		"d\xff/\xfe":  "z",
	}
	o.write(files)
	o.git("add", "-A")
	tree := o.git("write-tree")
	commit := o.feed(
		"tree "+tree+"\nauthor Ad\xe9 \x1b[31m <a\xff@x> 1700000000 +0000\n"+
			"committer B <b@x> 1700000000 +0000\nencoding ISO-8859-1\n\n"+
			"caf\xe9 \x1b]0;owned\x07 \u202e\x00rest\n\nbody\n",
		"hash-object",
		"-w",
		"-t",
		"commit",
		"--stdin",
		"--literally",
	)
	o.git("push", "-q", "--force", "origin", commit+":refs/heads/main")
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
	rev, fetched := fetch(t, s, src)
	report := checkout(t, s, src, commit, dir)
	wantTree(t, dir, files)
	if got := o.run(dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
	for _, text := range []string{rev.Author, rev.Email, rev.Subject, fetched.Output, report.Output} {
		if !utf8.ValidString(text) ||
			strings.ContainsFunc(
				text,
				func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == '\u202e') },
			) {
			t.Errorf("%q does harm", text)
		}
	}
	if !strings.HasPrefix(rev.Author, "Ad") || !strings.HasPrefix(rev.Subject, "caf") ||
		!strings.Contains(rev.Subject, "owned") {
		t.Errorf("%+v", rev)
	}
	if err := os.WriteFile(filepath.Join(dir, "caf\xe9.txt"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	checkout(t, s, src, commit, dir)
	wantTree(t, dir, files)
}

// Switching to a version with a link to outside is refused, and the working copy stays.
func TestAModuleDoesNotLeadOutside(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "libs", "m")
	one := o.push("first", map[string]string{"model/_init.cf": "x = 1\n"})
	src := Source{URL: o.bare, Branch: "main"}
	fetch(t, s, src)
	if err := s.Clone(t.Context(), src, one, dir); err != nil {
		t.Fatal(err)
	}
	for n, target := range []string{"/etc", "../../../../etc"} {
		bad := o.push(fmt.Sprint("bad ", n), map[string]string{"plugins": "->" + target})
		fetch(t, s, src)
		wantFault(t, s.Switch(t.Context(), src, bad, dir), fault.Invalid, bad[:7], `"plugins" leads to`,
			"outside of the repository")
		wantFault(t, s.Clone(t.Context(), src, bad, dir+"2"), fault.Invalid, bad[:7], "outside of the repository")
		wantTree(t, dir, map[string]string{"model/_init.cf": "x = 1\n"})
	}
}
