package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ordain.dev/ordain/compiler/format"
	"ordain.dev/ordain/compiler/syntax"
)

const styleFile = "testdata/style.txtar"

// Each NAME.in of the archive becomes NAME.out. ORDAIN_UPDATE=1 rewrites them.
func TestStyle(t *testing.T) {
	archive, err := txtar.ParseFile(styleFile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	update := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		name, in := strings.CutSuffix(f.Name, ".in")
		if !in {
			continue
		}
		check(t, f.Name, f.Data)
		got, err := format.Source(syntax.FileInfo{Path: f.Name, Namespace: "__config__"}, f.Data)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		update.Files = append(update.Files, f, txtar.File{Name: name + ".out", Data: got})
		if os.Getenv("ORDAIN_UPDATE") == "" && string(got) != want[name+".out"] {
			t.Errorf("%s becomes\n%s\nand not\n%s", f.Name, got, want[name+".out"])
		}
	}
	if os.Getenv("ORDAIN_UPDATE") != "" && !t.Failed() {
		if err := os.WriteFile(styleFile, txtar.Format(update), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Line ends of Windows and a missing last one are made uniform, a multi-line
// string keeps every blank.
func TestLineEnds(t *testing.T) {
	got, err := format.Source(syntax.FileInfo{Path: "a.cf"}, []byte("x = 1\r\ny = \"\"\"a  \r\n  b\"\"\""))
	if err != nil || string(got) != "x = 1\ny = \"\"\"a  \n  b\"\"\"\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// Ten thousand brackets in one another take no longer than their text.
func TestDeepNesting(t *testing.T) {
	const depth = 10_000
	text := "x = " + strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
	if _, err := syntax.Parse(syntax.FileInfo{Path: "a.cf"}, []byte(text)); err != nil {
		t.Skip("the parser refuses it:", err)
	}
	if _, err := format.Source(syntax.FileInfo{Path: "a.cf"}, []byte(text)); err != nil {
		t.Error(err)
	}
}

// Trees that differ are told apart, or the other tests say nothing.
func TestSame(t *testing.T) {
	parse := func(text string) *syntax.File {
		f, err := syntax.Parse(syntax.FileInfo{Path: "a.cf"}, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := parse("x = A(y=[1, 2.5], z=\"s\")\n")
	if !format.Same(base, parse("# c\nx=A(\ny=[1,2.5,], z='s')")) {
		t.Error("places and quotes make a difference")
	}
	for _, other := range []string{
		"x = A(y=[1, 2.5], z=\"t\")", "x = A(y=[1, 2], z=\"s\")", "x = A(y=[2.5, 1], z=\"s\")", "x = A(y=[1, 2.5])",
		"x = A(y=[1, 2.5], z=\"s\") y",
	} {
		if format.Same(base, parse(other)) {
			t.Errorf("%s is said to be the same", other)
		}
	}
}

// Whatever the text, formatting ends; what parses keeps its meaning and its
// comments, and formatting the result changes nothing.
func FuzzSource(f *testing.F) {
	for _, path := range []string{styleFile, "../testdata/parity/lexer.txtar", "../testdata/parity/operators.txtar",
		"../testdata/parity/relations.txtar"} {
		archive, err := txtar.ParseFile(filepath.FromSlash(path))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, "f.cf", []byte(text)) })
}
