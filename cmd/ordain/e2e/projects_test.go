package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// A project that works in Inmanta cannot be deployed, because its module is in a Git
// repository of its own. The server downloads it at the newest tag that project.yml
// allows, applies environment_settings, and deploys. A partial compile then deploys one
// resource set, and the other stays as it was.
func TestAProjectWithModulesElsewhere(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	module := w.newPlace(t)
	files := map[string]string{}
	for name, text := range labModule {
		if rest, ok := strings.CutPrefix(name, "libs/lab/"); ok {
			files[rest] = text
		}
	}
	module.push("first", files)
	module.git("tag", "1.0.0")
	files["module.yml"] = strings.Replace(files["module.yml"], "1.0.0", "2.0.0", 1)
	module.push("second", files)
	module.git("tag", "2.0.0")
	module.git("push", "-q", "--tags", "origin")

	projectYML := func(repo string) string {
		return labModule["project.yml"] + "downloadpath: libs\nrequires: [lab<2]\nrepo: [\"file://" + filepath.Dir(
			module.bare,
		) + repo + "\"]\n" +
			"environment_settings: {available_versions_to_keep: 7}\n"
	}
	p := w.newPlace(t)
	p.push("a shop", map[string]string{
		"requirements.txt": labModule["requirements.txt"],
		"project.yml":      projectYML("/none/{}.git"),
		"main.cf": `import lab
part = std::get_env("PART", "all")
text = std::get_env("TEXT", "one")
if part == "all" or part == "x":
    std::ResourceSet(name="x", resources=[lab::Note(path="` + p.site + `/x", text=text)])
end
if part == "all" or part == "y":
    std::ResourceSet(name="y", resources=[lab::Note(path="` + p.site + `/y", text=text)])
end
`,
	})
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	mentions(t, p.failsIn(intent.StageInstall), "the module lab, imported at main.cf:1, cannot be found",
		"/none/lab.git: ")

	// The size limit for files applies to modules, too.
	files["large"], files["module.yml"] = strings.Repeat("x", 2<<20), strings.Replace(files["module.yml"],
		"2.0.0", "1.1.0", 1)
	module.push("by accident", files)
	module.git("tag", "1.1.0")
	module.git("push", "-q", "--tags", "origin")
	at := filepath.Join(filepath.Dir(module.bare), "lab.git")
	module.git("clone", "-q", "--bare", module.bare, at)
	if err := p.control.SetSetting(t.Context(), p.env, "git_max_file", 1); err != nil {
		t.Fatal(err)
	}
	p.push("a module with a large file", map[string]string{"project.yml": projectYML("/{}.git")})
	mentions(t, p.failsIn(intent.StageInstall), "lab.git", `"large" has 2 MiB`, "git_max_file")
	if err := p.control.SetSetting(t.Context(), p.env, "git_max_file", 2); err != nil {
		t.Fatal(err)
	}
	p.push("no other model", map[string]string{"note": "and a larger limit"})
	first := p.compiledWell()
	p.settled()
	if p.note("x") != "one" || p.note("y") != "one" {
		t.Fatalf("x is %q, y is %q", p.note("x"), p.note("y"))
	}
	v, err := p.store.Version(t.Context(), p.env, *first.Version)
	if err != nil || v.Provenance.Modules["lab"] != "1.1.0" {
		t.Errorf("modules are %v, %v", v.Provenance.Modules, err)
	}
	if err := p.control.SetSetting(t.Context(), p.env, "available_versions_to_keep", 9); !fault.Is(err,
		fault.Forbidden) {
		t.Errorf("a setting of project.yml was changed: %v", err)
	}

	if _, _, err := p.control.RequestCompile(t.Context(), p.env, control.CompileRequest{
		Trigger: intent.Trigger{Type: "api"}, Partial: true, Variables: map[string]string{"PART": "x", "TEXT": "two"},
	}); err != nil {
		t.Fatal(err)
	}
	p.compiledWell()
	if rows := p.settled(); len(rows) != 2 || p.note("x") != "two" || p.note("y") != "one" {
		t.Errorf("after the partial compile: %v, x is %q, y is %q", rows, p.note("x"), p.note("y"))
	}
}
