package deploys

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/internal/testing/tool"
)

// A person cannot find out why a note has its text. Eve wrote the implementation that
// makes it, two implementations deep, and Noor pushed the room that it belongs to
// later. The server names the line, the chain of implementations that led there, and
// who committed each, on the command line and next to the attribute in the console.
func TestWhoDecidedThisValue(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	w := lab.SharedWorld(t)
	p := w.NewPlace(t)
	p.Push("notes and shelves", lab.MergeFiles(lab.Module, map[string]string{
		"main.cf":               "import shelf\n",
		"libs/shelf/module.yml": "name: shelf\nversion: 1.0.0\nlicense: Apache 2.0\n",
		"libs/shelf/model/_init.cf": `import std
import lab

entity Room:
    string name
    string path
end
entity Shelf:
    string label
    string path
end
implement Room using furnished
implement Shelf using noted

implementation furnished for Room:
    Shelf(label="shelf of {{ self.name }}", path=self.path)
end
implementation noted for Shelf:
    lab::Note(
        path=self.path,
        text=self.label,
    )
end
`,
	}))
	eve := p.Head()
	p.Author = "Noor"
	p.Push(
		"a room for guests",
		map[string]string{
			"main.cf": "import shelf\n\nshelf::Room(name=\"guests\", path=\"" + filepath.Join(p.Site, "a") + "\")\n",
		},
	)
	noor := p.Head()
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	env := p.Env.String()
	id := "lab::Note[desk,path=" + filepath.Join(p.Site, "a") + "]"

	var explained provenance.Explanation
	if err := json.Unmarshal([]byte(w.Must(t, "model", "explain", id+".text", "--environment", env, "-o", "json")),
		&explained); err != nil {
		t.Fatal(err)
	}
	if explained.Commit != noor || len(explained.Attributes) != 1 ||
		string(explained.Attributes[0].Value) != `"shelf of guests"` ||
		len(explained.Attributes[0].Settings) != 1 {
		t.Fatalf("explained %+v", explained)
	}
	set := explained.Attributes[0].Settings[0]
	if set.File != "libs/shelf/model/_init.cf" || set.Line != 21 || set.Commit == nil || set.Commit.ID != eve ||
		set.Commit.Author != "Eve" ||
		set.Commit.Subject != "notes and shelves" {
		t.Errorf("it was set at %s:%d by %+v", set.File, set.Line, set.Commit)
	}
	var chain []string
	for _, s := range set.Steps {
		chain = append(chain, s.Implementation)
	}
	if strings.Join(chain, " ") != "shelf::noted shelf::furnished" {
		t.Fatalf("the chain is %q", chain)
	}
	if made := set.Steps[1]; made.Made.File != "main.cf" || made.Made.Line != 3 || made.MadeCommit == nil ||
		made.MadeCommit.ID != noor ||
		made.MadeCommit.Author != "Noor" {
		t.Errorf("the room was made at %+v by %+v", made.Made, made.MadeCommit)
	}

	lab.Mentions(t, w.Must(t, "model", "explain", id+".text", "--environment", env),
		"set at libs/shelf/model/_init.cf:21", "text=self.label", eve[:10]+" Eve <eve@example.org>",
		"notes and shelves", "in implementation shelf::noted of", "in implementation shelf::furnished of",
		"made at main.cf:3", noor[:10]+" Noor <noor@example.org>", "a room for guests")

	page := p.Fetch("/e/" + env + "/resource?id=" + url.QueryEscape(id))
	row := regexp.MustCompile(`(?s)<tr[^>]*><th scope="row" class="mono">text</th>.*?</tr>`).
		FindString(strings.ReplaceAll(page, "<wbr>", ""))
	lab.Mentions(t, row, "shelf of guests", "libs/shelf/model/_init.cf:21", eve[:7], "Eve", "shelf::noted",
		"shelf::furnished", "main.cf:3", noor[:7], "Noor", "a room for guests")
	if !strings.Contains(page, "Decided") {
		t.Error("the page has no column that says who decided")
	}
}
