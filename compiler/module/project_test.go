package module_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/internal/intent"
)

func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A project.yml that uses every key is read in full.
func TestProjectMetadata(t *testing.T) {
	dir := project(t, map[string]string{"project.yml": `
name: quickstart
description: all keys
author: Ann
author_email: Ann <ann@example.com>
license: ASL 2.0
copyright: 2026 Ann
modulepath: [libs, /srv/modules]
downloadpath: libs
repo:
  - https://example.com/one/
  - {type: git, url: "https://example.com/{}.git"}
  - type: package
    url: https://example.com/simple
requires:
  - std ~= 8.0
  - my_mod>=1
  - bare
install_mode: prerelease
freeze_recursive: yes
freeze_operator: ">="
relation_precedence_policy:
  - "std::Host.a  before  mod::B.c"
pip:
  index-url: https://example.com/simple
  extra_index_url: [https://a.example.com, https://b.example.com]
  pre: true
  use_system_config: true
  colour: blue
environment_settings:
  auto_deploy: false
  recompile_backoff: 2
own_key: is fine
`})
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	want := module.ProjectMetadata{
		Name: "quickstart", Description: "all keys", Author: "Ann", AuthorEmail: "Ann <ann@example.com>",
		License: "ASL 2.0", Copyright: "2026 Ann", ModulePath: []string{"libs", "/srv/modules"}, DownloadPath: "libs",
		Repo: []module.Repo{
			{Type: "git", URL: "https://example.com/one/"}, {Type: "git", URL: "https://example.com/{}.git"},
			{Type: "package", URL: "https://example.com/simple"},
		},
		Requires: []string{
			"std ~= 8.0",
			"my_mod>=1",
			"bare",
		}, InstallMode: "prerelease", FreezeRecursive: true, FreezeOperator: ">=",
		RelationPrecedencePolicy: []module.PrecedenceRule{{"std::Host", "a", "mod::B", "c"}},
		Pip: module.Pip{
			IndexURL: "https://example.com/simple", ExtraIndexURL: []string{"https://a.example.com", "https://b.example.com"},
			Pre: &yes, UseSystemConfig: true,
		},
		EnvironmentSettings: map[string]any{"auto_deploy": false, "recompile_backoff": 2},
		Warnings: []string{
			"project.yml: a repo of type package has no effect; name the index under pip.index_url instead",
			"Found unexpected configuration value 'pip.colour' in 'project.yml'",
		},
	}
	if d := cmp.Diff(want, p.Metadata); d != "" {
		t.Errorf("metadata: want -, got +:\n%s", d)
	}
	if d := cmp.Diff([]string{filepath.Join(dir, "libs"), "/srv/modules"}, p.ModulePath); d != "" {
		t.Errorf("module path:\n%s", d)
	}
	if d := cmp.Diff([]string{"inmanta-module-my-mod>=1", "inmanta-module-std~=8.0"}, p.Constraints()); d != "" {
		t.Errorf("constraints:\n%s", d)
	}
	wantPip := intent.PipConfig{
		IndexURL: "https://example.com/simple", ExtraIndexURL: []string{"https://a.example.com", "https://b.example.com"},
		Pre: &yes, UseSystemConfig: true,
	}
	if d := cmp.Diff(wantPip, p.PipConfig()); d != "" {
		t.Errorf("pip:\n%s", d)
	}
}

// Whoever breaks project.yml is told the line.
func TestMalformedProject(t *testing.T) {
	for name, c := range map[string]struct {
		yml  string
		line int32
		says string // the message
		hint string
	}{
		"not YAML":                {"name: x\nmodulepath: [libs\n", 3, "expected ',' or ']', but got '<stream end>'", ``},
		"a tab":                   {"name: x\n\tlicense: y\n", 2, `tab`, ``},
		"empty":                   {"", 1, `argument after ** must be a mapping, not NoneType`, `key: value`},
		"a list":                  {"- name\n", 1, `must be a mapping, not list`, `key: value`},
		"no name":                 {"\nlicense: x\n", 2, "\n  name\n    Field required [type=missing,", `add a line`},
		"a list for a name":       {"license: x\nname: [a]\n", 2, `valid string [type=string_type, input_value=['a'], input_type=list]`, `write a text`},
		"a map in requires":       {"name: x\nrequires:\n  - a: b\n", 3, `requires.0`, `write a text`},
		"unknown mode":            {"name: x\ninstall_mode: newest\n", 2, `Input should be 'release', 'prerelease' or 'master' [type=enum`, ``},
		"no rule":                 {"name: x\nrelation_precedence_policy:\n  - a.b\n", 3, `String should match pattern`, `Type.relation before Type.relation`},
		"repo without url":        {"name: x\nrepo:\n  - type: git\n", 3, `repo.0.url`, "add a line `url"},
		"pip is a text":           {"name: x\npip: https://example.com\n", 2, `'str' object has no attribute 'keys'`, `must be a section`},
		"pip is nothing":          {"name: x\npip:\n", 2, `'NoneType' object has no attribute 'keys'`, `leave the key out`},
		"one index as a text":     {"name: x\npip:\n  extra_index_url: https://example.com\n", 3, "  pip.extra_index_url\n    'str' instances are not allowed", `write a list`},
		"repo alone without type": {"name: x\nrepo:\n  url: x\n", 3, `'type'`, `needs a type`},
		"no mail address":         {"name: x\nauthor_email: ann\n", 2, `An email address must have an @-sign.`, `name@example.com`},
		"two values":              {"name: [a]\nlicense: yes\ninstall_mode: x\n", 1, `3 validation errors`, "name: write a text; license: YAML takes yes for a truth value"},
		"two documents":           {"name: x\n---\nname: y\n", 2, `another document`, ``},
		"a truth value":           {"name: x\ndescription: yes\n", 2, `input_value=True, input_type=bool`, `write it in quotes`},
		"a date":                  {"name: 2026-01-01\n", 1, `input_value=datetime.date(2026, 1, 1), input_type=date`, `for a date`},
		"a number for a repo":     {"name: x\nrepo: [5]\n", 2, `should be either a string of a dict, got 5 `, `a repo is a URL`},
		"a list for a value":      {"name: x\nenvironment_settings:\n  a: [1]\n", 3, `environment_settings.a.dict[str,union[str,int,bool]]`, `write a text, a number`},
		"a null for a value":      {"name: x\nenvironment_settings:\n  a:\n", 3, `5 validation errors for ProjectMetadata`, ``},
		"not UTF-8":               {"name: x\nlicense: \xff\n", 2, "'utf-8' codec can't decode byte 0xff", ``},
		"settings are a list":     {"name: x\nenvironment_settings: [1]\n", 2, `Input should be a valid dictionary`, `write a section`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := module.OpenProject(project(t, map[string]string{"project.yml": c.yml}))
			var e *module.Error
			kind := module.KindInvalidMetadata
			switch name { // over these the reference's own Python stumbles
			case "not UTF-8":
				kind = module.KindNoText
			case "empty", "a list":
				kind = module.KindNoMapping
			case "pip is a text", "pip is nothing":
				kind = module.KindNoSection
			case "repo alone without type":
				kind = module.KindNoKey
			}
			if !errors.As(err, &e) || e.Kind != kind {
				t.Fatalf("got %v, want %s", err, kind)
			}
			if e.At.Start.Line != c.line || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("got %v (%s), want line %d, %q and %q", err, e.Hint, c.line, c.says, c.hint)
			}
		})
	}
}

// Where a file should be there is a folder, a link that leads to itself, or a
// file of another kind: the reference's class of error, and never a panic.
func TestThingsInTheWrongPlace(t *testing.T) {
	v1 := map[string]string{
		"project.yml":           "name: x\nmodulepath: libs\n",
		"main.cf":               "import a\n",
		"libs/a/module.yml":     "name: a\nversion: 1\nlicense: x\n",
		"libs/a/model/_init.cf": "",
	}
	const loop, folder, gone = "->", "/", "-"
	for name, c := range map[string]struct {
		path, content string
		kinds         string
	}{
		"project.yml a folder":      {"project.yml", folder, "IsADirectoryError"},
		"project.yml a loop":        {"project.yml", loop, "ProjectNotFoundException"},
		"main.cf a folder":          {"main.cf", folder, "IsADirectoryError"},
		"main.cf missing":           {"main.cf", gone, "FileNotFoundError"},
		"module.yml a folder":       {"libs/a/module.yml", folder, "ModuleLoadingException < InvalidModuleException"},
		"module.yml a loop":         {"libs/a/module.yml", loop, "ModuleLoadingException < ModuleMetadataFileNotFound"},
		"module.yml empty":          {"libs/a/module.yml", "", "ModuleLoadingException < InvalidModuleException"},
		"module a loop":             {"libs/a", loop, "ModuleLoadingException < ModuleNotFoundException"},
		"module a file":             {"libs/a", "x", "ModuleLoadingException < ModuleMetadataFileNotFound"},
		"the model a file":          {"libs/a/model", "x", "NotADirectoryError"},
		"the model's file a folder": {"libs/a/model/_init.cf", folder, "IsADirectoryError"},
		"the plug-ins a file":       {"libs/a/plugins", "x", "InvalidModuleException"},
		"setup.cfg for a module":    {"libs/a/module.yml", "-cfg", "ModuleLoadingException < ModuleV2InV1PathException"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, v1)
			path := filepath.Join(dir, c.path)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			var err error
			switch c.content {
			case gone:
			case folder:
				err = os.Mkdir(path, 0o755)
			case loop:
				err = os.Symlink(filepath.Base(path), path)
			case "-cfg":
				err = os.WriteFile(
					filepath.Join(dir, "libs/a/setup.cfg"),
					[]byte("[metadata]\nname=inmanta-module-a\nversion=1\nlicense=x\n"),
					0o644,
				)
			default:
				err = os.WriteFile(path, []byte(c.content), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			p, err := module.OpenProject(dir)
			if err == nil {
				_, err = module.NewLoader(p).Load("main.cf", false)
			}
			kinds, _, _ := strings.Cut(describe(err, dir), " main.cf:")
			if kinds, _, _ = strings.Cut(kinds, " libs/"); !strings.HasPrefix(kinds, c.kinds) {
				t.Errorf("got %s (%v), want %s", kinds, err, c.kinds)
			}
		})
	}
}

// A setup.cfg is read as strictly as the reference reads it.
func TestMalformedSetupCfg(t *testing.T) {
	const good = "[metadata]\nname = inmanta-module-a\nversion = 1.0\nlicense = x\n"
	for name, c := range map[string]struct{ cfg, says string }{
		"empty":               {"", "metadata section"},
		"before any section":  {"name = x\n", "File contains no section headers."},
		"a section twice":     {good + "[metadata]\n", "[line  5]: section 'metadata' already exists"},
		"a key twice":         {good + "name = b\n", "option 'name' in section 'metadata' already exists"},
		"no name":             {"[metadata]\nversion = 1\nlicense = x\n", "name\n    Field required [type=missing"},
		"a name of another":   {"[metadata]\nname = foo\nversion = 1\nlicense = x\n", "should follow the format \"inmanta-module-"},
		"a version and a tag": {"[metadata]\nname = inmanta-module-a\nversion = 1.0.dev1\nlicense = x\n", "tag_build"},
		"a tag that is none":  {good + "[egg_info]\ntag_build = foo\n", "Version tag foo is not PEP440 compliant"},
		"a percent sign":      {good + "description = 100%\n", "'%' must be followed by '%' or '('"},
		"not UTF-8":           {"[metadata]\nname = \xff\n", "can't decode byte 0xff in position 18"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, map[string]string{
				"project.yml": "name: x\n", "main.cf": "import a\n",
				".env/lib/python3.13/site-packages/inmanta_plugins/a/__init__.py":    "",
				".env/lib/python3.13/site-packages/inmanta_plugins/a/model/_init.cf": "",
				".env/lib/python3.13/site-packages/inmanta_plugins/a/setup.cfg":      c.cfg,
			})
			p, err := module.OpenProject(dir)
			if err == nil {
				_, err = module.NewLoader(p).Load("main.cf", false)
			}
			if got := describe(err, dir); !strings.HasPrefix(
				got,
				"ModuleLoadingException < InvalidModuleException < InvalidMetadata main.cf:1",
			) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("got %s: %v", got, err)
			}
		})
	}
}

// FuzzSetupCfg: packages come from strangers too.
func FuzzSetupCfg(f *testing.F) {
	f.Add(
		"[metadata]\nname = inmanta-module-a\nversion = 1\nlicense = x\n[options]\ninstall_requires =\n  b\n\tc\n",
		"name: a\nversion: 1\nlicense: x\nrequires: [b>1]\n",
	)
	f.Fuzz(func(t *testing.T, cfg, yml string) {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"project.yml": "name: x\nmodulepath: libs\n", "main.cf": "import a\nimport b\n", "libs/b/module.yml": yml, "libs/b/model/_init.cf": "",
			".env/lib/python3.13/site-packages/inmanta_plugins/a/__init__.py": "", ".env/lib/python3.13/site-packages/inmanta_plugins/a/setup.cfg": cfg,
			".env/lib/python3.13/site-packages/inmanta_plugins/a/model/_init.cf": "",
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, err := module.OpenProject(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := module.NewLoader(p).Load("main.cf", false); err != nil {
			var e *module.Error
			if !errors.As(err, &e) || e.Kind != module.KindLoading {
				t.Fatalf("not the reference's class: %v", err)
			}
		}
		p.Wishes(p.Scan("main.cf").Modules)
		p.Constraints()
	})
}

// A requirement with a condition is a wish where the condition holds.
func TestConditionsOfRequirements(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":             "name: x\nmodulepath: libs\n",
		"main.cf":                 "import a\n",
		"libs/a/module.yml":       "name: a\nversion: 1.0\nlicense: x\nrequires:\n  - 'b >= 2; extra == \"old\"'\n  - 'b >= 3; extra == \"new\"'\n",
		"libs/a/model/_init.cf":   "",
		"libs/a/requirements.txt": "inmanta-module-c >= 4 ; extra == 'old'\ninmanta-module-c >= 5 ; extra == 'new'\n",
	})
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	modules := p.Scan("main.cf").Modules
	if got := p.Wishes(modules); len(got) > 0 {
		t.Errorf("nobody can judge the conditions, and yet %v", got)
	}
	p.Applies = func(condition string) bool { return strings.Contains(condition, "new") }
	got := p.Wishes(modules)
	for name, want := range map[string]string{"b": ">=3", "c": ">=5"} {
		if len(got[name]) != 1 || got[name][0].Versions.String() != want {
			t.Errorf("%s: got %v, want %s", name, got[name], want)
		}
	}
}

// What an installer needs: the project's own requirements, those of the v1
// modules that lie in the repository, and std; each once, without comments.
func TestRequirements(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":              "name: x\nmodulepath: libs\nrequires: std>=8\n",
		"requirements.txt":         "# ours\ninmanta-module-fs ~= 1.0  # files\n\nrequests[socks]\\\n>=2\n",
		"libs/a/module.yml":        "name: a\nversion: 1.0\nlicense: x\n",
		"libs/a/requirements.txt":  "requests[socks]>=2\njinja2\n",
		"libs/no/requirements.txt": "not-a-module\n",
	})
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Requirements()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"inmanta-module-fs ~= 1.0", "requests[socks]>=2", "jinja2", "inmanta-module-std"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

// A folder without project.yml says so.
func TestNoProject(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "gone")} {
		_, err := module.OpenProject(dir)
		var e *module.Error
		if !errors.As(err, &e) || e.Kind != module.KindNoProject || e.Hint == "" {
			t.Errorf("got %v, want ProjectNotFoundException with a hint", err)
		}
	}
}

// Project files come from strangers.
func FuzzProjectMetadata(f *testing.F) {
	f.Add("name: x\nmodulepath: [a, b]\npip: {index-url: y}\n")
	f.Add("name: &a x\nrepo: *a\nrequires: [*a]\n")
	f.Add("{name: x, environment_settings: {a: [1, {b: 2}]}}")
	f.Fuzz(func(t *testing.T, yml string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "project.yml"), []byte(yml), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := module.OpenProject(dir)
		if err == nil {
			p.PipConfig()
			p.Constraints()
			return
		}
		var e *module.Error
		if !errors.As(err, &e) || e.At.Start.Line < 1 {
			t.Fatalf("an error without a line: %v", err)
		}
	})
}
