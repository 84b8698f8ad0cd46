package gitsync

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// Commits that are dangerous to check out can be pushed, but are refused.
func TestDangerousCommits(t *testing.T) {
	tests := []struct {
		name  string
		plant func(o *origin) string
		want  []string
	}{
		{
			"path traversal",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\t..") },
			[]string{`".."`},
		},
		{"dot", func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\t.") }, []string{`"."`}},
		{".git folder", func(o *origin) string {
			hooks := o.treeOf("100755 blob " + o.blob("#!/bin/sh\nrm -rf /") + "\tpost-checkout")
			return o.plant("040000 tree " + o.treeOf("040000 tree "+hooks+"\thooks") + "\t.git")
		}, []string{`".git"`, "belongs to Git"}},
		{".GIT in a folder", func(o *origin) string {
			return o.plant("040000 tree " + o.treeOf("100644 blob "+o.blob("x")+"\t.GIT") + "\tsub")
		}, []string{`"sub/.GIT"`}},
		{
			"git~1",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\tGIT~1") },
			[]string{`"GIT~1"`},
		},
		{
			".git with a dot",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\t.git. ") },
			[]string{"belongs to Git"},
		},
		{
			".git with an invisible letter",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\t.g\u200cit") },
			[]string{"belongs to Git"},
		},
		{
			"a path as a name",
			func(o *origin) string { return o.plantRaw("100644", "a/../../b", o.blob("x")) },
			[]string{`"a/../../b"`, "leads elsewhere"},
		},
		{
			"an absolute name",
			func(o *origin) string { return o.plantRaw("100644", "/etc/cron.d/x", o.blob("x")) },
			[]string{`"/etc/cron.d/x"`, "leads elsewhere"},
		},
		{
			"no name",
			func(o *origin) string { return o.plantRaw("100644", "", o.blob("x")) },
			[]string{"leads elsewhere"},
		},
		{"the same name twice", func(o *origin) string {
			return o.plantRaw("100644", "twice", o.blob("x"), "100644", "twice", o.blob("y"))
		}, []string{`"twice"`, "twice"}},
		{"half of a folder", func(o *origin) string { return o.plantRaw("100644", "x", "") }, []string{"malformed"}},
		{".git as a file in a folder", func(o *origin) string {
			return o.plant("040000 tree " + o.treeOf("100644 blob "+o.blob("gitdir: /")+"\t.git") + "\tsub")
		}, []string{`"sub/.git"`, "belongs to Git"}},
		{
			".git as a link",
			func(o *origin) string { return o.plant("120000 blob " + o.blob("a") + "\t.git") },
			[]string{"belongs to Git"},
		},
		{
			".git as a submodule",
			func(o *origin) string { return o.plant("160000 commit " + strings.Repeat("1", 40) + "\t.git") },
			[]string{"belongs to Git"},
		},
		{
			".git and a stream",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\t.git::$INDEX_ALLOCATION") },
			[]string{"belongs to Git"},
		},
		{
			".git and a backslash",
			func(o *origin) string { return o.plantRaw("100644", `.git\hooks\post-checkout`, o.blob("x")) },
			[]string{"belongs to Git"},
		},
		{
			".git and dots",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("x") + "\t.GiT. . .") },
			[]string{"belongs to Git"},
		},
		{"project.yml is a link to outside", func(o *origin) string {
			return o.push("x", map[string]string{"shop/project.yml": "->../../../etc/passwd"})
		}, []string{`"shop/project.yml"`, "outside"}},
		{
			"the modules are a link to outside",
			func(o *origin) string { return o.push("x", map[string]string{"libs": "->/usr/lib"}) },
			[]string{`"libs"`, "outside"},
		},
		{
			"kept name",
			func(o *origin) string { return o.plant("120000 blob " + o.blob("a") + "\t.env") },
			[]string{`".env"`, "virtual environment"},
		},
		{
			"kept pattern",
			func(o *origin) string { return o.plant("100644 blob " + o.blob("a") + "\t.env-py3.13") },
			[]string{`".env-py3.13"`},
		},
		{
			"link to an absolute path",
			func(o *origin) string { return o.push("x", map[string]string{"l": "->/etc/passwd"}) },
			[]string{`"l" leads to "/etc/passwd"`, "outside"},
		},
		{
			"link out",
			func(o *origin) string { return o.push("x", map[string]string{"d/l": "->../../x"}) },
			[]string{`"d/l"`, "outside"},
		},
		{"link out through another", func(o *origin) string {
			return o.push("x", map[string]string{"deep/er/top": "->../..", "l": "->deep/er/top/.."})
		}, []string{`"l"`, "outside"}},
		{
			"link into .git",
			func(o *origin) string { return o.push("x", map[string]string{"d/l": "->../.git/config"}) },
			[]string{`"d/l"`, "not part of the repository"},
		},
		{
			"link into the virtual environment",
			func(o *origin) string { return o.push("x", map[string]string{"l": "->.env/../../x"}) },
			[]string{"not part of the repository"},
		},
		{
			"link to nothing",
			func(o *origin) string { return o.plant("120000 blob " + o.blob("") + "\tl") },
			[]string{"no path"},
		},
		{
			"long link",
			func(o *origin) string { return o.plant("120000 blob " + o.blob(strings.Repeat("x/", 4000)) + "\tl") },
			[]string{"too long"},
		},
		{
			".gitmodules is a link",
			func(o *origin) string { return o.plant("120000 blob " + o.blob("a") + "\t.gitmodules") },
			[]string{".gitmodules"},
		},
		{"long name", func(o *origin) string {
			return o.plant("100644 blob " + o.blob("x") + "\t" + strings.Repeat("n", 300))
		}, []string{"too long"}},
		{"deep folders", func(o *origin) string {
			h := o.treeOf("100644 blob " + o.blob("x") + "\tx")
			for range maxDepth + 1 {
				h = o.treeOf("040000 tree " + h + "\td")
			}
			return o.plant("040000 tree " + h + "\td")
		}, []string{"nested too deeply"}},
		{"no files at all, but far too many", func(o *origin) string {
			// Ten folders of ten folders of … the same file: a billion paths.
			h := o.treeOf("100644 blob " + o.blob("x") + "\tx")
			for range 9 {
				var ten []string
				for i := range 10 {
					ten = append(ten, fmt.Sprintf("040000 tree %s\td%d", h, i))
				}
				h = o.treeOf(ten...)
			}
			return o.plant("040000 tree " + h + "\td")
		}, []string{fmt.Sprintf("more than %d files", maxFiles)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, s := newOrigin(t), newSyncer(t)
			src, dir, unchanged := deployed(t, o, s, o.bare)
			commit := tt.plant(o)
			rev, _, err := s.Fetch(t.Context(), src)
			if err == nil {
				if rev.Commit != commit {
					t.Fatalf("fetched %s, want %s", rev.Commit, commit)
				}
				_, err = s.Checkout(t.Context(), src, commit, dir)
				wantFault(t, err, fault.Invalid, append(tt.want, commit[:7])...)
				fresh := filepath.Join(t.TempDir(), "fresh")
				if _, err := s.Checkout(t.Context(), src, commit, fresh); err == nil || len(tree(t, fresh)) > 0 {
					t.Errorf("a fresh checkout: %v, %v", err, tree(t, fresh))
				}
			} else {
				wantFault(t, err, fault.Invalid)
			}
			unchanged()
		})
	}
}

// plantRaw makes a commit of one folder that no git command would make, from modes, names
// and hashes.
func (o *origin) plantRaw(entries ...string) string {
	o.t.Helper()
	var tree strings.Builder
	for e := range slices.Chunk(entries, 3) {
		hash, err := hex.DecodeString(e[2])
		if err != nil {
			o.t.Fatal(err)
		}
		fmt.Fprintf(&tree, "%s %s\x00%s", e[0], e[1], hash)
	}
	hash := o.feed(tree.String(), "hash-object", "-w", "-t", "tree", "--stdin", "--literally")
	commit := o.feed(
		fmt.Sprintf("tree %s\nauthor M <m@x> 1700000000 +0000\ncommitter M <m@x> 1700000000 +0000\n\nplanted\n", hash),
		"hash-object",
		"-w",
		"-t",
		"commit",
		"--stdin",
		"--literally",
	)
	// git would not push it: put it there.
	objects := []string{hash, commit}
	for e := range slices.Chunk(entries, 3) {
		if e[2] != "" {
			objects = append(objects, e[2])
		}
	}
	for _, h := range objects {
		from, to := filepath.Join(o.work, ".git/objects", h[:2], h[2:]), filepath.Join(o.bare, "objects", h[:2], h[2:])
		content, err := os.ReadFile(from)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644))
		}
		if err != nil {
			o.t.Fatal(err)
		}
	}
	o.run(o.bare, "update-ref", "refs/heads/main", commit)
	return commit
}

// treeOf makes a tree of hand-made entries.
func (o *origin) treeOf(entries ...string) string {
	o.t.Helper()
	return o.feed(strings.Join(entries, "\n")+"\n", "mktree", "--missing")
}

// Links that stay inside the commit are checked out, also those that lead through other
// links, in cycles, or to nothing.
func TestHarmlessLinks(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	files := map[string]string{
		"a":       "1",
		"d/e/f":   "2",
		"l1":      "->d/e",
		"l2":      "->l1/../e/f",
		"d/up":    "->../a",
		"d/e/top": "->../..",
		"circle":  "->circle",
		"nowhere": "->d/none",
		"x/dots":  "->./../x/./dots2",
	}
	commit := o.push("links", files)
	src := Source{URL: o.bare}
	fetch(t, s, src)
	checkout(t, s, src, commit, dir)
	wantTree(t, dir, files)
}

// A submodule is an empty folder, as git itself leaves it, and the report says so.
func TestSubmodulesAreExplained(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	commit := o.plant("100644 blob "+o.blob("x")+"\ta", "160000 commit "+strings.Repeat("1", 40)+"\tlibs")
	src := Source{URL: o.bare, Branch: "main"}
	fetch(t, s, src)
	for range 2 {
		report := checkout(t, s, src, commit, dir)
		wantTree(t, dir, map[string]string{"a": "x", "libs/": ""})
		if !strings.Contains(report.Output, "Submodules are not fetched") || !strings.Contains(report.Output, "libs") {
			t.Errorf("%+v", report)
		}
		if got := o.run(dir, "status", "--porcelain"); got != "" {
			t.Errorf("git status: %s", got)
		}
		if err := os.WriteFile(filepath.Join(dir, "libs", "stray"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
