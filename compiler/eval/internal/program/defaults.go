package program

import (
	"slices"

	"ordain.dev/ordain/compiler/syntax"
)

// defaultArguments are the defaults of an entity as arguments of a constructor
// in which nothing is written: those of indexes, and the others.
type defaultArguments struct{ direct, indirect []Argument }

// defaultArguments are made for entities that are constructed only: see ancestry.
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

// defaultValue is the default of an attribute, without literal where an
// inherited one is taken away.
type defaultValue struct {
	*Literal
	name string
}

// taken reports whether a default was taken away.
func (d defaultValue) taken() bool { return d.Literal == nil }

// findDefaults checks the default values that an entity gives itself.
func (p *Program) findDefaults(info *EntityInfo) {
	if info.ast == nil {
		return
	}
	for _, a := range info.ast.Attributes {
		if a.Default == nil { // which takes an inherited one away, with or without `= undef`
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
			p.report(own) // of the condition of a typedef, which says where
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

// defaults collects the default values of an entity: a descendant's take the
// place of an ancestor's, and the first parent's that of the others'. An attribute
// that is declared again without one takes it away.
func (p *Program) defaults(info *EntityInfo) {
	if info.defaultsDone {
		return
	}
	info.defaultsDone = true
	if parents := info.Entity.Parents; len(
		parents,
	) == 1 { // the same as the walk, in time that does not grow with the depth
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

// overlaid gives the defaults of an ancestor with those of a descendant in their
// places, and others behind. What it is given stays as it is.
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
		if d.taken() { // nothing is there to be taken away
			continue
		}
		at[d.name] = len(out)
		out = append(out, d)
	}
	return out
}
