package eval

import (
	"fmt"
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

func (p *program) defineImplements(d *definitions) {
	for _, im := range d.implements {
		info, err := p.entityNamed(im.ns, im.ast.Entity, im.ast)
		if err != nil {
			p.report(err)
			continue
		}
		if im.ast.Parents {
			info.inherits = true
		}
		if len(im.ast.Using) == 0 {
			continue
		}
		n := &implement{at: at{im.ast, im.ast.Entity.At}, info: info}
		for _, name := range im.ast.Using {
			impl, err := p.usable(im, info, name)
			if err != nil {
				p.report(err)
				continue
			}
			n.using = append(n.using, impl)
		}
		info.implements = append(info.implements, n)
		info.implDefs = append(info.implDefs, im)
	}
}

// usable finds an implementation that an implement statement names.
func (p *program) usable(im placed[*syntax.Implement], info *entityInfo, name syntax.Name) (*implementation, *Error) {
	thing, err := im.ns.find(name)
	if err != nil {
		err.Stmt = syntax.Render(im.ast)
		return nil, err
	}
	impl, ok := thing.(*implementationInfo)
	if !ok {
		return nil, &Error{
			Kind:    "AssertionError",
			Message: name.Text + " is not an implementation",
			foreign: true,
			focus:   &name.At,
		}
	}
	target := impl.target
	if target == nil || !info.entity.IsSubclassOf(target.entity) && p.unsure(info.entity) {
		return nil, excused()
	}
	if !info.entity.IsSubclassOf(target.entity) {
		e := typingError(
			"Type mismatch: cannot use %s as implementation for  %s because its implementing type is %s",
			name.Text,
			info.entity.Name,
			target.entity.Name,
		)
		e.Stmt, e.at = syntax.Render(im.ast), &im.ast.At
		return nil, e
	}
	return impl.impl, nil
}

// resolveBodies normalises all that is left: entities with their defaults and
// conditions, implementations, and the top level of each file.
func (p *program) resolveBodies(d *definitions) {
	for _, info := range p.info {
		p.findDefaults(info)
		p.newNames(info)
		for i, def := range info.implDefs {
			n := info.implements[i]
			b := &builder{p: p, ns: def.ns, stmt: def.ast}
			b.top = newNaming(nil)
			b.top.body = true
			if def.ast.When == nil {
				n.when = root{&literal{standing(def.ast), types.Bool(true)}, 0}
			} else {
				n.when = b.root(def.ast.When)
			}
			p.take(b)
		}
	}
	for _, info := range p.info {
		p.defaults(info)
		info.implements = p.allImplements(info, map[*entityInfo]bool{})
	}
	for _, info := range d.impls {
		b := &builder{p: p, ns: info.ns, stmt: info.ast}
		b.top = p.moduleNaming(info.ns)
		if info.target != nil {
			b.self = info.target.entity
		}
		info.impl.body = b.block(info.ast.Body, nil, true)
		p.take(b)
	}
	for _, ns := range p.order {
		if ns.file == nil {
			continue
		}
		p.topLevel(ns)
	}
}

// moduleNaming is the naming above an implementation: it only serves warnings
// about shadowed variables, names are found through the namespace.
func (p *program) moduleNaming(ns *namespace) *naming {
	n := newNaming(nil)
	n.module = ns
	return n
}

// topLevel resolves the statements of a file, in source order.
func (p *program) topLevel(ns *namespace) {
	b := &builder{p: p, ns: ns, sure: true}
	b.top = &naming{vars: ns.vars, names: ns.names, first: ns.first}
	ns.body = &block{ns: ns}
	for _, st := range ns.file.Statements {
		if n := b.statement(st); n != nil {
			ns.body.stmts = append(ns.body.stmts, n)
		}
	}
	p.take(b)
}

// take reports what a builder found.
func (p *program) take(b *builder) {
	p.warnings = append(p.warnings, b.warnings...)
	p.report(b.errs...)
}

// allImplements are the implement statements of an entity, and those of its
// parents where it inherits them.
func (p *program) allImplements(info *entityInfo, seen map[*entityInfo]bool) []*implement {
	if seen[info] {
		return nil
	}
	seen[info] = true
	out := append([]*implement(nil), info.ownImplements()...)
	if info.inherits {
		for _, parent := range info.entity.Parents {
			out = append(out, p.allImplements(p.info[parent.Number], seen)...)
		}
	}
	return out
}

func (info *entityInfo) ownImplements() []*implement {
	return info.implements[:len(info.implDefs)]
}

// findDefaults checks the default values that an entity gives itself.
func (p *program) findDefaults(info *entityInfo) {
	if info.ast == nil {
		return
	}
	for _, a := range info.ast.Attributes {
		if a.Default == nil { // which takes an inherited one away, with or without `= undef`
			info.ownDefaults = append(info.ownDefaults, defaultValue{name: a.Name.Name})
			continue
		}
		v, ok := constant(a.Default)
		if !ok {
			e := runtimeError("%s is not a constant", shown(inconstant(a.Default)))
			e.Stmt, e.at = syntax.Render(a), &a.Name.At
			p.report(e)
			continue
		}
		attr := info.entity.Attribute(a.Name.Name)
		invalid := attr.Type.Validate(v)
		if own, is := invalid.(*Error); is && (own.foreign || own.at != nil) {
			p.report(own) // of the condition of a typedef, which says where
			continue
		}
		if err := typeError(invalid); err != nil {
			err.at, err.Stmt = nil, ""
			p.report(err.located(renderer{a}, &a.Name.At))
			continue
		}
		info.ownDefaults = append(info.ownDefaults, defaultValue{&literal{standing(a.Default), v}, a.Name.Name})
	}
}

// defaults collects the default values of an entity: a descendant's take the
// place of an ancestor's, and the first parent's that of the others'. An attribute
// that is declared again without one takes it away.
func (p *program) defaults(info *entityInfo) {
	if info.defaultsDone {
		return
	}
	info.defaultsDone = true
	if parents := info.entity.Parents; len(
		parents,
	) == 1 { // the same as the walk, in time that does not grow with the depth
		up := p.info[parents[0].Number]
		p.defaults(up)
		info.allDefaults = overlaid(up.allDefaults, info.ownDefaults)
	} else {
		for _, e := range info.entity.Downwards() {
			info.allDefaults = overlaid(info.allDefaults, p.info[e.Number].ownDefaults)
		}
	}
	info.defaults = info.allDefaults
	if slices.ContainsFunc(info.defaults, defaultValue.taken) {
		info.defaults = slices.DeleteFunc(slices.Clone(info.defaults), defaultValue.taken)
	}
}

// overlaid gives the defaults of an ancestor with those of a descendant in their
// places, and others behind. What it is given stays as it is.
func overlaid(defaults, own []defaultValue) []defaultValue {
	if len(own) == 0 {
		return defaults
	}
	out := slices.Clone(defaults)
	at := make(map[string]int, len(out)+len(own))
	for i, d := range out {
		at[d.name] = i
	}
	for _, d := range own {
		if i, known := at[d.name]; known {
			out[i] = d
			continue
		}
		if d.taken() { // nothing is there to be taken away
			continue
		}
		at[d.name] = len(out)
		out = append(out, d)
	}
	return out
}

// condition prepares the restriction of a typedef.
func (p *program) condition(info *typedefInfo) *Error {
	t := info.t
	t.Asks = asks(t.Base) || callsPlugin(info.ast.Match)
	p.asks = p.asks || t.Asks
	if regex, is := info.ast.Match.(*syntax.Regex); is {
		t.Condition = "/" + regex.Pattern + "/"
		compiled, err := types.NewRegex(regex.Pattern)
		if err != nil {
			e := runtimeError("%s", err)
			e.Stmt, e.at = syntax.Render(info.ast), &info.ast.Name.At
			return e
		}
		t.Holds = func(v types.Value) (bool, error) {
			s, ok := types.Plain(v).(types.Str)
			if !ok {
				return false, (&Error{Kind: "AssertionError", foreign: true,
					Hint: fmt.Sprintf("%s is restricted by a regular expression, which %s is no text for", t.Name, types.Text(v))}).located(nil, &info.ast.Name.At)
			}
			matches, err := compiled.Match(string(s))
			if err != nil {
				e := runtimeError("the regular expression of %s takes too long: %s", t.Name, err)
				e.Hint = slowRegex
				return false, e.located(nil, &info.ast.Name.At).focused(&regex.At)
			}
			return matches, nil
		}
		return nil
	}
	t.Condition = syntax.RenderSource(info.ast.Match)
	if err := makesInstances(info.ast.Match); err != nil {
		return err
	}
	var condition *root
	info.resolve = func() []*Error {
		if condition != nil {
			return nil
		}
		b := &builder{p: p, ns: info.ns, stmt: info.ast, top: newNaming(nil), direct: true}
		b.top.declare("self", info.ast.Name.At)
		condition = new(b.root(info.ast.Match))
		p.warnings = append(p.warnings, b.warnings...)
		return b.errs
	}
	t.Holds = func(v types.Value) (bool, error) {
		if errs := info.resolve(); len(errs) > 0 {
			return false, errs[0]
		}
		return p.holds(p, *condition, v)
	}
	return nil
}

// callsPlugin reports whether the condition of a typedef does.
func callsPlugin(condition syntax.Expr) (found bool) {
	syntax.Inspect(condition, func(x syntax.Expr, _ []string) {
		if call, is := x.(*syntax.Call); is {
			_, cast := types.LookupPrimitive(call.Func.Text)
			found = found || !cast
		}
	})
	return found
}

// makesInstances says that the condition of a typedef makes instances, which
// ends the compile where it is defined.
func makesInstances(condition syntax.Expr) (found *Error) {
	syntax.Inspect(condition, func(x syntax.Expr, _ []string) {
		if _, is := x.(*syntax.Construct); is && found == nil {
			n := standing(x)
			found = (&Error{Kind: "AttributeError", foreign: true,
				Message: "'Constructor' object has no attribute 'get_default_values'", Hint: "the condition of a typedef can not make instances"}).in(&n)
		}
	})
	return found
}

// unusable is what has no value in the condition of a typedef, which knows self
// and nothing else: nil for what has. The error is told when a value is held
// against the typedef, and only where that comes to it.
func (b *builder) unusable(x syntax.Expr) *Error {
	n := new(standing(x))
	unresolved := func(name string) *Error {
		return notFound("Unable to resolve `%s`: a type constraint can not reference variables.", name).in(n)
	}
	switch x := x.(type) {
	case *syntax.Ref:
		if name := x.Name.Text; !b.top.holds(name) {
			return unresolved(name)
		}
	case *syntax.AttrRef:
		return unresolved(syntax.Render(x))
	case *syntax.Format, *syntax.FString, *syntax.MapLookup, *syntax.Lookup, *syntax.ShortLookup, *syntax.IsDefined:
		return fail("DirectExecuteException", "The statement %s can not be executed in this context", n).in(n)
	}
	return nil
}

// unusable stands for what a condition cannot use.
type unusable struct {
	at
	err *Error
}

func (n *unusable) layout(*layouter) {}
