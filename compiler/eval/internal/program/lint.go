package program

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

// A variable that does not exist is an error when it is read, not before: a block
// that never runs may name it. A check of the model without running it reports it
// all the same.
//
// perhaps marks what is resolved until the returned function is called as something
// that may never run.
func (b *builder) perhaps() (over func()) {
	sure := b.sure
	b.sure = false
	return func() { b.sure = sure }
}

// absent reports a name that stands for nothing.
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
	b.warn("inmanta.ast.NotFoundException", n.Span, "%s, which is an error as soon as this runs%s", n.Absent.Message,
		hint)
}

// known reports whether an instance may have an attribute: one of its entity, or of
// an entity that extends it.
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
