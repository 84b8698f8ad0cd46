package lineage

import (
	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
)

// place is where an expression stood when it was evaluated.
type place struct {
	in *block
	s  *spot // the statement that it is part of
	f  frame
}

// maxHops bounds how many variables a definition is looked for through.
const maxHops = 8

// value returns what an expression was, as far as the model that is left tells; nil
// when it does not.
func (t *Tracer) value(e syntax.Expr, at place) types.Value {
	return t.valueWithin(e, at, maxHops)
}

func (t *Tracer) valueWithin(e syntax.Expr, at place, hops int) types.Value {
	if hops == 0 {
		return nil
	}
	switch e := e.(type) {
	case *syntax.Literal:
		return constant(e)
	case *syntax.Ref:
		return t.valueOfName(e.Name.Text, at, hops)
	case *syntax.AttrRef:
		i, ok := t.valueWithin(e.X, at, hops-1).(*eval.Instance)
		if !ok {
			return nil
		}
		a := i.Entity().Attribute(e.Attr.Name)
		if a == nil {
			return nil
		}
		v, _ := i.Value(a)
		return v
	case *syntax.MapLookup:
		d, ok := t.valueWithin(e.X, at, hops-1).(*types.Dict)
		key, is := t.valueWithin(e.Key, at, hops-1).(types.Str)
		if !ok || !is {
			return nil
		}
		return d.Values[string(key)]
	case *syntax.Conditional:
		truth, known := t.truthWithin(e.Cond, at, hops-1)
		switch {
		case !known:
			return nil
		case truth:
			return t.valueWithin(e.Then, at, hops-1)
		}
		return t.valueWithin(e.Else, at, hops-1)
	case *syntax.Not, *syntax.Binary, *syntax.IsDefined:
		if truth, known := t.truthWithin(e, at, hops-1); known {
			return types.Bool(truth)
		}
	}
	return nil
}

func (t *Tracer) valueOfName(name string, at place, hops int) types.Value {
	if local := at.in.find(name); local != nil {
		if v := bound(local, at); v != nil {
			return v
		}
		if local.element {
			return nil
		}
		return t.valueWithin(local.value, place{local.in, local, frame{by: at.f.by}}, hops-1)
	}
	if at.f.by != nil {
		of := at.f.by.Instance()
		if name == "self" {
			return of
		}
		if a := of.Entity().Attribute(name); a != nil {
			v, _ := of.Value(a)
			return v
		}
	}
	file, last := t.space(name, at.in)
	if file == nil {
		return nil
	}
	if t.variables == nil {
		t.variables = make(map[string]types.Value, len(t.result.Variables))
		for _, v := range t.result.Variables {
			t.variables[v.Name] = v.Value
		}
	}
	return t.variables[file.Namespace+"::"+last]
}

// bound returns the value of a variable that is itself an argument of the constructor
// which at is an argument of: the instance still has it.
//
//	for host in self.hosts:
//	    File(host=host, content=host.name)
func bound(variable *spot, at place) types.Value {
	if at.s == nil || at.s.made == nil || at.f.of == nil {
		return nil
	}
	for _, a := range at.s.made.Named {
		ref, is := a.Value.(*syntax.Ref)
		if !is || at.s.in.find(ref.Name.Text) != variable {
			continue
		}
		attribute := at.f.of.Entity().Attribute(a.Name.Name)
		if attribute == nil || attribute.Gathers() {
			continue
		}
		v, _ := at.f.of.Value(attribute)
		return v
	}
	return nil
}

// truth returns what a condition was, and whether that can be told.
func (t *Tracer) truth(e syntax.Expr, at place) (truth, known bool) {
	return t.truthWithin(e, at, maxHops)
}

func (t *Tracer) truthWithin(e syntax.Expr, at place, hops int) (truth, known bool) {
	if hops == 0 {
		return false, false
	}
	switch e := e.(type) {
	case *syntax.Not:
		truth, known = t.truthWithin(e.X, at, hops-1)
		return !truth, known
	case *syntax.IsDefined:
		x, ok := definedName(e).(*syntax.AttrRef)
		if !ok {
			return false, false
		}
		if i, ok := t.valueWithin(x.X, at, hops-1).(*eval.Instance); !ok || i.Entity().Attribute(x.Attr.Name) == nil {
			return false, false
		}
		switch v := t.valueWithin(x, at, hops).(type) {
		case nil, types.Null:
			return false, true
		case *types.List:
			return len(v.Items) > 0, true
		}
		return true, true
	case *syntax.Binary:
		return t.compared(e, at, hops)
	}
	b, known := t.valueWithin(e, at, hops-1).(types.Bool)
	return bool(b), known
}

func (t *Tracer) compared(e *syntax.Binary, at place, hops int) (truth, known bool) {
	switch e.Op {
	case "and", "or":
		l, knownL := t.truthWithin(e.L, at, hops-1)
		r, knownR := t.truthWithin(e.R, at, hops-1)
		if e.Op == "and" {
			return l && r, knownL && knownR || knownL && !l || knownR && !r
		}
		return l || r, knownL && knownR || knownL && l || knownR && r
	}
	l, r := t.valueWithin(e.L, at, hops-1), t.valueWithin(e.R, at, hops-1)
	if l == nil || r == nil {
		return false, false
	}
	order, ordered := types.Compare(l, r)
	switch e.Op {
	case "==":
		return types.Equal(l, r), true
	case "!=":
		return !types.Equal(l, r), true
	case "<":
		return order < 0, ordered
	case "<=":
		return order <= 0, ordered
	case ">":
		return order > 0, ordered
	case ">=":
		return order >= 0, ordered
	}
	return false, false
}

// constant is the value of a literal.
func constant(l *syntax.Literal) types.Value {
	switch l.Kind {
	case syntax.NullLiteral:
		return types.Null{}
	case syntax.BoolLiteral:
		return types.Bool(l.Bool)
	case syntax.IntLiteral:
		return types.NewInt(l.Int)
	case syntax.FloatLiteral:
		return types.Float(l.Float)
	case syntax.StringLiteral:
		return types.Str(l.Str)
	}
	return nil
}

// definition finds the argument of the constructor that x in `x.a` stands for, or the
// entry of the dict that d in `d["k"]` stands for, and the run that it is part of.
func (t *Tracer) definition(e syntax.Expr, at place) (*spot, frame) {
	switch e := e.(type) {
	case *syntax.AttrRef:
		made, from := t.defined(e.X, at, maxHops)
		if c, is := made.(*syntax.Construct); is && from.in != nil {
			return from.in.file.arguments[c.At.Start][e.Attr.Name], from.f
		}
	case *syntax.MapLookup:
		key, known := t.value(e.Key, at).(types.Str)
		d, from := t.defined(e.X, at, maxHops)
		dict, is := d.(*syntax.Dict)
		if !known || !is || from.in == nil {
			return nil, frame{}
		}
		for _, entry := range dict.Entries {
			if entry.Key == string(key) {
				return from.in.file.member(entry.Value, from.in), from.f
			}
		}
	}
	return nil, frame{}
}

// defined goes from a name to the expression that gave it its value, and on, up to
// one that is no name.
func (t *Tracer) defined(e syntax.Expr, at place, hops int) (syntax.Expr, place) {
	if hops == 0 {
		return nil, place{}
	}
	next := func(s *spot, f frame) (syntax.Expr, place) {
		if s == nil || s.value == nil || s.element {
			return nil, place{}
		}
		return t.defined(s.value, place{s.in, s, f}, hops-1)
	}
	switch e := e.(type) {
	case *syntax.Ref:
		name := e.Name.Text
		if local := at.in.find(name); local != nil {
			return next(local, frame{by: at.f.by})
		}
		if at.f.by != nil && name != "self" && at.f.by.Instance().Entity().Attribute(name) != nil {
			return next(t.only(at.f.by.Instance(), name))
		}
		return next(t.global(name, at.in), frame{})
	case *syntax.AttrRef:
		if i, ok := t.value(e.X, at).(*eval.Instance); ok && i.Entity().Attribute(e.Attr.Name) != nil {
			return next(t.only(i, e.Attr.Name))
		}
		return next(t.definition(e, at))
	case *syntax.MapLookup:
		return next(t.definition(e, at))
	}
	return e, at
}

// only returns the statement that set an attribute, when it is the only one.
func (t *Tracer) only(i *eval.Instance, attribute string) (*spot, frame) {
	var room [1]eval.Setting
	settings := i.Settings(room[:0], attribute)
	if len(settings) != 1 || settings[0].Implied {
		return nil, frame{}
	}
	return t.statement(i, attribute, settings[0]), frame{settings[0].By, i}
}
