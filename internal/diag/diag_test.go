package diag

import (
	"regexp"
	"strings"
	"testing"
)

// A diagnostic is drawn with its line, a caret under the place, and its causes
// set in below.
func TestRender(t *testing.T) {
	d := Diagnostic{
		Severity: Error, Code: "E0203", Message: "Could not set attribute x",
		Location: &Location{File: "main.cf", Line: 12, Column: 3, EndLine: 12, EndColumn: 8},
		Source:   "\ta.x = 4", Hint: "x was set before",
		Causes: []Diagnostic{
			{Severity: Error, Message: "value set twice", Location: &Location{File: "main.cf", Line: 2}},
		},
	}
	want := `error[E0203]: Could not set attribute x
   --> main.cf:12:3
    |
 12 |  a.x = 4
    |   ^^^^^
    = help: x was set before
  caused by:
    error: value set twice
      --> main.cf:2
`
	if got := d.Render(); got != want {
		t.Errorf("drawn as\n%s\nwant\n%s", got, want)
	}
}

// A caret never leaves its line: a place that spans lines marks to the end of
// the first, one that lies past the end marks one character.
func TestCaretStaysOnTheLine(t *testing.T) {
	for _, c := range []struct {
		at   Location
		want string
	}{
		{Location{Line: 1, Column: 3, EndLine: 3, EndColumn: 1}, "^^^"},
		{Location{Line: 1, Column: 9, EndLine: 2}, "^"},
		{Location{Line: 1, Column: 2}, "^"},
	} {
		d := Diagnostic{Location: &c.at, Source: "abcde"}
		if got := d.caret(5); got != c.want {
			t.Errorf("%+v is marked %q, want %q", c.at, got, c.want)
		}
	}
}

// Codes are for ever: no two kinds share one.
func TestCodesAreUnique(t *testing.T) {
	kinds := map[string]string{}
	for kind, code := range codes {
		if other, taken := kinds[code]; taken {
			t.Errorf("%s and %s share %s", kind, other, code)
		}
		kinds[code] = kind
	}
	if Code("inmanta.ast.DoubleSetException") != "E0202" || Code("x.NewError") != "E0000" ||
		Code("x.NewWarning") != "W0000" {
		t.Error("Code does not find codes")
	}
}

// Colours only colour: without them the text is the same.
func TestColoursChangeNothingElse(t *testing.T) {
	d := Diagnostic{
		Severity: Warning, Code: "W0101", Message: "a variable hides another one", Hint: "rename it", Expected: "a",
		Found:    "b",
		Location: &Location{File: "main.cf", Line: 2, Column: 1, EndColumn: 3}, Source: "xy = 1", Repeats: 1,
		Related: []Related{{Label: "it was", Location: Location{File: "main.cf", Line: 1}, Source: "xy = 2"}},
		Chain: []Step{
			{Instance: "a::B", Implementation: "a::c", Made: &Location{File: "main.cf", Line: 9}, Source: "B()"},
		},
		Python: []Frame{{Location: Location{File: "p.py", Line: 3}, Function: "f", Source: "return g()"}},
		Causes: []Diagnostic{{Severity: Error, Message: "why"}},
	}
	plainly, coloured := Style{}.Render(d), Style{Colour: true}.Render(d)
	if strings.Contains(plainly, "\x1b") || !strings.Contains(coloured, yellow+"warning[W0101]"+plain) {
		t.Errorf("drawn as %q and %q", plainly, coloured)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""); got != plainly {
		t.Errorf("without its colours:\n%s\nwant:\n%s", got, plainly)
	}
}

// A hostile model cannot make a terminal do anything: every text of a
// diagnostic is shown, never obeyed, in colour too.
func TestATerminalObeysNoModel(t *testing.T) {
	const evil = "a\x1b[2J\u009b1A\u202e\a"
	at := Location{File: evil, Line: 1, Column: 1}
	d := Diagnostic{
		Severity: Error, Message: evil, Hint: evil, Expected: evil, Found: evil, Location: &at, Source: evil,
		Also:    []Location{at},
		Related: []Related{{Label: evil, Location: at, Source: evil}},
		Chain:   []Step{{Instance: evil, Implementation: evil, Made: &at, Source: evil}},
		Python:  []Frame{{Location: at, Function: evil, Source: evil}},
		Causes:  []Diagnostic{{Severity: Error, Message: evil}},
	}
	for _, text := range []string{Style{}.Render(d), Style{Colour: true}.Render(d),
		Style{Colour: true}.RenderAll([]Diagnostic{d})} {
		for _, bad := range []string{"\x1b[2J", "\u009b", "\u202e", "\a"} {
			if strings.Contains(text, bad) {
				t.Errorf("%q goes to the terminal in %q", bad, text)
			}
		}
		if n := strings.Count(text, "␛[2J"); n < 15 {
			t.Errorf("only %d of the texts are shown: %q", n, text)
		}
	}
	if at.File != evil {
		t.Error("drawing changed the diagnostic")
	}
}
