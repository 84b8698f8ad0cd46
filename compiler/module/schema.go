package module

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/module/mailaddress"
	"ordain.dev/ordain/compiler/module/pydantic"
)

// What project.yml and module.yml may hold, in the order in which the reference's
// models have their fields, which is the order of what is wrong.

var (
	text     = pydantic.Text{}
	loose    = pydantic.Text{Numbers: true}
	optional = pydantic.Optional{Is: loose}
)

var freezeOperator = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(==|~=|>=)$`) })

// common are the fields that both files have.
func common() []pydantic.Field {
	return []pydantic.Field{
		{Name: "requires", Is: pydantic.OneOrMore{Each: loose}},
		{Name: "name", Required: true, Is: loose},
		{Name: "description", Is: optional},
		{Name: "freeze_recursive", Is: pydantic.Truth{}},
		freezeOperatorField(),
	}
}

// standardOperator is what freezing versions writes where no file says so.
const standardOperator = "~="

func freezeOperatorField() pydantic.Field {
	return pydantic.Field{
		Name: "freeze_operator",
		Is:   pydantic.Text{Numbers: true, Pattern: freezeOperator(), Python: `^(==|\~=|>=)$`},
	}
}

var projectSchema = sync.OnceValue(func() *pydantic.Model {
	rule := pydantic.Text{
		Numbers: true, Stripped: true, Pattern: precedenceRule(),
		Python: `^(?P<ft>[^\s.]+)\.(?P<fr>[^\s.]+)\s+before\s+(?P<tt>[^\s.]+)\.(?P<tr>[^\s.]+)$`,
	}
	repo := &pydantic.Model{Title: "ModuleRepoInfo", Fields: []pydantic.Field{
		{Name: "url", Required: true, Is: text},
		{Name: "type", Is: pydantic.OneOf{"git", "package"}},
	}}
	return &pydantic.Model{Title: "ProjectMetadata", Fields: append(common(), []pydantic.Field{
		{Name: "author", Is: optional},
		{Name: "author_email", Is: pydantic.Optional{Is: pydantic.Checked{Before: address}}},
		{Name: "license", Is: optional},
		{Name: "copyright", Is: optional},
		{Name: "modulepath", Is: pydantic.OneOrMore{Each: loose}},
		{
			Name: "repo",
			Is: pydantic.Checked{
				Before: repos,
				Is:     pydantic.OneOrMore{Each: pydantic.Converted{By: repoOf, Is: repo}},
			},
		},
		{Name: "downloadpath", Is: optional},
		{Name: "install_mode", Is: pydantic.OneOf{"release", "prerelease", "master"}},
		{Name: "relation_precedence_policy", Is: pydantic.ListOf{Each: rule}},
		{Name: "pip", Is: pipSchema()},
		{Name: "environment_settings", Is: pydantic.Optional{Is: settings()}},
	}...)}
})

func pipSchema() *pydantic.Model {
	field := func(name string, is pydantic.Schema) pydantic.Field {
		return pydantic.Field{Name: name, Alias: hyphenated(name), Is: is}
	}
	return &pydantic.Model{Title: "ProjectPipConfig", Fields: []pydantic.Field{
		field("index_url", pydantic.Optional{Is: text}),
		field("extra_index_url", pydantic.SequenceOf{Each: text}),
		field("pre", pydantic.Optional{Is: pydantic.Truth{}}),
		field("use_system_config", pydantic.Truth{}),
	}}
}

// hyphenated is how the keys of pip may be written too.
func hyphenated(name string) string { return strings.ReplaceAll(name, "_", "-") }

// settings are the values of settings of an environment.
func settings() pydantic.Schema {
	part := pydantic.Union{
		{Name: "str", Is: loose},
		{Name: "int", Is: pydantic.Int{}},
		{Name: "bool", Is: pydantic.Truth{}},
	}
	return pydantic.DictOf{Key: loose, Value: pydantic.Union{
		{Name: "bool", Is: pydantic.Truth{}},
		{Name: "int", Is: pydantic.Int{}},
		{Name: "float", Is: pydantic.Float{}},
		{Name: "str", Is: loose},
		{Name: "dict[str,union[str,int,bool]]", Is: pydantic.DictOf{Key: loose, Value: part}},
	}}
}

// address looks at a mail address.
func address(v any) (kind, wrong string, custom bool) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	default:
		if bytes, ok := v.([]byte); ok && utf8.Valid(bytes) {
			s = string(bytes)
			break
		}
		number, ok := pydantic.TextOfNumber(v)
		if !ok {
			return "name_email_type", "Input is not a valid NameEmail", true
		}
		s = number
	}
	if wrong := mailaddress.Check(s); wrong != "" {
		return "value_error", "value is not a valid email address: " + wrong, true
	}
	return "", "", false
}

// repos looks at the kinds of the sources of modules.
func repos(v any) (kind, wrong string, custom bool) {
	for _, r := range pydantic.Several(v).Of {
		switch r.(type) {
		case string, *pydantic.Dict:
		default:
			return "value_error", "Value error, Value should be either a string of a dict, got " + pydantic.Str(r), false
		}
	}
	return "", "", false
}

// repoOf is the section that a URL alone stands for.
func repoOf(v any) any {
	if url, ok := v.(string); ok {
		return &pydantic.Dict{Keys: []any{"url", "type"}, Values: []any{url, "git"}}
	}
	return v
}

// noVersion says what is wrong with a version.
func noVersion(text string) string {
	if isVersion(text) {
		return ""
	}
	return "Version " + text + " is not PEP440 compliant"
}

// noneVersion looks whether there is a version.
func noneVersion(v any) (kind, wrong string, custom bool) {
	if v == nil {
		return "value_error", "Value error, " + noVersion("None"), false
	}
	return "", "", false
}

var moduleSchema = sync.OnceValue(func() *pydantic.Model {
	version := pydantic.Text{Numbers: true, Then: noVersion}
	return &pydantic.Model{Title: "ModuleV1Metadata", Fields: append(common(), []pydantic.Field{
		{Name: "version", Required: true, Is: version},
		{Name: "license", Required: true, Is: loose},
		{Name: "deprecated", Is: pydantic.Optional{Is: pydantic.Truth{}}},
		{Name: "compiler_version", Is: pydantic.Checked{Before: noneVersion, Is: version}},
	}...)}
})
