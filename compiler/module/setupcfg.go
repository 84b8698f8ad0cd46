package module

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"ordain.dev/ordain/compiler/inifile"
	"ordain.dev/ordain/compiler/module/pydantic"
	"ordain.dev/ordain/internal/python/pep440"
)

// setupCfg is what counts of a setup.cfg.
type setupCfg struct {
	Name, Version   string
	InstallRequires []string
	Deprecated      bool
}

// readSetupCfg reads the sections metadata, options and egg_info.
func readSetupCfg(path string) (*setupCfg, error) {
	raw, err := openSetupCfg(path)
	if err != nil {
		return nil, err
	}
	return raw.check(path)
}

func openSetupCfg(path string) (*rawSetupCfg, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	return rawMetadata(path, string(text))
}

// rawMetadata reads the values in the order in which the reference does, which
// shows in the first error.
func rawMetadata(path, text string) (*rawSetupCfg, error) {
	fail := func(err error) error {
		return badINI(
			path,
			err,
			"setup.cfg has sections, such as [metadata], and in them lines `key = value`; a percent sign is written %%",
		)
	}
	file, err := inifile.Parse(text)
	if err != nil {
		return nil, fail(err)
	}
	requires, _, err := file.Get("options", "install_requires")
	if err != nil {
		return nil, fail(err)
	}
	tag, _, err := file.Get("egg_info", "tag_build")
	if err != nil {
		return nil, fail(err)
	}
	if !file.Has("metadata") {
		return nil, &Error{
			Kind: KindInvalidMetadata, Message: "Metadata file " + path + " doesn't have a metadata section.", At: at(path, 1, 0),
			Hint: "it needs a section [metadata] with name, version and license",
		}
	}
	raw := &rawSetupCfg{values: map[string]string{}}
	for _, key := range file.Options("metadata") {
		if raw.values[key], _, err = file.Get("metadata", key); err != nil {
			return nil, fail(err)
		}
		raw.keys = append(raw.keys, key)
	}
	for line := range strings.SplitSeq(requires, "\n") {
		if line != "" {
			raw.requires = append(raw.requires, line)
		}
	}
	raw.tag = tag
	return raw, nil
}

// badINI is the error of a file that is not written as configparser reads it.
func badINI(path string, err error, hint string) *Error {
	line := 1
	if e := (*inifile.Error)(nil); errors.As(err, &e) {
		line = max(1, e.Line)
	}
	return &Error{
		Kind:    KindInvalidMetadata,
		Message: "Invalid syntax in " + path + ":\n" + err.Error(),
		At:      at(path, line, 0),
		Hint:    hint,
	}
}

// rawSetupCfg is what stands in the file: the section metadata, what the package
// needs, and the ending of the version.
type rawSetupCfg struct {
	keys     []string
	values   map[string]string
	requires []string
	tag      string
}

// check holds the values against the reference's model.
func (r *rawSetupCfg) check(path string) (*setupCfg, error) {
	data := r.data()
	if wrong := releaseSchema().Check(data); wrong != nil {
		return nil, &Error{
			Kind: KindInvalidMetadata, Message: "Metadata defined in " + path + " is invalid:\n" + setIn(wrong.Error()), At: at(path, 1, 0),
			Hint: "the section [metadata] needs a name, inmanta-module-<name> with hyphens, a version such as 1.2.3, whose ending goes to tag_build in [egg_info], and a license",
		}
	}
	c := &setupCfg{Name: r.values["name"], Version: r.values["version"], InstallRequires: r.requires}
	c.Deprecated, _ = pydantic.TruthOf(r.values["deprecated"])
	if full, err := tagged(c.Version, r.tag); err == nil {
		c.Version = full.String()
	}
	return c, nil
}

// data are the values as the model takes them. What other sections say comes over
// what the section metadata says, in its place.
func (r *rawSetupCfg) data() *pydantic.Dict {
	requires := &pydantic.Items{Kind: pydantic.List}
	for _, one := range r.requires {
		requires.Of = append(requires.Of, one)
	}
	data, more := &pydantic.Dict{}, []string{"install_requires", "version_tag"}
	for _, key := range append(slices.Clone(r.keys), more...) {
		if slices.Contains(data.Keys, any(key)) {
			continue
		}
		data.Keys = append(data.Keys, key)
		switch key {
		case "install_requires":
			data.Values = append(data.Values, requires)
		case "version_tag":
			data.Values = append(data.Values, r.tag)
		default:
			data.Values = append(data.Values, r.values[key])
		}
	}
	return data
}

// releaseSchema is what setup.cfg may hold.
var releaseSchema = sync.OnceValue(func() *pydantic.Model {
	return &pydantic.Model{Title: "ModuleV2Metadata", Fields: []pydantic.Field{
		{Name: "name", Required: true, Is: pydantic.Text{Numbers: true, Then: packageName}},
		{Name: "description", Is: optional},
		{Name: "freeze_recursive", Is: pydantic.Truth{}},
		freezeOperatorField(),
		{Name: "version", Required: true, Is: pydantic.Text{Numbers: true, Then: baseVersion}},
		{Name: "license", Required: true, Is: loose},
		{Name: "deprecated", Is: pydantic.Optional{Is: pydantic.Truth{}}},
		{Name: "install_requires", Required: true, Is: pydantic.ListOf{Each: loose}},
		{Name: "version_tag", Is: pydantic.Text{Numbers: true, Then: versionTag}},
		{Name: "four_digit_version", Is: pydantic.Truth{}},
	}}
})

// versionTag tells what is wrong with the ending of a version.
func versionTag(tag string) string {
	if _, err := tagged("1.0.0", tag); err != nil {
		return "Version tag " + tag + " is not PEP440 compliant"
	}
	return ""
}

// packageName tells what is wrong with the name of a module's package.
func packageName(name string) string {
	if rest, ok := strings.CutPrefix(name, distributionPrefix); !ok || rest == "" {
		return `The name field should follow the format "inmanta-module-<module-name>"`
	}
	if strings.Contains(name, "_") {
		return "Module names should not contain underscores, use '-' instead."
	}
	return ""
}

// baseVersion tells what is wrong with a version that must be that of a release.
func baseVersion(text string) string {
	v, err := pep440.Parse(text)
	if err != nil {
		return noVersion(text)
	}
	if !v.Base() {
		return "setup.cfg version should be a base version without tag. Use egg_info.tag_build to configure a tag"
	}
	return ""
}

// tagged is a version with the ending of one before or behind the release.
func tagged(version, tag string) (pep440.Version, error) {
	if tag == "" {
		return pep440.Parse(version)
	}
	return pep440.Parse(version + "." + strings.TrimLeft(tag, "."))
}
