package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Setting is one assignment of a value to an attribute, or of an element to a
// relation. It has places in the text; which kind of statement stands there is up to
// the reader of the tree. Equal places are equal pointers.
type Setting struct {
	Value types.Value
	// At is where the value is written. For an argument that an index needs it is
	// the constructor, for a default the constant.
	At *syntax.Span
	// Expr is the right side of the statement that did it, where At is elsewhere:
	// for the elements of `b.l` in `a.l = b.l`.
	Expr *syntax.Span
	// Implied is set when the statement set the other end of the relation.
	Implied bool
	// By is the implementation that did it; nil at module level.
	By *Origin
}

// Origin is an implementation that runs for an instance. There is one for each.
type Origin = origin

// Instance returns the instance that the implementation runs for.
func (o *origin) Instance() *Instance { return o.instance }

// Implementation returns the full name of the implementation.
func (o *origin) Implementation() string { return o.impl.Name }

// At returns the place of the implementation.
func (o *origin) At() *syntax.Span { return o.impl.At }

// Selected returns the place of the implement statement that chose the
// implementation.
func (o *origin) Selected() *syntax.Span { return o.selected.Where() }

// Made returns the places of the constructor calls for the instance. There are
// several when an index found it again.
func (i *Instance) Made() []*syntax.Span {
	return append([]*syntax.Span{i.at}, i.found...)
}

// MadeBy returns the implementation in which the first constructor call ran; nil at
// module level.
func (i *Instance) MadeBy() *Origin { return i.made }

// Settings appends how an attribute or relation got its value: one entry for an
// attribute, one for each element of a relation, none for what was never set.
func (i *Instance) Settings(into []Setting, attribute string) []Setting {
	v := i.variable(attribute)
	if v == nil {
		return into
	}
	if v.kind == list && len(v.gathering.list.Items) > 0 {
		for n, item := range v.gathering.list.Items {
			into = append(into, v.gathering.sources[n].setting(item))
		}
		return into
	}
	if v.at == nil {
		return into
	}
	return append(into, v.source().setting(v.value))
}

func (s source) setting(value types.Value) Setting {
	return Setting{Value: value, At: s.at, Expr: s.expr, Implied: s.implied, By: s.by}
}
