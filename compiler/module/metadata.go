package module

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/pytext"
	"ordain.dev/ordain/internal/pep440"
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
	return regexp.MustCompile(`^` + name + `\.` + name + `[` + ruleSpace + `]+before[` + ruleSpace + `]+` + name + `\.` + name + `$`)
})

// moduleMetadata is module.yml.
type moduleMetadata struct {
	Name, Version   string
	Deprecated      bool
	Requires        []string
	CompilerVersion string
}

func readProjectMetadata(path string) (*ProjectMetadata, error) {
	f, err := openFields(path)
	if err != nil {
		return nil, err
	}
	m := &ProjectMetadata{
		Name:           f.required("name"),
		Description:    f.optional(f.root, "description", coerced),
		FreezeOperator: f.choice("freeze_operator", "~=", coerced, "==", "~=", ">="),
		Requires:       f.texts(f.root, "requires"),
		Author:         f.optional(f.root, "author", coerced),
		AuthorEmail:    f.optional(f.root, "author_email", coerced),
		License:        f.optional(f.root, "license", coerced),
		Copyright:      f.optional(f.root, "copyright", coerced),
		ModulePath:     f.texts(f.root, "modulepath"),
		DownloadPath:   f.optional(f.root, "downloadpath", coerced),
		InstallMode:    f.choice("install_mode", "release", !coerced, "release", "prerelease", "master"),
	}
	if recursive := f.truth(f.root, "freeze_recursive", false); recursive != nil {
		m.FreezeRecursive = *recursive
	}
	if v := f.root.get("author_email"); v != nil && v.is != nil {
		if err := checkAddress(m.AuthorEmail); err != nil {
			f.fail(*v, "author_email is not a mail address: %v", err)
		}
	}
	f.repos(m)
	f.precedence(m)
	f.pip(m)
	f.environmentSettings(m)
	m.Misspelt = f.misspelt(projectKeys)
	if f.err != nil {
		return nil, f.err
	}
	return m, nil
}

func (f *fields) repos(m *ProjectMetadata) {
	list := f.several(f.root, "repo")
	for _, v := range list {
		switch is := v.is.(type) {
		case string:
		case *mapping:
			t := is.get("type")
			if t == nil {
				f.raise(KindNoKey, v, "a repo needs a type: git or package")
				return
			}
			if t.is == "package" {
				m.Warnings = append(m.Warnings, "project.yml: a repo of type package has no effect; name the index under pip.index_url instead")
			}
		default:
			f.fail(v, "a repo is a URL, or has a type and a url")
			return
		}
	}
	for _, v := range list {
		m.Repo = append(m.Repo, f.repo(v))
	}
}

func (f *fields) repo(v value) Repo {
	is, ok := v.is.(*mapping)
	if !ok {
		url, _ := v.is.(string)
		return Repo{Type: "git", URL: url}
	}
	r := Repo{}
	if url := is.get("url"); url == nil {
		f.fail(v, "a repo needs a url")
	} else {
		r.URL, _ = f.textOf(*url, "url", !coerced)
	}
	t := is.get("type")
	if r.Type, ok = t.is.(string); !ok || r.Type != "git" && r.Type != "package" {
		f.fail(*t, "the type of a repo is git or package, not %q", t.node.Value)
	}
	return r
}

func (f *fields) precedence(m *ProjectMetadata) {
	rules := f.root.get("relation_precedence_policy")
	if rules == nil {
		return
	}
	list, ok := rules.is.([]value)
	if !ok {
		f.fail(*rules, "relation_precedence_policy must be a list of rules")
	}
	for _, v := range list {
		s, ok := f.textOf(v, "relation_precedence_policy", coerced)
		if !ok {
			return
		}
		p := precedenceRule().FindStringSubmatch(strings.TrimSpace(s))
		if p == nil {
			f.fail(v, "%q is not a rule: write `Type.relation before Type.relation`", s)
			return
		}
		m.RelationPrecedencePolicy = append(m.RelationPrecedencePolicy, PrecedenceRule{p[1], p[2], p[3], p[4]})
	}
}

// pip reads the section; its keys may have underscores or hyphens, all of one kind.
func (f *fields) pip(m *ProjectMetadata) {
	v := f.root.get("pip")
	if v == nil {
		return
	}
	section, ok := v.is.(*mapping)
	if !ok {
		f.raise(KindNoSection, *v, "pip must be a section; without settings leave the key out")
		return
	}
	known := []string{"pre"}
	key := func(name string) string {
		hyphens := strings.ReplaceAll(name, "_", "-")
		known = append(known, name, hyphens)
		if section.get(hyphens) != nil {
			return hyphens
		}
		return name
	}
	m.Pip.IndexURL = f.optional(section, key("index_url"), !coerced)
	if extra := section.get(key("extra_index_url")); extra != nil {
		list, ok := extra.is.([]value)
		if !ok {
			f.fail(*extra, "pip.extra_index_url must be a list")
		}
		for _, v := range list {
			if s, ok := f.textOf(v, "pip.extra_index_url", !coerced); ok {
				m.Pip.ExtraIndexURL = append(m.Pip.ExtraIndexURL, s)
			}
		}
	}
	m.Pip.Pre = f.truth(section, "pre", true)
	if system := f.truth(section, key("use_system_config"), false); system != nil {
		m.Pip.UseSystemConfig = *system
	}
	for _, k := range section.keys {
		if name, ok := k.is.(string); !ok || !slices.Contains(known, name) {
			m.Warnings = append(m.Warnings, fmt.Sprintf("Found unexpected configuration value 'pip.%s' in 'project.yml'", k.node.Value))
		}
	}
}

func (f *fields) environmentSettings(m *ProjectMetadata) {
	v := f.root.get("environment_settings")
	if v == nil || v.is == nil {
		return
	}
	section, ok := v.is.(*mapping)
	if !ok {
		f.fail(*v, "environment_settings must be a section")
		return
	}
	m.EnvironmentSettings = map[string]any{}
	for i, k := range section.keys {
		name, ok := f.textOf(k, "the name of a setting", coerced)
		if !ok {
			return
		}
		setting, ok := f.setting(section.values[i])
		if !ok {
			f.fail(section.values[i], "environment_settings: the value of %s must be a text, a number, a truth value, or a section of these", name)
			return
		}
		m.EnvironmentSettings[name] = setting
	}
}

// setting reads the value of a setting. In a section of one, a number with a
// point is a text.
func (f *fields) setting(v value) (any, bool) {
	section, ok := v.is.(*mapping)
	if !ok {
		return settingOf(v.is)
	}
	out := map[string]any{}
	for i, k := range section.keys {
		var name string
		switch k.is.(type) {
		case string, []byte, *big.Int, float64:
			name, _ = f.textOf(k, "the name of a setting", coerced)
		default:
			return nil, false
		}
		is, ok := settingOf(section.values[i].is)
		if !ok {
			return nil, false
		}
		if number, ok := is.(float64); ok {
			is = pytext.Float(number)
		}
		out[name] = is
	}
	return out, true
}

func settingOf(is any) (any, bool) {
	switch is := is.(type) {
	case string, bool:
		return is, true
	case float64:
		if math.IsInf(is, 0) || math.IsNaN(is) { // JSON, in which it is kept, has none
			return pytext.Float(is), true
		}
		return is, true
	case []byte:
		return string(is), utf8.Valid(is)
	case *big.Int:
		if is.IsInt64() {
			return int(is.Int64()), true
		}
		return is, true
	}
	return nil, false
}

func readModuleMetadata(path string) (*moduleMetadata, error) {
	f, err := openFields(path)
	if err != nil {
		return nil, err
	}
	m := &moduleMetadata{Name: f.required("name"), Version: f.required("version")}
	f.required("license")
	f.optional(f.root, "description", coerced)
	m.Requires = f.texts(f.root, "requires")
	f.choice("freeze_operator", "~=", coerced, "==", "~=", ">=")
	f.truth(f.root, "freeze_recursive", false)
	if deprecated := f.truth(f.root, "deprecated", true); deprecated != nil {
		m.Deprecated = *deprecated
	}
	if f.err == nil && !isVersion(m.Version) {
		f.fail(*f.root.get("version"), "version %s is not a version", m.Version)
	}
	if v := f.root.get("compiler_version"); f.err == nil && v != nil {
		m.CompilerVersion = f.optional(f.root, "compiler_version", coerced)
		if !isVersion(m.CompilerVersion) {
			f.fail(*v, "compiler_version %s is not a version", m.CompilerVersion)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return m, nil
}

// isVersion tells what Python packaging takes for a version.
func isVersion(text string) bool {
	_, err := pep440.Parse(text)
	return err == nil
}

// errPackageName: a constraint names a Python package where a module is meant.
var errPackageName = errors.New("names a Python package")

// requirement reads a constraint on a module, by the module's name.
func requirement(spec string) (pep440.Requirement, error) {
	r, err := pep440.ParseRequirement(spec)
	if err == nil && strings.HasPrefix(pep440.Normal(r.Name), distributionPrefix) {
		err = fmt.Errorf("%q %w; write the name of the module, %s", spec, errPackageName, Name(r.Name))
	}
	return r, err
}

// requirementError is the error of a constraint that cannot be read, and where it stands.
func requirementError(where string, err error) *Error {
	e := &Error{
		Kind: KindNoRequirement, Message: where + ": " + err.Error(),
		Hint: "a constraint is the name of a module and the versions that will do, such as `std ~= 8.0`",
	}
	if errors.Is(err, errPackageName) {
		e.Kind = KindNoValue
	}
	return e
}

const distributionPrefix = "inmanta-module-"

// Distribution is the name of the Python package that holds a module.
func Distribution(module string) string {
	return distributionPrefix + strings.ReplaceAll(module, "_", "-")
}

// Name is the module that a Python package holds; empty when it holds none.
func Name(distribution string) string {
	name, ok := strings.CutPrefix(pep440.Normal(distribution), distributionPrefix)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(name, "-", "_")
}
