package e2e

import (
	"encoding/json"
	"testing"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
)

// Each of these commits is broken in its own way, on top of a note that runs.
// The report fails in the right stage and says what is wrong and where; the
// note stays as it was; and mending the commit brings the environment back.
func TestBrokenCommits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		stage string
		words []string
		at    string // place of the first diagnostic, when there is one
	}{
		{"project.yml missing", map[string]string{"project.yml": ""}, intent.StageInstall, []string{"project.yml"}, ""},
		{"project.yml malformed", map[string]string{"project.yml": "name: [lab\nmodulepath: libs\n"}, intent.StageInstall, []string{"project.yml"}, ""},
		{"module that does not exist", map[string]string{"main.cf": "import lab\nimport nowhere\n"}, intent.StageInstall, []string{"module nowhere", "imported at main.cf:2"}, ""},
		{"requirement that does not resolve", map[string]string{"requirements.txt": "inmanta-module-std<8\nno-such-package-at-all==9.9\n"}, intent.StageInstall, []string{"no-such-package-at-all"}, ""},
		{"syntax error", map[string]string{"main.cf": "import lab\nx = = 3\n"}, intent.StageCompile, []string{"syntax"}, "main.cf:2:5"},
		{"plug-in raises", map[string]string{"main.cf": "import lab\nx = lab::shout(\"quiet\")\n"}, intent.StageCompile, []string{"cannot shout quietly"}, "main.cf:2"},
		{"plug-in file does not import", map[string]string{"libs/lab/plugins/broken.py": "import no_such_python_module\n"}, intent.StageCompile, []string{"no_such_python_module"}, ""},
		{"value of the wrong type", map[string]string{"main.cf": "import lab\nlab::Note(path=\"/x\", text=3)\n"}, intent.StageCompile, []string{"text"}, "main.cf:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := deployed(t, sharedWorld(t))
			files := c.files
			if text, gone := files["project.yml"]; gone && text == "" {
				p.git("rm", "-q", "project.yml")
				files = nil
			}
			p.push("broken: "+c.name, files)
			before := p.deployedState()
			compile, stages := p.compiled()
			last := stages[len(stages)-1]
			if *compile.Success || last.Name != c.stage {
				t.Fatalf("want a failure in %q:\n%s", c.stage, report(stages))
			}
			said := last.Output + last.ErrOutput
			var diags []diag.Diagnostic
			if compile.Diagnostics != nil {
				if err := json.Unmarshal(compile.Diagnostics, &diags); err != nil {
					t.Fatal(err)
				}
				for _, d := range diags {
					said += d.Render()
				}
			}
			mentions(t, said, c.words...)
			if c.at != "" {
				mentions(t, said, c.at)
				if len(diags) == 0 || diags[0].Location == nil || diags[0].Source == "" || diags[0].Code == "" {
					t.Errorf("the diagnostics lack a code, a place or the source line: %+v", diags)
				}
			}
			if after := p.deployedState(); after != before {
				t.Errorf("a failed compile changed what is deployed:\n%s\nbecame\n%s", before, after)
			}
			p.push(
				"mended",
				merge(labModule, p.model([3]string{"a", "two", "calm"}),
					map[string]string{"libs/lab/plugins/broken.py": ""}),
			)
			p.compiledWell()
			p.settled()
			if p.note("a") != "two" {
				t.Errorf("after mending a is %q", p.note("a"))
			}
		})
	}
}
