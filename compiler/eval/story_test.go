package eval_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// compile runs the model files of an archive: main.cf and, as namespaces of
// their own, every other .cf (a/b.cf is a::b).
func compile(t testing.TB, files map[string]string, order []string) *eval.Result {
	t.Helper()
	in := eval.Input{Host: newTestHost()}
	for _, name := range order {
		namespace := "__config__"
		if name != "main.cf" {
			namespace = strings.ReplaceAll(strings.TrimSuffix(name, ".cf"), "/", "::")
		}
		f, err := syntax.Parse(syntax.FileInfo{Path: name, Namespace: namespace}, []byte(files[name]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		in.Files = append(in.Files, f)
	}
	if !slices.Contains(order, "test.cf") { // the namespace of the plug-ins
		in.Files = append(in.Files, &syntax.File{Path: "test.cf", Namespace: "test"})
	}
	if rules, ok := files["precedence"]; ok {
		for line := range strings.Lines(rules) {
			first, then, _ := strings.Cut(strings.TrimSpace(line), " before ")
			a, b, _ := strings.Cut(first, ".")
			c, d, _ := strings.Cut(then, ".")
			in.Precedence = append(in.Precedence,
				eval.PrecedenceRule{FirstType: a, FirstRelation: b, ThenType: c, ThenRelation: d})
		}
	}
	return eval.Compile(context.Background(), in)
}

// describe writes a result for a golden file: the error as people see it, or the
// model.
func describe(r *eval.Result) string {
	var b strings.Builder
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning %s: %s\n", w.At, w.Message)
	}
	for _, line := range r.Output {
		fmt.Fprintf(&b, "output: %s\n", line)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "%s\n%s\n", r.Err.Class(), r.Err.Trace())
		for _, d := range r.Err.Diagnostics() {
			if d.Hint != "" {
				fmt.Fprintf(&b, "hint: %s\n", d.Hint)
			}
		}
		return b.String()
	}
	for _, i := range r.Instances {
		fmt.Fprintf(&b, "%s\n", i.ReprText())
		for _, attr := range i.Entity().Attributes {
			v, ok := i.Value(attr)
			if l, is := v.(*types.List); attr.End != nil && is && len(l.Items) == 0 {
				continue // empty relations are left out
			}
			if ok {
				fmt.Fprintf(&b, "    %s = %s\n", attr.Name, types.Repr(v))
			}
		}
	}
	for _, v := range r.Variables {
		if v.Value == nil {
			fmt.Fprintf(&b, "%s is not set\n", v.Name)
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", v.Name, types.Repr(v.Value))
	}
	return b.String()
}

// TestStories compiles every archive below testdata and compares the result with the
// file `want` in it. An error is also written where it is caused:
//
//	a.x = 4 # ERROR "set twice"
//
// ORDAIN_UPDATE=1 rewrites the goldens.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no archives below testdata", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files, order := map[string]string{}, []string{}
			want := -1
			for i, f := range archive.Files {
				files[f.Name] = string(f.Data)
				if strings.HasSuffix(f.Name, ".cf") {
					order = append(order, f.Name)
				}
				if f.Name == "want" {
					want = i
				}
			}
			result := compile(t, files, order)
			got := describe(result)
			checkErrors(t, files, order, result.Err)
			if os.Getenv("ORDAIN_UPDATE") != "" {
				if want < 0 {
					archive.Files = append(archive.Files, txtar.File{Name: "want"})
					want = len(archive.Files) - 1
				}
				if string(archive.Files[want].Data) == got && got != "" {
					return
				}
				archive.Files[want].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want < 0 {
				t.Fatal("the archive has no file `want`")
			}
			if string(archive.Files[want].Data) != got {
				t.Errorf("got:\n%s\nwant:\n%s", got, archive.Files[want].Data)
			}
		})
	}
}

var errorComment = regexp.MustCompile(`# ERROR "([^"]*)"`)

// checkErrors checks that there is an error on the line of each such comment, and no
// other.
func checkErrors(t *testing.T, files map[string]string, order []string, failure *eval.Error) {
	t.Helper()
	type place struct {
		file string
		line int
	}
	found := map[place][]string{}
	var walk func(e *eval.Error)
	walk = func(e *eval.Error) {
		d := e.Diagnostic()
		if d.Location != nil {
			at := place{d.Location.File, d.Location.Line}
			found[at] = append(found[at], e.Trace())
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	if failure != nil {
		walk(failure)
	}
	wanted := 0
	for _, name := range order {
		for i, line := range strings.Split(files[name], "\n") {
			m := errorComment.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			wanted++
			ok := false
			for _, text := range found[place{name, i + 1}] {
				ok = ok || strings.Contains(text, m[1])
			}
			if !ok {
				t.Errorf("%s:%d: no error with %q here; there are: %v", name, i+1, m[1], found)
			}
		}
	}
	if failure != nil && wanted == 0 && len(found) > 0 {
		t.Errorf("an error that no comment announces: %s", failure.Trace())
	}
}

// The same input gives the same result in the same order, byte for byte.
func TestSameInputSameResult(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files, order := map[string]string{}, []string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
			if strings.HasSuffix(f.Name, ".cf") {
				order = append(order, f.Name)
			}
		}
		first := describe(compile(t, files, order))
		for range 3 {
			if again := describe(compile(t, files, order)); again != first {
				t.Fatalf("%s: two runs differ:\n%s\n----\n%s", path, first, again)
			}
		}
	}
}
