package syntax

import "strings"

func (p *parser) importStmt(word token, module any, alias *token) any {
	n := &Import{Module: module.(Name)}
	n.At = p.coarse(word)
	n.At.End = n.Module.At.End
	if strings.Contains(n.Module.Text, "-") {
		return p.refuse("import", &Error{
			Kind: KindCompiler, Message: n.Module.Text +
				" is not a valid module name: hyphens are not allowed, please use underscores instead.",
			At: n.Module.At, // the reference has no place here
		})
	}
	if alias != nil {
		n.Alias = alias.text
		if strings.Contains(n.Alias, "-") {
			return p.hyphen("import", n.Alias, p.span(*alias))
		}
	}
	return n
}

func (p *parser) assign(target any, op token, value any, extend bool) any {
	n := &Assign{Target: target.(Expr), Extend: extend, Value: value.(Expr), At: p.coarse(op)}
	if r, ok := target.(*Ref); ok {
		if extend {
			return p.wrong("assign", r.Name.At, "Can not perform += on variable "+r.Name.Text)
		}
		if strings.Contains(r.Name.Text, "-") {
			return p.hyphen("assign", r.Name.Text, r.Name.At)
		}
	}
	return n
}

func (p *parser) entity(word, name token, parents, body any) any {
	n := &Entity{Name: p.ident(name), At: p.span(name), Word: p.coarse(word)}
	if list, ok := parents.([]Name); ok {
		for i := len(list) - 1; i >= 0; i-- {
			n.Parents = append(n.Parents, list[i])
		}
	}
	b := body.(*entityBody)
	n.Doc, n.Attributes = b.doc, b.attributes
	if strings.Contains(name.text, "-") {
		return p.hyphen("entity_def", name.text, n.At)
	}
	return n
}

func (p *parser) dictType(word token, nullable bool) TypeRef {
	return TypeRef{Name: p.name(word), Nullable: nullable}
}

func (p *parser) attribute(typ any, name token, value any, undef bool) any {
	n := &Attribute{Type: typ.(TypeRef), Name: p.ident(name), Undef: undef, At: p.span(name)}
	n.Default, _ = value.(Expr)
	if strings.Contains(name.text, "-") {
		return p.hyphen("attr", name.text, n.At)
	}
	return n
}

func (p *parser) implement(word token, entity, list, when any, doc string) any {
	l := list.(implementList)
	n := &Implement{Entity: entity.(Name), Using: l.using, Parents: l.parents, Doc: doc}
	n.At = p.coarse(word)
	n.At.End = n.Entity.At.End
	n.When, _ = when.(Expr)
	if always, ok := n.When.(*Literal); l.parents && n.When != nil &&
		!(ok && always.Kind == BoolLiteral && always.Bool) {
		return p.refuse("implement_def", &Error{
			Kind: KindRuntime, Message: "Conditional implementation with parents not allowed",
			At: n.Entity.At, Statement: Render(n),
		})
	}
	return n
}

func (p *parser) implementation(name token, entity, body any) any {
	b := body.(*implementationBody)
	n := &Implementation{Name: p.ident(name), For: entity.(Name), Doc: b.doc, Body: b.body, At: p.span(name)}
	if strings.Contains(name.text, "-") {
		return p.hyphen("implementation_def", name.text, n.At)
	}
	return n
}

// relEnd is one written side of a relation: the class, and the attribute with
// the multiplicity beside it.
func relEnd(class any, attr *token, multi any) side {
	s := side{class: class.(Name), attr: attr}
	s.multi, _ = multi.(Multiplicity)
	return s
}

type side struct {
	class Name
	attr  *token
	multi Multiplicity
}

func (p *parser) relation(dot token, left, right side, annotations any) any {
	n := &Relation{Annotations: exprs(annotations), At: from(p.coarse(dot), left.class.At)}
	for _, s := range []struct {
		from side
		to   *RelationEnd
	}{{left, &n.Left}, {right, &n.Right}} {
		*s.to = RelationEnd{Entity: s.from.class, Multiplicity: s.from.multi}
		if s.from.attr == nil {
			continue
		}
		s.to.Attribute = p.ident(*s.from.attr)
		if strings.Contains(s.from.attr.text, "-") {
			return p.hyphen("relation_def", s.from.attr.text, s.to.Attribute.At)
		}
	}
	return n
}

func (p *parser) typedef(name token, base Name, match Expr) any {
	n := &Typedef{Name: p.ident(name), Base: base, Match: match, At: p.coarse(name)}
	if !mentions(match, name.text) && !constructs(match) {
		return p.refuse("typedef_inner", &Error{
			Kind: KindTyping, Message: "typedef expressions should reference the self variable",
			At: p.span(name), Statement: Render(n), Hint: "say what must hold for the value, which is called self",
		})
	}
	switch name.text {
	case "string", "float", "int", "number", "bool", "list", "dict":
		p.warnings = append(p.warnings, Warning{
			Kind: KindRuntimeWarning, Message: "Trying to override a built-in type: " + name.text, At: p.span(name),
		})
	}
	if strings.Contains(name.text, "-") {
		return p.hyphen("typedef_inner", name.text, p.span(name))
	}
	return n
}
