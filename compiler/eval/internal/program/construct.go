package program

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// construct resolves a constructor call and finds out which arguments an index needs
// first and which can follow.
func (b *builder) construct(x *syntax.Construct, left *lhs) Expr {
	info := b.entity(x.Type, left, x)
	n := &Construct{Written: standing(x), Info: info}
	if info == nil {
		return &Literal{standing(x), types.Null{}}
	}
	e := info.Entity
	written := make([]string, 0, len(x.Named))
	for _, a := range x.Named {
		if slices.Contains(written, a.Name.Name) {
			b.failAt(
				RuntimeError("The attribute %s in the constructor call of %s is already set.", a.Name.Name,
					x.Type.Text),
				a.Name.At,
			)
		}
		written = append(written, a.Name.Name)
	}
	if len(x.Splats) > 0 {
		n.Explicit, n.Class = written, x.Type.Text
	}
	defaults := info.defaultArguments()
	n.Direct, n.Defaults = slices.Clone(defaults.direct), defaults.indirect
	n.Indirect = make([]Argument, 0, len(x.Named))
	n.Lacks = b.lacking(n, left, written, len(x.Splats) > 0)
	add := func(name string, value syntax.Expr, at syntax.Span) {
		attr := e.Attribute(name)
		if attr == nil && b.p.unsure(e) {
			b.expr(value) // for the errors in it
			return
		}
		if attr == nil {
			err := TypingError("no attribute %s on type %s", name, e.Name)
			err.Stmt = name
			err.Hint = Suggest("attribute", name, AttributeNames(e))
			b.failAt(err, at)
			return
		}
		if e.Indexed(name) {
			a := Argument{Name: name, Slot: SlotNumber(e, name), X: Root{Expr: b.expr(value)}}
			if i := slices.IndexFunc(defaults.direct, a.sameName); i >= 0 {
				n.Direct[i] = a
			} else {
				n.Direct = append(n.Direct, a)
			}
			return
		}
		later := b.indirect(attr, value)
		later.Slot = SlotNumber(e, name)
		i := slices.IndexFunc(defaults.indirect, later.sameName)
		if i < 0 {
			n.Indirect = append(n.Indirect, later)
			return
		}
		if n.Defaults != nil {
			n.Indirect, n.Defaults = slices.Concat(n.Defaults, n.Indirect), nil
		}
		n.Indirect[i] = later
	}
	for _, a := range x.Named {
		add(a.Name.Name, a.Value, a.Name.At)
	}
	for _, s := range x.Splats {
		n.Splats = append(n.Splats, Splat{b.expr(s.Expr), s.At})
	}
	return n
}

// indirect resolves an argument that is assigned after the instance exists. A
// constructor in it may need the instance for its index.
func (b *builder) indirect(attr *types.Attribute, value syntax.Expr) Argument {
	if attr.End == nil || attr.End.Inverse == nil || !constructs(value) {
		x := newRoot(b.assigned(value, b.hintFor(attr)))
		if _, constant := x.Expr.(*Literal); constant && attr.End == nil {
			return Argument{Name: attr.Name, X: x, Known: true}
		}
		if self, is := x.Expr.(*Ref); is && self.Kind == RefSelf && !attr.Gathers() {
			return Argument{Name: attr.Name, X: x, Known: true}
		}
		return Argument{Name: attr.Name, X: x}
	}
	b.top = newNaming(b.top)
	own := fmt.Sprintf("\x00%d", b.p.nextHidden())
	b.top.declare(own, value.Where())
	left := b.hintFor(attr)
	left.own = own
	x := newRoot(b.assigned(value, left))
	b.top = b.top.up
	return Argument{Name: attr.Name, X: x, Own: true}
}

func (b *builder) hintFor(attr *types.Attribute) *lhs {
	if attr.End == nil {
		return &lhs{plain: attr.Type}
	}
	return &lhs{attr: attr.Name, hint: attr.End.Target, gradual: attr.End.Multi()}
}

// constructs reports whether the value of an expression can be a new instance.
func constructs(x syntax.Expr) bool {
	switch x := x.(type) {
	case *syntax.Construct:
		return true
	case *syntax.List:
		for _, item := range x.Items {
			if constructs(item) {
				return true
			}
		}
	case *syntax.Conditional:
		return constructs(x.Then) || constructs(x.Else)
	case *syntax.Comprehension:
		return constructs(x.Value)
	}
	return false
}

// lacking returns what indexes need that the constructor does not set. A `**` may
// set it, and the left side of an assignment may set one attribute, as the other end
// of its relation: whether they do shows when the constructor runs.
func (b *builder) lacking(n *Construct, left *lhs, written []string, splats bool) *Lacking {
	missing := unwritten(n.Info.Entity, func(name string) bool {
		return slices.Contains(written, name) ||
			slices.ContainsFunc(n.Info.defaults, func(d defaultValue) bool { return d.name == name })
	})
	if len(missing) == 0 {
		return nil
	}
	assigned := left != nil && left.attr != ""
	if !splats && (!assigned || len(missing) > 1) {
		err := WithoutKey(n.Info.Entity, missing)
		err.Stmt = n.String()
		b.failAt(err, n.Span)
	}
	l := &Lacking{Names: missing}
	switch {
	case left == nil:
	case left.own != "":
		l.Left, l.Attr = b.ref(&syntax.Ref{Name: syntax.Name{Text: left.own, At: n.Span}}), left.attr
	case left.of != nil:
		l.Left, l.Attr = b.expr(left.of), left.attr
	}
	return l
}

// unwritten returns the attributes of indexes that a constructor does not set; one
// of several indexes as often as it is in them.
func unwritten(e *types.Entity, have func(name string) bool) []string {
	var missing []string
	for _, index := range e.Indexes {
		for _, name := range index.Attributes {
			if !have(name) {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// WithoutKey is the error for a constructor that lacks attributes of indexes.
func WithoutKey(e *types.Entity, missing []string) *Error {
	text := "Invalid Constructor call:"
	for _, name := range missing {
		kind := "attribute"
		if e.Attribute(name).End != nil {
			kind = "relation"
		}
		text += fmt.Sprintf("\n\t* Missing %s '%s'. The %s %s.%s is part of an index.", kind, name, kind, e.Name, name)
	}
	return NewError("IndexAttributeMissingInConstructorException", "%s", text)
}

func (b *builder) lookup(x *syntax.Lookup) Expr {
	n := &Lookup{Written: standing(x), Info: b.entity(x.Type, nil, x)}
	b.query(n, x.Named, x.Splats)
	return n
}

func (b *builder) query(n *Lookup, named []syntax.Argument, splats []syntax.Splat) {
	for _, a := range named {
		n.Named = append(n.Named, Argument{Name: a.Name.Name, X: Root{Expr: b.expr(a.Value)}})
	}
	for _, s := range splats {
		n.Splats = append(n.Splats, Splat{b.expr(s.Expr), s.At})
	}
	n.Parts = newRoot(LookupParts{n})
}

// entity resolves the type of a constructor or lookup.
func (b *builder) entity(name syntax.Name, left *lhs, whole syntax.Node) *EntityInfo {
	if left != nil && left.plain != nil {
		err := TypingError("Can not assign a value of type %s to a variable of type %s", name.Text, left.plain)
		err.Stmt = syntax.Render(whole)
		b.failAt(err, whole.Where())
		return nil
	}
	thing, err := b.ns.find(name)
	if err != nil && left != nil && left.hint != nil && !name.Qualified() {
		if thing = b.hinted(name, left.hint); thing != nil {
			err = nil
		}
	}
	if err != nil {
		b.failAt(err, name.At)
		return nil
	}
	info, ok := thing.(*EntityInfo)
	if !ok {
		err := TypingError("%s is not an entity and can not be constructed", name.Text)
		if _, is := thing.(*PluginInfo); is { // which the reference does not expect
			err.Kind, err.Builtin = "AssertionError", true
			err.Message = "Should not happen because all entity types start with a capital letter"
			err.Hint = "a plug-in whose name begins with a capital letter cannot be called"
		}
		b.failAt(err, name.At)
		return nil
	}
	if left != nil && left.hint != nil && !info.Entity.IsSubclassOf(left.hint) && !b.p.unsure(info.Entity) {
		err := TypingError("Can not assign a value of type %s to a variable of type %s", info.Entity.Name,
			left.hint.Name)
		err.Stmt = syntax.Render(whole)
		b.failAt(err, whole.Where())
		return nil
	}
	return info
}

// hinted looks for an entity by its short name among the type of a relation and its
// descendants.
func (b *builder) hinted(name syntax.Name, hint *types.Entity) any {
	var found []*types.Entity
	seen := map[*types.Entity]bool{}
	var walk func(e *types.Entity)
	walk = func(e *types.Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		if e.Short() == name.Text {
			found = append(found, e)
		}
		for _, child := range e.Children() {
			walk(child)
		}
	}
	walk(hint)
	switch len(found) {
	case 0:
		return nil
	case 1:
		return b.p.Info[found[0].Number]
	}
	names := make([]string, len(found))
	for i, e := range found {
		names[i] = e.Name
	}
	slices.Sort(names)
	b.failAt(
		NewError(
			"AmbiguousTypeException",
			"Could not determine namespace for type %s. %d possible candidates exists: [%s]. To resolve this, "+
				"use the fully qualified name instead of the short name.",
			name.Text,
			len(found),
			strings.Join(names, ", "),
		),
		name.At,
	)
	return b.p.Info[found[0].Number]
}

// SlotNumber returns the position of an attribute among the slots of an instance; -1
// for self.
func SlotNumber(e *types.Entity, name string) int {
	if name == "self" {
		return -1
	}
	return e.Slot(name)
}
