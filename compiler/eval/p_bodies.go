package eval

import "ordain.dev/ordain/compiler/types"

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
