package module

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// setupCfg is what counts of a setup.cfg.
type setupCfg struct {
	Name, Version   string
	InstallRequires []string
	Deprecated      bool
}

// readSetupCfg reads the sections metadata, options and egg_info. It follows
// Python's configparser: a value goes on over indented lines; lines that begin
// with # or ; are comments.
func readSetupCfg(path string) (*setupCfg, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, &Error{Kind: KindInvalidMetadata, Message: "Invalid syntax in " + path + ": it is not UTF-8", At: at(path, 1, 0)}
	}
	values, err := parseINI(path, string(text))
	if err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) (*setupCfg, error) {
		return nil, &Error{Kind: KindInvalidMetadata, Message: "Metadata defined in " + path + " is invalid: " + fmt.Sprintf(format, args...), At: at(path, 1, 0)}
	}
	meta, ok := values["metadata"]
	if !ok {
		return nil, &Error{Kind: KindInvalidMetadata, Message: "Metadata file " + path + " doesn't have a metadata section.", At: at(path, 1, 0)}
	}
	for _, key := range []string{"name", "version", "license"} {
		if _, ok := meta[key]; !ok {
			return fail("the key `%s` is missing in [metadata]", key)
		}
	}
	c := &setupCfg{Name: meta["name"], Version: meta["version"] + tag(values["egg_info"]["tag_build"])}
	name, ok := strings.CutPrefix(c.Name, "inmanta-module-")
	if !ok || name == "" || strings.Contains(c.Name, "_") {
		return fail("the name %q must be inmanta-module-<name>, with hyphens", c.Name)
	}
	if !baseVersion().MatchString(meta["version"]) {
		return fail("version %s is not a version such as 1.2.3; what comes after that goes to tag_build in [egg_info]", meta["version"])
	}
	if !isVersion(c.Version) {
		return fail("tag_build %s in [egg_info] makes no version", values["egg_info"]["tag_build"])
	}
	for line := range strings.SplitSeq(values["options"]["install_requires"], "\n") {
		if line = strings.TrimSpace(line); line != "" {
			c.InstallRequires = append(c.InstallRequires, line)
		}
	}
	switch strings.ToLower(meta["deprecated"]) {
	case "true", "yes", "on", "1":
		c.Deprecated = true
	}
	return c, nil
}

var baseVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*v?(\d+!)?\d+(\.\d+)*\s*$`) })

// tag is the suffix that a pre-release or development version has.
func tag(build string) string {
	if strings.HasPrefix(build, "dev") || strings.HasPrefix(build, "post") {
		return "." + build
	}
	return build
}

func parseINI(path, text string) (map[string]map[string]string, error) {
	values := map[string]map[string]string{}
	fail := func(line int, format string, args ...any) *Error {
		return &Error{Kind: KindInvalidMetadata, Message: "Invalid syntax in " + path + ": " + fmt.Sprintf(format, args...), At: at(path, line, 0)}
	}
	var section map[string]string
	key := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case key != "" && (line[0] == ' ' || line[0] == '\t'):
			section[key] += "\n" + trimmed
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			name := line[1 : len(line)-1]
			if values[name] != nil {
				return nil, fail(i+1, "the section [%s] is there twice", name)
			}
			values[name] = map[string]string{}
			section, key = values[name], ""
		default:
			cut := strings.IndexAny(trimmed, "=:")
			if section == nil || cut < 1 {
				return nil, fail(i+1, "expected a [section] or `key = value`")
			}
			key = strings.ToLower(strings.TrimSpace(trimmed[:cut]))
			if _, twice := section[key]; twice {
				return nil, fail(i+1, "the key %s is there twice", key)
			}
			section[key] = strings.TrimSpace(trimmed[cut+1:])
		}
	}
	return values, nil
}
