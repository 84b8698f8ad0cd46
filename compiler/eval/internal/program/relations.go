package program

import (
	"slices"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// defineRelations resolves what implementations are for and both ends of relations,
// and then lays out the entities, parents first.
func (p *Program) defineRelations(d *definitions) {
	for _, def := range d.targeted {
		switch def := def.(type) {
		case *ImplementationInfo:
			target, err := p.entityNamed(def.ns, def.ast.For, def.ast)
			p.report(err)
			def.target = target
		case placed[*syntax.Relation]:
			p.report(p.relation(def.ns, def.ast))
		}
	}
	for _, info := range p.parentsFirst() {
		info.Entity.Lay(info.own)
	}
}

func (p *Program) relation(ns *Namespace, rel *syntax.Relation) *Error {
	left, err := p.entityNamed(ns, rel.Left.Entity, rel)
	if err != nil {
		err.Stmt = ""
	}
	right, err2 := p.entityNamed(ns, rel.Right.Entity, rel)
	if err2 != nil {
		err2.Stmt = ""
	}
	if left == nil || right == nil {
		for _, have := range []*EntityInfo{left, right} {
			if have != nil {
				have.broken = true // it has not got the relation
			}
		}
		p.report(err)
		return err2
	}
	end := func(side *syntax.RelationEnd, of, to *EntityInfo) (*types.Attribute, *Error) {
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
			Type:   to.Entity,
			Entity: of.Entity,
			Doc:    rel.Doc,
			At:     side.Attribute.At,
			End: &types.End{
				Target: to.Entity, Low: side.Multiplicity.Low, High: side.Multiplicity.High,
			},
		}
		of.own = append(of.own, a)
		if len(rel.Annotations) > 0 {
			p.annotated[rel] = append([]*types.Attribute{a}, p.annotated[rel]...) // the left one comes last
		}
		return a, nil
	}
	// The right end comes first. That decides which error is reported when both
	// exist already, and the order of slots when both are of one entity: that of
	// freezing.
	var b *types.Attribute
	itself := left == right && rel.Left.Attribute.Name == rel.Right.Attribute.Name
	if !itself {
		if b, err = end(&rel.Right, right, left); err != nil {
			left.broken = true
			return err
		}
	}
	side := &rel.Left
	if itself { // it has one end only, and the second text of it counts
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

// newNames reports relations of an entity that have the name of something inherited.
// An attribute may replace an inherited relation, but not the other way round.
func (p *Program) newNames(info *EntityInfo) {
	for _, a := range info.own {
		if a.End == nil || info.ast == nil {
			continue
		}
		inherited := p.inherited(info, a.Name)
		if inherited == nil {
			continue
		}
		e := NewError("DuplicateException", "Attribute name %s is already defined in %s, unable to define relationship",
			a.Name, inherited.Short())
		e.Place = &a.At
		p.report(e.Twice(&a.At, p.placeIn(inherited, a.Name)))
	}
}

func (p *Program) placeIn(e *types.Entity, name string) string {
	if at := p.Info[e.Number].places[name]; at != nil {
		return at.String()
	}
	return "internal:1:0"
}

func (p *Program) inherited(info *EntityInfo, name string) *types.Entity {
	for _, parent := range info.Entity.Parents {
		up := p.Info[parent.Number]
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

func (p *Program) defineIndexes(d *definitions) {
	for _, x := range d.indexes {
		p.report(p.index(x))
	}
}

func (p *Program) index(x placed[*syntax.Index]) *Error {
	info, err := p.entityNamed(x.ns, x.ast.Entity, x.ast)
	if err != nil {
		return err
	}
	index := &types.Index{Entity: info.Entity, At: x.ast.At}
	for _, id := range x.ast.Attributes {
		if slices.Contains(index.Attributes, id.Name) {
			index.Twice = id.Name
		}
		index.Attributes = append(index.Attributes, id.Name)
		attr := info.Entity.Attribute(id.Name)
		var e *Error
		switch {
		case attr == nil && p.unsure(info.Entity):
			return Excused()
		case attr == nil:
			e = NotFound("Attribute '%s' referenced in index is not defined in entity %s", id.Name, info.Entity.Name)
			e.Hint = Suggest("attribute", id.Name, AttributeNames(info.Entity))
		case attr.End != nil && attr.End.Low == 0:
			e = NewError("IndexException", "Index can not contain optional relations, Relation ' %s.%s' is optional",
				id.Name, info.Entity.Name)
		case attr.End != nil && attr.End.High != 1:
			e = NewError("IndexException", "Index can not contain list attributes, Attribute ' %s.%s' is a list",
				id.Name, attr.End.Target.Name)
		case attr.End == nil && isList(attr.Type):
			e = NewError("IndexException", "Index can not contain list attributes, Attribute ' %s.%s' is a list",
				id.Name, info.Entity.Name)
		default:
			continue
		}
		e.Stmt, e.Place = syntax.Render(x.ast), &x.ast.At
		return e
	}
	written := index.Attributes
	index.Attributes = slices.Sorted(slices.Values(written))
	p.addIndex(info.Entity, index, written)
	return nil
}

// isList reports whether a type is that of lists, which may be nullable.
func isList(t types.Type) bool {
	if optional, is := t.(types.Optional); is {
		t = optional.Of
	}
	_, is := t.(types.ListOf)
	return is
}

// addIndex adds an index to an entity and its descendants. An index that exists
// already is recognised by its attributes in alphabetical order, so that, as in the
// reference, one that is written in another order counts twice. It shows where a
// constructor looks for what its indexes lack.
func (p *Program) addIndex(e *types.Entity, x *types.Index, written []string) {
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
