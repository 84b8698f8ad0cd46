package module

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Project is a folder with a project.yml.
type Project struct {
	Dir      string // absolute
	Metadata ProjectMetadata
	// ModulePath has the folders with modules of the first generation, absolute.
	ModulePath []string
	// SitePackages are the folders of the project's virtual environment that
	// hold its packages, newest Python first; none when there is no environment.
	SitePackages []string
}

// OpenProject reads the project in a folder.
func OpenProject(dir string) (*Project, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return nil, &Error{Kind: KindNoProject, Message: fmt.Sprintf("Directory %s doesn't exist", dir), Hint: "give the folder that holds project.yml"}
	}
	path := filepath.Join(abs, "project.yml")
	if _, err := os.Stat(path); err != nil {
		return nil, &Error{
			Kind: KindNoProject, Message: "Unable to find an inmanta project (project.yml expected) in " + dir,
			Hint: "give the folder that holds project.yml, relative to the root of the repository",
		}
	}
	metadata, err := readProjectMetadata(path)
	if err != nil {
		return nil, err
	}
	p := &Project{Dir: abs, Metadata: *metadata}
	for _, m := range metadata.ModulePath {
		if !filepath.IsAbs(m) {
			m = filepath.Join(abs, m)
		}
		p.ModulePath = append(p.ModulePath, filepath.Clean(m))
	}
	p.SitePackages = sitePackages(filepath.Join(abs, ".env"))
	return p, nil
}

// PipConfig is the pip section, for whoever installs packages.
func (p *Project) PipConfig() intent.PipConfig {
	pip := p.Metadata.Pip
	return intent.PipConfig{
		IndexURL: pip.IndexURL, ExtraIndexURL: pip.ExtraIndexURL,
		Pre: pip.Pre != nil && *pip.Pre, UseSystemConfig: pip.UseSystemConfig,
	}
}

// Requirements are the Python packages that the project needs: its
// requirements.txt, those of its modules of the first generation, and std.
func (p *Project) Requirements() ([]string, error) {
	all, err := readRequirements(filepath.Join(p.Dir, "requirements.txt"))
	if err != nil {
		return nil, err
	}
	for _, root := range p.ModulePath {
		entries, _ := os.ReadDir(root) // a folder that is not there holds no modules
		for _, e := range entries {
			dir := filepath.Join(root, e.Name())
			if _, err := os.Stat(filepath.Join(dir, "module.yml")); err != nil {
				continue
			}
			more, err := readRequirements(filepath.Join(dir, "requirements.txt"))
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	all = append(all, Distribution("std"))
	var out []string
	for _, r := range all {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out, nil
}

// Constraints are the versions that `requires` of project.yml allows, in the
// form that pip takes: inmanta-module-std~=8.0. They install nothing.
func (p *Project) Constraints() []string {
	var out []string
	for _, r := range p.Metadata.Requires {
		c, err := constraint(r)
		if err == nil && strings.ContainsAny(c, "<>=!~@") { // one without a version constrains nothing
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

// readRequirements reads a requirements.txt: a line each, without comments;
// a backslash joins lines. A file that is not there has none.
func readRequirements(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	joined := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutSuffix(line, "\\"); ok {
			joined += rest
			continue
		}
		if joined += line; joined != "" {
			out = append(out, joined)
		}
		joined = ""
	}
	if joined != "" {
		out = append(out, joined)
	}
	return out, nil
}
