package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// namespace is one module file: its names, what it imports, its variables.
type namespace struct {
	name    string
	file    *syntax.File
	things  map[string]any // *entityInfo, *typedefInfo, *implementation info, *pluginInfo
	imports map[string]*namespace
	// importedAt tells where an import of a visible name stands.
	importedAt map[string]*place
	// vars gives the place of a module-level variable in scope.
	vars  map[string]int
	names []string
	first []syntax.Span // where each of names is assigned first
	p     *program
	body  *block
	// missing: its file could not be read, so nobody knows what is in it.
	missing bool
}

func (ns *namespace) parent() *namespace {
	up, _, qualified := cutLast(ns.name)
	if !qualified {
		return nil
	}
	return ns.p.spaces[up]
}

// visible finds the namespace that a prefix means in this file.
func (ns *namespace) visible(prefix string) *namespace {
	if space, ok := ns.imports[prefix]; ok {
		return space
	}
	if prefix == ns.name {
		return ns
	}
	if prefix == "std" {
		return ns.p.spaces["std"]
	}
	return nil
}

// find resolves the name of a type, an implementation or a plug-in.
func (ns *namespace) find(name syntax.Name) (any, *Error) {
	prefix, last, qualified := cutLast(name.Text)
	if qualified {
		space := ns.visible(prefix)
		if space == nil {
			err := fail(
				"MissingImportException",
				"could not find type %s in namespace %s.\nTry importing the module with `import %s`",
				name.Text,
				ns.name,
				prefix,
			)
			if ns.file != nil {
				err.Message += " in " + ns.file.Path
			}
			err.Hint = ns.suggestImport(prefix)
			err.topic = "import " + prefix
			err.at = new(name.At)
			return nil, err
		}
		if thing, ok := space.things[last]; ok {
			return thing, nil
		}
		if space.missing {
			return nil, excused()
		}
		err := fail("TypeNotFoundException", "could not find type %s in namespace %s", name.Text, space.name)
		err.Hint = suggestThing(prefix+"::", last, space)
		err.at = new(name.At)
		return nil, err
	}
	if p, ok := types.LookupPrimitive(last); ok {
		return p, nil
	}
	for space := ns; space != nil; space = space.parent() {
		if thing, ok := space.things[last]; ok {
			return thing, nil
		}
		if space.missing {
			return nil, excused()
		}
	}
	err := fail("TypeNotFoundException", "could not find type %s in namespace %s", name.Text, ns.name)
	err.Hint = suggestThing("", last, ns)
	err.at = new(name.At)
	return nil, err
}
