package module

import (
	"errors"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// following is the state of a load between one import and the next.
type following struct {
	*Loader
	prog   *Program
	stack  []wanted
	groups map[string][]*syntax.File // by module
	order  []string                  // of the groups
	done   map[string]bool           // namespaces
	known  map[string]*Module
	// judged is how many of project and modules have had their requires read.
	judged int
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
				f.prog.also(parse)
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

// enter finds a module that is imported for the first time; nil when it cannot
// be had.
func (f *following) enter(w wanted, parts []string) *Module {
	if f.prog.Missing[parts[0]] {
		f.prog.lack(w.name, nil)
		return nil // told where it was wanted first
	}
	f.judge()
	m, err := f.module(parts[0])
	if m != nil && f.prog.Errors == nil { // the reference stops at the first one
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

// judge reads what the project and the modules that are there require of others,
// before another one is looked for. What cannot be read is told with no place of
// an import.
func (f *following) judge() {
	for ; f.judged <= len(f.prog.Modules); f.judged++ {
		if err := f.requires(f.judged - 1); err != nil {
			f.prog.Errors = append(f.prog.Errors, err)
		}
	}
}

// requires tells why the constraints of a module, or those of the project, -1,
// cannot be read. Those of a module are judged after its packages, as upstream.
func (f *following) requires(i int) error {
	if i >= 0 {
		m := f.prog.Modules[i]
		if m.requirementsErr != nil {
			return m.requirementsErr
		}
		if err := modulePackages("module "+m.Name, m.Requirements); err != nil {
			return err
		}
		return constraints("module "+m.Name, m.Requires)
	}
	if err := constraints("project.yml", f.project.Metadata.Requires); err != nil {
		return err
	}
	packages, err := readRequirements(filepath.Join(f.project.Dir, "requirements.txt"))
	if err != nil {
		return err
	}
	return modulePackages("the project", packages)
}
