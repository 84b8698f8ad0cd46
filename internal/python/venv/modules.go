package venv

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ModuleRequirements returns what must be installed to use the modules in these
// site-packages folders: what the packages there require beside each other and
// inmanta-core, and what modules get through inmanta-core.
func ModuleRequirements(sites []string) []string {
	out := slices.Clone(coreRequires)
	for _, site := range sites {
		present := installed(site)
		files, _ := filepath.Glob(filepath.Join(site, "*.dist-info", "METADATA"))
		for _, file := range files {
			for _, r := range requiresDist(file) {
				name := distribution(r)
				if _, here := present[name]; !here && name != "inmanta-core" && !slices.Contains(out, r) {
					out = append(out, r)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// requiresDist reads the requirements of a distribution, without those of extras.
func requiresDist(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() && lines.Text() != "" {
		r, found := strings.CutPrefix(lines.Text(), "Requires-Dist:")
		if found && !strings.Contains(r, "extra ==") {
			out = append(out, strings.TrimSpace(r))
		}
	}
	return out
}
