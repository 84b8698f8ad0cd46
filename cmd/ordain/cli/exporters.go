package cli

import (
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/inifile"
)

// exportFunctions names the export functions that a project asks for: the
// option export in section config of Inmanta's configuration files, or the
// variable INMANTA_CONFIG_EXPORT.
func exportFunctions(project string) ([]string, error) {
	text, set := os.LookupEnv("INMANTA_CONFIG_EXPORT")
	if !set {
		var err error
		if text, err = configuredExport(project); err != nil {
			return nil, err
		}
	}
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// configuredExport reads the files; a later one overrides the ones before.
func configuredExport(project string) (string, error) {
	files := []string{"/etc/inmanta/inmanta.cfg"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".inmanta.cfg"))
	}
	files = append(files, filepath.Join(project, ".inmanta"), filepath.Join(project, ".inmanta.cfg"))
	text := ""
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		content, err := os.ReadFile(name)
		if os.IsPermission(err) { // of somebody else's server, such as the one in /etc
			continue
		}
		var parsed inifile.File
		if err == nil {
			parsed, err = inifile.Parse(string(content))
		}
		if err != nil {
			return "", fault.Wrap("cli.compile", fault.Invalid, err).
				Say("the configuration file " + name + " cannot be read")
		}
		if value, ok := parsed.Get("config", "export"); ok {
			text = value.Text
		}
	}
	return text, nil
}
