package module

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"unicode/utf8"
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
	text, err := readFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil // as upstream
	}
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, &Error{Kind: KindInvalidMetadata, Message: "Invalid syntax in " + path + ": it is not UTF-8", At: at(path, 1, 0)}
	}
	return parseINI(path, string(text))
}
