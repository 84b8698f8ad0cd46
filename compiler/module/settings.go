package module

import (
	"errors"
	"path/filepath"

	"ordain.dev/ordain/internal/inifile"
)

// Settings returns the options that the project keeps for its plug-ins, in
// .inmanta and .inmanta.cfg, by section and name. The second file overrides the
// first. Files outside of the project are not read: options of a machine come
// from the command line and the environment.
func (p *Project) Settings() (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, name := range []string{".inmanta", ".inmanta.cfg"} {
		file, err := readSettings(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		for section, options := range file {
			if all[section] == nil {
				all[section] = map[string]any{}
			}
			for option, value := range options {
				all[section][option] = value.Text
			}
		}
	}
	everywhere := all[inifile.Default]
	delete(all, inifile.Default)
	for _, options := range all {
		for option, value := range everywhere {
			if _, ok := options[option]; !ok {
				options[option] = value
			}
		}
	}
	return all, nil
}

// readSettings reads one file. A file that is not there, or that may not be read,
// has no settings, as in inmanta-core.
func readSettings(path string) (inifile.File, error) {
	if !isFile(path) {
		return nil, nil
	}
	text, err := readText(path)
	if forbidden := (*Error)(nil); errors.As(err, &forbidden) && forbidden.Kind == KindForbidden {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseINI(path, string(text),
		"a file of settings has sections, such as [config], and in them lines `key = value`")
}
