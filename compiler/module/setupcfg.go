package module

import (
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/compiler/inifile"
	"ordain.dev/ordain/internal/pep440"
)

// setupCfg is what counts of a setup.cfg.
type setupCfg struct {
	Name, Version   string
	InstallRequires []string
	Deprecated      bool
}

// readSetupCfg reads the sections metadata, options and egg_info.
func readSetupCfg(path string) (*setupCfg, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	raw, err := rawMetadata(path, string(text))
	if err != nil {
		return nil, err
	}
	return raw.check(path)
}

// rawMetadata reads the values in the order in which the reference does, which
// shows in the first error.
func rawMetadata(path, text string) (*rawSetupCfg, error) {
	fail := func(err error) error {
		line := 1
		if e := (*inifile.Error)(nil); errors.As(err, &e) {
			line = max(1, e.Line)
		}
		return &Error{
			Kind: KindInvalidMetadata, Message: "Invalid syntax in " + path + ":\n" + err.Error(), At: at(path, line, 0),
			Hint: "setup.cfg has sections, such as [metadata], and in them lines `key = value`; a percent sign is written %%",
		}
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

// rawSetupCfg is what stands in the file: the section metadata, what the package
// needs, and the ending of the version.
type rawSetupCfg struct {
	keys     []string
	values   map[string]string
	requires []string
	tag      string
}

// check reads the fields, in the order of the reference's model.
func (r *rawSetupCfg) check(path string) (*setupCfg, error) {
	wrong := modelErrors{model: "ModuleV2Metadata"}
	c := &setupCfg{InstallRequires: r.requires}
	text := func(key string, judge func(string) string) string {
		v, ok := r.values[key]
		if !ok {
			wrong.missing(key, r.shown())
		} else if complaint := judge(v); complaint != "" {
			wrong.value(key, complaint, v)
		}
		return v
	}
	truth := func(key string) bool {
		v, there := r.values[key]
		yes, ok := truthOf(v)
		if there && !ok {
			wrong.text(key, "Input should be a valid boolean, unable to interpret input", "bool_parsing", v)
		}
		return yes
	}
	c.Name = text("name", packageName)
	truth("freeze_recursive")
	if v, ok := r.values["freeze_operator"]; ok && v != "==" && v != "~=" && v != ">=" {
		wrong.text("freeze_operator", `String should match pattern '^(==|\~=|>=)$'`, "string_pattern_mismatch", v)
	}
	c.Version = text("version", baseVersion)
	text("license", func(string) string { return "" })
	c.Deprecated = truth("deprecated")
	if _, err := tagged("1.0.0", r.tag); err != nil {
		wrong.value("version_tag", "Version tag "+r.tag+" is not PEP440 compliant", r.tag)
	}
	truth("four_digit_version")
	if wrong.count > 0 {
		return nil, &Error{
			Kind: KindInvalidMetadata, Message: "Metadata defined in " + path + " is invalid:\n" + wrong.String(), At: at(path, 1, 0),
			Hint: "the section [metadata] needs a name, inmanta-module-<name> with hyphens, a version such as 1.2.3, whose ending goes to tag_build in [egg_info], and a license",
		}
	}
	full, err := tagged(c.Version, r.tag)
	if err == nil {
		c.Version = full.String()
	}
	return c, nil
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
		return "Version " + text + " is not PEP440 compliant"
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

// shown is how Python shows all that was read.
func (r *rawSetupCfg) shown() string {
	var items []string
	add := func(key, value string) { items = append(items, fmt.Sprintf("%s: %s", quote(key), value)) }
	requires := make([]string, len(r.requires))
	for i, one := range r.requires {
		requires[i] = quote(one)
	}
	list, seen := "["+strings.Join(requires, ", ")+"]", map[string]bool{}
	special := map[string]string{"install_requires": list, "version_tag": quote(r.tag)}
	for _, key := range r.keys {
		if value, ok := special[key]; ok {
			add(key, value)
			seen[key] = true
			continue
		}
		add(key, quote(r.values[key]))
	}
	for _, key := range []string{"install_requires", "version_tag"} {
		if !seen[key] {
			add(key, special[key])
		}
	}
	return "{" + strings.Join(items, ", ") + "}"
}
