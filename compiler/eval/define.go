package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// program is the definition side of a compile: all names resolved.
//
// The phases follow each other in the order of the reference, because the
// first error ends the compile:
//
//	names → typedefs → entities (parents first) → implementations, relations
//	→ indexes → implements → bodies: others, entities, implementations → top level
type program struct {
	in          Input
	spaces      map[string]*namespace
	order       []*namespace // of the files
	entities    []*types.Entity
	info        []*entityInfo // by number of the entity
	typedefs    []*typedefInfo
	impls       []*implementationInfo
	warnings    []Warning
	plugins     []*pluginInfo
	hidden      int // hidden variables so far
	dataclasses []Dataclass
	nameless    []*Error               // about what is the twin of an entity and cannot be named
	twins       map[string]*entityInfo // by class; of twinOf
	holds       Holds
	asks        bool                                    // some typedef calls a plug-in
	output      []string                                // what plug-ins printed, in the order of their calls
	annotated   map[*syntax.Relation][]*types.Attribute // the ends of relations with annotations
	problems                                            // what was found wrong
}

// Holds evaluates the condition of a typedef for a value.
type Holds func(p *program, condition root, v types.Value) (bool, error)

// entityInfo is what the engine knows of an entity besides its type.
type entityInfo struct {
	entity *types.Entity
	ast    *syntax.Entity
	ns     *namespace
	own    []*types.Attribute
	// ownDefaults are those that its text has; defaults are those of all
	// attributes, inherited ones too, in the order in which they are set;
	// allDefaults also has what was taken away.
	ownDefaults, defaults, allDefaults []defaultValue
	defaultsDone                       bool
	implements                         []*implement
	implDefs                           []placed[*syntax.Implement]
	inherits                           bool            // `using parents`
	lineage                            []*types.Entity // see ancestry
	asArguments                        *defaultArguments
	state                              uint8 // of the search for cycles: 0 new, 1 in work, 2 done
	// twice: a parent is named more than once.
	twice bool
	// broken is set when a parent or an end of a relation could not be
	// resolved: the entity may have attributes that nobody knows of.
	broken bool
	places map[string]*place
}

// defaultValue is the default of an attribute, without literal where an
// inherited one is taken away.
type defaultValue struct {
	*literal
	name string
}

// taken reports whether a default was taken away.
func (d defaultValue) taken() bool { return d.literal == nil }

type typedefInfo struct {
	t   *types.Typedef
	ast *syntax.Typedef
	ns  *namespace
	// resolve resolves the names in the condition, once; nil where it has none.
	resolve func() []*Error
}

type implementationInfo struct {
	impl *implementation
	ast  *syntax.Implementation
	ns   *namespace
	// target is what it is for; nil when that could not be resolved.
	target *entityInfo
}

// nextHidden numbers the hidden variables of constructors.
func (p *program) nextHidden() int {
	p.hidden++
	return p.hidden
}

func (p *program) warn(kind string, at syntax.Span, text string, args ...any) {
	p.warnings = append(p.warnings, Warning{Kind: kind, Message: fmt.Sprintf(text, args...), At: at})
}

// definitions are all statements that define something, by kind, in order.
type definitions struct {
	typedefs []*typedefInfo
	entities []*entityInfo
	impls    []*implementationInfo
	// targeted are the implementations and relations in the order of their
	// text, in which what they name is looked up.
	targeted   []any // *implementationInfo or placed[*syntax.Relation]
	indexes    []placed[*syntax.Index]
	implements []placed[*syntax.Implement]
}

type placed[T any] struct {
	ast T
	ns  *namespace
}

// define resolves a program. What is wrong with it is in its problems.
func define(in Input, loaded *Loaded, holds Holds) *program {
	p := &program{in: in, holds: holds, spaces: map[string]*namespace{}, annotated: map[*syntax.Relation][]*types.Attribute{}}
	p.dataclasses = loaded.Dataclasses
	for _, f := range in.Files {
		p.addSpace(f.Namespace, f)
	}
	if p.spaces["std"] == nil {
		p.addSpace("std", nil)
	}
	for name := range in.Missing {
		if p.spaces[name] == nil {
			p.spaces[name] = p.emptySpace(name)
		}
		p.spaces[name].missing = true
	}
	d := &definitions{}
	p.step(func() { p.collect(d) })
	p.step(func() { p.addPlugins(loaded.Plugins) })
	for _, step := range []func(*definitions){
		p.defineTypedefs, p.defineEntities, p.defineRelations, p.defineIndexes, p.defineImplements,
		p.noteEarly, p.resolveTypedefs, p.resolvePlugins, p.checkDataclasses, p.resolveBodies, p.applyPrecedence,
	} {
		p.step(func() { step(d) })
	}
	return p
}

func (p *program) addSpace(name string, f *syntax.File) {
	if ns := p.spaces[name]; ns != nil {
		return
	}
	ns := &namespace{
		name:    name,
		file:    f,
		things:  map[string]any{},
		imports: map[string]*namespace{},
		vars:    map[string]int{},
		p:       p,
	}
	p.spaces[name] = ns
	p.order = append(p.order, ns)
	// the namespaces above exist too, if only to hold plug-ins
	if up, _, qualified := cutLast(name); qualified && p.spaces[up] == nil {
		p.spaces[up] = p.emptySpace(up)
	}
}

func (p *program) emptySpace(name string) *namespace {
	return &namespace{
		name:    name,
		things:  map[string]any{},
		imports: map[string]*namespace{},
		vars:    map[string]int{},
		p:       p,
	}
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

func (p *program) defineTypedefs(d *definitions) {
	for _, info := range d.typedefs {
		base, err := p.typeNamed(info.ns, info.ast.Base, info.ast)
		if err == nil {
			info.t.Base = base
			err = p.condition(info)
		}
		if err != nil {
			p.report(err)
			info.t.Base, info.t.Holds = types.Any, func(types.Value) (bool, error) { return true, nil }
		}
	}
	for _, info := range d.typedefs {
		p.ownBase(info)
	}
}

// ownBase sees to typedefs that are their own base, directly or through others.
// As upstream they are an error once a value is to be of them, and not before.
func (p *program) ownBase(info *typedefInfo) {
	walked := []*types.Typedef{info.t}
	for base, is := info.t.Base.(*types.Typedef); is && !base.Sound; base, is = base.Base.(*types.Typedef) {
		if at := slices.Index(walked, base); at >= 0 {
			var chain []string
			for _, t := range walked[at:] {
				chain = append(chain, t.Name)
			}
			endless := func(types.Value) (bool, error) {
				e := &Error{Kind: "RecursionError", Message: "maximum recursion depth exceeded", foreign: true}
				return false, e.hinted(
					"a type cannot be its own base: " + strings.Join(append(chain, chain[0]), ", which is "),
				)
			}
			for _, t := range walked[at:] {
				t.Base, t.Holds = types.Any, endless
			}
			break
		}
		walked = append(walked, base)
	}
	for _, t := range walked {
		t.Sound = true
	}
}

// resolveTypedefs resolves the names in the conditions of typedefs.
func (p *program) resolveTypedefs(d *definitions) {
	for _, info := range d.typedefs {
		if info.resolve != nil {
			p.report(info.resolve()...)
		}
	}
}

func (p *program) defineEntities(d *definitions) {
	for _, info := range d.entities {
		p.parents(info, nil)
	}
	for _, info := range p.parentsFirst() {
		p.ownAttributes(info)
		if info.twice {
			e := typingError("same parent defined twice")
			e.Stmt, e.at = syntax.Render(info.ast), &info.ast.Word
			p.report(e)
		}
		info.entity.Lay(info.own)
		p.checkInherited(info)
		p.report(p.findTwin(info))
	}
}

// parents resolves the parents of an entity, theirs next, and reports one that
// is its own parent; it loses its parents.
func (p *program) parents(info *entityInfo, chain []string) {
	if info.state == 2 || info.ast == nil {
		return
	}
	chain = append(chain, info.entity.Name)
	if info.state == 1 {
		chain = chain[slices.Index(chain, info.entity.Name) : len(chain)-1]
		slices.Reverse(chain)
		e := fail("CycleException", "Entity can not be its own parent %s", strings.Join(chain, ","))
		last := p.infoNamed(chain[0])
		e.Stmt, e.at = syntax.Render(last.ast), &last.ast.Word
		p.report(e)
		info.entity.Parents, info.broken = nil, true
		return
	}
	info.state = 1
	p.ownParents(info)
	for _, parent := range info.entity.Parents {
		p.parents(p.info[parent.Number], chain)
	}
	info.state = 2
}

func (p *program) ownParents(info *entityInfo) {
	if len(info.ast.Parents) == 0 && info.entity.Name != "std::Entity" {
		root, err := p.root(info)
		if err != nil {
			info.broken = true
			p.report(err)
		}
		if root != nil {
			info.entity.Parents = []*types.Entity{root.entity}
		}
	}
	for _, name := range info.ast.Parents {
		parent, err := p.entityNamed(info.ns, name, info.ast)
		if err != nil {
			info.broken = true
			p.report(err)
			continue
		}
		if slices.Contains(info.entity.Parents, parent.entity) {
			info.twice = true
			continue
		}
		info.entity.Parents = append(info.entity.Parents, parent.entity)
	}
}

// internal is where the reference says that a name stands which nobody wrote.
var internal = place{
	File:  &syntax.File{Path: "__internal__"},
	Start: syntax.Pos{Line: 1, Col: 1},
	End:   syntax.Pos{Line: 1, Col: 1},
}

// root is the parent of entities that name none: std::Entity, as its namespace
// sees it, where `import x as std` may have put another one.
func (p *program) root(info *entityInfo) (*entityInfo, *Error) {
	space := info.ns.visible("std")
	if space == nil || space == p.spaces["std"] {
		root, _ := p.spaces["std"].things["Entity"].(*entityInfo)
		return root, nil
	}
	return p.entityNamed(info.ns, syntax.Name{Text: "std::Entity", At: internal}, info.ast)
}

// parentsFirst are the entities, each after its parents.
func (p *program) parentsFirst() []*entityInfo {
	var sorted []*entityInfo
	seen := make([]bool, len(p.info))
	var visit func(info *entityInfo)
	visit = func(info *entityInfo) {
		if seen[info.entity.Number] {
			return
		}
		seen[info.entity.Number] = true
		for _, parent := range info.entity.Parents {
			visit(p.info[parent.Number])
		}
		sorted = append(sorted, info)
	}
	for _, info := range p.info {
		visit(info)
	}
	return sorted
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

func (p *program) ownAttributes(info *entityInfo) {
	if info.ast == nil {
		return
	}
	for _, a := range info.ast.Attributes {
		t, err := p.attributeType(info, a)
		if err != nil {
			p.report(err)
			t = types.Any
		}
		at := a.Name.At
		if have := info.places[a.Name.Name]; have != nil {
			p.report(duplicateAttribute(a.Name.Name, info, have, &at))
			continue
		}
		info.places[a.Name.Name] = &at
		info.own = append(info.own, &types.Attribute{Name: a.Name.Name, Type: t, Entity: info.entity, At: at})
	}
}

func duplicateAttribute(name string, info *entityInfo, first, second *place) *Error {
	e := fail("DuplicateException", "attribute '%s' already exists on entity '%s'", name, info.entity.Short())
	e.at = first
	return e.twice(first, second)
}

func (p *program) attributeType(info *entityInfo, a *syntax.Attribute) (types.Type, *Error) {
	t, err := p.typeNamed(info.ns, a.Type.Name, a)
	if err != nil {
		return nil, err
	}
	if e, is := t.(*types.Entity); is {
		err := typingError("Entity attributes can only have primitive types, %s is an entity: use a relation", e.Name)
		err.Stmt, err.at = syntax.Render(a), &a.Name.At
		return nil, err
	}
	if a.Type.List {
		t = types.ListOf{Of: t}
	}
	if a.Type.Nullable {
		t = types.Optional{Of: t}
	}
	return t, nil
}

// ancestry is the entity and all above it, each once. It is made for entities
// that have instances only: all of them together grow with the square of the
// depth.
func (info *entityInfo) ancestry() []*types.Entity {
	if info.lineage != nil {
		return info.lineage
	}
	seen := map[*types.Entity]bool{}
	var walk func(e *types.Entity)
	walk = func(e *types.Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		info.lineage = append(info.lineage, e)
		for _, parent := range e.Parents {
			walk(parent)
		}
	}
	walk(info.entity)
	return info.lineage
}
