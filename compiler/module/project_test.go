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
		Requires: []string{"std ~= 8.0", "my_mod>=1", "bare"}, InstallMode: "prerelease", FreezeRecursive: true, FreezeOperator: ">=",
		RelationPrecedencePolicy: []module.PrecedenceRule{{"std::Host", "a", "mod::B", "c"}},
		Pip: module.Pip{
			IndexURL: "https://example.com/simple", ExtraIndexURL: []string{"https://a.example.com", "https://b.example.com"},
			Pre: &yes, UseSystemConfig: true,
		},
		EnvironmentSettings: map[string]any{"auto_deploy": false, "recompile_backoff": 2},
		Warnings: []string{
			"project.yml: a repo of type package has no effect; set pip.index_url instead",
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
		Pre: true, UseSystemConfig: true,
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
		says string
	}{
		"not YAML":            {"name: x\nmodulepath: [libs\n", 2, "did not find"},
		"a tab":               {"name: x\n\tlicense: y\n", 2, "tab"},
		"empty":               {"", 1, "key: value"},
		"a list":              {"- name\n", 1, "key: value"},
		"no name":             {"\nlicense: x\n", 2, "`name` is missing"},
		"a list for a name":   {"license: x\nname: [a]\n", 2, "name must be a text"},
		"a map in requires":   {"name: x\nrequires:\n  - a: b\n", 3, "requires must be a text"},
		"no constraint":       {"name: x\nrequires:\n  - std is good\n", 3, "not a requirement"},
		"a package":           {"name: x\nrequires: [inmanta-module-std]\n", 2, "write the name of the module, std"},
		"unknown mode":        {"name: x\ninstall_mode: newest\n", 2, "release, prerelease, master"},
		"no rule":             {"name: x\nrelation_precedence_policy:\n  - a.b\n", 3, "is not a rule"},
		"repo without url":    {"name: x\nrepo:\n  - type: git\n", 3, "needs a url"},
		"pip is a text":       {"name: x\npip: https://example.com\n", 2, "must be a section"},
		"no mail address":     {"name: x\nauthor_email: ann\n", 2, "mail address"},
		"settings are a list": {"name: x\nenvironment_settings: [1]\n", 2, "must be a section"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := module.OpenProject(project(t, map[string]string{"project.yml": c.yml}))
			var e *module.Error
			if !errors.As(err, &e) || e.Kind != module.KindInvalidMetadata {
				t.Fatalf("got %v, want InvalidMetadata", err)
			}
			if e.At.Start.Line != c.line || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %v, want line %d and %q", err, c.line, c.says)
			}
		})
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
