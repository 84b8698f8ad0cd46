package gitsync

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
)

// With a depth, the first fetch brings the newest commits only, and later fetches bring the
// commits since. git can read the checkout.
func TestDepth(t *testing.T) {
	for _, way := range []string{"http", "ssh"} {
		t.Run(way, func(t *testing.T) {
			o, s := newOrigin(t), newSyncer(t)
			o.push("1", map[string]string{"a": "1"})
			second := o.push("2", map[string]string{"a": "2"})
			o.push("3", map[string]string{"a": "3"})
			src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
			if way == "ssh" {
				_, src = o.serveSSH()
			}
			src.Depth = 1
			dir := filepath.Join(t.TempDir(), "c")
			rev, report := fetch(t, s, src)
			if !strings.Contains(report.Command, "--depth 1") {
				t.Error(report.Command)
			}
			checkout(t, s, src, rev.Commit, dir)
			if got := o.run(dir, "rev-list", "--count", "HEAD"); got != "1" {
				t.Errorf("%s commits", got)
			}
			for _, m := range []string{"4", "5"} {
				o.push(m, map[string]string{"a": m, "b": m})
			}
			rev, _ = fetch(t, s, src)
			checkout(t, s, src, rev.Commit, dir)
			wantTree(t, dir, map[string]string{"a": "5", "b": "5"})
			if got := o.run(dir, "rev-list", "--count", "HEAD"); got != "3" {
				t.Errorf("%s commits", got)
			}
			if got := o.run(dir, "status", "--porcelain"); got != "" {
				t.Errorf("git finds %q", got)
			}
			src.Branch = second
			_, _, err := s.Fetch(t.Context(), src)
			wantFault(t, err, fault.NotFound, "is not among the newest 1", "git_depth")
			src.Depth = 0 // another environment, with all of the history
			if rev, _ := fetch(t, s, src); rev.Commit != second {
				t.Errorf("%+v", rev)
			}
		})
	}
}

// Only the branch of the environment is fetched, and another one in addition when a person
// asks for it. Branches that are deleted disappear from the mirror.
func TestSingleBranch(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("1", map[string]string{"a": "1"})
	o.git("branch", "side")
	o.git("branch", "third")
	o.git("push", "-q", "origin", "side", "third")
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main", Only: "main"}
	names := func() []string {
		p, err := src.locate()
		if err != nil {
			t.Fatal(err)
		}
		set, err := readRefs(s.mirrorDir(p))
		if err != nil {
			t.Fatal(err)
		}
		return set.names()
	}
	fetch(t, s, src)
	if got := names(); !slices.Equal(got, []string{"refs/heads/main"}) {
		t.Errorf("the mirror has %q", got)
	}
	src.Branch = "side"
	if rev, _ := fetch(t, s, src); rev.Branch != "side" {
		t.Errorf("%+v", rev)
	}
	if got := names(); !slices.Equal(got, []string{"refs/heads/main", "refs/heads/side"}) {
		t.Errorf("the mirror has %q", got)
	}
	o.git("push", "-q", "origin", ":side")
	src.Branch = "main"
	fetch(t, s, src)
	if got := names(); !slices.Equal(got, []string{"refs/heads/main"}) {
		t.Errorf("the mirror has %q", got)
	}
	src.Branch, src.Only = "gone", "gone"
	_, _, err := s.Fetch(t.Context(), src)
	wantFault(t, err, fault.NotFound, `no branch or tag "gone"`, "main")
	src.Branch, src.Only = "", "HEAD"
	if rev, _ := fetch(t, s, src); rev.Branch != "main" {
		t.Errorf("%+v", rev)
	}
}

// A range means the highest tag in it.
func TestRangeOfVersions(t *testing.T) {
	tool.Long(t, "clones a module for each of many ranges")
	everyWay(t, func(t *testing.T, o *origin, url string) {
		s := newSyncer(t)
		tags := map[string]string{}
		for _, tag := range []string{"v1.0.0", "v1.9.0", "1.10.0", "v2.0.0-rc.1", "v2.0.0", "release-7", "v3"} {
			tags[tag] = o.push(tag, map[string]string{"a": tag})
			o.git("tag", "-m", "x", tag)
		}
		o.git("push", "-q", "origin", "--tags")
		for wanted, tag := range map[string]string{
			"^1": "1.10.0", "~1.0": "v1.0.0", ">=1 <3": "v2.0.0", "*": "v2.0.0", "<1.10": "v1.9.0",
			"2.0.0-rc.1": "v2.0.0-rc.1",
		} {
			src := Source{URL: url, Branch: "semver:" + wanted, Only: "semver:" + wanted}
			rev, _ := fetch(t, s, src)
			if rev.Commit != tags[tag] || rev.Branch != tag {
				t.Errorf("%s is %s, want %s", wanted, rev.Branch, tag)
			}
			if tip, err := s.Tip(t.Context(), src); tip != tags[tag] || err != nil {
				t.Errorf("%s: %s, %v", wanted, tip, err)
			}
		}
		_, _, err := s.Fetch(t.Context(), Source{URL: url, Branch: "semver:^9"})
		wantFault(t, err, fault.NotFound, `no tag of `, `in the range "^9"`, "v1.0.0")
		_, _, err = s.Fetch(t.Context(), Source{URL: url, Branch: "semver:latest please"})
		wantFault(t, err, fault.Invalid, "is not a range of versions")
	})
	for _, bad := range []string{"semver:", "semver:x y z", "a b", "-x", "a\nb", strings.Repeat("x", 300)} {
		if bad == "semver:" {
			continue
		}
		wantFault(t, CheckBranch(bad), fault.Invalid)
	}
}

// Every checkout names the files that are LFS pointers.
func TestLFSPointersAreSaid(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	commit := o.push("x", map[string]string{
		".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
		"data/big.bin":   lfsHead + "oid sha256:" + strings.Repeat("0", 64) + "\nsize 123456\n",
		"small.bin":      "here\n",
	})
	src, dir := Source{URL: o.bare, Branch: "main"}, filepath.Join(t.TempDir(), "c")
	fetch(t, s, src)
	for range 2 {
		report := checkout(t, s, src, commit, dir)
		if !strings.Contains(report.Output, "Git LFS keeps") || !strings.Contains(report.Output, "data/big.bin") ||
			strings.Contains(report.Output, "small.bin") {
			t.Error(report.Output)
		}
	}
}

// withSubmodule makes a repository in the folder of an origin and adds it as a
// submodule, by a URL.
func (o *origin) withSubmodule(name, at, url string, files map[string]string) *origin {
	o.t.Helper()
	sub := newOrigin(o.t)
	commit := sub.push("sub", files)
	bare := filepath.Join(filepath.Dir(o.bare), name)
	o.run(o.work, "clone", "-q", "--bare", sub.bare, bare)
	sub.bare = bare
	sub.git("remote", "set-url", "origin", bare)
	o.write(map[string]string{".gitmodules": "[submodule \"" + at + "\"]\n\tpath = " + at + "\n\turl = " + url + "\n"})
	o.git("add", ".gitmodules")
	o.git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+at)
	o.git("commit", "-q", "-m", "submodule")
	o.git("push", "-q", "origin", "HEAD")
	return sub
}

// beside pushes a file in addition to submodules, which are not in the working copy.
func (o *origin) beside(name, content string) {
	o.t.Helper()
	o.write(map[string]string{name: content})
	o.git("add", name)
	o.git("commit", "-q", "-m", name)
	o.git("push", "-q", "origin", "HEAD")
}

// Submodules are part of the checkout if the source asks for them, at the commit that the
// repository names, and follow it.
func TestSubmodules(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("1", map[string]string{"a": "1"})
	sub := o.withSubmodule("sub.git", "libs/sub", "../sub.git", map[string]string{"x": "s1", "d/y": "s2", "run": "#!x"})
	server := o.serve("s3cr3t") // asks for credentials: the submodule gets them too
	src := Source{
		URL:         server.URL + "/origin.git",
		Branch:      "main",
		Credentials: Credentials{Username: "ada", Password: "s3cr3t"},
	}
	dir := filepath.Join(t.TempDir(), "c")
	rev, _ := fetch(t, s, src)
	report := checkout(t, s, src, rev.Commit, dir)
	if !strings.Contains(report.Output, "libs/sub. Switch the setting git_submodules on") {
		t.Error(report.Output)
	}
	src.Submodules = true
	gitmodules := "[submodule \"libs/sub\"]\n\tpath = libs/sub\n\turl = ../sub.git\n"
	for range 2 {
		checkout(t, s, src, rev.Commit, dir)
		wantTree(
			t,
			dir,
			map[string]string{
				"a":            "1",
				".gitmodules":  gitmodules,
				"libs/sub/x":   "s1",
				"libs/sub/d/y": "s2",
				"libs/sub/run": "#!x",
			},
		)
	}
	next := sub.push("s2", map[string]string{"x": "s3", "d/y": ""})
	o.git("update-index", "--cacheinfo", "160000,"+next+",libs/sub")
	o.git("commit", "-q", "-m", "bump")
	o.git("push", "-q", "origin", "HEAD")
	rev, _ = fetch(t, s, src)
	checkout(t, s, src, rev.Commit, dir)
	wantTree(t, dir, map[string]string{"a": "1", ".gitmodules": gitmodules, "libs/sub/x": "s3", "libs/sub/run": "#!x"})
	src.Submodules = false
	checkout(t, s, src, rev.Commit, dir)
	wantTree(t, dir, map[string]string{"a": "1", ".gitmodules": gitmodules})
}

// Submodules that are dangerous to check out can be pushed, but are refused.
func TestDangerousSubmodules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		url   string
		files map[string]string
		more  func(o, sub *origin)
		want  []string
	}{
		{
			name: "a path on the server", url: "/etc", files: map[string]string{"x": "1"},
			want: []string{"lies on the disk of the server"},
		},
		{
			name: "file URL", url: "file:///srv/x", files: map[string]string{"x": "1"},
			want: []string{"lies on the disk of the server"},
		},
		{name: "a program", url: "ext::sh -c id", files: map[string]string{"x": "1"}, want: []string{"cannot be used"}},
		{
			name: "an option", url: "--upload-pack=id", files: map[string]string{"x": "1"},
			want: []string{"cannot be used"},
		},
		{
			name: "a password", url: "https://ada:s3cr3t@h.invalid/x", files: map[string]string{"x": "1"},
			want: []string{"committed for all to read"},
		},
		{
			name: "a link out of it", url: "../sub.git", files: map[string]string{"l": "->../../a"},
			want: []string{"outside of the repository"},
		},
		{name: "a link out, through one of it", url: "../sub.git", files: map[string]string{"l": "->.", "x": "1"},
			more: func(o, _ *origin) { o.beside("evil", "->libs/sub/l/../../../etc") },
			want: []string{"outside of the repository"}},
		{name: "not in .gitmodules", url: "../sub.git", files: map[string]string{"x": "1"},
			more: func(o, _ *origin) {
				o.beside(".gitmodules", "[submodule \"x\"]\n\tpath = elsewhere\n\turl = ../sub.git\n")
			}, want: []string{"does not say where it comes from"}},
		{name: "commit not there", url: "../sub.git", files: map[string]string{"x": "1"},
			more: func(o, _ *origin) {
				o.git("update-index", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",libs/sub")
				o.git("commit", "-q", "-m", "bump")
				o.git("push", "-q", "origin", "HEAD")
			}, want: []string{"libs/sub cannot be checked out", "is not in"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, s := newOrigin(t), newSyncer(t)
			first := o.push("1", map[string]string{"a": "1"})
			src, dir := Source{
				URL:        o.serve("").URL + "/origin.git",
				Branch:     "main",
				Submodules: true,
			}, filepath.Join(t.TempDir(), "c")
			fetch(t, s, src)
			checkout(t, s, src, first, dir)
			sub := o.withSubmodule("sub.git", "libs/sub", tt.url, tt.files)
			if tt.more != nil {
				tt.more(o, sub)
			}
			rev, _ := fetch(t, s, src)
			_, err := s.Checkout(t.Context(), src, rev.Commit, dir)
			if err == nil {
				t.Fatal("it was checked out")
			}
			kind := fault.KindOf(err)
			wantFault(t, err, kind, tt.want...)
			wantTree(t, dir, map[string]string{"a": "1"})
		})
	}
}

// A repository that contains itself as a submodule, deeper and deeper, is refused.
func TestSubmoduleLoop(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	commit := o.push("1", map[string]string{"a": "1"})
	o.write(map[string]string{".gitmodules": "[submodule \"me\"]\n\tpath = me\n\turl = ./../origin.git\n"})
	o.git("add", ".gitmodules")
	for range maxNesting + 2 { // each commit has the one before it inside
		o.git("update-index", "--add", "--cacheinfo", "160000,"+commit+",me")
		o.git("commit", "-q", "-m", "me")
		o.git("push", "-q", "origin", "HEAD")
		commit = o.git("rev-parse", "HEAD")
	}
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main", Submodules: true}
	fetch(t, s, src)
	_, err := s.Checkout(t.Context(), src, commit, filepath.Join(t.TempDir(), "c"))
	wantFault(t, err, fault.Invalid, "nested more than")
}

// Credentials go to the server of the repository, and nowhere else.
func TestSubmodulesGetNoForeignCredentials(t *testing.T) {
	top, err := Source{
		URL:         "https://h/g/a.git",
		Credentials: Credentials{Username: "ada", Password: "s3cr3t"},
		Submodules:  true,
	}.locate()
	if err != nil {
		t.Fatal(err)
	}
	a := &parent{place: top}
	for raw, lent := range map[string]bool{
		"../b.git": true, "../../../../b.git": true, "https://H/x": true, "https://other/x": false,
		"http://h/x": false, "git@h:x": false,
	} {
		p, err := a.resolve(raw, false)
		if err != nil || (p.credentials == top.credentials) != lent {
			t.Errorf("%s: %s, lent %v, %v", raw, p.shown, p.credentials != Credentials{}, err)
		}
	}
	for base, want := range map[string]string{
		"git@h:g/a.git": "git@h:g/b", "git@h:/g/a.git": "git@h:/g/b", "git@[::1]:g/a": "git@[::1]:g/b",
		"ssh://git@h:1/g/a": "ssh://git@h:1/g/b", "/srv/a": "/srv/b",
	} {
		p, err := locate(base)
		if err != nil || p.relative("../b") != want {
			t.Errorf("%s: %s, %v", base, p.relative("../b"), err)
		}
	}
}
