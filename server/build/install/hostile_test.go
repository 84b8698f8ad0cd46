package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/server/build/install"
)

// onServer installs as the server does for an environment.
func (w *world) onServer(r *install.Request) {
	r.Owner, r.Root, r.NoLocal, r.InPlace = "environment-1", w.project, true, false
	r.Venv = filepath.Join(w.project, ".env-py3")
}

// The author of a project or of a module in it tries to see a file of the server in the
// report. The report names the line that is not allowed, and holds nothing of the file.
func TestTheReportShowsNoFileOfTheServer(t *testing.T) {
	w := newWorld(t)
	secret := filepath.Join(t.TempDir(), ".secret.key")
	if err := os.WriteFile(secret, []byte("ordain-key-1 c2VjcmV0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		place string
	}{
		"a project":    {map[string]string{"requirements.txt": "\n-r " + secret + "\n"}, "requirements.txt:2"},
		"a constraint": {map[string]string{"requirements.txt": "--constraint=" + secret}, "requirements.txt:1"},
		"a module": {map[string]string{
			"libs/a/module.yml": "name: a\nversion: 1.0\nlicense: x\n", "libs/a/requirements.txt": "-r " + secret,
		}, filepath.Join("libs", "a", "requirements.txt:1")},
		"an index": {map[string]string{
			"project.yml": strings.Replace(yml, "$INDEX", "file://"+filepath.Dir(secret), 1),
		}, "project.yml"},
		"requires": {
			map[string]string{"project.yml": yml + "requires: [\"std @ file://" + secret + "\"]\n"}, "constraint",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.project = t.TempDir()
			w.give(map[string]string{"project.yml": yml, "main.cf": ""})
			w.give(c.files)
			r, err := w.install(w.onServer)
			if err == nil {
				t.Fatalf("installed: %v", r.Commands)
			}
			all := err.Error() + w.said.String() + strings.Join(r.Commands, "\n")
			contains(t, all, c.place)
			if strings.Contains(all, "ordain-key") || strings.Contains(all, "c2VjcmV0") {
				t.Errorf("the key is in the report:\n%s", all)
			}
			if len(r.Commands) > 0 {
				t.Errorf("an installer ran: %v", r.Commands)
			}
		})
	}
}

// A plug-in damages the virtual environment that it runs in. The next compile says so and
// mends it, before it believes that there is nothing to install.
func TestTheReportSaysWhatWasMended(t *testing.T) {
	w := newWorld(t)
	w.wheel("leaf", "1.0", "")
	w.give(map[string]string{"project.yml": yml, "main.cf": "", "requirements.txt": "leaf\n"})
	r := w.must(w.onServer)
	leaf := filepath.Join(r.Python.SitePackages, "leaf.py")
	if err := os.WriteFile(leaf, []byte("version = 'evil'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r = w.must(w.onServer); !r.Python.Built {
		t.Error("the damage was not noticed")
	}
	contains(t, w.said.String(), "The virtual environment was damaged and has been mended", "leaf.py was changed")
	if text, err := os.ReadFile(leaf); err != nil || string(text) != "version = '1.0'\n" {
		t.Errorf("leaf.py is %q, %v", text, err)
	}
	if r = w.must(w.onServer); r.Python.Built || strings.Contains(w.said.String(), "damaged") {
		t.Errorf("it was mended again: %s", w.said.String())
	}
}
