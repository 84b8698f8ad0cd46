package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/build/install"
)

const yml = `name: shop
modulepath: libs
downloadpath: libs
pip: {index_url: "$INDEX"}
repo:
  - {type: git, url: "$GIT/{}.git"}
`

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s", p, text)
		}
	}
}

// A shop needs a package from the index and a module from Git. That module imports
// another module from Git, which needs a package of its own. Everything is installed,
// in the newest versions that project.yml and the modules allow.
func TestEverythingThatAProjectNeeds(t *testing.T) {
	w := newWorld(t)
	w.wheel("inmanta-module-one", "1.0", "import two\n", "inmanta-module-two>=1")
	w.wheel("inmanta-module-one", "2.0", "import two\n", "inmanta-module-two>=1")
	w.wheel("inmanta-module-two", "1.0", "")
	w.wheel("inmanta-module-two", "1.5", "")
	w.wheel("inmanta-module-two", "2.0", "")
	w.wheel("leaf", "1.0", "")
	for _, v := range []string{"1.0", "1.1", "1.2.dev3", "2.0"} {
		w.remote("alpha", v,
			map[string]string{"model/_init.cf": "import beta::sub\n", "module.yml": "+requires: [beta<0.3, two<2]\n"})
	}
	for _, v := range []string{"0.1", "0.2", "0.3"} {
		w.remote("beta", v, map[string]string{"model/sub.cf": "", "requirements.txt": "leaf\n"})
	}
	w.give(map[string]string{
		"project.yml":      yml + "requires: [alpha<2, one~=1.0]\n",
		"main.cf":          "import alpha\nimport one\n",
		"requirements.txt": "inmanta-module-one\n",
	})
	r := w.must()
	if got, want := modules(r), "alpha 1.1 v1, beta 0.2 v1, one 1.0 v2, std 8.7.5 v2, two 1.5 v2"; got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, w.said.String())
	}
	if r.Python.Installed["leaf"] != "1.0" || len(r.Broken) > 0 {
		t.Errorf("installed %v, broken %v", r.Python.Installed, r.Broken)
	}
	if got := w.run(filepath.Join(w.project, "libs", "alpha"), "git", "describe", "--tags"); got != "1.1" {
		t.Errorf("alpha is a clone at %s", got)
	}

	// The second time there is nothing to do. A newer tag is only taken by an update,
	// which stays within what is allowed.
	w.remote("alpha", "1.3",
		map[string]string{"model/_init.cf": "import beta::sub\n", "module.yml": "+requires: [beta<0.3, two<2]\n"})
	w.remote("beta", "0.2.1", map[string]string{"model/sub.cf": ""})
	if r = w.must(); r.Python.Built || len(r.Downloaded) > 0 {
		t.Errorf("the second time did %v", r.Commands)
	}
	if r = w.must(update); modules(r) != "alpha 1.3 v1, beta 0.2.1 v1, one 1.0 v2, std 8.7.5 v2, two 1.5 v2" {
		t.Errorf("after the update: %s\n%s", modules(r), w.said.String())
	}
}

// Which tag is taken.
func TestInstallModes(t *testing.T) {
	tool.Heavy(t, "installs packages")
	for _, c := range []struct{ mode, requires, want, says string }{
		{"release", "[]", "1.1", "Module alpha is at 1.1"},
		{"prerelease", "[]", "2.0rc1", "2.0rc1"},
		{"master", "[]", "3.0", "3.0 (branch main)"},
		{"release", "[alpha==2.0rc1]", "2.0rc1", ""},
		{"release", "[alpha!=1.1]", "1.0", ""},
		{"release", "[alpha==3.0]", "3.0", "no tag of"},
	} {
		t.Run(c.mode+" "+c.requires, func(t *testing.T) {
			w := newWorld(t)
			for _, v := range []string{"1.0", "1.1", "2.0rc1"} {
				w.remote("alpha", v, nil)
			}
			w.remote("alpha", "99", map[string]string{"module.yml": "+compiler_version: 4000\n"})
			w.remote("alpha", "3.0!", nil)
			w.give(
				map[string]string{
					"main.cf":     "import alpha\n",
					"project.yml": yml + "install_mode: " + c.mode + "\nrequires: " + c.requires + "\n",
				},
			)
			r := w.must()
			if got := modules(r); got != "alpha "+c.want+" v1, std 8.7.5 v2" {
				t.Errorf("got %s, want alpha %s", got, c.want)
			}
			contains(t, w.said.String(), c.says)
		})
	}
}

// An error lists everything that was tried, without credentials.
func TestWhatCannotBeFound(t *testing.T) {
	w := newWorld(t)
	secretURL := strings.Replace(w.git.URL, "://", "://ada:s3cr3t-token@", 1)
	w.remote("alpha", "1.0", nil)
	w.give(map[string]string{
		"main.cf": "import nowhere\n",
		"project.yml": "name: shop\nmodulepath: libs\npip: {index_url: \"$INDEX\"}\nrepo:\n  - $GIT/first-\n  - " +
			"{url: \"" + secretURL +
			"/private-{}.git\", type: git}\n  - git@git.example.com:org/\n  - " + w.remotes + "/\n",
	})
	_, err := w.install()
	if !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	contains(
		t,
		err.Error(),
		"the module nowhere, imported at main.cf:1",
		w.git.URL+"/first-/nowhere: ",
		w.git.URL+"/first-nowhere: ",
		w.git.URL+"/private-nowhere.git: ",
		"git.example.com:org/nowhere is reached over SSH, and there is no key",
		w.remotes+"/nowhere: ",
		"inmanta-module-nowhere",
	)
	if strings.Contains(err.Error()+w.said.String(), "s3cr3t") {
		t.Error("the password is shown")
	}
	if left, _ := filepath.Glob(filepath.Join(w.project, "libs", ".*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// Two modules require incompatible versions of a third one. The error says which module
// requires what, and which versions there are.
func TestVersionsThatConflict(t *testing.T) {
	w := newWorld(t)
	w.remote("alpha", "1.0",
		map[string]string{"module.yml": "+requires: [gamma>=2]\n", "model/_init.cf": "import gamma\n"})
	w.remote("beta", "1.0", map[string]string{"module.yml": "+requires: [gamma<2]\n"})
	w.remote("gamma", "1.0", nil)
	w.remote("gamma", "2.0", nil)
	w.give(map[string]string{"main.cf": "import alpha\nimport beta\n", "project.yml": yml})
	_, err := w.install()
	if !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
	contains(t, err.Error(), "no version of the module gamma is allowed", "has 2.0, 1.0", "alpha wants >=2",
		"beta wants <2")
}

// A constraint that is found late moves a module that was cloned early. A module that
// somebody works on is left alone, and reported.
func TestAConstraintThatComesLate(t *testing.T) {
	w := newWorld(t)
	w.remote("alpha", "1.0", map[string]string{"model/_init.cf": "import beta\n"})
	w.remote("beta", "1.0", map[string]string{"module.yml": "+requires: [gamma<2]\n"})
	w.remote("gamma", "1.0", nil)
	w.remote("gamma", "2.0", nil)
	w.give(map[string]string{"main.cf": "import alpha\nimport gamma\n", "project.yml": yml})
	if got := modules(w.must()); got != "alpha 1.0 v1, beta 1.0 v1, gamma 1.0 v1, std 8.7.5 v2" {
		t.Errorf("got %s\n%s", got, w.said.String())
	}
	w.remote("gamma", "1.5", nil)
	w.write(w.project, map[string]string{"libs/gamma/model/_init.cf": "x = 1\n"})
	_, err := w.install(update)
	if !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
	contains(t, err.Error(), "gamma has changes that are not committed: model/_init.cf")
	if text, err := os.ReadFile(filepath.Join(w.project, "libs/gamma/model/_init.cf")); string(text) != "x = 1\n" {
		t.Error("the change is lost", err)
	}
	// A module that no repository offers is only reported.
	w.run(filepath.Join(w.project, "libs/gamma"), "git", "checkout", "-q", ".")
	w.write(
		w.project,
		map[string]string{
			"libs/own/module.yml":     "name: own\nversion: 1\nlicense: x\nrequires: [alpha>5]\n",
			"libs/own/model/_init.cf": "import alpha\n",
		},
	)
	w.give(map[string]string{"main.cf": "import own\n", "project.yml": strings.Replace(yml, "$GIT", "$GIT/none", 1)})
	if r := w.must(); len(r.Broken) != 1 || !strings.Contains(r.Broken[0], "own wants alpha >5, but 1.0 is there") {
		t.Errorf("broken: %v", r.Broken)
	}
}

// An existing environment keeps what its owner installed in it.
func TestAnEnvironmentOfTheirs(t *testing.T) {
	w := newWorld(t)
	w.wheel("inmanta-module-one", "1.0", "", "leaf>=2")
	w.wheel("leaf", "1.0", "")
	w.wheel("leaf", "2.0", "")
	w.wheel("mine", "1.0", "")
	w.give(map[string]string{"main.cf": "", "project.yml": yml, "requirements.txt": "mine\nleaf==1.0\n"})
	w.must()
	w.give(map[string]string{"main.cf": "import one\n", "requirements.txt": "inmanta-module-one\n"})
	r := w.must()
	if i := r.Python.Installed; i["mine"] != "1.0" || i["leaf"] != "2.0" || i["inmanta-module-one"] != "1.0" {
		t.Errorf("installed %v\n%s", i, w.said.String())
	}
	// Nothing can be installed into an environment without an interpreter.
	if err := os.RemoveAll(filepath.Join(w.project, ".env", "bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.install(); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "not a virtual environment") {
		t.Errorf("got %v", err)
	}
}

// The server checks a commit out clean each time. The modules come back from the
// mirror, even if Git is unreachable, and the environment is not made again.
func TestAfterAFreshCheckout(t *testing.T) {
	w := newWorld(t)
	w.wheel("leaf", "1.0", "")
	w.remote("private-alpha", "1.0", map[string]string{"requirements.txt": "leaf\n"})
	w.give(
		map[string]string{
			"main.cf":     "import alpha\n",
			"project.yml": strings.Replace(yml, "{}.git", "private-{}.git", 1),
		},
	)
	server := func(r *install.Request) {
		r.InPlace, r.Refresh, r.Root, r.NoLocal = false, false, w.project, true
		r.Reach = func(url string) (gitsync.Credentials, gitsync.Trust) {
			if !strings.HasPrefix(url, w.git.URL) {
				t.Errorf("credentials for %s", url)
			}
			return gitsync.Credentials{Username: "ada", Password: "s3cr3t-token"}, gitsync.Trust{}
		}
	}
	if r := w.must(server); modules(r) != "alpha 1.0 v1, std 8.7.5 v2" || r.Python.Installed["leaf"] == "" {
		t.Fatal(modules(r), r.Python.Installed)
	}
	if err := os.RemoveAll(filepath.Join(w.project, "libs")); err != nil {
		t.Fatal(err)
	}
	w.remote("private-alpha", "1.1", nil)
	w.away = true
	r := w.must(server)
	if modules(r) != "alpha 1.0 v1, std 8.7.5 v2" || r.Python.Built || len(r.Downloaded) != 1 {
		t.Errorf("got %s, built %v\n%s", modules(r), r.Python.Built, w.said.String())
	}
	if text, err := os.ReadFile(filepath.Join(w.project, "libs/alpha/.git/config")); err != nil ||
		strings.Contains(string(text)+strings.Join(r.Commands, " "), "s3cr3t") {
		t.Error("the password is on the disk or in a command", err)
	}
}

// The size of a module's files is limited like that of the project's.
func TestAModuleWithAHugeFile(t *testing.T) {
	w := newWorld(t)
	w.remote("alpha", "1.0", map[string]string{"model/big.cf": strings.Repeat("# noise\n", 1<<17+1)})
	w.give(map[string]string{"main.cf": "import alpha\n", "project.yml": yml})
	_, err := w.install(func(r *install.Request) { r.MaxFile = 1 << 20 })
	if err == nil {
		t.Fatal("it was installed")
	}
	contains(t, err.Error(), `"model/big.cf" has 2 MiB`)
	w.must(func(r *install.Request) { r.MaxFile = 0 })
}

// A project that comes from elsewhere cannot read repositories on the server's disk,
// nor write outside of its checkout.
func TestAProjectOfAStranger(t *testing.T) {
	tool.Heavy(t, "installs packages")
	stranger := func(r *install.Request) { r.Root, r.NoLocal = r.Dir, true }
	for name, c := range map[string]struct{ yml, says string }{
		"reads the disk": {"modulepath: libs\nrepo: [\"file://$REMOTES/{}\"]\n", "on the disk of the server"},
		"reads a path":   {"modulepath: libs\nrepo: [\"$REMOTES/\"]\n", "on the disk of the server"},
		"writes outside": {"modulepath: ../out\ndownloadpath: ../out\nrepo: [\"$GIT/{}.git\"]\n", "leads out " +
			"of the project"},
		"writes by link": {"modulepath: link/libs\ndownloadpath: link/libs\nrepo: [\"$GIT/{}.git\"]\n", "leads " +
			"out of the project"},
		"is not found": {"modulepath: libs\ndownloadpath: other\nrepo: [\"$GIT/{}.git\"]\n", "the compiler " +
			"does not look"},
		"holds no module": {"modulepath: libs\nrepo: [\"$GIT/empty-{}.git\"]\n", "holds no module that can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.remote("alpha", "1.0", nil)
			w.remote("empty-alpha", "1.0", map[string]string{"module.yml": "", "setup.cfg": "x"})
			w.give(
				map[string]string{
					"main.cf": "import alpha\n",
					"project.yml": "name: x\npip: {index_url: \"$INDEX\"}\n" + strings.ReplaceAll(c.yml, "$REMOTES",
						w.remotes),
				},
			)
			outside := t.TempDir()
			if err := os.Symlink(outside, filepath.Join(w.project, "link")); err != nil {
				t.Fatal(err)
			}
			_, err := w.install(stranger)
			if err == nil {
				t.Fatal("it was installed")
			}
			contains(t, err.Error(), c.says)
			if found, _ := os.ReadDir(outside); len(found) > 0 {
				t.Error("written outside:", found)
			}
		})
	}
}

// freeze writes the installed versions under requires and leaves the rest as it is,
// including comments.
func TestFreeze(t *testing.T) {
	w := newWorld(t)
	w.write(w.project, map[string]string{
		"project.yml": "# The shop.\nname: shop # its name\nrequires:\n    # old\n    - a<2\n\n# where " +
			"they lie\nmodulepath:\n    - libs\n",
		"main.cf":           "import a\n",
		"libs/a/module.yml": "name: a\nversion: 1.4\nlicense: x\n", "libs/a/model/_init.cf": "import b\n",
		"libs/b/module.yml": "name: b\nversion: 3\nlicense: x\n", "libs/b/model/_init.cf": "",
		"libs/std/module.yml": "name: std\nversion: 8.7.5\nlicense: x\n", "libs/std/model/_init.cf": "",
	})
	p, err := module.OpenProject(w.project)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		freeze install.Freeze
		lines  string
	}{
		{install.Freeze{Operator: "=="}, "  - a == 1.4\n  - std == 8.7.5\n"},
		{install.Freeze{Operator: "~=", Recursive: true}, "  - a ~= 1.4\n  - b ~= 3.0\n  - std ~= 8.7.5\n"},
	} {
		got, err := c.freeze.Project(p, "main.cf")
		want := "# The shop.\nname: shop # its name\nrequires:\n" + c.lines + "\n# where they lie\nmodulepath:\n" +
			"    - libs\n"
		if err != nil || string(got) != want {
			t.Errorf("%+v: %v\n%s", c.freeze, err, got)
		}
	}
	w.write(w.project, map[string]string{"project.yml": "name: shop\nmodulepath: libs"})
	if got, err := (install.Freeze{Operator: ">="}).Project(p, "main.cf"); err != nil ||
		string(got) != "name: shop\nmodulepath: libs\nrequires:\n  - a >= 1.4\n  - std >= 8.7.5\n" {
		t.Errorf("%v\n%s", err, got)
	}
	w.write(w.project, map[string]string{"project.yml": "{name: shop, modulepath: libs}"})
	if _, err := (install.Freeze{Operator: ">="}).Project(p, "main.cf"); err == nil {
		t.Error("a file in one line was rewritten")
	}
	w.write(w.project, map[string]string{"main.cf": "import a\nimport gone\n"})
	if _, err := (install.Freeze{Operator: "=="}).Project(p, "main.cf"); err == nil ||
		!strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
}
