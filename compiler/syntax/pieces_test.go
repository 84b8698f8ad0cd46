package syntax

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Wherever a text is cut into pieces that parse, it parses as a whole, to the same
// statements, places and warnings.
func FuzzPieces(f *testing.F) {
	seeds(f)
	addCases(f, "../testdata/parity/*.txtar", ".cf")
	f.Add("x = \"\"\"\ny = 1\nz = 2\n\"\"\" w = 3\nv = \"\\d\"\nu = {{\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, bad := invalidUTF8([]byte(text)); bad || strings.Count(text, "\n") > 300 {
			return
		}
		whole := string(uniformLines([]byte(text))) + "\n"
		info := File{Path: "f.cf", Namespace: "__config__"}
		want := info
		p := newParser(&want, whole)
		accepted := p.all()
		want.Statements, want.Doc, want.Warnings = p.top, p.doc, p.warnings
		var cuts []int
		for at := range len(whole) {
			if at == 0 || whole[at-1] != '\n' || !isLetter(whole[at]) {
				continue
			}
			cuts = append(cuts, at)
			for _, at := range [][]int{{at}, cuts[max(0, len(cuts)-3):], cuts} {
				got := info
				if !parseCut(&got, whole, slices.Clone(at)) {
					continue
				}
				if !accepted {
					t.Fatalf("cut at %d it parses, as a whole it does not:\n%s", at, text)
				}
				if !reflect.DeepEqual(&got, &want) {
					t.Fatalf("cut at %d it is something else:\n%s\nin place of\n%s", at, tree(&got), tree(&want))
				}
			}
		}
	})
}

// A long file is cut at the begin of a statement; where that is none, or where
// there is an error, what comes of it is what comes of any file.
func TestALongFileIsParsedInPieces(t *testing.T) {
	sample, err := os.ReadFile("testdata/sample.cf")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat(string(sample)+"\n", 1+2*longText/len(sample)) + "\n"
	if !parsePieces(&File{Path: "long.cf"}, long) {
		t.Fatal("it cannot be cut")
	}
	within := "x = \"\"\"\n" + strings.Repeat("import nothing\n", longText) + "\"\"\"\ny = 1\n"
	if file, err := Parse(FileInfo{Path: "f.cf"}, []byte(within)); err != nil || len(file.Statements) != 2 ||
		file.Statements[1].Where().Start.Line != longText+3 {
		t.Errorf("a long text is %d statements, %v", len(file.Statements), err)
	}
	wrong := strings.Repeat("x = 1\n", longText) + "y = = 1\n"
	if _, err := Parse(FileInfo{Path: "f.cf"}, []byte(wrong)); err == nil || err.(*Error).At.Start.Line != longText+1 {
		t.Errorf("an error in the last piece is %v", err)
	}
}
