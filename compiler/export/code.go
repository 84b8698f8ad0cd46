package export

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/intent"
)

// code finds, for every type of resource, the files and requirements that an
// executor needs to handle it:
//
//	the modules that define the class, its handlers and their bases
//	+ those that define the references in its resources
//	+ what their Python files import of other modules, and so on
//
// and of each module all its Python files, the other packages of its distribution, and its
// requirements but for inmanta-core and for modules that are sent along.
func (e *exporter) code() error {
	if err := e.uploads(); err != nil {
		return err
	}
	used := map[string]map[string]bool{} // reference types by resource type
	for _, it := range e.items {
		if used[it.id.Type] == nil {
			used[it.id.Type] = map[string]bool{}
		}
		for _, name := range it.references {
			used[it.id.Type][name] = true
		}
	}
	names := slices.Sorted(maps.Keys(used))
	if len(names) == 0 {
		return nil
	}
	var reply struct {
		Modules map[string][]string `json:"modules"`
	}
	if err := e.host.Request("export_code", plugin.CodeOf{Types: names}, &reply, e.heap,
		"looking for the handlers"); err != nil {
		return err
	}
	sources := e.sources
	for _, name := range names {
		wanted := map[string]bool{}
		for _, python := range reply.Modules[name] {
			wanted[topModule(python)] = true
		}
		for reference := range used[name] {
			wanted[topModule(e.modules[reference])] = true
		}
		code, err := sources.code(name, wanted)
		if err != nil {
			return err
		}
		e.doc.Code = append(e.doc.Code, code)
	}
	for _, code := range e.doc.Code {
		for _, source := range code.Sources {
			e.doc.Files[source.Hash] = sources.files[source.Hash]
		}
	}
	return nil
}

// uploads takes over the files that resource classes uploaded with Exporter.upload_file.
func (e *exporter) uploads() error {
	for {
		var reply struct {
			Files map[string][]byte `json:"files"`
			More  bool              `json:"more"`
		}
		if err := e.host.Request("export_files", nil, &reply, e.heap, "the uploaded files"); err != nil {
			return err
		}
		maps.Copy(e.doc.Files, reply.Files)
		if !reply.More {
			return nil
		}
	}
}

// topModule is the module of the model that a Python module belongs to; empty for others.
func topModule(python string) string {
	rest, ok := strings.CutPrefix(python, "inmanta_plugins.")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// sources reads the Python code of modules, each once.
type sources struct {
	byName map[string]*module.Module
	read   map[string]*moduleCode
	files  map[string][]byte
}

func newSources(modules []*module.Module) *sources {
	s := &sources{byName: map[string]*module.Module{}, read: map[string]*moduleCode{}, files: map[string][]byte{}}
	for _, m := range modules {
		s.byName[m.Name] = m
	}
	return s
}

// moduleCode is the Python side of one module.
type moduleCode struct {
	sources      []intent.SourceFile
	requirements []string
	imports      []string // other modules of the model that it imports
}

// code collects what one resource type needs.
func (s *sources) code(name string, wanted map[string]bool) (intent.ResourceCode, error) {
	code := intent.ResourceCode{Type: name, Sources: []intent.SourceFile{}, Requirements: []string{}}
	seen := map[string]bool{}
	queue := slices.Sorted(maps.Keys(wanted))
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if seen[next] || s.byName[next] == nil {
			continue
		}
		seen[next] = true
		m, err := s.module(next)
		if err != nil {
			return code, err
		}
		code.Sources = append(code.Sources, m.sources...)
		code.Requirements = append(code.Requirements, m.requirements...)
		queue = append(queue, m.imports...)
	}
	slices.SortFunc(code.Sources, func(a, b intent.SourceFile) int { return cmp.Compare(a.Path, b.Path) })
	code.Sources = slices.CompactFunc(code.Sources, func(a, b intent.SourceFile) bool { return a.Path == b.Path })
	slices.Sort(code.Requirements)
	code.Requirements = slices.Compact(code.Requirements)
	return code, nil
}

// importsOf notes what a Python file imports, inside of functions too: modules of the model,
// and distributions that inmanta-core would have installed.
func importsOf(content []byte, modules, implied map[string]bool) {
	for line := range bytes.Lines(content) {
		words := bytes.Fields(line)
		if len(words) < 2 || (string(words[0]) != "import" && string(words[0]) != "from") {
			continue
		}
		top, rest, _ := strings.Cut(strings.TrimRight(string(words[1]), ",;"), ".")
		switch {
		case top != "inmanta_plugins":
			if brought := byCore[top]; brought != "" {
				implied[brought] = true
			}
		case rest != "":
			name, _, _ := strings.Cut(rest, ".")
			modules[name] = true
		case len(words) > 3: // from inmanta_plugins import a, b
			for _, name := range words[3:] {
				modules[strings.Trim(string(name), ",;()")] = true
			}
		}
	}
}

func (s *sources) module(name string) (*moduleCode, error) {
	if known := s.read[name]; known != nil {
		return known, nil
	}
	m := s.byName[name]
	code := &moduleCode{}
	imports, implied := map[string]bool{}, map[string]bool{}
	for _, path := range m.PythonFiles {
		inner, err := filepath.Rel(m.PluginDir, path)
		if err != nil {
			return nil, err
		}
		content, err := s.add(code, path, filepath.ToSlash(filepath.Join("inmanta_plugins", name, inner)))
		if err != nil {
			return nil, err
		}
		importsOf(content, imports, implied)
	}
	if err := s.others(m, code); err != nil {
		return nil, err
	}
	code.imports = slices.Sorted(maps.Keys(imports))
	for _, requirement := range m.Requirements {
		if s.external(requirement) {
			code.requirements = append(code.requirements, requirement)
			delete(implied, distribution(requirement))
		}
	}
	code.requirements = append(code.requirements, slices.Sorted(maps.Keys(implied))...)
	s.read[name] = code
	return code, nil
}

// byCore maps packages to the distributions that inmanta-core requires for them. Modules import
// them without requiring them, but inmanta-core is not installed here.
var byCore = map[string]string{
	"yaml": "pyyaml", "pydantic": "pydantic", "jinja2": "jinja2", "email_validator": "email-validator",
	"more_itertools": "more-itertools", "packaging": "packaging", "dateutil": "python-dateutil",
	"ruamel":  "ruamel-yaml",
	"tornado": "tornado", "toml": "toml", "cryptography": "cryptography", "typing_extensions": "typing-extensions",
	"typing_inspect": "typing-inspect", "jsonpath_ng": "jsonpath-ng", "click": "click", "jwt": "pyjwt",
	"nacl":      "pynacl",
	"texttable": "texttable", "colorlog": "colorlog", "docstring_parser": "docstring-parser",
	"setproctitle": "setproctitle",
}

// distribution is the normalised name in a requirement.
func distribution(requirement string) string {
	return strings.ToLower(
		strings.NewReplacer("_", "-", ".", "-").Replace(requirementName().FindString(strings.TrimSpace(requirement))),
	)
}

// add reads a file into the code of a module.
func (s *sources) add(code *moduleCode, path, as string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("export: read the code of a module: %w", err)
	}
	sum := sha1.Sum(content)
	hash := hex.EncodeToString(sum[:])
	s.files[hash] = content
	dotted := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(as, ".pyc"), ".py"), "/__init__")
	code.sources = append(code.sources,
		intent.SourceFile{Module: strings.ReplaceAll(dotted, "/", "."), Path: as, Hash: hash})
	return content, nil
}

// others adds the packages that a distribution has beside inmanta_plugins, such as code that a
// handler runs on its target.
func (s *sources) others(m *module.Module, code *moduleCode) error {
	if m.Generation != 2 {
		return nil
	}
	base := filepath.Dir(filepath.Dir(m.PluginDir)) // site-packages, or the repository of an editable module
	for _, top := range besides(base, m) {
		err := filepath.WalkDir(filepath.Join(base, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "__pycache__" {
					return filepath.SkipDir
				}
				return nil
			}
			if filepath.Ext(path) == ".pyc" || !d.Type().IsRegular() {
				return nil
			}
			inner, err := filepath.Rel(base, path)
			if err != nil {
				return err
			}
			_, err = s.add(code, path, filepath.ToSlash(inner))
			return err
		})
		if err != nil {
			return fmt.Errorf("export: read package %s of module %s: %w", top, m.Name, err)
		}
	}
	return nil
}

// besides lists the other top-level packages of a module's distribution.
func besides(base string, m *module.Module) []string {
	if m.Editable {
		var found []string
		entries, _ := os.ReadDir(base)
		for _, entry := range entries {
			if entry.Name() != "inmanta_plugins" && entry.Name() != "tests" &&
				isPackage(filepath.Join(base, entry.Name())) {
				found = append(found, entry.Name())
			}
		}
		return found
	}
	pattern := filepath.Join(base, strings.ReplaceAll(m.Dist, "-", "_")+"-*.dist-info", "RECORD")
	records, _ := filepath.Glob(pattern)
	tops := map[string]bool{}
	for _, record := range records {
		text, err := os.ReadFile(record)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			path, _, _ := strings.Cut(line, ",")
			top, rest, nested := strings.Cut(path, "/")
			if nested && rest == "__init__.py" && top != "inmanta_plugins" {
				tops[top] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(tops))
}

func isPackage(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "__init__.py"))
	return err == nil
}

var requirementName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*`) })

// external reports whether a requirement must be installed. The worker's own runtime takes the
// place of inmanta-core, and loaded modules are sent along.
func (s *sources) external(requirement string) bool {
	name := distribution(requirement)
	if name == "" || name == "inmanta-core" || name == "inmanta" {
		return false
	}
	if module, ok := strings.CutPrefix(name, "inmanta-module-"); ok {
		return s.byName[strings.ReplaceAll(module, "-", "_")] == nil
	}
	return true
}
