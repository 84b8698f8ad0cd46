package module

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ordain.dev/ordain/internal/intent"
)

// Project is a folder with a project.yml.
type Project struct {
	Dir      string // absolute
	Metadata ProjectMetadata
	// ModulePath holds the absolute paths of the folders with modules of the first
	// generation.
	ModulePath []string
	// SitePackages are the package folders of the project's virtual environment, the
	// newest Python first; empty: there is no environment.
	SitePackages []string
	// Applies evaluates the condition of a requirement, such as
	// python_version < "3.11". If it is nil, no condition holds.
	Applies func(condition string) bool
	// Bundled returns the folder of a module that comes with the compiler; empty: there is none of that name. If it is
	// nil, none does. Such a module is found after all others, so that a project may have its own of the same name.
	Bundled func(name string) string
	// Root is the folder that requirements files and modules with requirements must lie
	// in when all links are followed. If it is empty, the project belongs to the person
	// who runs this program, and may refer to any file of theirs.
	Root string
}

// OpenProject reads the project in a folder.
func OpenProject(dir string) (*Project, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return nil, &Error{
			Kind:    KindNoProject,
			Message: fmt.Sprintf("Directory %s doesn't exist", dir),
			Hint:    "give the folder that holds project.yml",
		}
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
	return p, p.downloadable()
}

// downloadable checks that the folder for modules from Git exists, or could be made.
func (p *Project) downloadable() error {
	git := func(r Repo) bool { return r.Type == "git" }
	if p.Metadata.DownloadPath == "" || !slices.ContainsFunc(p.Metadata.Repo, git) {
		return nil
	}
	path := p.DownloadPath()
	up := filepath.Dir(path)
	if exists(path) {
		return nil
	}
	info, err := os.Stat(up)
	hint := "make the folder " + up + ", or name another one under downloadpath in project.yml"
	if err == nil && !info.IsDir() {
		err, hint = syscall.ENOTDIR, up+" is not a folder: name another one under downloadpath in project.yml"
	}
	if e := systemError(path, err, hint); e != nil {
		e.At = at(filepath.Join(p.Dir, "project.yml"), 1, 0)
		return e
	}
	return nil
}

// PipConfig returns the section pip, for installing packages.
func (p *Project) PipConfig() intent.PipConfig {
	pip := p.Metadata.Pip
	return intent.PipConfig{
		IndexURL: pip.IndexURL, ExtraIndexURL: pip.ExtraIndexURL,
		Pre: pip.Pre, UseSystemConfig: pip.UseSystemConfig,
	}
}

// Requirements returns the Python packages that the project needs: those in its
// requirements.txt, those of its modules of the first generation, and std. A line that is
// not allowed there is an error.
func (p *Project) Requirements() ([]string, error) {
	own, err := p.checked(p.Dir)
	if err != nil {
		return nil, err
	}
	all := own.lines
	for _, m := range p.localModules() {
		of, err := p.checked(m.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, of.lines...)
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

// Constraints returns what `requires` in project.yml and in the modules of the first
// generation demands, as constraints for pip: inmanta-module-std~=8.0. It adds the
// files that their requirements name with -c.
func (p *Project) Constraints() []string {
	specs := slices.Clone(p.Metadata.Requires)
	var out []string
	add := func(lines []string) {
		for _, c := range lines {
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	if own, err := p.checked(p.Dir); err == nil { // Requirements returns the error
		add(own.constraints)
	}
	for _, m := range p.localModules() {
		specs = append(specs, m.Requires...)
		if of, err := p.checked(m.Path); err == nil {
			add(of.constraints)
		}
	}
	for _, spec := range specs {
		r, err := requirement(spec)
		if err != nil || r.URL == "" && len(r.Versions) == 0 { // without a version there is nothing to constrain
			continue
		}
		r.Name, r.Extras = Distribution(r.Name), ""
		add([]string{r.String()})
	}
	slices.Sort(out)
	return out
}

// localModules reads all modules on the module path, imported or not. It skips those
// outside of the root, and those that cannot be read: the compile reports them.
func (p *Project) localModules() []*Module {
	var all []*Module
	seen := map[string]bool{}
	for _, root := range p.ModulePath {
		entries, _ := os.ReadDir(root) // a missing folder holds no modules
		for _, e := range entries {
			if path := filepath.Join(root, e.Name()); !seen[e.Name()] && isFile(filepath.Join(path, "module.yml")) {
				seen[e.Name()] = true
				if !p.contains(path) {
					continue
				}
				if m, err := openV1(path); err == nil {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// DownloadPath returns the folder that modules are cloned to from Git: downloadpath,
// or else the first folder of the module path inside the project.
func (p *Project) DownloadPath() string {
	if d := p.Metadata.DownloadPath; d != "" {
		if !filepath.IsAbs(d) {
			d = filepath.Join(p.Dir, d)
		}
		return filepath.Clean(d)
	}
	for _, m := range p.ModulePath {
		if inside(p.Dir, m) {
			return m
		}
	}
	return filepath.Join(p.Dir, "libs")
}

// inside reports whether a path lies below a folder.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
