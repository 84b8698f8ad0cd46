package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// Setting is one act of giving an attribute a value, or a relation an element.
// It names places in the text; what kind of statement stands there is for
// whoever has the tree to say.
type Setting struct {
	Value types.Value
	// At is where the value is written. For an argument that an index needs it
	// is the constructor, for a default the entity's definition.
	At syntax.Span
	// Expr is the right side of the statement that did it, where At lies
	// elsewhere: the elements of `b.l` in `a.l = b.l`.
	Expr *syntax.Span
	// Implied: the statement set the other side of the relation.
	Implied bool
	// By is in whose name it was done; nil at module level.
	By *Origin
}

// Origin is an implementation that ran for an instance.
type Origin struct {
	Instance       *Instance
	Implementation string
	At             syntax.Span // the implementation
	Selected       syntax.Span // the implement statement that chose it
}

func (o *origin) public() *Origin {
	if o == nil {
		return nil
	}
	return &Origin{Instance: o.instance, Implementation: o.impl.name, At: *o.impl.at, Selected: *o.selected.where()}
}

// Made tells where each constructor call for the instance stands; more than
// one when an index found it again.
func (i *Instance) Made() []syntax.Span {
	spans := make([]syntax.Span, len(i.at))
	for n, at := range i.at {
		spans[n] = *at
	}
	return spans
}

// MadeBy tells in whose name the first constructor call ran; nil at module level.
func (i *Instance) MadeBy() *Origin { return i.made.public() }

// Settings tells how an attribute or relation got its value: one entry for an
// attribute, one for each element of a relation, none for what nobody set.
func (i *Instance) Settings(attribute string) []Setting {
	v := i.variable(attribute)
	if v == nil {
		return nil
	}
	if v.kind == list && len(v.more.items) > 0 {
		all := make([]Setting, len(v.more.items))
		for n, item := range v.more.items {
			all[n] = v.more.places[n].setting(item)
		}
		return all
	}
	if v.at == nil {
		return nil
	}
	return []Setting{source{at: v.at, by: v.by, implied: v.implied}.setting(v.value)}
}

func (s source) setting(value types.Value) Setting {
	return Setting{Value: value, At: *s.at, Expr: s.expr, Implied: s.implied, By: s.by.public()}
}
