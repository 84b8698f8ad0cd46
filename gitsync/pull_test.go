package gitsync

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
)

// proposal pushes the head of a pull request like a forge: not as a branch, only under a
// name of its own.
func (o *origin) proposal(number int, from, message string, files map[string]string) string {
	o.t.Helper()
	o.git("checkout", "-q", "-B", "feature", from)
	o.write(files)
	o.git("add", "-A", "-f")
	o.git("commit", "-q", "--allow-empty", "-m", message)
	o.git("push", "-q", "--force", "origin", fmt.Sprintf("HEAD:refs/pull/%d/head", number))
	head := o.git("rev-parse", "HEAD")
	o.git("checkout", "-q", "main")
	return head
}

func pullOf(head string) PullRequest {
	return PullRequest{Base: "main", Head: head, HeadRef: "refs/pull/7/head", MergeRef: "refs/pull/7/merge"}
}

// A pull request is merged as git merges it, from a local repository and over HTTP. The
// merge can be checked out, is the same the second time, and is on no branch.
func TestAMergeResult(t *testing.T) {
	o := newOrigin(t)
	base := o.push(
		"base",
		map[string]string{
			"a.txt":        "1\n2\n3\n4\n5\n6\n7\n",
			"gone.txt":     "x\n",
			"dir/keep.txt": "k\n",
			"run.sh":       "#!/bin/sh\n",
			"both.txt":     "b\n",
		},
	)
	head := o.proposal(
		7,
		"main",
		"theirs",
		map[string]string{
			"a.txt":             "1\n2\n3\n4\n5\n6\nseven\n",
			"gone.txt":          "",
			"new/deep/file.txt": "n\n",
			"link":              "->a.txt",
		},
	)
	o.push("ours", map[string]string{"a.txt": "one\n2\n3\n4\n5\n6\n7\n", "dir/more.txt": "m\n"})
	want := o.git("merge-tree", "--write-tree", "main", head)
	server := o.serve("")
	for _, url := range []string{o.bare, server.URL + "/" + filepath.Base(o.bare)} {
		s := newSyncer(t)
		src := Source{URL: url, Branch: "main"}
		rev, report, err := s.MergePull(t.Context(), src, pullOf(head))
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := s.MergePull(t.Context(), src, pullOf(head))
		if err != nil || again.Commit != rev.Commit || rev.Subject != "theirs" {
			t.Errorf("%+v %+v %+v %v", rev, again, report, err)
		}
		mirror := s.MirrorPath(url)
		parents := o.git("rev-parse", "main") + " " + head
		if got := o.run(mirror, "show", "-s", "--format=%P", rev.Commit); got != parents {
			t.Errorf("the parents are %s, want %s", got, parents)
		}
		if got := o.run(mirror, "rev-parse", rev.Commit+"^{tree}"); got != want {
			t.Errorf("the tree is %s, git makes %s\n%s", got, want, o.run(mirror, "ls-tree", "-r", got))
		}
		if refs := o.run(mirror, "for-each-ref"); strings.Contains(refs, "pull") || strings.Contains(refs, rev.Commit) {
			t.Errorf("the mirror has %s", refs)
		}
		dir := filepath.Join(t.TempDir(), "preview")
		if _, err := s.Checkout(t.Context(), src, rev.Commit, dir); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil ||
			string(text) != "one\n2\n3\n4\n5\n6\nseven\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	// What the branch holds, and what is only ahead of it, need no merge.
	s := newSyncer(t)
	o.git("push", "-q", "--force", "origin", base+":refs/pull/7/head")
	if rev, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, pullOf(base)); err != nil ||
		rev.Commit != o.git("rev-parse", "main") {
		t.Errorf("%+v, %v", rev, err)
	}
	ahead := o.proposal(7, "main", "ahead", map[string]string{"z": "z\n"})
	if rev, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, pullOf(ahead)); err != nil || rev.Commit != ahead {
		t.Errorf("%+v, %v", rev, err)
	}
}

// The merge of the forge is used if it is of exactly these commits, and not if it is of an
// older state of the branch or made up by somebody.
func TestTheForgesOwnMerge(t *testing.T) {
	o := newOrigin(t)
	o.push("base", map[string]string{"a": "1\n"})
	head := o.proposal(7, "main", "theirs", map[string]string{"b": "2\n"})
	o.push("ours", map[string]string{"c": "3\n"})
	tree := o.git("merge-tree", "--write-tree", "main", head)
	honest := o.git("commit-tree", "-p", "main", "-p", head, "-m", "by the forge", tree)
	old := o.git("commit-tree", "-p", "main~1", "-p", head, "-m", "of an older branch", tree)
	swapped := o.git("commit-tree", "-p", head, "-p", "main", "-m", "the wrong way around", tree)
	s := newSyncer(t)
	for commit, taken := range map[string]bool{honest: true, old: false, swapped: false, head: false} {
		o.git("push", "-q", "--force", "origin", commit+":refs/pull/7/merge")
		rev, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, pullOf(head))
		if err != nil || (rev.Commit == commit) != taken {
			t.Errorf("%s: %+v, %v", o.git("log", "-1", "--format=%s", commit), rev, err)
		}
	}
}

// A conflict names the files. A head that moved, a name that is not a reference, and a head
// without common history are refused. The mirror stays as it was.
func TestWhatDoesNotMerge(t *testing.T) {
	o := newOrigin(t)
	o.push("base", map[string]string{"a.txt": "1\n", "gone.txt": "1\n", "bin": "\x00one", "name": "1\n"})
	head := o.proposal(7, "main", "theirs",
		map[string]string{"a.txt": "theirs\n", "gone.txt": "2\n", "bin": "\x00two", "name": "now/a folder"})
	o.push("ours", map[string]string{"a.txt": "ours\n", "gone.txt": "", "bin": "\x00three", "name": "->a.txt"})
	s := newSyncer(t)
	_, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, pullOf(head))
	if !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a.txt (the same lines changed on both sides)", "gone.txt (removed on one side",
		"bin (changed on both sides, and not a text)", "name (changed",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in %v", want, err)
		}
	}
	o.git("checkout", "-q", "--orphan", "alone")
	alone := o.git("commit-tree", "-m", "alone", o.git("write-tree"))
	o.git("push", "-q", "--force", "origin", alone+":refs/pull/7/head")
	if _, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, pullOf(head)); !fault.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(), short(alone)) {
		t.Errorf("a head that moved on: %v", err)
	}
	if _, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, pullOf(alone)); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "history") {
		t.Errorf("nothing in common: %v", err)
	}
	for name, q := range map[string]PullRequest{
		"an option":         {Base: "main", Head: head, HeadRef: "--upload-pack=evil"},
		"a way out":         {Base: "main", Head: head, HeadRef: "refs/../../evil"},
		"no commit":         {Base: "main", Head: "main", HeadRef: "refs/pull/7/head"},
		"no branch":         {Head: head, HeadRef: "refs/pull/7/head"},
		"an unknown branch": {Base: "nowhere", Head: head, HeadRef: "refs/pull/7/head"},
		"an unknown ref":    {Base: "main", Head: head, HeadRef: "refs/pull/8/head"},
	} {
		if _, _, err := s.MergePull(t.Context(), Source{URL: o.bare}, q); !fault.Is(err, fault.Invalid) &&
			!fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A commit is reverted as git reverts it, also when other commits came after it, whose
// changes are kept. What cannot be separated from them is refused.
func TestACommitIsTakenBack(t *testing.T) {
	o := newOrigin(t)
	first := o.push("first", map[string]string{"a": "1\n2\n3\n4\n5\n", "b": "x\n", "old": "o\n", "run": "r\n"})
	if err := os.Chmod(filepath.Join(o.work, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	bad := o.push("bad",
		map[string]string{"a": "one\n2\n3\n4\n5\n", "b": "", "new.sh": "#!/bin/sh\n", "old": "other\n"})
	o.push("later", map[string]string{"a": "one\n2\n3\n4\nfive\n"})
	s := newSyncer(t)
	src := Source{URL: o.bare, Branch: "main"}
	tip, changes, err := s.Revert(t.Context(), src, bad)
	if err != nil || tip != o.git("rev-parse", "main") {
		t.Fatal(tip, err)
	}
	o.git("revert", "--no-edit", bad)
	for _, c := range changes {
		want, err := os.ReadFile(filepath.Join(o.work, c.Path))
		if (err != nil) != c.Gone || string(want) != string(c.Content) {
			t.Errorf("%+v, git has %q (%v)", c, want, err)
		}
		if c.Executable || c.Chmod != (c.Path == "run") {
			t.Errorf("%s: executable %v, changed %v", c.Path, c.Executable, c.Chmod)
		}
	}
	if got := strings.Fields(o.git("diff", "--name-only", "main~1", "main")); len(got) != len(changes) {
		t.Errorf("%+v, git changes %v", changes, got)
	}
	o.git("reset", "-q", "--hard", "main~1")
	o.push("the same line", map[string]string{"a": "uno\n2\n3\n4\nfive\n"})
	for commit, kind := range map[string]fault.Kind{
		bad: fault.Conflict, first: fault.Conflict, strings.Repeat("a", 40): fault.NotFound,
		"main": fault.Invalid,
	} {
		if _, changes, err := s.Revert(t.Context(), src, commit); !fault.Is(err, kind) {
			t.Errorf("%s: %+v, %v", commit, changes, err)
		}
	}
}

// Texts of many random histories are merged as git merge-file merges them, with conflicts
// where git sees conflicts.
func TestLinesAreMergedAsGitDoes(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		tool.Missing(t, "there is no git")
	}
	r := rand.New(rand.NewPCG(7, 11))
	dir := t.TempDir()
	edit := func(lines []string, who string) (out []string) {
		for i, l := range lines {
			switch r.IntN(14) {
			case 0:
			case 1:
				out = append(out, fmt.Sprintf("%s%d", who, i))
			case 2:
				out = append(out, l, fmt.Sprintf("%s+%d", who, i))
			default:
				out = append(out, l)
			}
		}
		return out
	}
	text := func(lines []string) string {
		if len(lines) == 0 {
			return ""
		}
		return strings.Join(lines, "\n") + "\n"
	}
	clean := 0
	for range 150 {
		var base []string
		for i := range 5 + r.IntN(25) {
			base = append(base, fmt.Sprintf("line %d", i))
		}
		o, a, b := text(base), text(edit(base, "ours")), text(edit(base, "theirs"))
		for name, content := range map[string]string{"o": o, "a": a, "b": b} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("git", "merge-file", "-p", "a", "o", "b")
		cmd.Dir = dir
		want, err := cmd.Output()
		got, ok := mergeLines([]byte(o), []byte(a), []byte(b))
		if ok && err != nil {
			t.Fatalf("git sees a conflict in\n%s---\n%s---\n%swe made\n%s", o, a, b, got)
		}
		if ok && string(got) != string(want) {
			t.Fatalf("git made\n%s\nwe made\n%s\nof\n%s---\n%s---\n%s", want, got, o, a, b)
		}
		if ok {
			clean++
		}
	}
	if clean < 10 {
		t.Errorf("only %d merges were clean: nothing was compared", clean)
	}
}

// Any three texts are merged or refused. The result keeps what only one side has.
func FuzzMergeLines(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n", "a\nb\nd\n")
	f.Add("", "x", "y")
	f.Fuzz(func(t *testing.T, o, a, b string) {
		if got, ok := mergeLines([]byte(o), []byte(a), []byte(o)); !ok || string(got) != a {
			if ok || strings.Count(o+a, "\n") < mostEdits {
				t.Errorf("only one side changed: %q, %v", got, ok)
			}
		}
		one, ok1 := mergeLines([]byte(o), []byte(a), []byte(b))
		other, ok2 := mergeLines([]byte(o), []byte(b), []byte(a))
		if ok1 != ok2 || ok1 && string(one) != string(other) {
			t.Errorf("it matters whose side is whose: %q and %q", one, other)
		}
	})
}
