package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

type implementationInfo struct {
	impl *implementation
	ast  *syntax.Implementation
	ns   *namespace
	// target is what it is for; nil when that could not be resolved.
	target *entityInfo
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

// summary describes an implementation to other packages.
func (info *implementationInfo) summary() *types.Implementation {
	t := &types.Implementation{Name: info.impl.name, Doc: info.ast.Doc, At: info.impl.at}
	if info.target != nil {
		t.For = info.target.entity
	}
	return t
}
