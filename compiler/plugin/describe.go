package plugin

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// place is a file and a line.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// typeInfo describes a type for Python's classes of types.
type typeInfo struct {
	Name       string          `json:"name"`
	Kind       string          `json:"kind"` // entity, typedef, implementation, primitive
	Doc        string          `json:"doc,omitempty"`
	Base       string          `json:"base,omitempty"`
	Parents    []string        `json:"parents,omitempty"`    // only direct ones
	Attributes []attributeInfo `json:"attributes,omitempty"` // its own
	Indexes    [][]string      `json:"indexes,omitempty"`    // its parents' too
	Children   []string        `json:"children,omitempty"`   // only direct ones
	For        string          `json:"for,omitempty"`        // the entity of an implementation
	At         *place          `json:"at,omitempty"`
}

type attributeInfo struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Relation bool   `json:"relation,omitempty"`
	Low      int    `json:"low,omitempty"`
	High     int    `json:"high,omitempty"` // 0: no limit
	// End is the other side of a relation; empty when that has no name.
	End       string `json:"end,omitempty"`
	EndEntity string `json:"end_entity,omitempty"`
}

// describe describes a type to Python; nil when there is none of that name.
func describe(t any, name string) *typeInfo {
	switch t := t.(type) {
	case *types.Entity:
		if t == nil {
			return nil
		}
		return describeEntity(t)
	case *types.Typedef:
		if t == nil {
			return nil
		}
		at, _ := t.At.(*syntax.Span)
		return &typeInfo{Name: name, Kind: "typedef", Doc: t.Doc, Base: t.Base.String(), At: spot(at)}
	case *types.Implementation:
		info := &typeInfo{Name: name, Kind: "implementation", Doc: t.Doc, At: spot(t.At)}
		if t.For != nil {
			info.For = t.For.Name
		}
		return info
	case nil:
		if _, ok := types.LookupPrimitive(name); !ok {
			return nil
		}
	}
	return &typeInfo{Name: name, Kind: "primitive"}
}

// spot is where something begins; nil when it is in no file.
func spot(at *syntax.Span) *place {
	if at == nil || at.File == nil {
		return nil
	}
	return &place{File: at.File.Path, Line: int(at.Start.Line)}
}

func describeEntity(e *types.Entity) *typeInfo {
	info := &typeInfo{Name: e.Name, Kind: "entity", Doc: e.Doc}
	for _, parent := range e.Parents {
		info.Parents = append(info.Parents, parent.Name)
	}
	for _, child := range e.Children() {
		info.Children = append(info.Children, child.Name)
	}
	info.At = spot(&e.At)
	for _, a := range e.Attributes {
		if a.Entity != e {
			continue
		}
		info.Attributes = append(info.Attributes, describeAttribute(a))
	}
	for _, index := range e.Indexes {
		info.Indexes = append(info.Indexes, index.Attributes)
	}
	return info
}

func describeAttribute(a *types.Attribute) attributeInfo {
	if a.End == nil {
		return attributeInfo{Name: a.Name, Type: a.Type.String()}
	}
	info := attributeInfo{Name: a.Name, Type: a.End.Target.Name, Relation: true, Low: a.End.Low}
	if a.End.High != syntax.Unlimited {
		info.High = a.End.High
	}
	if inverse := a.End.Inverse; inverse != nil {
		info.End, info.EndEntity = inverse.Name, inverse.Entity.Name
	}
	return info
}
