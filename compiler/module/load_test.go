package module_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/syntax"
)

// TestLoad runs the stories in testdata/load. Each is a project on disk; its comment
// says what it is about, and the lines that begin with > what the result must be:
//
//	> files    the namespaces in order
//	> modules  name version generation, in order
//	> error    the kinds from the outside in, then the place
//	> options  no-std, main=FILE
func TestLoad(t *testing.T) {
	stories, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatal("no stories", err)
	}
	for _, path := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := unpack(t, archive)
			want := expectations(archive.Comment)
			main, autostd := "main.cf", true
			for _, o := range strings.Fields(want["options"]) {
				if o == "no-std" {
					autostd = false
				}
				if m, ok := strings.CutPrefix(o, "main="); ok {
					main = m
				}
			}
			got := map[string]string{}
			if o, ok := want["options"]; ok {
				got["options"] = o
			}
			p, err := module.OpenProject(dir)
			var prog *module.Program
			if err == nil {
				prog, err = module.NewLoader(p).Load(main, autostd)
			}
			if err != nil {
				got["error"] = describe(err, dir)
			} else {
				var files, modules []string
				for _, f := range prog.Files {
					files = append(files, f.Namespace)
				}
				for _, m := range prog.Modules {
					modules = append(modules, fmt.Sprintf("%s %s %d", m.Name, m.Version, m.Generation))
				}
				got["files"] = strings.Join(files, " ")
				got["modules"] = strings.Join(modules, ", ")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("want -, got +:\n%s", d)
			}
		})
	}
}

func unpack(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(f.Data), "$DIR", dir)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func expectations(comment []byte) map[string]string {
	want := map[string]string{}
	for line := range strings.SplitSeq(string(comment), "\n") {
		if rest, ok := strings.CutPrefix(line, "> "); ok {
			key, value, _ := strings.Cut(rest, " ")
			want[key] = strings.TrimSpace(value)
		}
	}
	return want
}

// describe returns the kinds of an error from the outside in, and the outermost place.
func describe(err error, dir string) string {
	var kinds []string
	place := ""
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) {
		case *module.Error:
			kinds = append(kinds, e.Kind[strings.LastIndexByte(e.Kind, '.')+1:])
			if place == "" && e.At.Start.Line > 0 {
				place = e.At.String()
			}
		case *syntax.Error:
			kinds = append(kinds, e.Kind[strings.LastIndexByte(e.Kind, '.')+1:])
			place = e.At.String()
		}
	}
	return strings.TrimSpace(strings.Join(kinds, " < ") + " " + strings.ReplaceAll(place, dir+"/", ""))
}
