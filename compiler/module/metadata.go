package module

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ordain.dev/ordain/compiler/module/pydantic"
	"ordain.dev/ordain/internal/python/pytext"
)

// ProjectMetadata is project.yml.
type ProjectMetadata struct {
	// Misspelt says of keys that mean nothing which ones look like others.
	Misspelt     []string
	Name         string
	Description  string
	Author       string
	AuthorEmail  string
	License      string
	Copyright    string
	ModulePath   []string // as written; Project.ModulePath has them absolute
	DownloadPath string
	Repo         []Repo
	Requires     []string // constraints on modules, by module name
	InstallMode  string   // release, prerelease or master

	FreezeRecursive bool
	FreezeOperator  string

	RelationPrecedencePolicy []PrecedenceRule
	Pip                      Pip
	EnvironmentSettings      map[string]any
	// Warnings are settings that have no effect.
	Warnings []string
}

// Repo is one source of modules of the first generation.
type Repo struct {
	Type string // git or package
	URL  string
}

// Pip is the section of that name. Pre is nil when it is not set.
type Pip struct {
	IndexURL        string
	ExtraIndexURL   []string
	Pre             *bool
	UseSystemConfig bool
}

// PrecedenceRule is `First before Then`, each Type.relation.
type PrecedenceRule struct {
	FirstType, FirstRelation string
	ThenType, ThenRelation   string
}

// String is the rule as written.
func (r PrecedenceRule) String() string {
	return r.FirstType + "." + r.FirstRelation + " before " + r.ThenType + "." + r.ThenRelation
}

// ruleSpace is what Python takes for white space, which separates the words of a rule.
const ruleSpace = `\s\v\x{85}\p{Z}`

var precedenceRule = sync.OnceValue(func() *regexp.Regexp {
	name := `([^.` + ruleSpace + `]+)`
	return regexp.MustCompile(
		`^` + name + `\.` + name + `[` + ruleSpace + `]+before[` + ruleSpace + `]+` + name + `\.` + name + `$`,
	)
})

// moduleMetadata is module.yml.
type moduleMetadata struct {
	Name, Version   string
	Deprecated      bool
	Requires        []string
	CompilerVersion string
}

func readProjectMetadata(path string) (*ProjectMetadata, error) {
	f, err := openFields(path, "inmanta.module.ProjectMetadata")
	if err != nil {
		return nil, err
	}
	m := &ProjectMetadata{}
	if err := f.repoTypes(m); err != nil {
		return nil, err
	}
	if err := f.pipSection(m); err != nil {
		return nil, err
	}
	if err := f.check(projectSchema()); err != nil {
		err.Warnings = m.Warnings
		return nil, err
	}
	m.Name = f.text(f.root, "name")
	m.Description = f.text(f.root, "description")
	m.FreezeOperator = f.textOr("freeze_operator", standardOperator)
	m.Requires = f.texts(f.root, "requires")
	m.Author = f.text(f.root, "author")
	m.AuthorEmail = f.text(f.root, "author_email")
	m.License = f.text(f.root, "license")
	m.Copyright = f.text(f.root, "copyright")
	m.ModulePath = f.texts(f.root, "modulepath")
	m.DownloadPath = f.text(f.root, "downloadpath")
	m.InstallMode = f.textOr("install_mode", "release")
	if recursive := f.truth(f.root, "freeze_recursive"); recursive != nil {
		m.FreezeRecursive = *recursive
	}
	f.repos(m)
	for _, rule := range f.texts(f.root, "relation_precedence_policy") {
		p := precedenceRule().FindStringSubmatch(strings.TrimSpace(rule))
		m.RelationPrecedencePolicy = append(m.RelationPrecedencePolicy, PrecedenceRule{p[1], p[2], p[3], p[4]})
	}
	f.pip(m)
	f.environmentSettings(m)
	m.Misspelt = f.misspelt(projectKeys)
	return m, nil
}

// repoTypes looks whether each repo has a type, before all that may be wrong in
// fields: the reference's Python stumbles over one that has none.
func (f *fields) repoTypes(m *ProjectMetadata) error {
	for _, v := range f.several(f.root, "repo") {
		switch is := v.is.(type) {
		case string:
		case *mapping:
			t := is.get("type")
			if t == nil {
				return f.stumble(KindNoKey, "'type'", v, "a repo needs a type: git or package")
			}
			if t.is == "package" {
				m.Warnings = append(m.Warnings, "project.yml: a repo of type package has no effect; name the index under pip.index_url instead")
			}
		default:
			return nil // the schema says so
		}
	}
	return nil
}

func (f *fields) repos(m *ProjectMetadata) {
	for _, v := range f.several(f.root, "repo") {
		r := Repo{Type: "git"}
		if is, ok := v.is.(*mapping); ok {
			r = Repo{Type: f.text(is, "type"), URL: f.text(is, "url")}
		} else {
			r.URL, _ = v.is.(string)
		}
		m.Repo = append(m.Repo, r)
	}
}

// pipSection looks whether pip is a section, if it is there, and what in it means
// nothing.
func (f *fields) pipSection(m *ProjectMetadata) error {
	v := f.root.get("pip")
	if v == nil {
		return nil
	}
	section, ok := v.is.(*mapping)
	if !ok {
		return f.stumble(KindNoSection, "'"+className(v.is)+"' object has no attribute 'keys'", *v,
			"pip must be a section; without settings leave the key out")
	}
	var known []any
	for _, field := range pipSchema().Fields {
		known = append(known, field.Name, field.Alias)
	}
	for _, k := range section.keys {
		if !slices.Contains(known, k.is) {
			m.Warnings = append(
				m.Warnings,
				fmt.Sprintf("Found unexpected configuration value 'pip.%s' in 'project.yml'", k.node.Value),
			)
		}
	}
	return nil
}

// pip reads the section; its keys may have underscores or hyphens.
func (f *fields) pip(m *ProjectMetadata) {
	v := f.root.get("pip")
	if v == nil {
		return
	}
	section := v.is.(*mapping)
	key := func(name string) string {
		if hyphens := hyphenated(name); section.get(hyphens) != nil {
			return hyphens
		}
		return name
	}
	m.Pip.IndexURL = f.text(section, key("index_url"))
	m.Pip.ExtraIndexURL = f.texts(section, key("extra_index_url"))
	m.Pip.Pre = f.truth(section, "pre")
	if system := f.truth(section, key("use_system_config")); system != nil {
		m.Pip.UseSystemConfig = *system
	}
}

func (f *fields) environmentSettings(m *ProjectMetadata) {
	v := f.root.get("environment_settings")
	if v == nil || v.is == nil {
		return
	}
	section := v.is.(*mapping)
	m.EnvironmentSettings = map[string]any{}
	for i, k := range section.keys {
		m.EnvironmentSettings[textOf(k.is)] = setting(section.values[i].is)
	}
}

// setting reads the value of a setting. In a section of one, a number with a
// point is a text.
func setting(is any) any {
	switch is := is.(type) {
	case float64:
		if math.IsInf(is, 0) || math.IsNaN(is) { // JSON, in which it is kept, has none
			return pytext.Float(is)
		}
		return is
	case []byte:
		return settingOfBytes(is)
	case *big.Int:
		return whole(is)
	case *mapping:
		out := map[string]any{}
		for i, k := range is.keys {
			switch v := is.values[i].is.(type) {
			case bool:
				out[textOf(k.is)] = v
			case *big.Int:
				out[textOf(k.is)] = whole(v)
			default:
				out[textOf(k.is)] = textOf(v)
			}
		}
		return out
	}
	return is
}

// settingOfBytes is the first that the bytes can be.
func settingOfBytes(is []byte) any {
	if yes, ok := pydantic.TruthOf(is); ok {
		return yes
	}
	if i, ok := pydantic.IntOf(is); ok {
		return whole(i)
	}
	if n, ok := pydantic.FloatOf(is); ok {
		return setting(n)
	}
	return string(is)
}

// whole is an int where that is large enough.
func whole(i *big.Int) any {
	if i.IsInt64() {
		return int(i.Int64())
	}
	return i
}

func readModuleMetadata(path string) (*moduleMetadata, error) {
	f, err := openFields(path, "inmanta.module.ModuleV1Metadata")
	if err != nil {
		return nil, err
	}
	if err := f.check(moduleSchema()); err != nil {
		return nil, err
	}
	m := &moduleMetadata{
		Name: f.text(f.root, "name"), Version: f.text(f.root, "version"),
		Requires: f.texts(f.root, "requires"), CompilerVersion: f.text(f.root, "compiler_version"),
	}
	if deprecated := f.truth(f.root, "deprecated"); deprecated != nil {
		m.Deprecated = *deprecated
	}
	return m, nil
}
