package module

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/inifile"
	"ordain.dev/ordain/internal/python/pep440"
)

// setupCfg is the metadata of a module of the second generation.
type setupCfg struct {
	Name             string
	Description      *string
	BaseVersion      string // as written
	VersionTag       string // its ending, such as dev0
	License          string
	Deprecated       *bool
	FreezeRecursive  bool
	FreezeOperator   string
	FourDigitVersion bool
	InstallRequires  []string
}

// Version is the version with its ending.
func (c *setupCfg) Version() string {
	if full, err := tagged(c.BaseVersion, c.VersionTag); err == nil {
		return full.String()
	}
	return c.BaseVersion
}

// readSetupCfg reads the sections metadata, options and egg_info.
func readSetupCfg(path string) (*setupCfg, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	file, err := parseINI(path, string(text),
		"setup.cfg has sections, such as [metadata], and in them lines `key = value`")
	if err != nil {
		return nil, err
	}
	f := &cfgFile{problems: problems{path: path}, file: file}
	c := &setupCfg{
		Name:             f.required("name"),
		BaseVersion:      f.required("version"),
		License:          f.required("license"),
		FreezeRecursive:  isTrue(f.truth("freeze_recursive")),
		FourDigitVersion: isTrue(f.truth("four_digit_version")),
		Deprecated:       f.truth("deprecated"),
		FreezeOperator:   standardOperator,
	}
	if v, ok := file.Get("metadata", "description"); ok {
		c.Description = &v.Text
	}
	if v, ok := file.Get("metadata", "freeze_operator"); ok {
		if c.FreezeOperator = v.Text; !slices.Contains([]string{"==", "~=", ">="}, v.Text) {
			f.wrong(v, fmt.Sprintf("freeze_operator must be ==, ~= or >=, not %q", v.Text), "write one of these")
		}
	}
	requires, _ := file.Get("options", "install_requires")
	for line := range strings.SplitSeq(requires.Text, "\n") {
		if line != "" {
			c.InstallRequires = append(c.InstallRequires, line)
		}
	}
	tag, _ := file.Get("egg_info", "tag_build")
	c.VersionTag = tag.Text
	if _, err := tagged("1.0.0", tag.Text); err != nil {
		f.wrong(tag, fmt.Sprintf("tag_build in [egg_info] is not the ending of a version: %q", tag.Text),
			"write one such as dev0 or rc1")
	}
	f.checkName(c.Name)
	f.checkVersion(c.BaseVersion)
	if err := f.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// parseINI parses a file in which every wrong line is a problem. fix says what
// such a file looks like.
func parseINI(path, text, fix string) (inifile.File, error) {
	file, err := inifile.Parse(text)
	if err == nil {
		return file, nil
	}
	wrong := problems{path: path}
	var lines inifile.Error
	errors.As(err, &lines)
	for _, line := range lines {
		wrong.add(problem{line: line.Line, text: line.Text, fix: fix})
	}
	return nil, wrong.err()
}

// cfgFile reads the section metadata and collects what is wrong with it.
type cfgFile struct {
	problems
	file inifile.File
}

func (f *cfgFile) wrong(v inifile.Value, text, fix string) {
	f.add(problem{line: max(1, v.Line), text: text, fix: fix})
}

func (f *cfgFile) required(key string) string {
	v, ok := f.file.Get("metadata", key)
	if !ok {
		f.wrong(v, key+" is missing in the section [metadata]", "add a line `"+key+" = …`")
	}
	return v.Text
}

func (f *cfgFile) truth(key string) *bool {
	v, ok := f.file.Get("metadata", key)
	if !ok {
		return nil
	}
	yes, ok := truthOf(v.Text)
	if !ok {
		f.wrong(v, fmt.Sprintf("%s must be true or false, not %q", key, v.Text), "write true or false")
	}
	return &yes
}

// checkName checks the name of the package, which that of the module is part of.
func (f *cfgFile) checkName(name string) {
	v, ok := f.file.Get("metadata", "name")
	rest, prefixed := strings.CutPrefix(name, distributionPrefix)
	if ok && (!prefixed || rest == "" || strings.Contains(name, "_")) {
		f.wrong(v, fmt.Sprintf("name is not that of a module's package: %q", name),
			"write "+distributionPrefix+"<name of the module>, with hyphens in place of underscores")
	}
}

// checkVersion checks the version, which must be one of a release.
func (f *cfgFile) checkVersion(version string) {
	v, ok := f.file.Get("metadata", "version")
	if !ok {
		return
	}
	parsed, err := pep440.Parse(version)
	switch {
	case err != nil:
		f.wrong(v, fmt.Sprintf("version is not a version: %q", version), "write a version such as 1.2.3")
	case !parsed.Base():
		f.wrong(v, fmt.Sprintf("version has an ending: %q", version),
			"write the ending as tag_build in the section [egg_info]")
	}
}

// tagged returns a version with an ending, that of one before or after the release.
func tagged(version, tag string) (pep440.Version, error) {
	if tag == "" {
		return pep440.Parse(version)
	}
	return pep440.Parse(version + "." + strings.TrimLeft(tag, "."))
}
