package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// defineRelations resolves implementations' targets and both ends of relations,
// and then lays out the entities, parents first.
func (p *program) defineRelations(d *definitions) {
	for _, def := range d.targeted {
		switch def := def.(type) {
		case *implementationInfo:
			target, err := p.entityNamed(def.ns, def.ast.For, def.ast)
			p.report(err)
			def.target = target
		case placed[*syntax.Relation]:
			p.report(p.relation(def.ns, def.ast))
		}
	}
	for _, info := range p.parentsFirst() {
		info.entity.Lay(info.own)
	}
}

func (p *program) relation(ns *namespace, rel *syntax.Relation) *Error {
	left, err := p.entityNamed(ns, rel.Left.Entity, rel)
	if err != nil {
		err.Stmt = ""
	}
	right, err2 := p.entityNamed(ns, rel.Right.Entity, rel)
	if err2 != nil {
		err2.Stmt = ""
	}
	if left == nil || right == nil {
		for _, have := range []*entityInfo{left, right} {
			if have != nil {
				have.broken = true // it lacks the relation
			}
		}
		p.report(err)
		return err2
	}
	end := func(side *syntax.RelationEnd, of, to *entityInfo) (*types.Attribute, *Error) {
		name := side.Attribute.Name
		if name == "" {
			return nil, nil
		}
		if have := of.places[name]; have != nil {
			return nil, duplicateAttribute(name, of, have, &side.Attribute.At)
		}
		of.places[name] = &side.Attribute.At
		a := &types.Attribute{
			Name:   name,
			Type:   to.entity,
			Entity: of.entity,
			Doc:    rel.Doc,
			At:     side.Attribute.At,
			End: &types.End{
				Target: to.entity, Low: side.Multiplicity.Low, High: side.Multiplicity.High,
			},
		}
		of.own = append(of.own, a)
		if len(rel.Annotations) > 0 {
			p.annotated[rel] = append([]*types.Attribute{a}, p.annotated[rel]...) // the left one comes last
		}
		return a, nil
	}
	// The right end comes first, which shows where both are there already, and in
	// the order of slots, where both are of one entity: in what is frozen first.
	var b *types.Attribute
	itself := left == right && rel.Left.Attribute.Name == rel.Right.Attribute.Name
	if !itself {
		if b, err = end(&rel.Right, right, left); err != nil {
			left.broken = true
			return err
		}
	}
	side := &rel.Left
	if itself { // one end only: what is written last is said of it
		side = &rel.Right
	}
	a, err := end(side, left, right)
	if err != nil {
		right.broken = true
		return err
	}
	if itself {
		b = a
	}
	if a != nil && b != nil {
		a.End.Inverse, b.End.Inverse = b, a
	}
	return nil
}

// newNames reports relations of an entity that take the name of something that
// it inherits. An attribute may take the place of an inherited relation.
func (p *program) newNames(info *entityInfo) {
	for _, a := range info.own {
		if a.End == nil || info.ast == nil {
			continue
		}
		inherited := p.inherited(info, a.Name)
		if inherited == nil {
			continue
		}
		e := fail(
			"DuplicateException",
			"Attribute name %s is already defined in %s, unable to define relationship",
			a.Name,
			inherited.Short(),
		)
		e.at = &a.At
		p.report(e.twice(&a.At, p.placeIn(inherited, a.Name)))
	}
}

func (p *program) placeIn(e *types.Entity, name string) string {
	if at := p.info[e.Number].places[name]; at != nil {
		return at.String()
	}
	return "internal:1:0"
}

func (p *program) inherited(info *entityInfo, name string) *types.Entity {
	for _, parent := range info.entity.Parents {
		up := p.info[parent.Number]
		for _, a := range up.own {
			if a.Name == name {
				return parent
			}
		}
		if found := p.inherited(up, name); found != nil {
			return found
		}
	}
	return nil
}

func (p *program) defineIndexes(d *definitions) {
	for _, x := range d.indexes {
		p.report(p.index(x))
	}
}

func (p *program) index(x placed[*syntax.Index]) *Error {
	info, err := p.entityNamed(x.ns, x.ast.Entity, x.ast)
	if err != nil {
		return err
	}
	index := &types.Index{Entity: info.entity, At: x.ast.At}
	for _, id := range x.ast.Attributes {
		if slices.Contains(index.Attributes, id.Name) {
			index.Twice = id.Name
		}
		index.Attributes = append(index.Attributes, id.Name)
		attr := info.entity.Attribute(id.Name)
		var e *Error
		switch {
		case attr == nil && p.unsure(info.entity):
			return excused()
		case attr == nil:
			e = notFound("Attribute '%s' referenced in index is not defined in entity %s", id.Name, info.entity.Name)
			e.Hint = suggest("attribute", id.Name, attributeNames(info.entity))
		case attr.End != nil && attr.End.Low == 0:
			e = fail(
				"IndexException",
				"Index can not contain optional relations, Relation ' %s.%s' is optional",
				id.Name,
				info.entity.Name,
			)
		case attr.End != nil && attr.End.High != 1:
			e = fail(
				"IndexException",
				"Index can not contain list attributes, Attribute ' %s.%s' is a list",
				id.Name,
				attr.End.Target.Name,
			)
		case attr.End == nil && isList(attr.Type):
			e = fail(
				"IndexException",
				"Index can not contain list attributes, Attribute ' %s.%s' is a list",
				id.Name,
				info.entity.Name,
			)
		default:
			continue
		}
		e.Stmt, e.at = syntax.Render(x.ast), &x.ast.At
		return e
	}
	written := index.Attributes
	index.Attributes = slices.Sorted(slices.Values(written))
	p.addIndex(info.entity, index, written)
	return nil
}

// isList tells attributes of a list type, also one that may be null.
func isList(t types.Type) bool {
	if optional, is := t.(types.Optional); is {
		t = optional.Of
	}
	_, is := t.(types.ListOf)
	return is
}

// addIndex gives the index to the entity and its descendants. One that is there
// already is known by its attributes in order of the alphabet: an index that is
// written in another order counts twice, as upstream, which shows where a
// constructor looks for what its indexes lack.
func (p *program) addIndex(e *types.Entity, x *types.Index, written []string) {
	for _, have := range e.Indexes {
		if slices.Equal(have.Attributes, written) {
			return
		}
	}
	e.Indexes = append(e.Indexes, x)
	for _, child := range e.Children() {
		p.addIndex(child, x, written)
	}
}
