package syntax

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/internal/testing/racedetector"
)

// TestParse runs the cases in testdata: an archive per area, a model file per
// case. What must come out is written on the line that causes it:
//
//	x = = 1   #! ParserException:6 Syntax error at token =
//	x = A()   #> x = Construct(A)
//	x = "\q"  #? Invalid escape sequence in string.
//
// for an error (class, column where the reference knows it, message), the
// text of a statement, and a warning. A file may end in `-- tree --` parts,
// compared in full; UPDATE=1 writes those anew.
func TestParse(t *testing.T) {
	areas, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(areas) == 0 {
		t.Fatal("no cases", err)
	}
	for _, area := range areas {
		t.Run(strings.TrimSuffix(filepath.Base(area), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(area)
			if err != nil {
				t.Fatal(err)
			}
			changed := false
			for i := range archive.Files {
				f := &archive.Files[i]
				if strings.HasSuffix(f.Name, ".tree") {
					continue
				}
				t.Run(f.Name, func(t *testing.T) { checkMarks(t, f) })
				if i+1 < len(archive.Files) && archive.Files[i+1].Name == f.Name+".tree" {
					file, err := Parse(FileInfo{Path: f.Name, Namespace: "__config__"}, f.Data)
					if err != nil {
						t.Fatal(err)
					}
					got, want := tree(file), string(archive.Files[i+1].Data)
					if d := cmp.Diff(want, got); d != "" && os.Getenv("UPDATE") == "" {
						t.Errorf("%s: tree: want -, got +:\n%s", f.Name, d)
					} else if d != "" {
						archive.Files[i+1].Data, changed = []byte(got), true
					}
				}
			}
			if changed {
				if err := os.WriteFile(area, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// checkMarks compares what parsing says with the marks in the text.
func checkMarks(t *testing.T, f *txtar.File) {
	text := string(f.Data)
	want := map[string][]string{}
	renders := false
	for i, line := range strings.Split(text, "\n") {
		for _, mark := range []string{"#! ", "#> ", "#? "} {
			if _, said, ok := strings.Cut(line, mark); ok {
				key := fmt.Sprintf("%s%d", mark, i+1)
				for part := range strings.SplitSeq(said, " ;; ") {
					want[key] = append(want[key], part)
				}
				renders = renders || mark == "#> "
			}
		}
	}
	got := map[string][]string{}
	file, err := Parse(FileInfo{Path: f.Name, Namespace: "__config__"}, f.Data)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("an error of another type: %v", err)
		}
		for _, e := range append([]*Error{e}, e.Further...) {
			class := e.Kind[strings.LastIndexByte(e.Kind, '.')+1:]
			if !e.At.Coarse && e.At.Start.Col > 0 {
				class += fmt.Sprintf(":%d", e.At.Start.Col)
			}
			// The place behind the end of the text is marked on the last line.
			key := fmt.Sprintf("#! %d", min(int(e.At.Start.Line), strings.Count(text, "\n")))
			got[key] = append(got[key], class+" "+e.Message)
		}
	} else {
		for _, s := range file.Statements {
			if renders {
				key := fmt.Sprintf("#> %d", s.Where().Start.Line)
				got[key] = append(got[key], Render(s))
			}
		}
		for _, w := range file.Warnings {
			key := fmt.Sprintf("#? %d", w.At.Start.Line)
			got[key] = append(got[key], w.Message)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

// Line ends of all systems count as one, a byte order mark is no letter, and
// bytes that are no UTF-8 have a place.
func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"windows":       {"x = 1\r\ny = = 2", "f.cf:2:6"},
		"old mac":       {"x = 1\ry = = 2", "f.cf:2:6"},
		"byte order":    {"\ufeffx = 1", "f.cf:1:1"},
		"not UTF-8":     {"x = 1\ny = \"\xff\"", "f.cf:2:6"},
		"wide letters":  {"x = 'ééé' =", "f.cf:1:12"},
		"open string":   {"x = \"a", "f.cf:1:5"},
		"broken string": {"x = 'a\n'", "f.cf:1:5"},
		"open block":    {"x = \"\"\"a\"\" ", "f.cf:1:10"},
		"after a block": {"x = \"\"\"a\nb\"\"\" =", "f.cf:2:16"},
	} {
		_, err := Parse(FileInfo{Path: "f.cf"}, []byte(c.text))
		var e *Error
		if !errors.As(err, &e) || e.At.String() != c.want {
			t.Errorf("%s: got %v, want an error at %s", name, err, c.want)
		}
	}
	file, err := Parse(FileInfo{Path: "f.cf"}, nil)
	if err != nil || len(file.Statements) != 0 {
		t.Errorf("an empty file: %v %v", file, err)
	}
}

// Nesting is bounded by memory only: neither parsing, nor the judge, nor
// rendering returns up at depth.
func TestDepth(t *testing.T) {
	depth := 10_000
	if racedetector.On { // which costs time here, not stack
		depth = 2_000
	}
	for name, c := range map[string]struct{ open, middle, shut string }{
		"parentheses":  {"(", "1", ")"},
		"lists":        {"[", "x", "]"},
		"not":          {"not ", "x", ""},
		"sums":         {"1 + ", "x", ""},
		"calls":        {"f(", "x", ")"},
		"constructors": {"A(x=", "x", ")"},
		"dicts":        {`{"a": `, "x", "}"},
		"conditions":   {"x ? y : (", "x", ")"},
		"ifs":          {"if x: ", "y = 1", " end"},
		"loops":        {"for x in y: ", "y = 1", " end"},
		"elifs":        {"if x: y=1 elif x: if x: y=1 ", "else: y=2", " end end"},
		"attributes":   {"", "x" + strings.Repeat(".x", depth), ""},
		"lookups":      {"", "x" + strings.Repeat("[1]", depth), ""},
		"statements":   {"x = 1 ", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(c.open, depth) + c.middle + strings.Repeat(c.shut, depth)
			file, err := Parse(FileInfo{Path: "deep.cf"}, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range file.Statements {
				if Render(s) == "" {
					t.Fatal("renders to nothing")
				}
			}
			if _, err := Parse(FileInfo{Path: "deep.cf"}, []byte(text+" =")); err == nil {
				t.Fatal("a lone = was accepted")
			}
		})
	}
}
