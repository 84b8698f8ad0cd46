package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// bare turns an error of looking in a namespace that has no file, which the
// reference lacks, into what it says then.
func (ns *namespace) bare(err *Error) {
	if ns.name == "std" && ns.file == nil {
		err.Kind, err.Hint, err.Message, err.foreign = "AssertionError", err.Message, "", true
	}
}

func noNamespace(ns string) *Error {
	return notFound("Namespace %s not found.\nTry importing it with `import %s`", ns, ns)
}

func cutLast(name string) (ns, last string, qualified bool) {
	i := strings.LastIndex(name, "::")
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+2:], true
}

// infoOf finds an entity by its full name; nil when there is none.
func (p *program) infoOf(name string) *entityInfo {
	prefix, last, ok := cutLast(name)
	if !ok {
		return nil
	}
	space := p.spaces[prefix]
	if space == nil {
		return nil
	}
	info, _ := space.things[last].(*entityInfo)
	return info
}

// collect registers names and sorts the definitions by kind.
func (p *program) collect(d *definitions) {
	std := p.spaces["std"]
	if std.things["Entity"] == nil && !definesEntity(std.file) {
		p.builtinEntity(std)
	}
	for _, ns := range p.order {
		if ns.file == nil {
			continue
		}
		for _, st := range ns.file.Statements {
			if im, ok := st.(*syntax.Import); ok {
				p.report(p.addImport(ns, im))
			}
		}
	}
	for _, ns := range p.order {
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
func (p *program) builtinEntity(std *namespace) {
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
	std.things["Entity"] = info
}

func (p *program) addEntity(e *types.Entity, ast *syntax.Entity, ns *namespace) *entityInfo {
	e.Number = len(p.entities)
	info := &entityInfo{entity: e, ast: ast, ns: ns, places: map[string]*place{}}
	p.entities = append(p.entities, e)
	p.info = append(p.info, info)
	return info
}

func (p *program) addImport(ns *namespace, im *syntax.Import) *Error {
	name := im.Alias
	if name == "" {
		name = im.Module.Text
	}
	space := p.spaces[im.Module.Text]
	if space == nil {
		return nil // a loader that let it pass has said so
	}
	if first := ns.importedAt[name]; first != nil {
		e := fail("DuplicateException", "Two import statements have the same name")
		e.at = coarse(im.At)
		e.Hint = "give one of them another name with `as`, or take it away"
		return e.twice(coarse(im.At), coarse(*first))
	}
	if ns.importedAt == nil {
		ns.importedAt = map[string]*place{}
	}
	ns.importedAt[name] = &im.At
	ns.imports[name] = space
	return nil
}

func (p *program) collectOne(d *definitions, ns *namespace, st syntax.Stmt) *Error {
	switch st := st.(type) {
	case *syntax.Entity:
		info := p.addEntity(&types.Entity{Name: ns.name + "::" + st.Name.Name, Doc: st.Doc, At: st.Name.At, Source: st}, st, ns)
		d.entities = append(d.entities, info)
		return p.name(ns, st.Name.Name, info, "Entity", st.Name.At)
	case *syntax.Typedef:
		info := &typedefInfo{t: &types.Typedef{Name: ns.name + "::" + st.Name.Name, Doc: st.Doc, At: &st.Name.At}, ast: st, ns: ns}
		d.typedefs = append(d.typedefs, info)
		p.typedefs = append(p.typedefs, info)
		return p.name(ns, st.Name.Name, info, "TypeConstraint", st.Name.At)
	case *syntax.Implementation:
		info := &implementationInfo{impl: &implementation{name: ns.name + "::" + st.Name.Name, ns: ns, at: &st.Name.At}, ast: st, ns: ns}
		d.impls = append(d.impls, info)
		p.impls = append(p.impls, info)
		d.targeted = append(d.targeted, info)
		return p.name(ns, st.Name.Name, info, "Implementation", st.Name.At)
	case *syntax.Relation:
		d.targeted = append(d.targeted, placed[*syntax.Relation]{st, ns})
	case *syntax.Index:
		d.indexes = append(d.indexes, placed[*syntax.Index]{st, ns})
	case *syntax.Implement:
		d.implements = append(d.implements, placed[*syntax.Implement]{st, ns})
	case *syntax.Assign:
		// `a::x = e` makes a variable of that name too, as upstream: it never gets
		// a value, which goes to the x of a.
		if target, ok := st.Target.(*syntax.Ref); ok {
			if _, have := ns.vars[target.Name.Text]; !have {
				ns.vars[target.Name.Text] = len(ns.names)
				ns.first = append(ns.first, st.At)
				ns.names = append(ns.names, target.Name.Text)
			}
		}
	}
	return nil
}

func (p *program) name(ns *namespace, name string, thing any, what string, at syntax.Span) *Error {
	have, twice := ns.things[name]
	ns.things[name] = thing
	if !twice {
		return nil
	}
	full := ns.name + "::" + name
	if impl, is := thing.(*implementationInfo); is {
		full += " for type " + impl.ast.For.Text
	}
	e := fail("DuplicateException", "%s %s is already defined", what, full)
	e.at = &at
	other := placeOf(have)
	return e.twice(&at, other)
}

func placeOf(thing any) *place {
	switch thing := thing.(type) {
	case *entityInfo:
		if thing.ast != nil {
			return &thing.ast.Name.At
		}
	case *typedefInfo:
		return &thing.ast.Name.At
	case *implementationInfo:
		return &thing.ast.Name.At
	}
	return &place{}
}

// typeNamed finds a type for a definition.
func (p *program) typeNamed(ns *namespace, name syntax.Name, stmt syntax.Node) (types.Type, *Error) {
	thing, err := ns.find(name)
	if err != nil {
		err.Stmt = syntax.Render(stmt)
		return nil, err
	}
	switch thing := thing.(type) {
	case types.Primitive:
		if thing == types.Number {
			p.warn("TypeDeprecationWarning", name.At, "Type 'number' is deprecated, use 'float' or 'int' instead")
		}
		return thing, nil
	case *entityInfo:
		return thing.entity, nil
	case *typedefInfo:
		return thing.t, nil
	}
	if t := nominal(thing); t != nil {
		return t, nil
	}
	e := typingError("%s is not a type", name.Text)
	e.Stmt, e.at = syntax.Render(stmt), &name.At
	return nil, e
}

// nominal is what has a name in the model and is no type of values, where it is
// named as one: any value is of it, as upstream.
func nominal(thing any) types.Type {
	switch thing := thing.(type) {
	case *implementationInfo:
		return types.Nominal(thing.impl.name)
	case *pluginInfo:
		return types.Nominal(thing.sig.Name)
	}
	return nil
}

func (p *program) entityNamed(ns *namespace, name syntax.Name, stmt syntax.Node) (*entityInfo, *Error) {
	t, err := p.typeNamed(ns, name, stmt)
	if err != nil {
		return nil, err
	}
	e, ok := t.(*types.Entity)
	if !ok {
		err := typingError("%s is not an entity", name.Text)
		err.Stmt, err.at = syntax.Render(stmt), &name.At
		return nil, err
	}
	return p.info[e.Number], nil
}

func (p *program) infoNamed(name string) *entityInfo {
	for _, info := range p.info {
		if info.entity.Name == name {
			return info
		}
	}
	return nil
}

// coarse is a place of which only the line is shown.
func coarse(at place) *place {
	at.Coarse = true
	return &at
}

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
