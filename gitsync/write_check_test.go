package gitsync

import (
	"context"
	"path"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// hostile are paths that a commit of ours must never have.
var hostile = []string{
	"", ".", "..", "/", "/etc/passwd", "../x", "a/../../x", "a/..", "a/./b", "a//b", "a/", "./a",
	".git", ".git/config", ".GIT/hooks/pre-receive", "a/.git/config", ".git./x", ".git /x", "git~1/config", "GIT~1",
	".g\u200cit/config", ".git::$INDEX_ALLOCATION/x", `.git\config`, `a\b`, `..\x`, `C:\x\..`, ".gitmodules",
	"a/.GitModules",
	"a\x00b", "a\nb", "a\x7f", "a\xffb", ".env/bin/python", ".env-py3.13/x",
	strings.Repeat("n", maxName+1), strings.Repeat("d/", maxDepth) + "x", strings.Repeat("long/", maxPath/5) + "x",
}

// A path leads to a plain file inside of the repository, or it is refused, and nothing is pushed.
func TestWriteRefusesHostilePaths(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	before := o.push("first", map[string]string{"main.cf": "model"})
	s := newSyncer(t)
	src := Source{URL: o.bare, Branch: "main"}
	for _, p := range hostile {
		_, err := s.Write(context.Background(), src, put(p, "x"))
		wantFault(t, err, fault.Invalid, "cannot be committed")
		_, err = s.Write(context.Background(), src, Write{Files: []FileChange{{p, nil}}, Author: ada, Message: "x"})
		wantFault(t, err, fault.Invalid, "cannot be committed")
		if p != "" {
			_, err = s.Read(context.Background(), src, "", p)
			wantFault(t, err, fault.Invalid, "cannot be read")
			_, err = s.List(context.Background(), src, "", p)
			wantFault(t, err, fault.Invalid, "cannot be read")
		}
	}
	if o.tip("main") != before {
		t.Error("something was pushed")
	}
	for _, p := range []string{
		"clusters/web.yaml", "a b/ü.yaml", ".gitignore", "x.git/y", "-rf", "gitmodules", ".github/x", ":(top)x",
	} {
		if got := o.show(write(t, s, src, put(p, "x")), p); got != "x" {
			t.Errorf("%q: %q", p, got)
		}
	}
	o.run(o.bare, "fsck", "--strict", "--no-dangling")
}

// What the repository has in the way of a file is neither followed nor replaced.
func TestWriteGoesThroughNothing(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.push("first", map[string]string{"main.cf": "model", "real/x": "x", "clusters": "->real", "dir/a": "a",
		"file": "f", "real/link.yaml": "->../main.cf", "real/abs": "->/etc"})
	o.git("update-index", "--add", "--cacheinfo", "160000,"+o.head()+",module")
	o.git("commit", "-q", "-m", "a submodule")
	o.git("push", "-q", "origin", "main")
	before := o.tip("main")
	s := newSyncer(t)
	src := Source{URL: o.bare, Branch: "main"}
	for p, what := range map[string]string{
		"clusters/web.yaml": `"clusters" is a symbolic link`, "clusters": "is a symbolic link",
		"real/link.yaml": `"real/link.yaml" is a symbolic link`, "real/abs/passwd": `"real/abs" is a symbolic link`,
		"module/x": `"module" is a submodule`, "module": "is a submodule", "dir": `"dir" is a folder`,
		"file/x": `"file" is a file`, "dir/a/b/c": `"dir/a" is a file`,
	} {
		_, err := s.Write(context.Background(), src, put(p, "x"))
		wantFault(t, err, fault.Conflict, what)
	}
	if o.tip("main") != before {
		t.Error("something was pushed")
	}
	for p, kind := range map[string]fault.Kind{"clusters/x": fault.NotFound, "real/link.yaml": fault.Conflict,
		"dir": fault.Conflict, "module": fault.Conflict, "nothing": fault.NotFound} {
		_, err := s.Read(context.Background(), src, "", p)
		wantFault(t, err, kind)
	}
}

// A Write that makes no sense is refused before anything is fetched.
func TestWriteRefusesNonsense(t *testing.T) {
	t.Parallel()
	s := newSyncer(t)
	for says, change := range map[string]func(*Write){
		"not a full commit hash":   func(w *Write) { w.Base = "HEAD" },
		"the name of a branch":     func(w *Write) { w.NewBranch = "a..b" },
		`"-f" cannot be the name`:  func(w *Write) { w.NewBranch = "-f" },
		"1 to 500 files, not 0":    func(w *Write) { w.Files = nil },
		"1 to 500 files, not 501":  func(w *Write) { w.Files = make([]FileChange, 501) },
		`"a.yaml" is there twice`:  func(w *Write) { w.Files = append(w.Files, w.Files[0]) },
		"cannot be a file and the": func(w *Write) { w.Files = append(w.Files, FileChange{"a.yaml/b", nil}) },
		"a commit takes 16":        func(w *Write) { w.Files[0].Content = make([]byte, maxWriteBytes+1) },
		"no message":               func(w *Write) { w.Message = " \n\x00" },
		"has more than 64 KiB":     func(w *Write) { w.Message = strings.Repeat("m", maxWriteMessage+1) },
		"no author":                func(w *Write) { w.Author.Name = "<>\n" },
	} {
		w := put("a.yaml", "a")
		change(&w)
		_, err := s.Write(context.Background(), Source{URL: "/nowhere"}, w)
		wantFault(t, err, fault.Invalid, says)
	}
}

// The name of a person comes from a directory that others fill: it cannot add headers to the commit.
func TestWriteCleansNames(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	parent := o.push("first", map[string]string{"main.cf": "model"})
	w := put("a", "a")
	w.Author = Identity{Name: "Eve <root@x> 0 +0000\nparent " + parent + "\ngpgsig", Email: "eve@x>\ncommitter y <z"}
	w.Message = "subject\x00\x1b[31m\r\nbody"
	s := newSyncer(t)
	commit := write(t, s, Source{URL: o.bare, Branch: "main"}, w)
	got := o.run(o.bare, "log", "-1", "--format=%an|%ae|%cn|%P|%B", commit)
	want := "Eve root@x 0 +0000 parent " + parent + " gpgsig|eve@xcommitteryz|Ordain|" + parent + "|subject[31m\nbody"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	o.run(o.bare, "fsck", "--strict", "--no-dangling")
}

// Callers look at clusters at the tip, and as a commit had them.
func TestReadAndList(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, o *origin, src Source) {
		first := o.push("first", map[string]string{"clusters/a.yaml": "a: 1", "clusters/b.yaml": "b: 1", "main.cf": "m",
			"clusters/more/x": "x", "clusters/l": "->a.yaml", "run": "#!/bin/sh"})
		s := newSyncer(t)
		ctx := context.Background()
		want := func(commit, file, content string) {
			t.Helper()
			f, err := s.Read(ctx, src, commit, file)
			if err != nil || string(f.Content) != content || f.Path != file || commit != "" && f.Commit != commit {
				t.Errorf("%s at %s: %+v, %v", file, commit, f, err)
			}
		}
		names := func(commit, dir string) string {
			t.Helper()
			l, err := s.List(ctx, src, commit, dir)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, e := range l.Entries {
				out = append(out, e.Name+" "+string(e.Kind))
			}
			return strings.Join(out, ", ")
		}
		if got := names("", "clusters"); got != "a.yaml file, b.yaml file, l link, more folder" {
			t.Error(got)
		}
		if got := names("", ""); got != "clusters folder, main.cf file, run file" {
			t.Error(got)
		}
		second := o.push("second", map[string]string{"clusters/a.yaml": "a: 2", "clusters/b.yaml": ""})
		want(second, "clusters/a.yaml", "a: 2") // which the mirror lacks until then
		want("", "clusters/a.yaml", "a: 2")
		want(first, "clusters/b.yaml", "b: 1")
		if f, err := s.Read(ctx, src, "", "run"); err != nil || !f.Executable || f.Commit != second {
			t.Errorf("%+v, %v", f, err)
		}
		if got := names(first, "clusters"); !strings.Contains(got, "b.yaml") {
			t.Error(got)
		}
		if got := names("", "nothing/here"); got != "" {
			t.Error(got)
		}
		_, err := s.Read(ctx, src, "", "clusters/b.yaml")
		wantFault(t, err, fault.NotFound, "b.yaml")
		_, err = s.Read(ctx, src, strings.Repeat("1", 40), "clusters/a.yaml")
		wantFault(t, err, fault.NotFound, "1111111 is not in")
		_, err = s.Read(ctx, src, "main", "clusters/a.yaml")
		wantFault(t, err, fault.Invalid, "full commit hash")
		_, err = s.List(ctx, src, "", "main.cf")
		wantFault(t, err, fault.Conflict, "not a folder")
		src.Branch = "gone"
		_, err = s.List(ctx, src, "", "clusters")
		wantFault(t, err, fault.NotFound, "gone")
	})
}

// A plan has what a forge has to know to make the commit: what the branch has now, and modes.
func TestPlan(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.push("first", map[string]string{
		"clusters/a.yaml": "a: 1", "run": "#!/bin/sh", "old": "old", "same": "same", "l": "->old"})
	s := newSyncer(t)
	src := Source{URL: o.bare}
	w := Write{Author: ada, Message: "m", Files: []FileChange{
		{"run", []byte("#!/bin/bash")}, {"clusters/a.yaml", []byte("a: 2")},
		{"new/x", []byte{}}, {"old", nil}, {"same", []byte("same")}, {"never", nil}}}
	p, err := s.Plan(context.Background(), src, w)
	if err != nil || p.Branch != "main" || p.Tip != o.tip("main") || len(p.Changes) != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, want := range []Change{
		{Path: "clusters/a.yaml", Content: []byte("a: 2")}, {Path: "new/x"}, {Path: "old", Gone: true},
		{Path: "run", Content: []byte("#!/bin/bash"), Executable: true}} {
		c := p.Changes[i]
		was := ""
		if c.Path != "new/x" {
			was = o.run(o.bare, "rev-parse", "main:"+c.Path)
		}
		if c.Path != want.Path || string(c.Content) != string(want.Content) || c.Gone != want.Gone || c.Was != was ||
			c.Executable != want.Executable || c.Chmod {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
	w.Files = []FileChange{{"l", []byte("x")}}
	_, err = s.Plan(context.Background(), src, w)
	wantFault(t, err, fault.Conflict, "symbolic link")
}

// A path that is taken is one that git takes too, and names what it says.
func FuzzCheckPath(f *testing.F) {
	for _, p := range append(hostile, "clusters/web.yaml", "a/b/c") {
		f.Add(p)
	}
	s := newSyncer(f)
	f.Fuzz(func(t *testing.T, p string) {
		if s.checkPath(opWrite, "committed", p) != nil {
			return
		}
		if p != path.Clean(p) || path.IsAbs(p) || strings.HasPrefix(p, "..") || p == "." {
			t.Errorf("%q leads elsewhere", p)
		}
		for name := range strings.SplitSeq(strings.ToLower(p), "/") {
			bare := strings.TrimRight(name, ". ")
			if bare == ".git" || bare == "git~1" || name == ".gitmodules" {
				t.Errorf("%q belongs to Git", p)
			}
		}
	})
}
