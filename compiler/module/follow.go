package module

import (
	"errors"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// following is the state of a load between two imports.
type following struct {
	*Loader
	prog   *Program
	stack  []wanted
	groups map[string][]*syntax.File // by module
	order  []string                  // of the groups
	done   map[string]bool           // namespaces
	known  map[string]*Module
	// checked counts the project and its modules whose requirements have been checked.
	checked int
}

// follow reads the module and the files that an import names.
func (f *following) follow(w wanted) {
	parts := strings.Split(w.name, "::")
	m := f.known[parts[0]]
	if m == nil {
		if m = f.enter(w, parts); m == nil {
			return
		}
	}
	for i := range parts {
		namespace := strings.Join(parts[:i+1], "::")
		if f.done[namespace] {
			continue
		}
		f.done[namespace] = true
		file, err := f.file(m, namespace)
		if err != nil {
			f.prog.lack(namespace, w.failed(err))
			var parse *syntax.Error
			if errors.As(err, &parse) {
				f.prog.addFurther(parse)
				f.stack = append(f.stack, f.imports(parse.At.File)...)
			}
			continue
		}
		if f.groups[m.Name] == nil {
			f.order = append(f.order, m.Name)
		}
		f.groups[m.Name] = append(f.groups[m.Name], file)
		f.stack = append(f.stack, f.imports(file)...)
	}
}

// enter finds a module that is imported for the first time. It returns nil if the
// module cannot be loaded.
func (f *following) enter(w wanted, parts []string) *Module {
	if f.prog.Missing[parts[0]] {
		f.prog.lack(w.name, nil)
		return nil // reported at its first import
	}
	f.checkRequirements()
	m, err := f.module(parts[0])
	if m != nil && f.prog.Errors == nil { // inmanta-core stops at the first error
		f.prog.Warnings = append(f.prog.Warnings, m.warnings()...)
	}
	if err != nil {
		f.done[w.name] = true
		for i := range parts {
			f.prog.lack(strings.Join(parts[:i+1], "::"), nil)
		}
		f.prog.lack(w.name, w.failed(err))
		return nil
	}
	f.known[parts[0]] = m
	f.prog.Modules = append(f.prog.Modules, m)
	return m
}

// checkRequirements checks what the project and the modules loaded so far require,
// before another module is looked for. Its errors name no import.
func (f *following) checkRequirements() {
	for ; f.checked <= len(f.prog.Modules); f.checked++ {
		if err := f.requires(f.checked - 1); err != nil {
			f.prog.Errors = append(f.prog.Errors, err)
		}
	}
}

// requires checks the requirements of a module, or with -1 those of the project. As
// in inmanta-core, a module's packages come before its constraints on modules.
func (f *following) requires(i int) error {
	if i >= 0 {
		m := f.prog.Modules[i]
		if m.requirementsErr != nil {
			return m.requirementsErr
		}
		if err := checkPackages("module "+m.Name, m.Requirements); err != nil {
			return err
		}
		return checkConstraints("module "+m.Name, m.Requires)
	}
	if err := checkConstraints("project.yml", f.project.Metadata.Requires); err != nil {
		return err
	}
	packages, err := readRequirements(f.project.Dir, true)
	if err != nil {
		return err
	}
	return checkPackages("the project", packages.lines)
}
