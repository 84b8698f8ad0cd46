package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/types"
)

// An entity that extends std::Dataclass has a twin in Python: a frozen
// dataclass of the same name. What a plug-in returns of that class becomes an
// instance of the entity, a new one for each time it is returned.

// checkDataclasses holds the pairs against each other.
func (p *program) checkDataclasses(*definitions) {
	std := p.spaces["std"]
	if std == nil {
		return
	}
	root, ok := std.things["Dataclass"].(*entityInfo)
	if !ok {
		return
	}
	for i := range p.dataclasses {
		d := &p.dataclasses[i]
		prefix, last, _ := cutLast(d.Name)
		space := p.spaces[prefix]
		if space == nil {
			continue
		}
		info, ok := space.things[last].(*entityInfo)
		if !ok || info == root || info.ast == nil || !info.entity.IsSubclassOf(root.entity) || p.unsure(info.entity) {
			continue
		}
		if err := p.checkDataclass(info, d); err != nil {
			err.at = &info.ast.Name.At
			err.Hint = "the entity and its Python dataclass must have the same fields, with types that correspond"
			if err.Kind == "DataClassException" {
				err.Hint = "a dataclass is a plain value: take that away, or do not extend std::Dataclass"
			}
			p.report(err)
		}
	}
}

func (p *program) checkDataclass(info *entityInfo, d *Dataclass) *Error {
	e := info.entity
	if d.Plain {
		return fail("DataClassMismatchException", "%s is paired with a Python class that is no dataclass (%s:%d): declare it with @dataclass(frozen=True)", e.Name, d.File, d.Line)
	}
	if !d.Frozen {
		return fail("DataClassMismatchException", "%s is paired with a Python dataclass that is not frozen (%s:%d): declare it with @dataclass(frozen=True)", e.Name, d.File, d.Line)
	}
	var problems []string
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	fields := map[string]bool{}
	for _, f := range d.Fields {
		fields[f.Name] = true
		attr := e.Attribute(f.Name)
		if attr == nil || attr.End != nil {
			say("the field %s of the Python class is no attribute of the entity", f.Name)
			continue
		}
		if _, named := attr.Type.(*types.Typedef); named {
			say("the attribute %s is a %s: a dataclass has primitive types only", attr.Name, attr.Type)
			continue
		}
		if f.Type.Kind == "unfit" {
			say("the field %s of the Python class: %s", f.Name, f.Type.Text)
			continue
		}
		t, err := p.annotation(info.ns, f.Type)
		if err != nil {
			return err
		}
		e.Twin = append(e.Twin, types.Field{Name: f.Name, Type: t})
		if t != nil && !corresponds(attr.Type, t) {
			say("the attribute %s is a %s here and a %s in Python", f.Name, attr.Type, t)
		}
	}
	for _, attr := range e.Attributes {
		switch {
		case attr.End == nil && !fields[attr.Name]:
			say("the attribute %s is no field of the Python class", attr.Name)
		case attr.End != nil && attr.Name != "requires" && attr.Name != "provides":
			say("%s is a relation, which a dataclass cannot have", attr.Name)
		}
	}
	if problems != nil {
		return fail("DataClassMismatchException", "%s differs from the Python dataclass at %s:%d:\n  %s", e.Name, d.File, d.Line, strings.Join(problems, "\n  "))
	}
	if len(e.Indexes) > 0 {
		return fail("DataClassException", "%s is a dataclass, which cannot have an index", e.Name)
	}
	for _, im := range info.implDefs {
		for _, name := range im.ast.Using {
			if name.Text != "std::none" && !(name.Text == "none" && im.ns.name == "std") {
				return fail("DataClassException", "%s is a dataclass, which can have no implementation but std::none", e.Name)
			}
		}
	}
	return nil
}

// corresponds reports whether an attribute takes all that a field of the Python
// class may hold.
func corresponds(attr, field types.Type) bool {
	if field == nil || field == types.Any {
		return true
	}
	if either, is := field.(types.OrReference); is {
		field = either.Of
	}
	switch a := attr.(type) {
	case types.Optional:
		f, nullable := field.(types.Optional)
		_, referred := f.Of.(types.OrReference)
		return nullable && !referred && corresponds(a.Of, f.Of)
	case types.ListOf:
		f, is := field.(types.ListOf)
		return is && (loose(a.Of) || corresponds(a.Of, f.Of))
	}
	switch f := field.(type) {
	case types.ListOf:
		return attr.String() == "list"
	case types.DictOf:
		return attr.String() == "dict" || attr.String() == f.String()
	case types.Primitive:
		return attr == field || (attr == types.Number && (f == types.IntType || f == types.FloatT))
	}
	return false
}

// loose is the type of elements of a `list`.
func loose(t types.Type) bool { return t == types.Any || t == types.Literal }

// instances turns the dataclass objects in a result, and the references to
// such, into instances of their entities.
func (u *callUnit) instances(r *run, v types.Value) (types.Value, *Error) {
	switch v := v.(type) {
	case *types.Object:
		if info := r.prog.twinOf(v.Dataclass); info != nil {
			return u.instance(r, info, v.Fields)
		}
	case *types.Reference:
		if info := r.prog.twinOf(v.Of); info != nil && len(v.Fields) > 0 {
			giveTypes(info, v.Fields)
			made, err := u.instance(r, info, v.Fields)
			if i, is := made.(*Instance); is {
				i.rarely().reference = v
			}
			return made, err
		}
	case *types.List:
		return u.list(r, v)
	case *types.Dict:
		return u.dict(r, v)
	}
	return v, nil
}

// giveTypes says of the references to a dataclass's fields what they give:
// what the attributes of the model say.
func giveTypes(info *entityInfo, fields []types.ReferenceArg) {
	for _, f := range fields {
		ref, ok := f.Value.(*types.Reference)
		if a := info.entity.Attribute(f.Name); ok && a != nil {
			ref.Of = a.Type.String()
		}
	}
}

func (u *callUnit) list(r *run, l *types.List) (types.Value, *Error) {
	var made *types.List
	for i, item := range l.Items {
		v, err := u.instances(r, item)
		if err != nil {
			return nil, err
		}
		if v != item && made == nil {
			made = &types.List{Items: slices.Clone(l.Items)}
		}
		if made != nil {
			made.Items[i] = v
		}
	}
	if made == nil {
		return l, nil
	}
	return made, nil
}

func (u *callUnit) dict(r *run, d *types.Dict) (types.Value, *Error) {
	var made *types.Dict
	for _, k := range d.Keys {
		v, err := u.instances(r, d.Values[k])
		if err != nil {
			return nil, err
		}
		if v == d.Values[k] {
			continue
		}
		if made == nil {
			made = &types.Dict{Keys: d.Keys, Values: map[string]types.Value{}}
			for key, old := range d.Values {
				made.Values[key] = old
			}
		}
		made.Values[k] = v
	}
	if made == nil {
		return d, nil
	}
	return made, nil
}

func (u *callUnit) instance(r *run, info *entityInfo, fields []types.ReferenceArg) (types.Value, *Error) {
	n := &construct{at: at{u.n.ast, u.n.span}, info: info}
	values := make([]given, 0, len(fields))
	for _, f := range fields {
		v, err := u.instances(r, f.Value)
		if err != nil {
			return nil, err
		}
		if v == nil {
			v = null
		}
		attr := info.entity.Attribute(f.Name)
		if attr == nil {
			continue
		}
		values = append(values, given{f.Name, v, slotNumber(info.entity, f.Name)})
	}
	i, err := n.create(r, u.scope, values, freeKey{})
	if err == nil {
		for _, implement := range info.implements {
			if err = implement.start(r, i); err != nil {
				break
			}
		}
	}
	if err != nil {
		e := fail("WrappingRuntimeException", "Exception in plugin %s", u.n.plugin.sig.Name)
		e.Causes = []*Error{err}
		return nil, e
	}
	return i, nil
}

// infoOf finds an entity by its full name; nil when there is none.
// twinOf gives the entity that is paired with a Python class; nil when none is.
func (p *program) twinOf(class string) *entityInfo {
	if p.twins == nil {
		p.twins = map[string]*entityInfo{}
		root := p.infoOf("std::Dataclass")
		for _, d := range p.dataclasses {
			if info := p.infoOf(d.Name); d.Class != "" && root != nil && info != nil && info != root && info.entity.IsSubclassOf(root.entity) {
				p.twins[d.Class] = info
			}
		}
	}
	return p.twins[class]
}

func (p *program) infoOf(name string) *entityInfo {
	prefix, last, ok := cutLast(name)
	if !ok {
		return nil
	}
	space := p.spaces[prefix]
	if space == nil {
		return nil
	}
	info, _ := space.things[last].(*entityInfo)
	return info
}
