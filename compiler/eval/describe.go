package eval

import "ordain.dev/ordain/compiler/types"

// Describer is what a Heap may be as well, so that Python code can look at
// types and not only at values: proxy._type(), Context.get_type(), resource
// classes that walk relations. Package plugin asks for it with a type assertion.
type Describer interface {
	// Describe tells about a type by its full name; nil when there is none.
	Describe(name string) *TypeInfo
	// Accepts reports whether value belongs to the type of that name.
	Accepts(name string, value types.Value) bool
	// Origin is where an instance was made, first place first.
	Origin(of types.Instance) []Place
}

// Place is a file and a line.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// TypeInfo is a type as Python sees it.
type TypeInfo struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // entity, typedef, primitive
	Base string `json:"base,omitempty"`
	// Parents are the direct parents of an entity, in the order of the model.
	Parents []string `json:"parents,omitempty"`
	// Attributes are an entity's own attributes and relations, in order.
	Attributes []AttributeInfo `json:"attributes,omitempty"`
	// Indexes of the entity, its parents' included.
	Indexes [][]string `json:"indexes,omitempty"`
	Place   Place      `json:"place,omitzero"`
}

// AttributeInfo is an attribute or a relation of an entity.
type AttributeInfo struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // as in the model: int, string[]?, std::Host
	Relation bool   `json:"relation,omitempty"`
	Low      int    `json:"low,omitempty"`
	High     int    `json:"high,omitempty"` // of a relation; 0: no limit
	// End and EndEntity name the other side of a relation; empty: it has none.
	End        string `json:"end,omitempty"`
	EndEntity  string `json:"end_entity,omitempty"`
	HasDefault bool   `json:"has_default,omitempty"`
}
