package compiler_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/python/runtime"
)

// oneByOne is a host that gets one call at a time.
type oneByOne struct{ eval.Host }

// TakeOutput returns what was printed outside of calls.
func (h oneByOne) TakeOutput() []string {
	return h.Host.(interface{ TakeOutput() []string }).TakeOutput()
}

// counting is a host that counts the calls that are posted.
type counting struct {
	oneByOne
	posted *int
}

// Post implements eval.BatchHost.
func (h counting) Post(calls []eval.PluginCall, heaps []eval.Heap) bool {
	ok := h.Host.(eval.BatchHost).Post(calls, heaps)
	if ok {
		*h.posted += len(calls)
	}
	return ok
}

// Next implements eval.BatchHost.
func (h counting) Next() eval.Outcome { return h.Host.(eval.BatchHost).Next() }

// However many calls go to Python at once, the model, the output and the error are
// the same as when they go one by one.
func TestPostedCallsAreLikeCallsOneByOne(t *testing.T) {
	const code = `
import os
from inmanta.plugins import plugin, Context

log = os.path.join(os.path.dirname(__file__), "log")

@plugin
def note(n: "int", text: "string") -> "string":
    print(n, text)
    with open(log, "a") as file:
        file.write(f"note {n}\n")
    if n == 7:
        raise Exception("seven")
    return text * 2

@plugin
def whole(ctx: Context, n: "int") -> "int":
    print("whole", n)
    with open(log, "a") as file:
        file.write(f"whole {n}\n")
    return n
`
	for name, model := range map[string]string{
		"all is well": `
entity Box:
    int n
    string text
end
index Box(n)
implementation fill for Box:
    self.text = m::note(self.n, "a{{ self.n }}")
    twice = m::note(self.n + 100, self.text)
    other = m::whole(self.n)
end
implement Box using fill
for i in [1, 2, 3, 4, 5]:
    Box(n=i)
end
`,
		"one fails": `
x = [m::note(5, "a"), m::note(6, "a"), m::note(7, "a"), m::note(8, "a")]
y = m::note(9, "b")
`,
		"the model is wrong between them": `
a = m::note(1, "a")
z = 1
z = 2
b = m::note(2, "b")
c = m::whole(3)
`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"project.yml": "name: test\nmodulepath: libs\n", "main.cf": "import m\n" + model,
				"libs/m/module.yml":          "name: m\nversion: 1.0\nlicense: x\n",
				"libs/m/model/_init.cf":      "",
				"libs/m/plugins/__init__.py": code,
			} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			log := filepath.Join(dir, "libs/m/plugins/log")
			compile := func(wrap func(eval.Host) eval.Host) (*eval.Result, string) {
				t.Helper()
				_ = os.Remove(log)
				result := compileWith(t, dir, wrap)
				text, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				return result, string(text)
			}
			single, singleLog := compile(func(h eval.Host) eval.Host { return oneByOne{h} })
			posted := 0
			several, severalLog := compile(func(h eval.Host) eval.Host { return counting{oneByOne{h}, &posted} })
			if posted == 0 {
				t.Error("no call was posted, so there is nothing to compare")
			}
			if diff := cmp.Diff(single.Output, several.Output); diff != "" {
				t.Errorf("output: %s", diff)
			}
			if (single.Err == nil) != (name == "all is well") ||
				single.Err != nil && (several.Err == nil || single.Err.Error() != several.Err.Error()) {
				t.Errorf("errors: %v and %v", single.Err, several.Err)
			}
			if single.Err == nil || strings.Contains(singleLog, "note 7") {
				if diff := cmp.Diff(singleLog, severalLog); diff != "" {
					t.Errorf("what ran: %s", diff)
				}
			}
		})
	}
}

func compileWith(t *testing.T, dir string, wrap func(eval.Host) eval.Host) *eval.Result {
	t.Helper()
	project, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	runtimeDir, err := runtime.Unpack(filepath.Join(os.TempDir(), "ordain-plugin-test"))
	if err != nil {
		t.Fatal(err)
	}
	host := plugin.New(
		t.Context(),
		plugin.Config{
			Python:      plugintest.Python(t),
			RuntimeDir:  runtimeDir,
			ProjectDir:  dir,
			ProjectName: "test",
			ModulePath:  project.ModulePath,
		},
	)
	t.Cleanup(func() { host.Close() })
	program, err := module.NewLoader(project).Load("main.cf", false)
	if err != nil {
		t.Fatal(err)
	}
	in := eval.Input{Files: program.Files, Host: wrap(host)}
	for _, m := range program.Modules {
		in.Modules = append(in.Modules,
			eval.ModuleCode{Name: m.Name, Root: m.Path, Dir: m.PluginDir, Files: m.PythonFiles})
	}
	return eval.Compile(t.Context(), in)
}
