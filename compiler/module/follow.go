package module

import (
	"errors"
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
	m, err := f.module(parts[0])
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
	if f.prog.Errors == nil { // the reference stops at the first one
		f.prog.Warnings = append(f.prog.Warnings, m.warnings()...)
	}
	return m
}
