package module

import (
	"errors"
	"maps"
	"path/filepath"

	"ordain.dev/ordain/compiler/inifile"
)

// Settings are the options that the project keeps for its plug-ins, in .inmanta
// and .inmanta.cfg: texts by section and name. The second file goes before the
// first. Files outside of the project are not read: what holds for a machine,
// the command line and the environment say.
func (p *Project) Settings() (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, name := range []string{".inmanta", ".inmanta.cfg"} {
		path := filepath.Join(p.Dir, name)
		if !isFile(path) {
			continue
		}
		values, err := readSettings(path)
		if err != nil {
			return nil, err
		}
		for section, options := range values {
			if all[section] == nil {
				all[section] = map[string]any{}
			}
			for option, value := range options {
				all[section][option] = value
			}
		}
	}
	everywhere := all["DEFAULT"]
	delete(all, "DEFAULT")
	for section, options := range all {
		all[section] = maps.Clone(everywhere)
		if all[section] == nil {
			all[section] = map[string]any{}
		}
		maps.Copy(all[section], options)
	}
	return all, nil
}

func readSettings(path string) (map[string]map[string]string, error) {
	text, err := readText(path)
	if forbidden := (*Error)(nil); errors.As(err, &forbidden) && forbidden.Kind == KindForbidden {
		return nil, nil // as upstream
	}
	if err != nil {
		return nil, err
	}
	file, err := inifile.Parse(string(text))
	if err != nil {
		return nil, badINI(
			path,
			err,
			"a file of settings has sections, such as [config], and in them lines `key = value`",
		)
	}
	return file.Written(), nil
}
