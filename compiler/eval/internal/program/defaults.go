package program

import (
	"slices"

	"ordain.dev/ordain/compiler/syntax"
)

// defaultArguments are the defaults of an entity as arguments of a constructor that
// sets nothing: those of indexes, and the others.
type defaultArguments struct{ direct, indirect []Argument }

// defaultArguments is computed only for entities that are constructed: see Ancestry.
func (info *EntityInfo) defaultArguments() *defaultArguments {
	if info.asArguments != nil {
		return info.asArguments
	}
	e, made := info.Entity, &defaultArguments{}
	for _, d := range info.defaults {
		a := Argument{Name: d.name, Slot: SlotNumber(e, d.name), X: Root{Expr: d.Literal}}
		if e.Indexed(d.name) {
			made.direct = append(made.direct, a)
			continue
		}
		a.Known = true
		made.indirect = append(made.indirect, a)
	}
	info.asArguments = made
	return made
}

// defaultValue is the default of an attribute. It has no literal where an inherited
// default is taken away.
type defaultValue struct {
	*Literal
	name string
}

// taken reports whether the default was taken away.
func (d defaultValue) taken() bool { return d.Literal == nil }

// findDefaults checks the defaults in an entity's own text.
func (p *Program) findDefaults(info *EntityInfo) {
	if info.ast == nil {
		return
	}
	for _, a := range info.ast.Attributes {
		if a.Default == nil { // which takes an inherited default away, with or without `= undef`
			info.ownDefaults = append(info.ownDefaults, defaultValue{name: a.Name.Name})
			continue
		}
		v, ok := constant(a.Default)
		if !ok {
			e := RuntimeError("%s is not a constant", shown(inconstant(a.Default)))
			e.Stmt, e.Place = syntax.Render(a), &a.Name.At
			p.report(e)
			continue
		}
		attr := info.Entity.Attribute(a.Name.Name)
		invalid := attr.Type.Validate(v)
		if own, is := invalid.(*Error); is && (own.Builtin || own.Place != nil) {
			p.report(own) // from the condition of a typedef, which names its place
			continue
		}
		if err := TypeError(invalid); err != nil {
			err.Place, err.Stmt = nil, ""
			p.report(err.Located(renderer{a}, &a.Name.At))
			continue
		}
		info.ownDefaults = append(info.ownDefaults, defaultValue{&Literal{standing(a.Default), v}, a.Name.Name})
	}
}

// defaults collects the defaults of an entity. Those of a descendant replace those
// of an ancestor, and those of the first parent those of the others. An attribute
// that is declared again without a default has none.
func (p *Program) defaults(info *EntityInfo) {
	if info.defaultsDone {
		return
	}
	info.defaultsDone = true
	if parents := info.Entity.Parents; len(parents) == 1 {
		// the same as the loop below, in time that does not grow with the depth
		up := p.Info[parents[0].Number]
		p.defaults(up)
		info.allDefaults = overlaid(up.allDefaults, info.ownDefaults)
	} else {
		for _, e := range info.Entity.Downwards() {
			info.allDefaults = overlaid(info.allDefaults, p.Info[e.Number].ownDefaults)
		}
	}
	info.defaults = info.allDefaults
	if slices.ContainsFunc(info.defaults, defaultValue.taken) {
		info.defaults = slices.DeleteFunc(slices.Clone(info.defaults), defaultValue.taken)
	}
}

// overlaid returns the defaults of an ancestor, with those of a descendant in their
// places and the others after them. It does not change its arguments.
func overlaid(defaults, own []defaultValue) []defaultValue {
	if len(own) == 0 {
		return defaults
	}
	out := slices.Clone(defaults)
	at := make(map[string]int, len(out)+len(own))
	for i, d := range out {
		at[d.name] = i
	}
	for _, d := range own {
		if i, known := at[d.name]; known {
			out[i] = d
			continue
		}
		if d.taken() { // there is no default to take away
			continue
		}
		at[d.name] = len(out)
		out = append(out, d)
	}
	return out
}
