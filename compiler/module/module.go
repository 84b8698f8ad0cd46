package module

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/python/pep440"
)

// Module is a module on disk.
type Module struct {
	Name       string
	Version    string
	Path       string // the folder with setup.cfg or module.yml
	Generation int    // 1: a folder on the modulepath; 2: a Python package
	Editable   bool   // a package that is installed from its repository
	Deprecated bool

	ModelDir     string
	PluginDir    string // the Python package; empty: there is none
	FilesDir     string
	TemplatesDir string

	// Requirements are the Python packages that setup.cfg or requirements.txt names.
	Requirements []string
	// Requires are constraints on other modules, by module name.
	Requires []string
	// PythonFiles are the paths of the package's Python files, each __init__.py
	// before the other files of its folder.
	PythonFiles []string
	// Dist is the Python distribution that holds the module; empty for generation 1.
	Dist string
	// ShadowsV1 means that a module of generation 1 has the same name and is ignored.
	ShadowsV1 bool

	// pluginsErr is what is wrong with the Python package. It is reported after all
	// models have been read.
	pluginsErr error
	// requirementsErr is why requirements.txt could not be read. It is reported when
	// the next module is looked for.
	requirementsErr error
}

// findModule looks for a top-level module among the packages of the virtual
// environment, then on the modulepath, then among those that come with the compiler. It may return
// a module beside an error, for
// the module's warnings.
func (p *Project) findModule(s *site, name string) (*Module, error) {
	if strings.HasPrefix(name, "_") {
		_, err := pep440.ParseRequirement(name)
		return nil, &Error{
			Kind: KindNoRequirement, Like: KindNotFound, Message: err.Error(),
			Hint: "no module can be called " + name + ": names of modules begin with a letter; what the project " +
				"itself defines needs no import",
		}
	}
	first := ""
	for _, root := range p.ModulePath {
		path := filepath.Join(root, name)
		if _, err := os.Stat(path); err == nil {
			first = path
			break
		}
	}
	if pkg := s.find(name); pkg != "" {
		m, err := openV2(s, name, pkg)
		if m != nil {
			m.ShadowsV1 = first != ""
		}
		return m, err
	}
	if first != "" {
		return openV1(first)
	}
	if p.Bundled != nil {
		if pkg := p.Bundled(name); pkg != "" {
			return openBundled(pkg)
		}
	}
	return nil, p.notFound(s, name)
}

// openBundled reads a module that comes with the compiler. It is no distribution, so nothing has to be installed
// for it.
func openBundled(pkg string) (*Module, error) {
	m, err := openV2(&site{}, filepath.Base(pkg), pkg)
	if err == nil {
		m.Dist = ""
	}
	return m, err
}

// notFound is the error of a missing module. Its hint says where findModule looked
// and what may help.
func (p *Project) notFound(s *site, name string) *Error {
	where := "there is no virtual environment (.env) in the project"
	if len(p.SitePackages) > 0 {
		where = "it is not installed in .env"
	}
	if len(p.ModulePath) > 0 {
		where += ", nor a folder on the modulepath"
	}
	how := "run `ordain project install`; before that, add " + Distribution(
		name,
	) + " to requirements.txt, or name the Git repositories of your modules under repo in project.yml"
	if near := diag.Nearest(name, p.moduleNames(s)); near != "" {
		how = "did you mean " + near + "? Otherwise " + how
	}
	for _, key := range p.Metadata.Misspelt {
		how = key + "; " + how
	}
	return &Error{
		Kind: KindNotFound, Message: "Could not find module " + name + ". Please make sure to add any module v2 " +
			"requirements with `inmanta module add --v2` and " +
			"to install all the project's dependencies with `inmanta project install`.",
		Hint: where + ";\n" + how,
	}
}

// moduleNames lists the names of all modules that are there.
func (p *Project) moduleNames(s *site) []string {
	var names []string
	for _, root := range p.ModulePath {
		names = append(names, folders(root)...)
	}
	for _, dir := range s.dirs {
		names = append(names, folders(filepath.Join(dir, "inmanta_plugins"))...)
	}
	return names
}

// folders lists the folders of a folder, without hidden and private ones.
func folders(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); name[0] != '.' && name[0] != '_' {
			names = append(names, name)
		}
	}
	return names
}

// openV2 reads a module of the second generation from the folder of its package. If
// the module has no model, it is returned beside the error, for its warnings.
func openV2(s *site, name, pkg string) (*Module, error) {
	if !isFile(filepath.Join(pkg, "__init__.py")) && !isFile(filepath.Join(pkg, "__init__.pyc")) {
		return nil, &Error{
			Kind:    KindInvalid,
			Message: "Package inmanta_plugins." + name + " was installed in " + pkg + ", but it has no __init__.py.",
		}
	}
	if real, err := filepath.EvalSymlinks(pkg); err == nil {
		pkg = real
	}
	m := &Module{Generation: 2, Path: pkg, PluginDir: pkg}
	if !isFile(filepath.Join(pkg, "setup.cfg")) {
		m.Path = filepath.Dir(filepath.Dir(pkg))
		m.Editable = true
		if !isFile(filepath.Join(m.Path, "setup.cfg")) {
			return nil, &Error{
				Kind: KindInvalid, Message: "Invalid module at " + pkg + ": there is a package but no setup.cfg.",
				Hint: "the package was built in a way that leaves out the model; install it as published, or as " +
					"an editable package",
			}
		}
	}
	cfg, err := readSetupCfg(filepath.Join(m.Path, "setup.cfg"))
	if err != nil {
		return nil, notLoaded(name, err)
	}
	m.Name = strings.ReplaceAll(strings.TrimPrefix(cfg.Name, "inmanta-module-"), "-", "_")
	m.Dist, m.Requirements, m.Deprecated = cfg.Name, cfg.InstallRequires, isTrue(cfg.Deprecated)
	if m.Version = s.version(cfg.Name); m.Version == "" {
		m.Version = cfg.Version()
	}
	m.folders()
	if !isFile(filepath.Join(m.ModelDir, "_init.cf")) {
		return m, &Error{
			Kind: KindInvalid, Message: "The module at " + m.Path + " contains no _init.cf file.",
			Hint: "the package was built in a way that leaves out the model; install it as published, or as an " +
				"editable package",
		}
	}
	m.pluginsErr = m.python()
	return m, nil
}

// notLoaded is the error of a module whose metadata cannot be read.
func notLoaded(name string, err error) *Error {
	out := &Error{Kind: KindInvalid, Message: "Could not load module " + name, Cause: err}
	if e := (*Error)(nil); errors.As(err, &e) && e.foreign() {
		out.Hint = e.Hint
		out.Cause = &Error{Kind: KindInvalidMetadata, Message: e.Message, At: e.At}
	}
	return out
}

// openV1 reads a module of the first generation from its folder. If a module of the
// second generation lies there, it is returned beside the error, for its warnings.
func openV1(path string) (*Module, error) {
	yml := filepath.Join(path, "module.yml")
	if isDir(yml) {
		return nil, notLoaded(filepath.Base(path), systemError(yml, syscall.EISDIR, "module.yml must be a file"))
	}
	if !isFile(yml) {
		if cfg := filepath.Join(path, "setup.cfg"); isFile(cfg) {
			meta, err := readSetupCfg(cfg)
			if err != nil {
				return nil, notLoaded(filepath.Base(path), err)
			}
			m := &Module{Generation: 2, Name: Name(meta.Name), Path: path, Deprecated: isTrue(meta.Deprecated)}
			return m, &Error{
				Kind: KindV2InV1Path, Message: "Module at " + path + " looks like a v2 module. Please have a " +
					"look at the documentation on how to use v2 modules.",
				Hint: "it has a setup.cfg and no module.yml, so it is a Python package; the modulepath only " +
					"holds modules with a module.yml.\n" +
					"Install it into the project's virtual environment instead: pip install -e " + path + "\n" +
					"An installed module is found before one on the modulepath, whatever the modulepath says.",
			}
		}
		return nil, &Error{Kind: KindNoMetadata, Message: "Metadata file " + yml + " does not exist"}
	}
	meta, err := readModuleMetadata(yml)
	if e := (*Error)(nil); errors.As(err, &e) && e.foreign() {
		return nil, notLoaded(filepath.Base(path), e)
	}
	if err != nil {
		return nil, &Error{
			Kind:    KindInvalid,
			Message: "The module found at " + path + " is not a valid V1 module",
			Cause:   err,
		}
	}
	m := &Module{
		Generation: 1,
		Name:       meta.name,
		Version:    meta.Version,
		Deprecated: isTrue(meta.Deprecated),
		Path:       path,
		Requires:   meta.requires,
	}
	packages, err := readRequirements(path, true)
	m.Requirements, m.requirementsErr = packages.lines, err
	if plugins := filepath.Join(path, "plugins"); exists(plugins) {
		m.PluginDir = plugins
	}
	m.folders()
	m.pluginsErr = m.python()
	return m, nil
}

func (m *Module) folders() {
	m.ModelDir = filepath.Join(m.Path, "model")
	m.FilesDir = filepath.Join(m.Path, "files")
	m.TemplatesDir = filepath.Join(m.Path, "templates")
}

// python lists the Python files of the module.
func (m *Module) python() error {
	if m.PluginDir == "" {
		return nil
	}
	if !isFile(filepath.Join(m.PluginDir, "__init__.py")) && !isFile(filepath.Join(m.PluginDir, "__init__.pyc")) {
		return &Error{
			Kind: KindInvalid, Message: "Directory " + m.PluginDir + " should be a valid python package with a " +
				"__init__.py file",
			Hint: "add an empty file __init__.py to it",
		}
	}
	// With the separator, WalkDir follows the path if it is a link.
	root := m.PluginDir + string(filepath.Separator)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return filepath.SkipDir
		case d.IsDir() && path != root && filepath.Dir(path) == m.PluginDir &&
			slices.Contains([]string{"model", "files", "templates"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		switch filepath.Ext(path) {
		case ".py":
			m.PythonFiles = append(m.PythonFiles, path)
		case ".pyc":
			if !isFile(strings.TrimSuffix(path, "c")) {
				m.PythonFiles = append(m.PythonFiles, path)
			}
		}
		return nil
	})
	if err != nil {
		return &Error{Kind: KindInvalid, Message: "Could not load module " + m.Name, Cause: err}
	}
	key := func(path string) string {
		dir, base := filepath.Split(path)
		if strings.HasPrefix(base, "__init__.") {
			base = ""
		}
		return dir + "\x00" + base
	}
	slices.SortFunc(m.PythonFiles, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	return nil
}

// modelFile returns the path of the model of one of the module's namespaces. A folder
// wins over a file.
func (m *Module) modelFile(namespace string) string {
	parts := strings.Split(namespace, "::")[1:]
	path := filepath.Join(append([]string{m.ModelDir}, parts...)...)
	if len(parts) == 0 || isDir(path) {
		return filepath.Join(path, "_init.cf")
	}
	return path + ".cf"
}
