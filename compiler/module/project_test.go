package module_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

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
			IndexURL:      "https://example.com/simple",
			ExtraIndexURL: []string{"https://a.example.com", "https://b.example.com"},
			Pre:           &yes, UseSystemConfig: true,
		},
		EnvironmentSettings: map[string]any{"auto_deploy": false, "recompile_backoff": 2},
		Warnings: []string{
			"project.yml: a repo of type package has no effect; name the index under pip.index_url instead",
			"Found unexpected configuration value 'pip.colour' in 'project.yml'",
		},
	}
	if d := gocmp.Diff(want, p.Metadata); d != "" {
		t.Errorf("metadata: want -, got +:\n%s", d)
	}
	if d := gocmp.Diff([]string{filepath.Join(dir, "libs"), "/srv/modules"}, p.ModulePath); d != "" {
		t.Errorf("module path:\n%s", d)
	}
	if d := gocmp.Diff([]string{"inmanta-module-my-mod>=1", "inmanta-module-std~=8.0"}, p.Constraints()); d != "" {
		t.Errorf("constraints:\n%s", d)
	}
	wantPip := intent.PipConfig{
		IndexURL:      "https://example.com/simple",
		ExtraIndexURL: []string{"https://a.example.com", "https://b.example.com"},
		Pre:           &yes, UseSystemConfig: true,
	}
	if d := gocmp.Diff(wantPip, p.PipConfig()); d != "" {
		t.Errorf("pip:\n%s", d)
	}
}

// Each problem of project.yml is reported with its line and what to do.
func TestMalformedProject(t *testing.T) {
	for name, c := range map[string]struct {
		yml  string
		line int32
		says string // the message
		hint string
		kind string // empty: InvalidMetadata
	}{
		"not YAML": {
			"name: x\nmodulepath: [libs\n", 2,
			"a list or section in brackets is not closed", "close the bracket", "",
		},
		"a tab": {"name: x\n\tlicense: y\n", 2, "a line is indented with a tab", "with spaces", ""},
		"a character": {
			"name: x\nlicense: @y\n", 2,
			"a character that YAML keeps for itself", "in quotes", "",
		},
		"indented": {
			"name: x\n  license: y\n", 2,
			"a colon stands where no key can be", "in the same column", "",
		},
		"indented less": {
			"name: x\npip:\n    pre: true\n  index_url: x\n", 4,
			"indented in another way", "in the same column", "",
		},
		"a quote":  {"name: 'x\nlicense: y\n", 1, "a quote is not closed", "close the quote", ""},
		"an alias": {"name: x\nlicense: *y\n", 2, "an alias (*) names no anchor", "in quotes", ""},
		"a loop": {
			"name: x\ny: &a [*a]\n", 2,
			"*a stands within what it names", "write the value out", "",
		},
		"a tag": {
			"name: x\ny: !!python/object:os.system z\n", 2,
			"!!python/object:os.system z is not of a kind", "leave the tag out", "",
		},
		"a number": {
			"name: x\ny: !!int z\n", 2,
			"!!int z is not a number", "leave the tag out", module.KindNoValue,
		},
		"empty": {
			"", 1,
			"must hold lines `key: value`, but is empty", "name: example", module.KindNoMapping,
		},
		"a list":  {"- name\n", 1, "but is a list", "name: example", module.KindNoMapping},
		"a key":   {"name: x\n5: y\n", 2, "a key is a number", "in quotes", module.KindNoMapping},
		"no name": {"\nlicense: x\n", 2, "name is missing", "add a line `name: …`", ""},
		"a list for a name": {
			"license: x\nname: [a]\n", 2,
			"name must be a string, not a list", "write a string", "",
		},
		"nothing for a name": {"name:\n", 1, "name is empty", "write a string", ""},
		"a section in requires": {
			"name: x\nrequires:\n  - a: b\n", 3,
			"requires[0] must be a string, not a section", "", "",
		},
		"unknown mode": {
			"name: x\ninstall_mode: newest\n", 2,
			`must be release, prerelease or master, not "newest"`, "", "",
		},
		"no rule": {
			"name: x\nrelation_precedence_policy:\n  - a.b\n", 3,
			`must be a rule, not "a.b"`, "Type.relation before Type.relation", "",
		},
		"repo without url": {
			"name: x\nrepo:\n  - type: git\n", 3,
			"repo[0].url is missing", "add a line `url", "",
		},
		"repo of no type": {"name: x\nrepo:\n  url: x\n", 3, "repo has no type", "type: git", module.KindNoKey},
		"pip is a text": {
			"name: x\npip: https://example.com\n", 2,
			`pip must be a section, not "https://example.com"`, "", module.KindNoSection,
		},
		"pip is nothing": {
			"name: x\npip:\n", 2,
			"pip must be a section, not empty", "leave the key out", module.KindNoSection,
		},
		"one index as a text": {
			"name: x\npip:\n  extra_index_url: https://example.com\n", 3,
			"pip.extra_index_url must be a list", "write a list", "",
		},
		"no mail address": {
			"name: x\nauthor_email: ann\n", 2,
			`author_email is not a mail address: "ann"`, "name@example.com", "",
		},
		"two documents": {"name: x\n---\nname: y\n", 2, "more than one document", "remove the line ---", ""},
		"a truth value": {
			"name: x\ndescription: yes\n", 2,
			"description must be a string, not true", "YAML reads yes as true: put it in quotes", "",
		},
		"a date": {
			"name: 2026-01-01\n", 1,
			"name must be a string, not a date", "YAML reads 2026-01-01 as a date", "",
		},
		"a number for a repo": {"name: x\nrepo: [5]\n", 2, "repo[0] must be a URL", "", ""},
		"a list for a setting": {
			"name: x\nenvironment_settings:\n  a: [1]\n", 3,
			"environment_settings.a must be a string, a number, true or false, not a list", "", "",
		},
		"nothing for a setting": {
			"name: x\nenvironment_settings:\n  a:\n", 3,
			"environment_settings.a is empty", "leave the key out", "",
		},
		"settings are a list": {
			"name: x\nenvironment_settings: [1]\n", 2,
			"environment_settings must be a section, not a list", "", "",
		},
		"not UTF-8": {
			"name: x\nlicense: \xff\n", 2,
			"'utf-8' codec can't decode byte 0xff", "", module.KindNoText,
		},
		"several": {
			"name: [a]\nlicense: yes\ninstall_mode: x\n", 1,
			"\n  line 1: name must be a string, not a list; write a string" +
				"\n  line 2: license must be a string, not true; YAML reads yes as true: put it in quotes" +
				"\n  line 3: install_mode must be release, prerelease or master, not \"x\"; write one of these", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := module.OpenProject(project(t, map[string]string{"project.yml": c.yml}))
			var e *module.Error
			kind := cmp.Or(c.kind, module.KindInvalidMetadata)
			if !errors.As(err, &e) || e.Kind != kind {
				t.Fatalf("got %v, want %s", err, kind)
			}
			if e.At.Start.Line != c.line || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("got %v (%s), want line %d, %q and %q", err, e.Hint, c.line, c.says, c.hint)
			}
		})
	}
}

// A folder, a link to itself or another file stands where a file should be: the error
// has the class that it has in inmanta-core.
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
		"setup.cfg for a module": {
			"libs/a/module.yml",
			"-cfg", "ModuleLoadingException < ModuleV2InV1PathException",
		},
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
				err = os.WriteFile(filepath.Join(dir, "libs/a/setup.cfg"),
					[]byte("[metadata]\nname=inmanta-module-a\nversion=1\nlicense=x\n"), 0o644)
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

// Each problem of setup.cfg is reported with its line.
func TestMalformedSetupCfg(t *testing.T) {
	const good = "[metadata]\nname = inmanta-module-a\nversion = 1.0\nlicense = x\n"
	for name, c := range map[string]struct{ cfg, says string }{
		"empty":              {"", "line 1: name is missing in the section [metadata]"},
		"before any section": {"name = x\n", "`name = x` stands before the first section"},
		"a section twice":    {good + "[metadata]\n", "section [metadata] appears twice"},
		"a key twice":        {good + "name = b\n", "key name appears twice in section [metadata]"},
		"no name":            {"[metadata]\nversion = 1\nlicense = x\n", "name is missing"},
		"a name of another": {
			"[metadata]\nname = foo\nversion = 1\nlicense = x\n",
			`name is not that of a module's package: "foo"`,
		},
		"an underscore": {
			"[metadata]\nname = inmanta-module-a_b\nversion = 1\nlicense = x\n",
			"name is not that of a module's package",
		},
		"no version": {
			"[metadata]\nname = inmanta-module-a\nversion = x\nlicense = x\n",
			`version is not a version: "x"`,
		},
		"a version and a tag": {
			"[metadata]\nname = inmanta-module-a\nversion = 1.0.dev1\nlicense = x\n",
			`version has an ending: "1.0.dev1"`,
		},
		"a tag that is none": {
			good + "[egg_info]\ntag_build = foo\n",
			`tag_build in [egg_info] is not the ending of a version: "foo"`,
		},
		"an operator":   {good + "freeze_operator = <\n", `freeze_operator must be ==, ~= or >=, not "<"`},
		"a truth value": {good + "deprecated = maybe\n", `deprecated must be true or false, not "maybe"`},
		"not UTF-8":     {"[metadata]\nname = \xff\n", "can't decode byte 0xff in position 18"},
		"several": {
			"[metadata]\nname = foo\nversion = x\n",
			"\n  line 1: license is missing in the section [metadata]; " +
				"add a line `license = …`\n  line 2: name is not that of a module's package",
		},
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
			if got := describe(err, dir); !strings.HasPrefix(got,
				"ModuleLoadingException < InvalidModuleException < InvalidMetadata main.cf:1") ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("got %s: %v", got, err)
			}
		})
	}
}

// Packages come from strangers: whatever their files hold, the error has a known class.
func FuzzSetupCfg(f *testing.F) {
	f.Add("[metadata]\nname = inmanta-module-a\nversion = 1\nlicense = x\n[options]\ninstall_requires =\n  b\n\tc\n",
		"name: a\nversion: 1\nlicense: x\nrequires: [b>1]\n")
	f.Fuzz(func(t *testing.T, cfg, yml string) {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"project.yml":           "name: x\nmodulepath: libs\n",
			"main.cf":               "import a\nimport b\n",
			"libs/b/module.yml":     yml,
			"libs/b/model/_init.cf": "",
			".env/lib/python3.13/site-packages/inmanta_plugins/a/__init__.py":    "",
			".env/lib/python3.13/site-packages/inmanta_plugins/a/setup.cfg":      cfg,
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
			kinds := []string{module.KindLoading, module.KindNoRequirement, module.KindNoValue}
			var e *module.Error
			if !errors.As(err, &e) || !slices.Contains(kinds, e.Kind) {
				t.Fatalf("an error of an unknown class: %v", err)
			}
		}
		p.Wishes(p.Scan("main.cf").Modules)
		p.Constraints()
	})
}

// A requirement with a condition counts only if the condition holds.
func TestConditionsOfRequirements(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml": "name: x\nmodulepath: libs\n",
		"main.cf":     "import a\n",
		"libs/a/module.yml": "name: a\nversion: 1.0\nlicense: x\nrequires:\n" +
			"  - 'b >= 2; extra == \"old\"'\n  - 'b >= 3; extra == \"new\"'\n",
		"libs/a/model/_init.cf":   "",
		"libs/a/requirements.txt": "inmanta-module-c >= 4 ; extra == 'old'\ninmanta-module-c >= 5 ; extra == 'new'\n",
	})
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	modules := p.Scan("main.cf").Modules
	if got := p.Wishes(modules); len(got) > 0 {
		t.Errorf("nobody can evaluate the conditions, and yet there is %v", got)
	}
	p.Applies = func(condition string) bool { return strings.Contains(condition, "new") }
	got := p.Wishes(modules)
	for name, want := range map[string]string{"b": ">=3", "c": ">=5"} {
		if len(got[name]) != 1 || got[name][0].Versions.String() != want {
			t.Errorf("%s: got %v, want %s", name, got[name], want)
		}
	}
}

// The requirements of a project are its own ones, those of the modules in its
// repository, and std; each once, without comments.
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
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

// A folder without project.yml is an error with a hint.
func TestNoProject(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "gone")} {
		_, err := module.OpenProject(dir)
		var e *module.Error
		if !errors.As(err, &e) || e.Kind != module.KindNoProject || e.Hint == "" {
			t.Errorf("got %v, want ProjectNotFoundException with a hint", err)
		}
	}
}

// Project files come from strangers: whatever they hold, every error has a line.
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
