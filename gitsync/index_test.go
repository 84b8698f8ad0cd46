package gitsync

import (
	"bytes"
	"crypto/sha1"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Our index is compatible with git's: git reads ours, we read git's, and go-git agrees on
// every field.
func TestIndexIsGits(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	names := map[string]string{"a": "1", "b/c": "#!x", "l": "->a", "b.c": "z", "ä/ö ü": "umlauts"}
	long := strings.Repeat("long/", 60)
	for n := range 9 { // every length of what fills an entry up
		names[long+strings.Repeat("x", n+1)] = "y"
	}
	commit := o.push("first", names)
	src := Source{URL: o.bare}
	fetch(t, s, src)
	checkout(t, s, src, commit, dir)
	path := filepath.Join(dir, ".git", "index")
	if out := o.run(dir, "-c", "core.quotePath=false", "ls-files", "--debug"); !strings.Contains(out, "ä/ö ü") {
		t.Errorf("git does not know the files: %s", out)
	}
	if out := o.run(dir, "diff-files"); out != "" {
		t.Errorf("git believes files to be touched: %s", out)
	}
	ours := readFile(t, path)
	theirs := &index.Index{}
	if err := index.NewDecoder(bytes.NewReader(ours)).Decode(theirs); err != nil {
		t.Fatal(err)
	}
	list, ok := decodeIndex(ours)
	if !ok || len(list) != len(names) || len(theirs.Entries) != len(names) {
		t.Fatalf("%v, %d and %d entries of %d", ok, len(list), len(theirs.Entries), len(names))
	}
	for i, want := range theirs.Entries {
		e := list[i]
		if e.name != want.Name || e.mode != want.Mode || e.hash != want.Hash || e.size != want.Size ||
			e.inode != want.Inode || e.dev != want.Dev ||
			e.uid != want.UID || e.gid != want.GID || e.modified != momentOf(want.ModifiedAt) ||
			e.created != momentOf(want.CreatedAt) {
			t.Errorf("%+v, go-git has %+v", e, want)
		}
	}
	o.run(dir, "read-tree", "HEAD") // git writes it again, with an extension for trees
	if entries, _ := readIndex(path); len(entries) != len(names) {
		t.Errorf("%d entries of git's own index, want %d", len(entries), len(names))
	}
	// What git wrote without looking at the files is not believed: they are read, and found to be as they were.
	if report := checkout(t, s, src, commit, dir); report.Unchanged != len(names) {
		t.Errorf("%+v", report)
	}
	// An index that cannot be read is no hindrance either.
	if err := os.WriteFile(path, append([]byte(indexMagic), 0xff, 0xff, 0xff, 0xff), 0o644); err != nil {
		t.Fatal(err)
	}
	if report := checkout(t, s, src, commit, dir); report.Unchanged != len(names) {
		t.Errorf("%+v", report)
	}
	if out := o.run(dir, "status", "--porcelain"); out != "" {
		t.Errorf("git status: %s", out)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Any file in the place of the index can be read without harm. What is read can be written
// and read again.
func FuzzIndex(f *testing.F) {
	f.Add(encodeIndex(nil))
	f.Add(encodeIndex([]entry{{name: "a"}, {name: "b/c", size: 7}}))
	f.Add([]byte(indexMagic + "\x00\x00\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// The sum is made right, so that more than it is looked at.
		for _, text := range [][]byte{text, resum(text)} {
			list, ok := decodeIndex(text)
			if !ok {
				continue
			}
			again, ok := decodeIndex(encodeIndex(list))
			if !ok || len(again) != len(list) {
				t.Fatalf("%d entries became %d, %v", len(list), len(again), ok)
			}
		}
	})
}

func resum(text []byte) []byte {
	if len(text) < sha1.Size {
		return text
	}
	body := slices.Clone(text[:len(text)-sha1.Size])
	sum := sha1.Sum(body)
	return append(body, sum[:]...)
}
