package module

import (
	"strings"

	"ordain.dev/ordain/internal/python/pep440"
)

const distributionPrefix = "inmanta-module-"

// Distribution returns the name of the Python package that holds a module.
func Distribution(module string) string {
	return distributionPrefix + strings.ReplaceAll(module, "_", "-")
}

// Name returns the module that a Python package holds, or an empty name if it holds
// none.
func Name(distribution string) string {
	name, ok := strings.CutPrefix(pep440.Normal(distribution), distributionPrefix)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(name, "-", "_")
}
