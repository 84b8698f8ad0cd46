package gitsync

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
)

// cloned returns the files that the git program checks out.
func (o *origin) cloned(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cloned")
	o.run(o.work, "clone", "-q", o.bare, dir)
	return tree(t, dir)
}

// commitRaw commits files whose content is not converted on its way into the
// repository, whatever .gitattributes says.
func (o *origin) commitRaw(files map[string]string) string {
	o.t.Helper()
	var index strings.Builder
	for name, text := range files {
		fmt.Fprintf(&index, "100644 %s\t%s\x00", o.blob(text), name)
	}
	o.feed(index.String(), "update-index", "-z", "--add", "--index-info")
	o.git("commit", "-q", "-m", "raw")
	o.git("push", "-q", "origin", "HEAD")
	return o.head()
}

// texts are contents that conversions treat in different ways.
var texts = map[string]string{
	"lf": "one\ntwo\n", "crlf": "one\r\ntwo\r\n", "mixed": "one\ntwo\r\n\n", "cr": "one\rtwo\n", "none": "one",
	"empty":  "",
	"binary": "a\x00b\nc\n", "control": "\x01\x02\x03\n\x04\n", "escape": "\x1b[31mred\n", "eof": "text\n\x1a",
	"umlaut": "grün\n",
	"long":   strings.Repeat("x", 300) + "\x01\n", "latin": "gr\xfcn\n", "emoji": "smile 😀\n",
	"id": "$Id$\n$Id: old $ $Id:old$ $Id: a b c $ $Id: broken\n$ $Ident$ $Id", "id2": "$ $Id$$Id$ $Id:$ $Id:",
	"id3": "$Id: x$",
}

// Each attribute that changes how files are written leads to the same files as with git:
// for each kind of content, at the first checkout and when .gitattributes changes.
func TestAttributesAsGitDoes(t *testing.T) {
	for _, line := range []string{
		"* text", "* text=auto", "* -text", "* eol=crlf", "* eol=lf", "* text eol=crlf", "* text=auto eol=crlf",
		"* text=auto eol=lf", "* -text eol=crlf", "* binary eol=crlf", "* text=input eol=crlf", "* crlf eol=crlf",
		"* -crlf eol=crlf", "* crlf=input", "* text=nonsense eol=crlf", "* !text eol=crlf", "* ident", "* -ident",
		"* ident=yes", "* ident eol=crlf", "* working-tree-encoding=UTF-16", "* working-tree-encoding=UTF-16LE-BOM",
		"* working-tree-encoding=utf-16be-bom eol=crlf", "* working-tree-encoding=UTF16LE text",
		"* working-tree-encoding=UTF-32BE", "* working-tree-encoding=UTF-8", "* working-tree-encoding=ISO-8859-1",
		"* working-tree-encoding=latin1 ident text=auto eol=crlf", "* working-tree-encoding=CP1252",
		"* working-tree-encoding=SHIFT-JIS", "* working-tree-encoding=KOI8-R", "* working-tree-encoding=no-such-thing",
		"* filter=unknown", "* export-subst",
		"[attr]dos text eol=crlf\n*.txt dos\n", "[attr]a b\n[attr]b eol=crlf\n* a\nx* -a",
	} {
		if !tool.Among(line) {
			continue
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
			src := Source{URL: o.bare, Branch: "main"}
			files := map[string]string{}
			for name, text := range texts {
				files[name+".txt"] = text
			}
			plain := o.commitRaw(files)
			fetch(t, s, src)
			checkout(t, s, src, plain, dir)
			with := o.commitRaw(map[string]string{".gitattributes": line + "\n"})
			fetch(t, s, src)
			report := checkout(t, s, src, with, dir)
			want := o.cloned(t)
			wantTree(t, dir, want)
			fresh := filepath.Join(t.TempDir(), "fresh")
			checkout(t, s, src, with, fresh)
			wantTree(t, fresh, want)
			if again := checkout(t, s, src, with, dir); again.Written != 0 {
				t.Errorf("checked out again, %d files were written", again.Written)
			}
			said := strings.Contains(report.Output, "Not applied from .gitattributes: ")
			switch {
			case strings.Contains(line, "filter"), strings.Contains(line, "subst"), strings.Contains(line, "no-such"):
				if !said || !strings.Contains(report.Output, "lf.txt") {
					t.Errorf("the report says %q", report.Output)
				}
			case said && !strings.Contains(line, "encoding"):
				t.Errorf("the report says %q", report.Output)
			}
			checkout(t, s, src, plain, dir)
			delete(want, ".gitattributes")
			wantTree(t, dir, files)
		})
	}
}

// Patterns choose the same files as with git, in nested folders, with quotes, classes
// and macros: many random ones, at one checkout.
func TestPatternsOfAttributesAsGitDoes(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	chance := rand.New(rand.NewPCG(7, 7))
	pick := func(from ...string) string { return from[chance.IntN(len(from))] }
	files := map[string]string{}
	names := []string{"a", "b", "ab", "a.txt", "b.txt", "A", "a b", "é", "[x]", "a*", "-", "z9", "a\\b"}
	folders := []string{"", "a/", "b/", "a/b/", "a/a/b/", "x/y/z/", "x/", "a b/", "é/"}
	for _, folder := range folders {
		for _, name := range names {
			path := folder + name
			files[path] = "one\ntwo\n$Id$\n"
		}
	}
	for _, name := range names { // a name cannot be a file and a folder
		for _, folder := range folders {
			for path := range files {
				if strings.HasPrefix(path, folder+name+"/") {
					delete(files, folder+name)
				}
			}
		}
	}
	pattern := func() string {
		var out strings.Builder
		for range 1 + chance.IntN(3) {
			out.WriteString(
				pick(
					"a",
					"b",
					"x",
					"*",
					"?",
					"**",
					"a*",
					"*.txt",
					"[ab]",
					"[!a]",
					"[a-z]",
					"[[:digit:]]",
					"z?",
					"*b",
					"é",
					"??",
					`\[x]`,
					`a\*`,
					"[^-a]",
					"[]-]",
					"[a",
					"**b",
					"***",
				),
			)
			out.WriteString(pick("", "/", "/", "/**/", ""))
		}
		p := pick("", "", "/", "**/", "!") + out.String()
		if chance.IntN(6) == 0 {
			return `"` + strings.ReplaceAll(strings.ReplaceAll(p, `\`, `\\`), "a", `\141`) + pick("", " b") + `"`
		}
		return p
	}
	for _, folder := range []string{"", "a/", "a/b/", "x/y/", "b/"} {
		var text strings.Builder
		text.WriteString("[attr]dos text eol=crlf ident\n# a comment\n\n[attr] unix eol=lf -ident\n")
		for range 60 {
			fmt.Fprintf(
				&text,
				"%s%s %s %s%s",
				pick("", " ", "\t"),
				pattern(),
				pick(
					"eol=crlf",
					"eol=lf",
					"!eol",
					"ident",
					"-ident",
					"!ident",
					"dos",
					"-dos",
					"unix",
					"binary",
					"-text",
					"text",
					"bad/name",
				),
				pick("", "ident", "-text", "!text", "eol=crlf", "diff"),
				pick("\n", "\r\n", " \n"),
			)
		}
		files[folder+".gitattributes"] = text.String()
	}
	commit := o.commitRaw(files)
	src, dir := Source{URL: o.bare, Branch: "main"}, filepath.Join(t.TempDir(), "c")
	fetch(t, s, src)
	checkout(t, s, src, commit, dir)
	wantTree(t, dir, o.cloned(t))
}

// What of .gitattributes cannot be done is in the report, each time, with the files.
func TestAttributesThatAreNotAppliedAreSaid(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	commit := o.commitRaw(map[string]string{
		".gitattributes": "*.enc filter=vault\n*.txt working-tree-encoding=ISO-8859-1\n" +
			"*.x working-tree-encoding=EBCDIC-9\n*.y working-tree-encoding\n*.bin filter=lfs\n",
		"a.enc": "1", "b.enc": "2", "fits.txt": "grün", "not.txt": "日本", "c.x": "3", "d.y": "4", "e.bin": "5",
	})
	src := Source{URL: o.bare, Branch: "main"}
	fetch(t, s, src)
	for range 2 {
		report := checkout(t, s, src, commit, dir)
		for _, want := range []string{
			"Not applied from .gitattributes: filter=vault (no such program is set up here), for a.enc, b.enc.\n",
			"working-tree-encoding=ISO-8859-1 (the content does not fit; it is in UTF-8), for not.txt.\n",
			"working-tree-encoding=EBCDIC-9 (this encoding is not known), for c.x.\n",
			"working-tree-encoding (it has no value), for d.y.\n",
		} {
			if !strings.Contains(report.Output, want) {
				t.Errorf("no %q in %q", want, report.Output)
			}
		}
		if strings.Contains(report.Output, "e.bin") {
			t.Errorf("Git LFS has a sentence of its own: %q", report.Output)
		}
	}
	if got := tree(t, dir)["fits.txt"]; got != "gr\xfcn" {
		t.Errorf("fits.txt is %q", got)
	}
}

// The attributes of a submodule are its own, and those of the repository above do not
// reach into it.
func TestAttributesOfSubmodules(t *testing.T) {
	o, s, dir := newOrigin(t), newSyncer(t), filepath.Join(t.TempDir(), "c")
	o.withSubmodule("sub.git", "libs/sub", "../sub.git", map[string]string{
		".gitattributes": "d/* eol=crlf\n", "d/x": "1\n2\n", "y": "1\n2\n",
	})
	o.beside(".gitattributes", "y eol=crlf\nz eol=crlf\n")
	o.beside("z", "1\n2\n")
	commit := o.head()
	src := Source{URL: "file://" + o.bare, Branch: "main", Submodules: true}
	fetch(t, s, src)
	for _, written := range []int{-1, 0} {
		report := checkout(t, s, src, commit, dir)
		if report.Written != written && written >= 0 {
			t.Errorf("%d files were written again", report.Written)
		}
		got := tree(t, dir)
		if got["z"] != "1\r\n2\r\n" || got["libs/sub/d/x"] != "1\r\n2\r\n" || got["libs/sub/y"] != "1\n2\n" {
			t.Errorf("%q", got)
		}
	}
}

// Each pattern matches the paths that it matches for git.
func TestOnePatternAsGitDoes(t *testing.T) {
	o := newOrigin(t)
	var paths []string
	for _, folder := range []string{"", "a/", "b/", "a/b/", "a/a/b/", "x/y/z/"} {
		for _, name := range []string{
			"a", "b", "ab", "abc", "a.txt", "é", "[x]", "a*", "-", "z9", `a\b`, "!a", "A", "]", "^",
		} {
			paths = append(paths, folder+name)
		}
	}
	matches := 0
	for _, pattern := range []string{
		"a", "/a", "a/", "a/b", "/a/b", "a/*", "*/b", "**/b", "a/**", "**", "*", "/*", "/**", "a/**/b",
		"**/a/**", "***", "a**",
		"**b", "a/**b", "*.txt", "*b", "?", "??", "???", "[ab]", "[!a]", "[^a]", "[a-z]", "[!a-z]",
		"[[:digit:]]", "z[[:digit:]]",
		"[[:nope:]]", "[a", "[]]", "[]-]", "[^-a]", "[-a]", "[a-]", "[z-a]", `[\]]`, `\[x]`, `a\*`, `a\`, `\a`,
		`a\\b`, `"a"`, `"\141"`, `"a`,
		"[[]x]", "é", "[é]", "?[!a]", "!a", `\!a`, "x/?/z/a", "x/*/a", "x/**/a", "x/y/z/", "*/*", "*/*/*",
		"[/]", "a[/]b", "a[!x]b",
		"[--0]", "a?b", "#a", `\#a`, "[[:alpha:][:digit:]]", "[[:alpha:]-z]", "a//b", "//a", "./a", "[^]]", "[!]a]",
	} {
		text := pattern + " ident\n"
		o.write(map[string]string{".gitattributes": text})
		rules := &attributeRules{}
		rules.files = []attributesFile{rules.parse("", []byte(text))}
		want := map[string]bool{}
		for line := range strings.Lines(o.feed(strings.Join(paths, "\x00"), "check-attr", "-z", "--stdin", "ident")) {
			fields := strings.Split(line, "\x00")
			for i := 0; i+2 < len(fields); i += 3 {
				want[fields[i]] = fields[i+2] == "set"
			}
		}
		for _, path := range paths {
			if want[path] {
				matches++
			}
			budget := maxComparing
			if got := rules.of(path, &budget)["ident"] == attributeSet; got != want[path] {
				t.Errorf("%s and %s: %v, for git %v", pattern, path, got, want[path])
			}
		}
	}
	if matches < 500 {
		t.Errorf("only %d matches were compared", matches)
	}
}

// A .gitattributes that would keep the server busy for hours is refused.
func TestTooManyPatterns(t *testing.T) {
	tool.Long(t, "clones a module for each of many patterns")
	if racedetector.On {
		t.Skip("it is about the time that one goroutine takes, and takes minutes with the race detector")
	}
	o, s := newOrigin(t), newSyncer(t)
	files := map[string]string{".gitattributes": strings.Repeat("*a*a*a*a*b eol=crlf\n", 50_000)}
	for n := range 500 {
		files[strings.Repeat("a", 100)+fmt.Sprint(n)] = ""
	}
	commit := o.commitRaw(files)
	src := Source{URL: o.bare, Branch: "main"}
	fetch(t, s, src)
	_, err := s.Checkout(t.Context(), src, commit, filepath.Join(t.TempDir(), "c"))
	wantFault(t, err, fault.Invalid, "too many patterns")
}
