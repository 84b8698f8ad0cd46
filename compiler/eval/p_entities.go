package eval

import (
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

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

// checkInherited compares the attributes of an entity with those of its
// parents, and theirs with each other; there are no relations yet but the
// built-in ones.
func (p *program) checkInherited(info *entityInfo) {
	e := info.entity
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

func (p *program) override(info *entityInfo, own, have *types.Attribute) *Error {
	if have.End != nil || own.End != nil || own.Type.String() == have.Type.String() {
		return nil // an attribute may take the place of a relation
	}
	first, second := &have.At, &own.At
	e := fail("DuplicateException", "Incompatible attributes")
	e.at = second
	return e.twice(second, first)
}
