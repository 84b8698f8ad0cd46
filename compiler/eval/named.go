package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// TypeNames lists the full names of the entities, typedefs and implementations
// that files define, in the order of their text. std::Entity, which no file
// has to define, comes last, as upstream.
func TypeNames(files []*syntax.File) []string {
	var names []string
	root := true
	for _, f := range files {
		for _, st := range f.Statements {
			name := ""
			switch st := st.(type) {
			case *syntax.Entity:
				name = st.Name.Name
			case *syntax.Typedef:
				name = st.Name.Name
			case *syntax.Implementation:
				name = st.Name.Name
			default:
				continue
			}
			full := f.Namespace + "::" + name
			root = root && full != "std::Entity"
			names = append(names, full)
		}
	}
	if root {
		names = append(names, "std::Entity")
	}
	return names
}

// Constant gives the value of an expression, or the part of it that keeps it
// from being a constant.
func Constant(x syntax.Expr) (v types.Value, not syntax.Expr) {
	if v, is := constant(x); is {
		return v, nil
	}
	return nil, inconstant(x)
}

// files are the files of the model in the order in which they were loaded.
func (p *program) files() []*syntax.File {
	files := make([]*syntax.File, 0, len(p.order))
	for _, ns := range p.order {
		if ns.file != nil {
			files = append(files, ns.file)
		}
	}
	return files
}

// summary describes an implementation to other packages.
func (info *implementationInfo) summary() *types.Implementation {
	t := &types.Implementation{Name: info.impl.name, Doc: info.ast.Doc, At: info.impl.at}
	if info.target != nil {
		t.For = info.target.entity
	}
	return t
}
