package program

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// isBatchable reports whether calls of a plug-in may be posted: no part of the model
// goes in or comes out, and no other plug-in decides whether an argument has its
// type.
func isBatchable(info *PluginInfo) bool {
	if info.Signature.Context || info.Signature.Deprecated || info.Signature.AllowUnknown || info.Signature.Emits {
		return false
	}
	for _, t := range info.Params {
		if !isPlainType(t) {
			return false
		}
	}
	switch info.Result {
	case nil, types.String, types.IntType, types.FloatT, types.BoolT:
		return true
	}
	return false
}

// isPlainType reports whether values can be checked against a type without the
// model.
func isPlainType(t types.Type) bool {
	switch t := t.(type) {
	case nil, types.Primitive:
		return true
	case types.ListOf:
		return isPlainType(t.Of)
	case types.DictOf:
		return isPlainType(t.Of)
	case types.Optional:
		return isPlainType(t.Of)
	}
	return false
}

// PluginInfo is a plug-in with its annotations resolved.
type PluginInfo struct {
	Signature *Signature
	Params    []types.Type // nil: anything goes
	Result    types.Type   // nil: anything goes
	Batchable bool         // its calls may be posted: see BatchHost
}

// addPlugins registers the plug-ins as names of their namespaces. A plug-in in a
// namespace that is not loaded does not exist.
func (p *Program) addPlugins(plugins []*Signature) {
	for _, sig := range plugins {
		prefix, last, _ := CutName(sig.Name)
		ns := p.Namespaces[prefix]
		if ns == nil {
			continue
		}
		info := &PluginInfo{Signature: sig}
		switch have := ns.Things[last].(type) {
		case nil:
			ns.Things[last] = info
		case *PluginInfo: // the first one counts
		default:
			e := NewError("DuplicateException", "Type %s is already defined", sig.Name)
			e.File, e.Line = sig.File, sig.Line+1 // the line of `def`, after the decorator
			e.Hint = fmt.Sprintf("plug-in and type need different names; the type is at %s", placeOf(have))
			e.Bare = true
			p.report(e)
			continue
		}
		p.Plugins = append(p.Plugins, info)
	}
}

// resolvePlugins resolves the annotations of plug-ins, once all types are known.
func (p *Program) resolvePlugins(*definitions) {
	for _, info := range p.Plugins {
		prefix, _, _ := CutName(info.Signature.Name)
		said := len(p.Warnings)
		for _, param := range info.Signature.Params {
			t, err := p.annotation(p.Namespaces[prefix], param.Type)
			if err != nil {
				p.report(err.inPlugin(info.Signature))
			}
			info.Params = append(info.Params, t)
		}
		t, err := p.annotation(p.Namespaces[prefix], info.Signature.Return)
		if err != nil {
			p.report(err.inPlugin(info.Signature))
		}
		info.Result = t
		info.Batchable = isBatchable(info)
		for i := range p.Warnings[said:] {
			p.Warnings[said+i].At = info.Signature.span()
		}
	}
}

// inPlugin sets the plug-in that has the annotation.
func (e *Error) inPlugin(sig *Signature) *Error {
	if !e.nowhere {
		e.File, e.Line, e.Column = sig.File, sig.Line+1, 1 // the line of `def`, after the decorator
	}
	if e.Hint == "" {
		e.Hint = "it is named in an annotation of plug-in " + sig.Name
	}
	return e
}

// annotation returns the type that an annotation stands for; nil for any.
func (p *Program) annotation(ns *Namespace, a *Annotation) (types.Type, *Error) {
	if a == nil {
		return nil, nil
	}
	of := func() (types.Type, *Error) {
		if len(a.Of) == 0 {
			return types.Any, nil
		}
		t, err := p.annotation(ns, a.Of[0])
		if t == nil {
			t = types.Any
		}
		return t, err
	}
	switch a.Kind {
	case "any":
		return nil, nil
	case "null":
		return types.NullT, nil
	case "prim":
		if prim, ok := types.LookupPrimitive(a.Name); ok {
			return prim, nil
		}
		return p.dsl(ns, a.Name)
	case "dataclass":
		for _, class := range append([]*Annotation{a}, a.Of...) {
			if info := p.TwinOf(class.Name); info != nil {
				return info.Entity, nil
			}
		}
		e := NewError("TypingException", "invalid type <class '%s'>, this dataclass has no associated inmanta entity",
			a.Text)
		e.Hint = "declare an entity of the same name that extends std::Dataclass, in the module that has the class"
		e.nowhere = true
		return nil, e
	case "dsl":
		t, err := p.dsl(ns, a.Name)
		if e, is := t.(*types.Entity); is && a.View {
			return types.View{Entity: e}, err
		}
		return t, err
	case "list":
		t, err := of()
		return types.ListOf{Of: t}, err
	case "dict":
		t, err := of()
		return types.DictOf{Of: t}, err
	case "nullable":
		t, err := of()
		return types.Optional{Of: t}, err
	case "reference":
		if len(a.Of) == 0 {
			return types.ReferenceTo{}, nil
		}
		t, err := of()
		if err == nil {
			err = p.referable(t, a)
		}
		return types.ReferenceTo{Of: t}, err
	case "union":
		alternatives := make([]types.Type, len(a.Of))
		for i, one := range a.Of {
			t, err := p.annotation(ns, one)
			if err != nil {
				return nil, err
			}
			if t == nil {
				t = types.Any
			}
			alternatives[i] = t
		}
		return types.MakeUnion(alternatives), nil
	}
	return nil, nil
}

// referable returns an error when there can be no reference to values of a type: to
// what may itself be a reference, or to an instance that is no dataclass. Like the
// reference compiler, it names no place.
func (p *Program) referable(t types.Type, a *Annotation) *Error {
	if mayBeReference(t) {
		return &Error{
			Kind:    "AssertionError",
			Builtin: true,
			nowhere: true,
			Hint:    a.Text + " is a reference to what may be a reference itself",
		}
	}
	entity, is := t.(*types.Entity)
	if !is ||
		slices.ContainsFunc(
			p.dataclasses,
			func(d Dataclass) bool { return d.Class != "" && d.Name == entity.Name && p.TwinOf(d.Class) != nil },
		) {
		return nil
	}
	e := TypingError(
		"References to entities must always be references to dataclasses. Got %s, which is not a dataclass",
		entity.Name,
	)
	e.nowhere = true
	return e
}

func mayBeReference(t types.Type) bool {
	switch t := t.(type) {
	case types.ReferenceTo, types.OrReference:
		return true
	case types.Optional:
		return mayBeReference(t.Of)
	case types.Union:
		return slices.ContainsFunc(t.Of, mayBeReference)
	}
	return false
}

// dsl resolves a type that is written as in the language.
func (p *Program) dsl(ns *Namespace, text string) (types.Type, *Error) {
	switch text {
	case "any", "expression":
		return nil, nil
	case "null":
		return types.NullT, nil
	case "list":
		return types.AnyList{}, nil
	case "dict":
		return types.DictOf{Of: types.Any}, nil
	}
	base, optional := strings.CutSuffix(text, "?")
	base, list := strings.CutSuffix(base, "[]")
	t, err := p.named(ns, base)
	if err != nil {
		return nil, err
	}
	if list {
		t = types.ListOf{Of: t}
	}
	if optional {
		t = types.Optional{Of: t}
	}
	return t, nil
}

// named finds a type of the model.
func (p *Program) named(ns *Namespace, text string) (types.Type, *Error) {
	if prim, ok := types.LookupPrimitive(text); ok {
		if prim == types.Number {
			p.Warn("TypeDeprecationWarning", syntax.Span{}, "Type 'number' is deprecated, use 'float' or 'int' instead")
		}
		return prim, nil
	}
	thing, err := ns.find(syntax.Name{Text: text})
	if err != nil {
		err.Place = nil
		err.Bare = true
		return nil, err
	}
	switch thing := thing.(type) {
	case *EntityInfo:
		return thing.Entity, nil
	case *TypedefInfo:
		return thing.Type, nil
	}
	if t := nominal(thing); t != nil {
		return t, nil
	}
	return nil, TypingError("%s is not a type", text)
}
