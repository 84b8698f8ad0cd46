package program

import (
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// EntityInfo is what the definition knows of an entity besides its type.
type EntityInfo struct {
	Entity    *types.Entity
	ast       *syntax.Entity
	Namespace *Namespace
	own       []*types.Attribute
	// ownDefaults are the defaults in the entity's own text. defaults are those of
	// all attributes, inherited ones included, in the order in which they are set;
	// allDefaults also has those that were taken away.
	ownDefaults, defaults, allDefaults []defaultValue
	defaultsDone                       bool
	Implements                         []*Implement
	implDefs                           []placed[*syntax.Implement]
	inherits                           bool            // `using parents`
	lineage                            []*types.Entity // see ancestry
	asArguments                        *defaultArguments
	state                              uint8 // in the search for cycles: 0 new, 1 being resolved, 2 done
	// twice is set when a parent is named more than once.
	twice bool
	// broken is set when a parent or a relation could not be resolved: the entity
	// may have attributes that are not known.
	broken bool
	places map[string]*Place
}

func (p *Program) defineEntities(d *definitions) {
	for _, info := range d.entities {
		p.parents(info, nil)
	}
	for _, info := range p.parentsFirst() {
		p.ownAttributes(info)
		if info.twice {
			e := TypingError("same parent defined twice")
			e.Stmt, e.Place = syntax.Render(info.ast), &info.ast.Word
			p.report(e)
		}
		info.Entity.Lay(info.own)
		p.checkInherited(info)
		p.report(p.findTwin(info))
	}
}

// parents resolves the parents of an entity and their parents. An entity that is its
// own parent is reported and loses its parents.
func (p *Program) parents(info *EntityInfo, chain []string) {
	if info.state == 2 || info.ast == nil {
		return
	}
	chain = append(chain, info.Entity.Name)
	if info.state == 1 {
		chain = chain[slices.Index(chain, info.Entity.Name) : len(chain)-1]
		slices.Reverse(chain)
		e := NewError("CycleException", "Entity can not be its own parent %s", strings.Join(chain, ","))
		last := p.infoNamed(chain[0])
		e.Stmt, e.Place = syntax.Render(last.ast), &last.ast.Word
		p.report(e)
		info.Entity.Parents, info.broken = nil, true
		return
	}
	info.state = 1
	p.ownParents(info)
	for _, parent := range info.Entity.Parents {
		p.parents(p.Info[parent.Number], chain)
	}
	info.state = 2
}

func (p *Program) ownParents(info *EntityInfo) {
	if len(info.ast.Parents) == 0 && info.Entity.Name != "std::Entity" {
		root, err := p.root(info)
		if err != nil {
			info.broken = true
			p.report(err)
		}
		if root != nil {
			info.Entity.Parents = []*types.Entity{root.Entity}
		}
	}
	for _, name := range info.ast.Parents {
		parent, err := p.entityNamed(info.Namespace, name, info.ast)
		if err != nil {
			info.broken = true
			p.report(err)
			continue
		}
		if slices.Contains(info.Entity.Parents, parent.Entity) {
			info.twice = true
			continue
		}
		info.Entity.Parents = append(info.Entity.Parents, parent.Entity)
	}
}

// internal is where the reference locates a name that nobody wrote.
var internal = Place{
	File:  &syntax.File{Path: "__internal__"},
	Start: syntax.Pos{Line: 1, Col: 1},
	End:   syntax.Pos{Line: 1, Col: 1},
}

// root returns the parent of entities that name none: std::Entity as their namespace
// sees it, where `import x as std` may have put another one.
func (p *Program) root(info *EntityInfo) (*EntityInfo, *Error) {
	space := info.Namespace.Visible("std")
	if space == nil || space == p.Namespaces["std"] {
		root, _ := p.Namespaces["std"].Things["Entity"].(*EntityInfo)
		return root, nil
	}
	return p.entityNamed(info.Namespace, syntax.Name{Text: "std::Entity", At: internal}, info.ast)
}

// parentsFirst returns the entities, each after its parents.
func (p *Program) parentsFirst() []*EntityInfo {
	var sorted []*EntityInfo
	seen := make([]bool, len(p.Info))
	var visit func(info *EntityInfo)
	visit = func(info *EntityInfo) {
		if seen[info.Entity.Number] {
			return
		}
		seen[info.Entity.Number] = true
		for _, parent := range info.Entity.Parents {
			visit(p.Info[parent.Number])
		}
		sorted = append(sorted, info)
	}
	for _, info := range p.Info {
		visit(info)
	}
	return sorted
}

func (p *Program) ownAttributes(info *EntityInfo) {
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
		info.own = append(info.own, &types.Attribute{Name: a.Name.Name, Type: t, Entity: info.Entity, At: at})
	}
}

func duplicateAttribute(name string, info *EntityInfo, first, second *Place) *Error {
	e := NewError("DuplicateException", "attribute '%s' already exists on entity '%s'", name, info.Entity.Short())
	e.Place = first
	return e.Twice(first, second)
}

func (p *Program) attributeType(info *EntityInfo, a *syntax.Attribute) (types.Type, *Error) {
	t, err := p.typeNamed(info.Namespace, a.Type.Name, a)
	if err != nil {
		return nil, err
	}
	if e, is := t.(*types.Entity); is {
		err := TypingError("Entity attributes can only have primitive types, %s is an entity: use a relation", e.Name)
		err.Stmt, err.Place = syntax.Render(a), &a.Name.At
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

// Ancestry returns the entity and all entities above it, each once. It is computed
// only for entities that have instances: all of them together grow with the square
// of the depth.
func (info *EntityInfo) Ancestry() []*types.Entity {
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
	walk(info.Entity)
	return info.lineage
}

// checkInherited compares the attributes of an entity with those of its parents, and
// those of the parents with each other. At this point there are no relations but the
// built-in ones.
func (p *Program) checkInherited(info *EntityInfo) {
	e := info.Entity
	for _, own := range info.own {
		for _, parent := range e.Parents {
			if have := parent.Attribute(own.Name); have != nil {
				p.report(p.override(info, own, have))
			}
		}
	}
	for i, parent := range e.Parents {
		for _, a := range parent.Attributes {
			for _, other := range e.Parents[:i] {
				if have := other.Attribute(a.Name); have != nil && have != a {
					p.report(p.override(info, have, a))
				}
			}
		}
	}
}

func (p *Program) override(info *EntityInfo, own, have *types.Attribute) *Error {
	if have.End != nil || own.End != nil || own.Type.String() == have.Type.String() {
		return nil // an attribute may replace a relation
	}
	first, second := &have.At, &own.At
	e := NewError("DuplicateException", "Incompatible attributes")
	e.Place = second
	return e.Twice(second, first)
}
