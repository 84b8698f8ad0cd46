package faults

import (
	"encoding/json"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// Somebody pushes broken commits, each broken in its own way, on top of a note
// that is deployed. Each report fails in the right stage and says what is wrong
// and where, the note stays as it was, and a commit that mends the project brings
// the environment back.
func TestBrokenCommits(t *testing.T) {
	tool.Long(t, "a push and a compile for each kind of mistake")
	t.Parallel()
	p := lab.NewDeployedPlace(t, lab.SharedWorld(t))
	for _, c := range []struct {
		name  string
		file  string
		text  string
		stage string
		words []string
		at    string // the place of the first diagnostic, if there is one
	}{
		{
			name: "project.yml missing", file: "project.yml",
			stage: intent.StageInstall, words: []string{"project.yml"},
		},
		{
			name: "project.yml malformed", file: "project.yml", text: "name: [lab\nmodulepath: libs\n",
			stage: intent.StageInstall, words: []string{"project.yml"},
		},
		{
			name: "module that does not exist", file: "main.cf", text: "import lab\nimport nowhere\n",
			stage: intent.StageInstall, words: []string{"module nowhere", "imported at main.cf:2"},
		},
		{
			name: "requirement that does not resolve", file: "requirements.txt",
			text:  "inmanta-module-std<8\nno-such-package-at-all==9.9\n",
			stage: intent.StageInstall, words: []string{"no-such-package-at-all"},
		},
		{
			name: "syntax error", file: "main.cf", text: "import lab\nx = = 3\n",
			stage: intent.StageCompile, words: []string{"syntax"}, at: "main.cf:2:5",
		},
		{
			name: "plug-in raises", file: "main.cf", text: "import lab\nx = lab::shout(\"quiet\")\n",
			stage: intent.StageCompile, words: []string{"cannot shout quietly"}, at: "main.cf:2",
		},
		{
			name: "plug-in file does not import", file: "libs/lab/plugins/broken.py", text: "import " +
				"no_such_python_module\n",
			stage: intent.StageCompile, words: []string{"no_such_python_module"},
		},
		{
			name: "value of the wrong type", file: "main.cf", text: "import lab\nlab::Note(path=\"/x\", text=3)\n",
			stage: intent.StageCompile, words: []string{"text"}, at: "main.cf:2",
		},
	} {
		ok := t.Run(c.name, func(t *testing.T) {
			p.T = t
			if c.text == "" {
				p.Git("rm", "-q", c.file)
				p.Push("broken: "+c.name, nil)
			} else {
				p.Push("broken: "+c.name, map[string]string{c.file: c.text})
			}
			before := p.DeployedState()
			compile, stages := p.Compiled()
			last := stages[len(stages)-1]
			if *compile.Success || last.Name != c.stage {
				t.Fatalf("want a failure in %q:\n%s", c.stage, lab.Report(stages))
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
			lab.Mentions(t, said, c.words...)
			if c.at != "" {
				lab.Mentions(t, said, c.at)
				if len(diags) == 0 || diags[0].Location == nil || diags[0].Source == "" || diags[0].Code == "" {
					t.Errorf("the diagnostics lack a code, a place or the source line: %+v", diags)
				}
			}
			if after := p.DeployedState(); after != before {
				t.Errorf("a failed compile changed what is deployed:\n%s\nbecame\n%s", before, after)
			}
			mended := "mended after " + c.name
			p.Push(mended, lab.MergeFiles(lab.Module, p.Model([3]string{"a", mended, "calm"}),
				map[string]string{"libs/lab/plugins/broken.py": ""}))
			p.CompiledWell()
			p.Settled()
			if p.Note("a") != mended {
				t.Errorf("after mending, a is %q", p.Note("a"))
			}
		})
		p.T = t
		if !ok {
			return
		}
	}
}
