package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// spoiled are ways in which the branch side of a bare repository can be broken.
var spoiled = map[string]func(t *testing.T, o *origin){
	"an empty file": func(t *testing.T, o *origin) {
		overwrite(t, "", o.bare, "refs", "heads", "side")
	},
	"a file without a hash": func(t *testing.T, o *origin) {
		overwrite(t, "nonsense\n", o.bare, "refs", "heads", "side")
	},
	"a commit that is not there": func(t *testing.T, o *origin) {
		overwrite(t, strings.Repeat("1", 40)+"\n", o.bare, "refs", "heads", "side")
	},
	"a commit whose file is damaged": func(t *testing.T, o *origin) {
		commit := o.run(o.bare, "rev-parse", "refs/heads/side")
		path := filepath.Join(o.bare, "objects", commit[:2], commit[2:])
		remove(t, path)
		overwrite(t, "garbage", path)
	},
	"a folder that is not there": func(t *testing.T, o *origin) {
		tree := o.run(o.bare, "rev-parse", "refs/heads/side:folder")
		remove(t, o.bare, "objects", tree[:2], tree[2:])
	},
	"a link to nothing": func(t *testing.T, o *origin) {
		overwrite(t, "ref: refs/heads/nothing\n", o.bare, "refs", "heads", "side")
	},
	"a line of packed-refs": func(t *testing.T, o *origin) {
		o.run(o.bare, "pack-refs", "--all")
		text, err := os.ReadFile(filepath.Join(o.bare, "packed-refs"))
		if err != nil {
			t.Fatal(err)
		}
		commit := o.run(o.bare, "rev-parse", "refs/heads/side")
		overwrite(t, strings.Replace(string(text), commit, commit[:20], -1), o.bare, "packed-refs")
	},
}

// besideBroken pushes a branch side that is then spoiled, other branches, and two more commits
// for main. It returns a function that makes main point to the next of them: git refuses
// pushes to a repository that is broken.
func (o *origin) besideBroken(spoil func(t *testing.T, o *origin)) (move func(t *testing.T) string) {
	o.t.Helper()
	o.git("checkout", "-q", "-b", "side")
	o.write(map[string]string{"folder/b": "x"})
	o.git("add", ".")
	o.git("commit", "-q", "-m", "side")
	o.git("push", "-q", "origin", "side", "side:other", "main:third", "main:fourth")
	o.git("checkout", "-q", "main")
	var commits []string
	for _, text := range []string{"22", "333"} {
		o.write(map[string]string{"a": text})
		o.git("commit", "-q", "-a", "-m", text)
		commits = append(commits, o.head())
		o.git("push", "-q", "origin", "HEAD:refs/hidden/"+text)
	}
	spoil(o.t.(*testing.T), o)
	return func(t *testing.T) string {
		commit := commits[0]
		commits = commits[1:]
		overwrite(t, commit+"\n", o.bare, "refs", "heads", "main")
		return commit
	}
}

// A broken branch concerns those who follow it, and nobody else: another branch of the
// same repository is fetched, at first and later, and moves.
func TestABrokenBranchStopsNoOther(t *testing.T) {
	for name, spoil := range spoiled {
		for _, mirrored := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", first fetch", true: ", later"}[mirrored], func(t *testing.T) {
				t.Parallel()
				o, s := newOrigin(t), newSyncer(t)
				o.push("one", map[string]string{"a": "1"})
				src, dir := Source{URL: o.bare, Branch: "main"}, filepath.Join(t.TempDir(), "c")
				if mirrored {
					fetch(t, s, src)
				}
				move := o.besideBroken(spoil)
				for range 2 {
					commit := move(t)
					if tip, err := s.Tip(t.Context(), src); err != nil || tip != commit {
						t.Fatalf("the tip of main is %s, %v", tip, err)
					}
					rev, report := fetch(t, s, src)
					if rev.Commit != commit {
						t.Fatalf("%+v, %+v", rev, report)
					}
					checkout(t, s, src, commit, dir)
				}
				side := Source{URL: o.bare, Branch: "side"}
				rev, _, err := s.Fetch(t.Context(), side)
				if err == nil { // the first fetch of a local repository copies its files unread
					_, err = s.Checkout(t.Context(), side, rev.Commit, filepath.Join(t.TempDir(), "side"))
				}
				wantFault(t, err, fault.Invalid, o.bare, "is damaged", "git fsck")
			})
		}
	}
}

// The same holds for a repository behind HTTP: where the server cannot send a branch,
// the others are fetched without it.
func TestABrokenBranchOfAServer(t *testing.T) {
	for name, spoil := range spoiled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, s := newOrigin(t), newSyncer(t)
			o.push("one", map[string]string{"a": "1"})
			move := o.besideBroken(spoil)
			src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
			if name == "a line of packed-refs" { // git itself serves nothing of it
				_, _, err := s.Fetch(t.Context(), src)
				if err == nil {
					t.Error("it was fetched")
				}
				return
			}
			for range 2 {
				commit := move(t)
				rev, report := fetch(t, s, src)
				if rev.Commit != commit {
					t.Fatalf("%+v, %+v", rev, report)
				}
				checkout(t, s, src, commit, filepath.Join(t.TempDir(), "c"))
			}
			src.Branch = "side"
			if _, _, err := s.Fetch(t.Context(), src); err == nil {
				t.Error("the broken branch was fetched")
			}
		})
	}
}

// A broken tag may be the highest of its range. A lower one does not take its place,
// because that would take the environment back.
func TestABrokenTagOfARange(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("one", map[string]string{"a": "1"})
	for _, tag := range []string{"v1.0.0", "v1.1.0", "v2.0.0"} {
		o.git("tag", tag)
	}
	o.git("push", "-q", "origin", "--tags")
	overwrite(t, "", o.bare, "refs", "tags", "v1.1.0")
	_, err := s.Tip(t.Context(), Source{URL: o.bare, Branch: "semver:^1.0"})
	wantFault(t, err, fault.Invalid, "refs/tags/v1.1.0 of the repository", "is empty")
	if rev, _ := fetch(t, s, Source{URL: o.bare, Branch: "semver:^2.0"}); rev.Branch != "v2.0.0" {
		t.Errorf("%+v", rev)
	}
	refs, err := s.Refs(t.Context(), Source{URL: o.bare}, true)
	if err != nil || len(refs.Tags) != 2 {
		t.Errorf("%+v, %v", refs, err)
	}
}

// A branch may be a link to another one.
func TestABranchThatIsALink(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	commit := o.push("one", map[string]string{"a": "1"})
	o.run(o.bare, "symbolic-ref", "refs/heads/stable", "refs/heads/main")
	if rev, _ := fetch(t, s, Source{URL: o.bare, Branch: "stable"}); rev.Commit != commit || rev.Branch != "stable" {
		t.Errorf("%+v", rev)
	}
}
