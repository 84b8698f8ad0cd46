package install

import (
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/python/venv"
)

// Conditions returns a function that evaluates conditions of requirements, such as
// python_version < "3.11", for the virtual environment that the folders of packages
// belong to. It returns nil if the version of that Python is unknown.
func Conditions(sitePackages []string) func(condition string) bool {
	for _, site := range sitePackages {
		minor, ok := strings.CutPrefix(filepath.Base(filepath.Dir(site)), "python")
		if !ok {
			continue
		}
		i := venv.Interpreter{Minor: minor, Version: versionOf(filepath.Dir(filepath.Dir(filepath.Dir(site))))}
		if i.Version == "" {
			i.Version = minor + ".0"
		}
		return func(condition string) bool { return venv.Applies(condition, i) }
	}
	return nil
}

// versionOf returns the version of Python that an environment was made with.
func versionOf(venv string) string {
	text, err := os.ReadFile(filepath.Join(venv, "pyvenv.cfg"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); name == "version" || name == "version_info" {
			version, _, _ := strings.Cut(strings.TrimSpace(value), ".final")
			return version
		}
	}
	return ""
}
