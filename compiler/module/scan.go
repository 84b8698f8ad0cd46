package module

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/python/pep440"
	"ordain.dev/ordain/internal/python/runtime"
)

// Scan is what a project imports, as far as that can be followed. Files that do not
// parse and malformed modules are left to the compile, which reports them.
type Scan struct {
	Modules []*Module
	Missing []Missing
	// Bundled are imported modules that are not there either, and come with the compiler.
	Bundled []Missing
}

// Missing is a module that is imported but not there.
type Missing struct {
	Name string
	At   syntax.Span // the first import of it
}

// Scan follows the imports of a project, including the implicit one of std.
func (p *Project) Scan(main string) Scan {
	l := NewLoader(p)
	l.autostd = true
	defer l.reading.Wait()
	if !filepath.IsAbs(main) {
		main = filepath.Join(p.Dir, main)
	}
	var out Scan
	file, err := l.read(main, "__config__")
	if err != nil {
		return out
	}
	seen := map[string]bool{}     // namespaces
	known := map[string]*Module{} // nil: cannot be loaded
	stack := l.imports(file)
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		parts := strings.Split(w.name, "::")
		m, looked := known[parts[0]]
		if !looked {
			if m, err = l.module(parts[0]); err == nil {
				out.Modules = append(out.Modules, m)
			} else {
				m = nil
				switch e := (*Error)(nil); {
				case !errors.As(err, &e) || e.Kind != KindNotFound:
				case runtime.HasModule(parts[0]):
					out.Bundled = append(out.Bundled, Missing{parts[0], w.at})
				default:
					out.Missing = append(out.Missing, Missing{parts[0], w.at})
				}
			}
			known[parts[0]] = m
		}
		if m == nil {
			continue
		}
		for i := range parts {
			namespace := strings.Join(parts[:i+1], "::")
			if seen[namespace] {
				continue
			}
			seen[namespace] = true
			if file, err := l.file(m, namespace); err == nil {
				stack = append(stack, l.imports(file)...)
			}
		}
	}
	return out
}

// Wish is a constraint on the version of a module.
type Wish struct {
	By       string // project.yml, requirements.txt or the name of a module
	Versions pep440.Specifiers
}

// Wishes returns the constraints that a project and some modules put on modules, by
// module name.
func (p *Project) Wishes(modules []*Module) map[string][]Wish {
	out := map[string][]Wish{}
	add := func(by, module string, versions pep440.Specifiers) {
		if len(versions) > 0 {
			out[module] = append(out[module], Wish{by, versions})
		}
	}
	byName := func(by string, specs []string) {
		for _, spec := range specs {
			if r, err := requirement(spec); err == nil && p.applies(r) {
				add(by, strings.ReplaceAll(r.Name, "-", "_"), r.Versions)
			}
		}
	}
	byPackage := func(by string, specs []string) {
		for _, spec := range specs {
			if r, err := pep440.ParseRequirement(spec); err == nil && Name(r.Name) != "" && p.applies(r) {
				add(by, Name(r.Name), r.Versions)
			}
		}
	}
	byName("project.yml", p.Metadata.Requires)
	if packages, err := p.checked(p.Dir); err == nil {
		byPackage("requirements.txt", packages.lines)
	}
	for _, m := range modules {
		byName(m.Name, m.Requires)
		byPackage(m.Name, m.Requirements)
	}
	return out
}

// applies reports whether the condition of a requirement holds. It does not if nobody
// can evaluate it.
func (p *Project) applies(r pep440.Requirement) bool {
	return r.Marker == "" || p.Applies != nil && p.Applies(r.Marker)
}

// Broken returns the wishes that a version does not satisfy. A pre-release counts as
// a release does: it is installed because somebody wanted it.
func Broken(wishes []Wish, version string) []Wish {
	v, err := pep440.Parse(version)
	if err != nil {
		return wishes
	}
	return slices.DeleteFunc(slices.Clone(wishes), func(w Wish) bool { return w.Versions.Contains(v, true) })
}

// Imports lists the top-level modules that one file imports.
func (p *Project) Imports(file string) []string {
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.Dir, file)
	}
	l := NewLoader(p)
	defer l.reading.Wait()
	parsed, err := l.read(file, "__config__")
	if err != nil {
		return nil
	}
	var names []string
	for _, w := range l.imports(parsed) {
		name, _, _ := strings.Cut(w.name, "::")
		names = append(names, name)
	}
	return names
}
