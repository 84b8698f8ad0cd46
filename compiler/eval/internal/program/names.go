package program

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// bare changes the error of a look-up in a namespace that has no file, which the
// reference lacks, into what the reference says.
func (ns *Namespace) bare(err *Error) {
	if ns.Name == "std" && ns.file == nil {
		err.Kind, err.Hint, err.Message, err.Builtin = "AssertionError", err.Message, "", true
	}
}

func noNamespace(ns string) *Error {
	return NotFound("Namespace %s not found.\nTry importing it with `import %s`", ns, ns)
}

func CutName(name string) (ns, last string, qualified bool) {
	i := strings.LastIndex(name, "::")
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+2:], true
}

// infoOf finds an entity by its full name; nil when there is none.
func (p *Program) infoOf(name string) *EntityInfo {
	prefix, last, ok := CutName(name)
	if !ok {
		return nil
	}
	space := p.Namespaces[prefix]
	if space == nil {
		return nil
	}
	info, _ := space.Things[last].(*EntityInfo)
	return info
}

// collect registers names and sorts the definitions by kind.
func (p *Program) collect(d *definitions) {
	std := p.Namespaces["std"]
	if std.Things["Entity"] == nil && !definesEntity(std.file) {
		p.builtinEntity(std)
	}
	for _, ns := range p.Order {
		if ns.file == nil {
			continue
		}
		for _, st := range ns.file.Statements {
			if im, ok := st.(*syntax.Import); ok {
				p.report(p.addImport(ns, im))
			}
		}
	}
	for _, ns := range p.Order {
		if ns.file == nil {
			continue
		}
		for _, st := range ns.file.Statements {
			p.report(p.collectOne(d, ns, st))
		}
	}
}

func definesEntity(f *syntax.File) bool {
	if f == nil {
		return false
	}
	for _, st := range f.Statements {
		if e, ok := st.(*syntax.Entity); ok && e.Name.Name == "Entity" {
			return true
		}
	}
	return false
}

// builtinEntity makes std::Entity with requires and provides.
func (p *Program) builtinEntity(std *Namespace) {
	e := &types.Entity{Name: "std::Entity"}
	info := p.addEntity(e, nil, std)
	requires := &types.Attribute{
		Name:   "requires",
		Type:   e,
		Entity: e,
		End:    &types.End{Target: e, High: syntax.Unlimited},
	}
	provides := &types.Attribute{
		Name:   "provides",
		Type:   e,
		Entity: e,
		End:    &types.End{Target: e, High: syntax.Unlimited},
	}
	requires.End.Inverse, provides.End.Inverse = provides, requires
	info.own = []*types.Attribute{requires, provides}
	std.Things["Entity"] = info
}

func (p *Program) addEntity(e *types.Entity, ast *syntax.Entity, ns *Namespace) *EntityInfo {
	e.Number = len(p.Entities)
	info := &EntityInfo{Entity: e, ast: ast, Namespace: ns, places: map[string]*Place{}}
	p.Entities = append(p.Entities, e)
	p.Info = append(p.Info, info)
	return info
}

func (p *Program) addImport(ns *Namespace, im *syntax.Import) *Error {
	name := im.Alias
	if name == "" {
		name = im.Module.Text
	}
	space := p.Namespaces[im.Module.Text]
	if space == nil {
		return nil // the loader has reported it
	}
	if first := ns.importedAt[name]; first != nil {
		e := NewError("DuplicateException", "Two import statements have the same name")
		e.Place = coarse(im.At)
		e.Hint = "give one of them another name with `as`, or take it away"
		return e.Twice(coarse(im.At), coarse(*first))
	}
	if ns.importedAt == nil {
		ns.importedAt = map[string]*Place{}
	}
	ns.importedAt[name] = &im.At
	ns.imports[name] = space
	return nil
}

func (p *Program) collectOne(d *definitions, ns *Namespace, st syntax.Stmt) *Error {
	switch st := st.(type) {
	case *syntax.Entity:
		e := &types.Entity{Name: ns.Name + "::" + st.Name.Name, Doc: st.Doc, At: st.Name.At, Source: st}
		info := p.addEntity(e, st, ns)
		d.entities = append(d.entities, info)
		return p.name(ns, st.Name.Name, info, "Entity", st.Name.At)
	case *syntax.Typedef:
		t := &types.Typedef{Name: ns.Name + "::" + st.Name.Name, Doc: st.Doc, At: &st.Name.At}
		info := &TypedefInfo{Type: t, ast: st, ns: ns}
		d.typedefs = append(d.typedefs, info)
		p.Typedefs = append(p.Typedefs, info)
		return p.name(ns, st.Name.Name, info, "TypeConstraint", st.Name.At)
	case *syntax.Implementation:
		impl := &Implementation{Name: ns.Name + "::" + st.Name.Name, Namespace: ns, At: &st.Name.At}
		info := &ImplementationInfo{impl: impl, ast: st, ns: ns}
		d.impls = append(d.impls, info)
		p.Implementations = append(p.Implementations, info)
		d.targeted = append(d.targeted, info)
		return p.name(ns, st.Name.Name, info, "Implementation", st.Name.At)
	case *syntax.Relation:
		d.targeted = append(d.targeted, placed[*syntax.Relation]{st, ns})
	case *syntax.Index:
		d.indexes = append(d.indexes, placed[*syntax.Index]{st, ns})
	case *syntax.Implement:
		d.implements = append(d.implements, placed[*syntax.Implement]{st, ns})
	case *syntax.Assign:
		// `a::x = e` makes a variable of that name too, as in the reference: it never gets
		// a value, which goes to the x of a.
		if target, ok := st.Target.(*syntax.Ref); ok {
			if _, have := ns.Vars[target.Name.Text]; !have {
				ns.Vars[target.Name.Text] = len(ns.Names)
				ns.First = append(ns.First, st.At)
				ns.Names = append(ns.Names, target.Name.Text)
			}
		}
	}
	return nil
}

func (p *Program) name(ns *Namespace, name string, thing any, what string, at syntax.Span) *Error {
	have, twice := ns.Things[name]
	ns.Things[name] = thing
	if !twice {
		return nil
	}
	full := ns.Name + "::" + name
	if impl, is := thing.(*ImplementationInfo); is {
		full += " for type " + impl.ast.For.Text
	}
	e := NewError("DuplicateException", "%s %s is already defined", what, full)
	e.Place = &at
	other := placeOf(have)
	return e.Twice(&at, other)
}

func placeOf(thing any) *Place {
	switch thing := thing.(type) {
	case *EntityInfo:
		if thing.ast != nil {
			return &thing.ast.Name.At
		}
	case *TypedefInfo:
		return &thing.ast.Name.At
	case *ImplementationInfo:
		return &thing.ast.Name.At
	}
	return &Place{}
}

// typeNamed finds the type that a definition names.
func (p *Program) typeNamed(ns *Namespace, name syntax.Name, stmt syntax.Node) (types.Type, *Error) {
	thing, err := ns.find(name)
	if err != nil {
		err.Stmt = syntax.Render(stmt)
		return nil, err
	}
	switch thing := thing.(type) {
	case types.Primitive:
		if thing == types.Number {
			p.Warn("TypeDeprecationWarning", name.At, "Type 'number' is deprecated, use 'float' or 'int' instead")
		}
		return thing, nil
	case *EntityInfo:
		return thing.Entity, nil
	case *TypedefInfo:
		return thing.Type, nil
	}
	if t := nominal(thing); t != nil {
		return t, nil
	}
	e := TypingError("%s is not a type", name.Text)
	e.Stmt, e.Place = syntax.Render(stmt), &name.At
	return nil, e
}

// nominal returns the type for the name of an implementation or a plug-in, which is
// no type of values: as in the reference, it has all values.
func nominal(thing any) types.Type {
	switch thing := thing.(type) {
	case *ImplementationInfo:
		return types.Nominal(thing.impl.Name)
	case *PluginInfo:
		return types.Nominal(thing.Signature.Name)
	}
	return nil
}

func (p *Program) entityNamed(ns *Namespace, name syntax.Name, stmt syntax.Node) (*EntityInfo, *Error) {
	t, err := p.typeNamed(ns, name, stmt)
	if err != nil {
		return nil, err
	}
	e, ok := t.(*types.Entity)
	if !ok {
		err := TypingError("%s is not an entity", name.Text)
		err.Stmt, err.Place = syntax.Render(stmt), &name.At
		return nil, err
	}
	return p.Info[e.Number], nil
}

func (p *Program) infoNamed(name string) *EntityInfo {
	for _, info := range p.Info {
		if info.Entity.Name == name {
			return info
		}
	}
	return nil
}

// coarse returns a place of which only the line is shown.
func coarse(at Place) *Place {
	at.Coarse = true
	return &at
}

// TypeNames lists the full names of the entities, typedefs and implementations
// that files define, in the order of their text. std::Entity, which no file
// has to define, comes last, as in the reference.
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

// Namespace is one file of a module: its names, its imports, its variables.
type Namespace struct {
	Name    string
	file    *syntax.File
	Things  map[string]any // *entityInfo, *typedefInfo, *implementation info, *pluginInfo
	imports map[string]*Namespace
	// importedAt has the places of the imports.
	importedAt map[string]*Place
	// Vars has the index of each variable at module level.
	Vars  map[string]int
	Names []string
	First []syntax.Span // where each of Names is assigned first
	p     *Program
	Body  *Block
	// missing is set when the file could not be read, so that its names are not
	// known.
	missing bool
}

func (ns *Namespace) parent() *Namespace {
	up, _, qualified := CutName(ns.Name)
	if !qualified {
		return nil
	}
	return ns.p.Namespaces[up]
}

// Visible returns the namespace that a prefix stands for in this file; nil for none.
func (ns *Namespace) Visible(prefix string) *Namespace {
	if space, ok := ns.imports[prefix]; ok {
		return space
	}
	if prefix == ns.Name {
		return ns
	}
	if prefix == "std" {
		return ns.p.Namespaces["std"]
	}
	return nil
}

// find resolves the name of a type, an implementation or a plug-in.
func (ns *Namespace) find(name syntax.Name) (any, *Error) {
	prefix, last, qualified := CutName(name.Text)
	if qualified {
		space := ns.Visible(prefix)
		if space == nil {
			err := NewError("MissingImportException",
				"could not find type %s in namespace %s.\nTry importing the module with `import %s`", name.Text,
				ns.Name, prefix)
			if ns.file != nil {
				err.Message += " in " + ns.file.Path
			}
			err.Hint = ns.suggestImport(prefix)
			err.Topic = "import " + prefix
			err.Place = new(name.At)
			return nil, err
		}
		if thing, ok := space.Things[last]; ok {
			return thing, nil
		}
		if space.missing {
			return nil, Excused()
		}
		err := NewError("TypeNotFoundException", "could not find type %s in namespace %s", name.Text, space.Name)
		err.Hint = suggestThing(prefix+"::", last, space)
		err.Place = new(name.At)
		return nil, err
	}
	if p, ok := types.LookupPrimitive(last); ok {
		return p, nil
	}
	for space := ns; space != nil; space = space.parent() {
		if thing, ok := space.Things[last]; ok {
			return thing, nil
		}
		if space.missing {
			return nil, Excused()
		}
	}
	err := NewError("TypeNotFoundException", "could not find type %s in namespace %s", name.Text, ns.Name)
	err.Hint = suggestThing("", last, ns)
	err.Place = new(name.At)
	return nil, err
}
