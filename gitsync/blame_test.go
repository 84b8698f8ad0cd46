package gitsync

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/provenance"
)

// subjects returns the commit of each line.
func subjects(lines provenance.Blame) string {
	var out []string
	for _, l := range lines {
		switch {
		case l == nil:
			out = append(out, "?")
		case l.Uncommitted:
			out = append(out, "uncommitted")
		default:
			out = append(out, l.Subject)
		}
	}
	return strings.Join(out, ", ")
}

// Two people write a model. Blame at a commit returns who wrote each line as it was then,
// from the mirror alone; in a working tree, there are also lines that nobody committed.
// Hostile names do no harm.
func TestWhoWroteALine(t *testing.T) {
	o := newOrigin(t)
	first := o.push("one", map[string]string{"sub/main.cf": "a = 1\nb = 2\n"})
	o.write(map[string]string{"sub/main.cf": "a = 1\nx = 0\nb = 2\n"})
	o.git("-c", "user.name=x", "commit", "-q", "-am", "two\x1b[31m", "--author", "Mal\x1b]0;owned\x07\u202elory <m@x>")
	o.git("push", "-q", "origin", "HEAD")
	second := o.git("rev-parse", "HEAD")
	s, ctx := newSyncer(t), t.Context()
	src := Source{URL: o.bare}
	if _, err := s.Blame(ctx, src, second, "sub/main.cf"); !fault.Is(err, fault.NotFound) {
		t.Errorf("before it is fetched: %v", err)
	}
	if _, _, err := s.Fetch(ctx, src); err != nil {
		t.Fatal(err)
	}
	lines, err := s.Blame(ctx, src, second, "sub/main.cf")
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v, %v", lines, err)
	}
	if lines[0].Subject != "one" || lines[0].Author != "Ada" || lines[0].Email != "ada@example.org" ||
		lines[0].ID != first ||
		lines[2].ID != first ||
		lines[1].ID != second {
		t.Errorf("%s: %+v", subjects(lines), lines[0])
	}
	if mal := lines[1]; strings.ContainsAny(mal.Author+mal.Subject, "\x1b\x07\u202e\n") ||
		!strings.Contains(mal.Author, "lory") {
		t.Errorf("the second author is %q, the subject %q", mal.Author, mal.Subject)
	}
	if lines, err := s.Blame(ctx, src, first, "sub/main.cf"); err != nil || subjects(lines) != "one, one" {
		t.Errorf("at the first commit: %s, %v", subjects(lines), err)
	}
	for path, commit := range map[string]string{"none.cf": second, "sub/main.cf": strings.Repeat("0", 40)} {
		if _, err := s.Blame(ctx, src, commit, path); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s at %s: %v", path, commit, err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Blame(gone, src, second, "sub/main.cf"); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

// In a working tree there are lines that are not committed, files that were not added, and
// files that belong to no repository.
func TestWhoWroteALineOfAWorkingTree(t *testing.T) {
	o := newOrigin(t)
	o.write(map[string]string{"main.cf": "a\nb\nc\n"})
	path := filepath.Join(o.work, "main.cf")
	ask := func(path string) string {
		t.Helper()
		lines, err := BlameFile(t.Context(), path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return subjects(lines)
	}
	if got := ask(path); got != "uncommitted, uncommitted, uncommitted" {
		t.Errorf("before the first commit: %s", got)
	}
	o.push("one", nil)
	if got := ask(path); got != "one, one, one" {
		t.Errorf("committed: %s", got)
	}
	t.Chdir(o.work)
	if got := ask("main.cf"); got != "one, one, one" {
		t.Errorf("by a relative path: %s", got)
	}
	o.write(map[string]string{"main.cf": "new\na\nB\nc\nend", "fresh.cf": "x\n"})
	if got := ask(path); got != "uncommitted, one, uncommitted, one, uncommitted" {
		t.Errorf("changed: %s", got)
	}
	if got := ask(filepath.Join(o.work, "fresh.cf")); got != "uncommitted" {
		t.Errorf("a file that is not added: %s", got)
	}
	if _, err := BlameFile(t.Context(), filepath.Join(t.TempDir(), "none.cf")); !fault.Is(err, fault.NotFound) {
		t.Errorf("no file: %v", err)
	}
}
