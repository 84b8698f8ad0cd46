package program

import "ordain.dev/ordain/compiler/types"

// resolveBodies resolves what is left: entities with their defaults and conditions,
// implementations, and the top level of each file.
func (p *Program) resolveBodies(d *definitions) {
	for _, info := range p.Info {
		p.findDefaults(info)
		p.newNames(info)
		for i, def := range info.implDefs {
			n := info.Implements[i]
			b := &builder{p: p, ns: def.ns, stmt: def.ast}
			b.top = newNaming(nil)
			b.top.body = true
			if def.ast.When == nil {
				n.When = Root{&Literal{standing(def.ast), types.Bool(true)}, 0}
			} else {
				n.When = b.root(def.ast.When)
			}
			p.take(b)
		}
	}
	for _, info := range p.Info {
		p.defaults(info)
		info.Implements = p.allImplements(info, map[*EntityInfo]bool{})
	}
	for _, info := range d.impls {
		b := &builder{p: p, ns: info.ns, stmt: info.ast}
		b.top = p.moduleNaming(info.ns)
		if info.target != nil {
			b.self = info.target.Entity
		}
		info.impl.Body = b.block(info.ast.Body, nil, true)
		p.take(b)
	}
	for _, ns := range p.Order {
		if ns.file == nil {
			continue
		}
		p.topLevel(ns)
	}
}

// moduleNaming is the block above an implementation. It only serves warnings about
// shadowed variables; names are found through the namespace.
func (p *Program) moduleNaming(ns *Namespace) *naming {
	n := newNaming(nil)
	n.module = ns
	return n
}

// topLevel resolves the statements of a file, in source order.
func (p *Program) topLevel(ns *Namespace) {
	b := &builder{p: p, ns: ns, sure: true}
	b.top = &naming{vars: ns.Vars, names: ns.Names, first: ns.First}
	ns.Body = &Block{Namespace: ns}
	for _, st := range ns.file.Statements {
		if n := b.statement(st); n != nil {
			ns.Body.Stmts = append(ns.Body.Stmts, n)
		}
	}
	p.take(b)
}

// take reports what a builder found.
func (p *Program) take(b *builder) {
	p.Warnings = append(p.Warnings, b.warnings...)
	p.report(b.errs...)
}
