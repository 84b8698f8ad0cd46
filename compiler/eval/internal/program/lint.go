package program

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

// perhaps notes that what is resolved until the returned function is called
// may never run.
func (b *builder) perhaps() (over func()) {
	sure := b.sure
	b.sure = false
	return func() { b.sure = sure }
}

// absent tells of a name that stands for nothing.
func (b *builder) absent(n *Ref) {
	if !b.p.in.Lint || b.outside || n.Kind == RefMember && b.known(n.Name) {
		return
	}
	if e := *n.Absent; b.sure {
		b.failAt(&e, n.Span)
		return
	}
	hint := n.Absent.Hint
	if n.Absent.MakeHint != nil {
		hint = n.Absent.MakeHint()
	}
	if hint != "" {
		hint = " (" + hint + ")"
	}
	b.warn(
		"inmanta.ast.NotFoundException",
		n.Span,
		"%s, which is an error as soon as this runs%s",
		n.Absent.Message,
		hint,
	)
}

// known tells names that an instance may have as an attribute: one of the
// entity, or of one that extends it.
func (b *builder) known(name string) bool {
	if b.self == nil || b.p.unsure(b.self) {
		return true
	}
	return has(b.self, name, map[*types.Entity]bool{})
}

func has(e *types.Entity, name string, seen map[*types.Entity]bool) bool {
	if seen[e] {
		return false
	}
	seen[e] = true
	return e.Attribute(name) != nil ||
		slices.ContainsFunc(e.Children(), func(child *types.Entity) bool { return has(child, name, seen) })
}
