package module

import (
	"fmt"
	"math"
	"math/big"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/python/pep440"
	"ordain.dev/ordain/internal/python/pytext"
)

// ProjectMetadata is project.yml.
type ProjectMetadata struct {
	Misspelt     []string // hints about unknown keys that look like known ones
	Name         string
	Description  string
	Author       string
	AuthorEmail  string
	License      string
	Copyright    string
	ModulePath   []string // as written; Project.ModulePath has absolute paths
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

// Repo is a source of modules of the first generation.
type Repo struct {
	Type string // git or package
	URL  string
}

// Pip is the section pip. Pre is nil if it is not set.
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

// String returns the rule as it is written.
func (r PrecedenceRule) String() string {
	return r.FirstType + "." + r.FirstRelation + " before " + r.ThenType + "." + r.ThenRelation
}

// ruleSpace is the white space of Python, which separates the words of a rule.
const ruleSpace = `\s\v\x{85}\p{Z}`

var precedenceRule = sync.OnceValue(func() *regexp.Regexp {
	name := `([^.` + ruleSpace + `]+)`
	return regexp.MustCompile(
		`^` + name + `\.` + name + `[` + ruleSpace + `]+before[` + ruleSpace + `]+` + name + `\.` + name + `$`,
	)
})

func readProjectMetadata(path string) (*ProjectMetadata, error) {
	f, err := openYAML(path)
	if err != nil {
		return nil, err
	}
	m := &ProjectMetadata{}
	f.repos(m)
	f.pip(m)
	common := f.common()
	m.Name, m.Requires = common.name, common.requires
	m.FreezeRecursive, m.FreezeOperator = common.freezeRecursive, common.freezeOperator
	m.Description = f.field("description").optional().text()
	m.Author = f.field("author").optional().text()
	m.AuthorEmail = f.field("author_email").optional().address()
	m.License = f.field("license").optional().text()
	m.Copyright = f.field("copyright").optional().text()
	m.ModulePath = f.field("modulepath").texts()
	m.DownloadPath = f.field("downloadpath").optional().text()
	m.InstallMode = f.field("install_mode").oneOf("release", "release", "prerelease", "master")
	for _, rule := range f.field("relation_precedence_policy").list() {
		m.RelationPrecedencePolicy = append(m.RelationPrecedencePolicy, rule.precedenceRule())
	}
	f.environmentSettings(m)
	m.Misspelt = f.misspelt(projectKeys)
	if err := f.err(); err != nil {
		err.Warnings = m.Warnings
		return nil, err
	}
	return m, nil
}

// common are the fields that project.yml and module.yml share.
type common struct {
	name            string
	requires        []string
	freezeRecursive bool
	freezeOperator  string
}

// standardOperator is what freezing versions writes where no file says otherwise.
const standardOperator = "~="

func (f *yamlFile) common() common {
	return common{
		name:            f.required("name").text(),
		requires:        f.field("requires").texts(),
		freezeRecursive: isTrue(f.field("freeze_recursive").truth()),
		freezeOperator:  f.field("freeze_operator").oneOf(standardOperator, "==", "~=", ">="),
	}
}

func isTrue(said *bool) bool { return said != nil && *said }

// address reads a mail address, with or without a name before it.
func (f field) address() string {
	text, ok := textOf(f.is)
	if !f.there {
		return ""
	}
	if _, isText := f.is.(string); isText && isAddress(text) {
		return text
	}
	if ok {
		f.wrong(f.value, "", fmt.Sprintf("%s is not a mail address: %q", f.name, text),
			"write an address such as name@example.com, or Name <name@example.com>")
	} else {
		f.refuse("a mail address", "write an address such as name@example.com")
	}
	return ""
}

// isAddress reports whether a text is a mail address whose domain has a dot.
func isAddress(text string) bool {
	text = strings.TrimSpace(text)
	if start := strings.LastIndexByte(text, '<'); start > 0 && strings.HasSuffix(text, ">") {
		text = text[start:] // a name may hold what net/mail wants in quotes
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return false
	}
	_, domain, _ := strings.Cut(parsed.Address[strings.LastIndexByte(parsed.Address, '@'):], "@")
	return strings.Contains(domain, ".")
}

func (f field) precedenceRule() PrecedenceRule {
	text, ok := textOf(f.is)
	p := precedenceRule().FindStringSubmatch(strings.TrimSpace(text))
	if !ok || p == nil {
		f.refuse("a rule", "write `Type.relation before Type.relation`")
		return PrecedenceRule{}
	}
	return PrecedenceRule{p[1], p[2], p[3], p[4]}
}

func (f *yamlFile) repos(m *ProjectMetadata) {
	for _, repo := range f.field("repo").several() {
		switch is := repo.is.(type) {
		case string:
			m.Repo = append(m.Repo, Repo{Type: "git", URL: is})
		case *section:
			kind := f.fieldOf(is, repo.name+".", "type")
			if !kind.there {
				f.wrong(repo.value, KindNoKey, repo.name+" has no type", "add a line `type: git`, or `type: package`")
			}
			r := Repo{
				Type: kind.oneOf("git", "git", "package"),
				URL:  f.requiredOf(is, repo.value, repo.name+".", "url").strictText(),
			}
			if r.Type == "package" {
				m.Warnings = append(m.Warnings, "project.yml: a repo of type package has no effect; name the "+
					"index under pip.index_url instead")
			}
			m.Repo = append(m.Repo, r)
		default:
			repo.refuse("a URL, or a section with a type and a url", "write the URL of a Git repository")
		}
	}
}

// pipKeys are the keys of the section pip, which may have hyphens in place of
// underscores.
var pipKeys = []string{"index_url", "extra_index_url", "pre", "use_system_config"}

func hyphenated(name string) string { return strings.ReplaceAll(name, "_", "-") }

func (f *yamlFile) pip(m *ProjectMetadata) {
	pip := f.field("pip")
	if !pip.there {
		return
	}
	section, ok := pip.is.(*section)
	if !ok {
		f.wrong(pip.value, KindNoSection, "pip must be a section, not "+whatIs(pip.value),
			"write lines `key: value` below it, indented; without settings leave the key out")
		return
	}
	for _, k := range section.keys {
		key, _ := k.is.(string)
		if !slices.ContainsFunc(pipKeys, func(known string) bool { return key == known || key == hyphenated(known) }) {
			m.Warnings = append(m.Warnings,
				fmt.Sprintf("Found unexpected configuration value 'pip.%s' in 'project.yml'", k.node.Value))
		}
	}
	field := func(key string) field {
		if hyphens := hyphenated(key); section.get(hyphens) != nil {
			key = hyphens
		}
		return f.fieldOf(section, "pip.", key)
	}
	m.Pip.IndexURL = field("index_url").optional().strictText()
	for _, url := range field("extra_index_url").list() {
		m.Pip.ExtraIndexURL = append(m.Pip.ExtraIndexURL, url.strictText())
	}
	m.Pip.Pre = field("pre").optional().truth()
	m.Pip.UseSystemConfig = isTrue(field("use_system_config").truth())
}

func (f *yamlFile) environmentSettings(m *ProjectMetadata) {
	s := f.field("environment_settings").optional().section()
	if s == nil {
		return
	}
	m.EnvironmentSettings = map[string]any{}
	for i, k := range s.keys {
		name, ok := textOf(k.is)
		if !ok {
			f.wrong(k, "", "a key of environment_settings is "+whatIs(k), "write the name of a setting, in quotes")
			continue
		}
		v := field{f, "environment_settings." + name, s.values[i], true, false}
		if s, ok := v.is.(*section); ok {
			m.EnvironmentSettings[name] = f.settingSection(v, s)
			continue
		}
		m.EnvironmentSettings[name] = v.setting()
	}
}

func (f *yamlFile) settingSection(of field, s *section) map[string]any {
	out := map[string]any{}
	for i, k := range s.keys {
		name, ok := textOf(k.is)
		v := field{f, of.name + "." + name, s.values[i], true, false}
		if !ok {
			f.wrong(k, "", "a key of "+of.name+" is "+whatIs(k), "write the key in quotes")
			continue
		}
		out[name] = v.setting()
		if number, ok := out[name].(float64); ok { // numbers with a point are texts here
			out[name] = pytext.Float(number)
		}
	}
	return out
}

// setting reads a single value of a setting.
func (f field) setting() any {
	switch is := f.is.(type) {
	case bool, string:
		return is
	case *big.Int:
		if is.IsInt64() {
			return int(is.Int64())
		}
		return is
	case float64:
		if math.IsInf(is, 0) || math.IsNaN(is) { // JSON, in which it is kept, has none
			return pytext.Float(is)
		}
		return is
	}
	f.refuse("a string, a number, true or false", "write one of these, or a section of them")
	return nil
}

// projectKeys are what project.yml may say. Other keys are allowed, for the tools
// of others, and have no effect.
var projectKeys = []string{
	"name", "description", "author", "author_email", "license", "copyright", "modulepath", "downloadpath", "repo",
	"requires", "install_mode", "freeze_recursive", "freeze_operator", "relation_precedence_policy",
	"agent_install_dependency_modules", "pip", "environment_settings", "strict_deps_check",
}

// misspelt lists the keys that are unknown but look like known ones: they may be
// the reason that something is not found.
func (f *yamlFile) misspelt(known []string) []string {
	var list []string
	for _, k := range f.root.keys {
		key, _ := k.is.(string)
		if slices.Contains(known, key) {
			continue
		}
		if near := diag.Nearest(key, known); near != "" {
			list = append(list, "the key `"+key+"` in project.yml means nothing: did you mean `"+near+"`?")
		}
	}
	return list
}

// moduleMetadata is module.yml.
type moduleMetadata struct {
	common
	Version, License string
	Description      *string
	Deprecated       *bool
	CompilerVersion  *string
}

func readModuleMetadata(path string) (*moduleMetadata, error) {
	f, err := openYAML(path)
	if err != nil {
		return nil, err
	}
	m := &moduleMetadata{
		common:      f.common(),
		Version:     f.required("version").version(),
		License:     f.required("license").text(),
		Description: f.field("description").textOrNil(),
		Deprecated:  f.field("deprecated").optional().truth(),
	}
	if v := f.field("compiler_version"); v.there {
		version := v.version()
		m.CompilerVersion = &version
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return m, nil
}

// version reads a version of PEP 440.
func (f field) version() string {
	text := f.text()
	if _, ok := textOf(f.is); ok {
		if _, err := pep440.Parse(text); err != nil {
			f.wrong(f.value, "", fmt.Sprintf("%s is not a version: %q", f.name, text), "write a version such as 1.2.3")
		}
	}
	return text
}
