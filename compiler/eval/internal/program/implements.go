package program

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

type ImplementationInfo struct {
	impl *Implementation
	ast  *syntax.Implementation
	ns   *Namespace
	// target is the entity that it is for; nil when that could not be resolved.
	target *EntityInfo
}

func (p *Program) defineImplements(d *definitions) {
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
		n := &Implement{Written: Written{im.ast, im.ast.Entity.At}, Info: info}
		for _, name := range im.ast.Using {
			impl, err := p.usable(im, info, name)
			if err != nil {
				p.report(err)
				continue
			}
			n.Using = append(n.Using, impl)
		}
		info.Implements = append(info.Implements, n)
		info.implDefs = append(info.implDefs, im)
	}
}

// usable finds an implementation that an implement statement names.
func (p *Program) usable(im placed[*syntax.Implement], info *EntityInfo, name syntax.Name) (*Implementation, *Error) {
	thing, err := im.ns.find(name)
	if err != nil {
		err.Stmt = syntax.Render(im.ast)
		return nil, err
	}
	impl, ok := thing.(*ImplementationInfo)
	if !ok {
		return nil, &Error{
			Kind:    "AssertionError",
			Message: name.Text + " is not an implementation",
			Builtin: true,
			Focus:   &name.At,
		}
	}
	target := impl.target
	if target == nil || !info.Entity.IsSubclassOf(target.Entity) && p.unsure(info.Entity) {
		return nil, Excused()
	}
	if !info.Entity.IsSubclassOf(target.Entity) {
		e := TypingError("Type mismatch: cannot use %s as implementation for  %s because its implementing type is %s",
			name.Text, info.Entity.Name, target.Entity.Name)
		e.Stmt, e.Place = syntax.Render(im.ast), &im.ast.At
		return nil, e
	}
	return impl.impl, nil
}

// allImplements returns the implement statements of an entity, and those of its
// parents where it inherits them.
func (p *Program) allImplements(info *EntityInfo, seen map[*EntityInfo]bool) []*Implement {
	if seen[info] {
		return nil
	}
	seen[info] = true
	out := append([]*Implement(nil), info.ownImplements()...)
	if info.inherits {
		for _, parent := range info.Entity.Parents {
			out = append(out, p.allImplements(p.Info[parent.Number], seen)...)
		}
	}
	return out
}

func (info *EntityInfo) ownImplements() []*Implement {
	return info.Implements[:len(info.implDefs)]
}

// Summary describes an implementation to other packages.
func (info *ImplementationInfo) Summary() *types.Implementation {
	t := &types.Implementation{Name: info.impl.Name, Doc: info.ast.Doc, At: info.impl.At}
	if info.target != nil {
		t.For = info.target.Entity
	}
	return t
}
