package module

import (
	"bytes"
	"fmt"
	"net/mail"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ordain.dev/ordain/internal/pep440"
	"sync"
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

var precedenceRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^\s.]+)\.([^\s.]+)\s+before\s+([^\s.]+)\.([^\s.]+)$`)
})

// moduleMetadata is module.yml.
type moduleMetadata struct {
	Name, Version   string
	Deprecated      bool
	Requires        []string
	CompilerVersion string
}

// yamlFile reads typed fields from a YAML mapping and remembers the first
// thing that is wrong, with its line.
type yamlFile struct {
	path string
	root *yaml.Node
	err  *Error
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+)`) })

// yamlParserError matches what the library's parser finds, not its scanner.
var yamlParserError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^line \d+: did not find expected ('[-,]|key|node|<)`)
})

func readYAML(path string) (*yamlFile, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	f := &yamlFile{path: path}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		line := 1
		if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		problem := strings.TrimPrefix(err.Error(), "yaml: ")
		if yamlParserError().MatchString(problem) {
			line++ // the library counts these from 0
			problem = yamlLine().ReplaceAllString(problem, "line "+strconv.Itoa(line))
		}
		return nil, &Error{Kind: KindInvalidMetadata, Message: "Invalid yaml syntax in " + path + ": " + problem, At: at(path, line, 0)}
	}
	if second := anotherDocument(text); second > 0 {
		return nil, &Error{
			Kind: KindInvalidMetadata, Message: "Invalid yaml syntax in " + path + ": another document begins, and there must be one only",
			At: at(path, second, 0), Hint: "remove the line `---` in the midst of the file",
		}
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		line := max(1, doc.Line)
		kind := KindInvalidMetadata
		if filepath.Base(path) == "project.yml" {
			kind = KindNoMapping
		}
		return nil, &Error{
			Kind: kind, Message: "Metadata defined in " + path + " is invalid: it is not a list of `key: value`",
			At: at(path, line, 0), Hint: "it needs at least a line such as `name: example`",
		}
	}
	f.root = doc.Content[0]
	return f, nil
}

// anotherDocument gives the line where a second document begins; 0: none does.
func anotherDocument(text []byte) int {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if d.Decode(&first) != nil || d.Decode(&second) != nil {
		return 0
	}
	return max(1, second.Line)
}

func (f *yamlFile) fail(n *yaml.Node, format string, args ...any) {
	f.failAs(KindInvalidMetadata, n, format, args...)
}

func (f *yamlFile) failAs(kind string, n *yaml.Node, format string, args ...any) {
	if f.err == nil {
		f.err = &Error{
			Kind: kind, Message: "Metadata defined in " + f.path + " is invalid: " + fmt.Sprintf(format, args...),
			At: at(f.path, max(1, n.Line), n.Column),
		}
	}
}

// field finds a key; the last one counts. Aliases are followed.
func field(m *yaml.Node, key string) *yaml.Node {
	var found *yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			found = m.Content[i+1]
		}
	}
	return follow(found)
}

func follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// oldBoolean is what YAML 1.1 takes for a truth value, where it is not quoted.
func oldBoolean(text string) bool {
	switch text {
	case "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF":
		return true
	}
	return false
}

// text reads a string; numbers are taken as they are written.
func (f *yamlFile) text(m *yaml.Node, key string) string {
	n := field(m, key)
	if isNull(n) {
		return ""
	}
	s, _ := f.scalar(n, key)
	return s
}

func (f *yamlFile) scalar(n *yaml.Node, key string) (string, bool) {
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!str":
			if n.Style != 0 || !oldBoolean(n.Value) {
				return n.Value, true
			}
			f.fail(n, "%s must be a text, and YAML takes %s for a truth value: write it in quotes", key, n.Value)
			return "", false
		case "!!int", "!!float":
			return n.Value, true
		case "!!timestamp":
			f.fail(n, "%s must be a text, and YAML takes %s for a date: write it in quotes", key, n.Value)
			return "", false
		}
	}
	f.fail(n, "%s must be a text", key)
	return "", false
}

func (f *yamlFile) required(key string) string {
	n := field(f.root, key)
	if isNull(n) {
		f.fail(f.root, "the key `%s` is missing", key)
		return ""
	}
	return f.text(f.root, key)
}

func (f *yamlFile) boolean(m *yaml.Node, key string) *bool {
	n := field(m, key)
	if isNull(n) {
		return nil
	}
	yes := true
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on", "1", "y", "t":
	case "false", "no", "off", "0", "n", "f":
		yes = false
	default:
		f.fail(n, "%s must be true or false", key)
	}
	return &yes
}

// list reads a list of texts, or a single one.
func (f *yamlFile) list(m *yaml.Node, key string) []string {
	var out []string
	for _, n := range f.nodes(m, key) {
		if s, ok := f.scalar(n, key); ok {
			out = append(out, s)
		}
	}
	return out
}

func (f *yamlFile) nodes(m *yaml.Node, key string) []*yaml.Node {
	n := field(m, key)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	var out []*yaml.Node
	for _, item := range n.Content {
		out = append(out, follow(item))
	}
	return out
}

func (f *yamlFile) choice(key, standard string, allowed ...string) string {
	s := f.text(f.root, key)
	if s == "" && f.err == nil {
		return standard
	}
	if f.err == nil && !slices.Contains(allowed, s) {
		f.fail(field(f.root, key), "%s must be one of %s, not %q", key, strings.Join(allowed, ", "), s)
	}
	return s
}

func readProjectMetadata(path string) (*ProjectMetadata, error) {
	f, err := readYAML(path)
	if err != nil {
		return nil, err
	}
	m := &ProjectMetadata{
		Name:           f.required("name"),
		Description:    f.text(f.root, "description"),
		Author:         f.text(f.root, "author"),
		AuthorEmail:    f.text(f.root, "author_email"),
		License:        f.text(f.root, "license"),
		Copyright:      f.text(f.root, "copyright"),
		ModulePath:     f.list(f.root, "modulepath"),
		DownloadPath:   f.text(f.root, "downloadpath"),
		Requires:       f.list(f.root, "requires"),
		InstallMode:    f.choice("install_mode", "release", "release", "prerelease", "master"),
		FreezeOperator: f.choice("freeze_operator", "~=", "==", "~=", ">="),
	}
	if recursive := f.boolean(f.root, "freeze_recursive"); recursive != nil {
		m.FreezeRecursive = *recursive
	}
	if m.AuthorEmail != "" {
		if _, err := mail.ParseAddress(m.AuthorEmail); err != nil {
			f.fail(field(f.root, "author_email"), "author_email is not a mail address")
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

func (f *yamlFile) repos(m *ProjectMetadata) {
	for _, n := range f.nodes(f.root, "repo") {
		r := Repo{Type: "git"}
		switch n.Kind {
		case yaml.MappingNode:
			if t := f.text(n, "type"); t != "" {
				r.Type = t
			} else if n == field(f.root, "repo") {
				f.failAs(KindNoKey, n, "a repo that stands alone needs a type: git or package")
			}
			if r.URL = f.text(n, "url"); r.URL == "" {
				f.fail(n, "a repo needs a url")
			}
			if r.Type != "git" && r.Type != "package" {
				f.fail(n, "the type of a repo is git or package, not %q", r.Type)
			}
		default:
			if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
				f.fail(n, "a repo is a URL, or has a type and a url")
			}
			r.URL = n.Value
		}
		if r.Type == "package" {
			m.Warnings = append(m.Warnings, "project.yml: a repo of type package has no effect; name the index under pip.index_url instead")
		}
		m.Repo = append(m.Repo, r)
	}
}

func (f *yamlFile) precedence(m *ProjectMetadata) {
	if n := field(f.root, "relation_precedence_policy"); !isNull(n) && n.Kind != yaml.SequenceNode {
		f.fail(n, "relation_precedence_policy must be a list of rules")
		return
	}
	for _, n := range f.nodes(f.root, "relation_precedence_policy") {
		s, ok := f.scalar(n, "relation_precedence_policy")
		if !ok {
			return
		}
		p := precedenceRule().FindStringSubmatch(strings.TrimSpace(s))
		if p == nil {
			f.fail(n, "%q is not a rule: write `Type.relation before Type.relation`", s)
			return
		}
		m.RelationPrecedencePolicy = append(m.RelationPrecedencePolicy, PrecedenceRule{p[1], p[2], p[3], p[4]})
	}
}

// pip reads the section; its keys may have underscores or hyphens.
func (f *yamlFile) pip(m *ProjectMetadata) {
	n := field(f.root, "pip")
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.failAs(KindNoSection, n, "pip must be a section; without settings leave the key out")
		return
	}
	key := func(name string) string {
		if hyphens := strings.ReplaceAll(name, "_", "-"); field(n, hyphens) != nil {
			return hyphens
		}
		return name
	}
	m.Pip.IndexURL = f.text(n, key("index_url"))
	if extra := field(n, key("extra_index_url")); !isNull(extra) && extra.Kind != yaml.SequenceNode {
		f.fail(extra, "pip.extra_index_url must be a list")
	}
	m.Pip.ExtraIndexURL = f.list(n, key("extra_index_url"))
	m.Pip.Pre = f.boolean(n, "pre")
	if system := f.boolean(n, key("use_system_config")); system != nil {
		m.Pip.UseSystemConfig = *system
	}
	for i := 0; i < len(n.Content); i += 2 {
		switch k := n.Content[i].Value; strings.ReplaceAll(k, "-", "_") {
		case "index_url", "extra_index_url", "pre", "use_system_config":
		default:
			m.Warnings = append(m.Warnings, fmt.Sprintf("Found unexpected configuration value 'pip.%s' in 'project.yml'", k))
		}
	}
}

func (f *yamlFile) environmentSettings(m *ProjectMetadata) {
	n := field(f.root, "environment_settings")
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.fail(n, "environment_settings must be a section")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !settingValue(follow(n.Content[i+1]), true) {
			f.fail(n.Content[i+1], "environment_settings: the value of %s must be a text, a number, a truth value, or a section of these", n.Content[i].Value)
		}
	}
	if err := n.Decode(&m.EnvironmentSettings); err != nil {
		f.fail(n, "environment_settings: %v", err)
	}
}

// settingValue tells whether a value may be one of a setting.
func settingValue(n *yaml.Node, section bool) bool {
	switch {
	case n.Kind == yaml.ScalarNode:
		tag := n.ShortTag()
		return tag == "!!str" || tag == "!!int" || tag == "!!float" && section || tag == "!!bool"
	case n.Kind == yaml.MappingNode && section:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !settingValue(follow(n.Content[i+1]), false) {
				return false
			}
		}
		return true
	}
	return false
}

func readModuleMetadata(path string) (*moduleMetadata, error) {
	f, err := readYAML(path)
	if err != nil {
		return nil, err
	}
	m := &moduleMetadata{Name: f.required("name"), Version: f.required("version")}
	f.required("license")
	f.text(f.root, "description")
	m.Requires = f.list(f.root, "requires")
	f.choice("freeze_operator", "~=", "==", "~=", ">=")
	f.boolean(f.root, "freeze_recursive")
	if deprecated := f.boolean(f.root, "deprecated"); deprecated != nil {
		m.Deprecated = *deprecated
	}
	if f.err == nil && !isVersion(m.Version) {
		f.fail(field(f.root, "version"), "version %s is not a version", m.Version)
	}
	if f.err == nil {
		m.CompilerVersion = f.text(f.root, "compiler_version")
		if v := m.CompilerVersion; v != "" && !isVersion(v) {
			f.fail(field(f.root, "compiler_version"), "compiler_version %s is not a version", v)
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

// requirement reads a constraint on a module, by the module's name.
func requirement(spec string) (pep440.Requirement, error) {
	r, err := pep440.ParseRequirement(spec)
	if err == nil && strings.HasPrefix(pep440.Normal(r.Name), distributionPrefix) {
		err = fmt.Errorf("%q names a Python package; write the name of the module, %s", spec, Name(r.Name))
	}
	return r, err
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
