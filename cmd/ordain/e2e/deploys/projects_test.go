package deploys

import (
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
)

// A project that works in Inmanta cannot be deployed, because its module is in a Git
// repository of its own. The server downloads it at the newest tag that project.yml
// allows, applies environment_settings, and deploys. A partial compile then deploys one
// resource set, and the other stays as it was.
func TestAProjectWithModulesElsewhere(t *testing.T) {
	t.Parallel()
	tool.Long(t, "a project of several repositories")
	w := lab.SharedWorld(t)
	module := w.NewPlace(t)
	files := map[string]string{}
	for name, text := range lab.Module {
		if rest, ok := strings.CutPrefix(name, "libs/lab/"); ok {
			files[rest] = text
		}
	}
	module.Push("first", files)
	module.Git("tag", "1.0.0")
	files["module.yml"] = strings.Replace(files["module.yml"], "1.0.0", "2.0.0", 1)
	module.Push("second", files)
	module.Git("tag", "2.0.0")
	module.Git("push", "-q", "--tags", "origin")

	projectYML := func(repo string) string {
		return lab.Module["project.yml"] + "downloadpath: libs\nrequires: [lab<2]\nrepo: [\"file://" + filepath.Dir(
			module.Bare,
		) + repo + "\"]\n" +
			"environment_settings: {available_versions_to_keep: 7}\n"
	}
	p := w.NewPlace(t)
	p.Push("a shop", map[string]string{
		"requirements.txt": lab.Module["requirements.txt"],
		"project.yml":      projectYML("/none/{}.git"),
		"main.cf": `import lab
part = std::get_env("PART", "all")
text = std::get_env("TEXT", "one")
if part == "all" or part == "x":
    std::ResourceSet(name="x", resources=[lab::Note(path="` + p.Site + `/x", text=text)])
end
if part == "all" or part == "y":
    std::ResourceSet(name="y", resources=[lab::Note(path="` + p.Site + `/y", text=text)])
end
`,
	})
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	lab.Mentions(t, p.FailsIn(intent.StageInstall), "the module lab, imported at main.cf:1, cannot be found",
		"/none/lab.git: ")

	// The size limit for files applies to modules, too.
	files["large"], files["module.yml"] = strings.Repeat("x", 2<<20), strings.Replace(files["module.yml"],
		"2.0.0", "1.1.0", 1)
	module.Push("by accident", files)
	module.Git("tag", "1.1.0")
	module.Git("push", "-q", "--tags", "origin")
	at := filepath.Join(filepath.Dir(module.Bare), "lab.git")
	module.Git("clone", "-q", "--bare", module.Bare, at)
	if err := p.Control.SetSetting(t.Context(), p.Env, "git_max_file", 1); err != nil {
		t.Fatal(err)
	}
	p.Push("a module with a large file", map[string]string{"project.yml": projectYML("/{}.git")})
	lab.Mentions(t, p.FailsIn(intent.StageInstall), "lab.git", `"large" has 2 MiB`, "git_max_file")
	if err := p.Control.SetSetting(t.Context(), p.Env, "git_max_file", 2); err != nil {
		t.Fatal(err)
	}
	p.Push("no other model", map[string]string{"note": "and a larger limit"})
	first := p.CompiledWell()
	p.Settled()
	if p.Note("x") != "one" || p.Note("y") != "one" {
		t.Fatalf("x is %q, y is %q", p.Note("x"), p.Note("y"))
	}
	v, err := p.Store.Version(t.Context(), p.Env, *first.Version)
	if err != nil || v.Provenance.Modules["lab"] != "1.1.0" {
		t.Errorf("modules are %v, %v", v.Provenance.Modules, err)
	}
	if err := p.Control.SetSetting(t.Context(), p.Env, "available_versions_to_keep", 9); !fault.Is(err,
		fault.Forbidden) {
		t.Errorf("a setting of project.yml was changed: %v", err)
	}

	if _, _, err := p.Control.RequestCompile(t.Context(), p.Env, control.CompileRequest{
		Trigger: intent.Trigger{Type: "api"}, Partial: true, Variables: map[string]string{"PART": "x", "TEXT": "two"},
	}); err != nil {
		t.Fatal(err)
	}
	p.CompiledWell()
	if rows := p.Settled(); len(rows) != 2 || p.Note("x") != "two" || p.Note("y") != "one" {
		t.Errorf("after the partial compile: %v, x is %q, y is %q", rows, p.Note("x"), p.Note("y"))
	}
}
