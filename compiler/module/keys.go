package module

import (
	"slices"

	"ordain.dev/ordain/internal/diag"
)

// projectKeys are what project.yml may say. Other keys are allowed, for tools
// of others, and have no effect.
var projectKeys = []string{
	"name", "description", "author", "author_email", "license", "copyright", "modulepath", "downloadpath", "repo", "requires",
	"install_mode", "freeze_recursive", "freeze_operator", "relation_precedence_policy", "agent_install_dependency_modules", "pip",
	"environment_settings", "strict_deps_check",
}

// misspelt lists the keys that look like others: they may be why something is
// not found.
func (f *fields) misspelt(known []string) []string {
	var list []string
	for _, k := range f.root.keys {
		key, _ := k.is.(string)
		if slices.Contains(known, key) {
			continue
		}
		if near := diag.Nearest(key, known); near != "" {
			list = append(list, "the key `"+key+"` in project.yml means nothing: did you mean `"+near+"`?")
		}
	}
	return list
}
