package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// instances replaces the dataclass objects in a result, and the references to such
// objects, by instances of their entities.
func (u *callUnit) instances(r *run, v types.Value) (types.Value, *Error) {
	switch v := v.(type) {
	case *types.Object:
		for _, class := range v.Dataclass {
			if info := r.prog.TwinOf(class); info != nil {
				made, err := u.instance(r, info, v.Fields)
				if i, is := made.(*Instance); is {
					i.object = v.Handle
				}
				return made, err
			}
		}
	case *types.Reference:
		if info := r.prog.TwinOf(v.Of); info != nil && len(v.Fields) > 0 {
			giveTypes(info, v.Fields)
			made, err := u.instance(r, info, v.Fields)
			if i, is := made.(*Instance); is {
				i.reference = v
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

// giveTypes sets the types of the references to a dataclass's fields, which are
// those of the entity's attributes.
func giveTypes(info *program.EntityInfo, fields []types.ReferenceArg) {
	for _, f := range fields {
		ref, ok := f.Value.(*types.Reference)
		if a := info.Entity.Attribute(f.Name); ok && a != nil {
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

func (u *callUnit) instance(r *run, info *program.EntityInfo, fields []types.ReferenceArg) (types.Value, *Error) {
	n := &program.Construct{Written: program.Written{Syntax: u.n.Syntax, Span: u.n.Span}, Info: info, Converted: true}
	values := make([]given, 0, len(fields))
	for _, f := range fields {
		v, err := u.instances(r, f.Value)
		if err != nil {
			return nil, err
		}
		if v == nil {
			v = null
		}
		if info.Entity.Attribute(f.Name) == nil { // of a class that is derived from the twin
			return nil, u.unmade(
				program.NotFound("cannot set attribute with name %s on type %s", f.Name, info.Entity.Name).In(u.n),
			)
		}
		values = append(values, given{f.Name, v, program.SlotNumber(info.Entity, f.Name)})
	}
	i, err := r.createInstance(n, u.scope, values)
	if err == nil {
		_, err = r.startImplements(info.Implements, i)
	}
	if err != nil {
		return nil, u.unmade(err)
	}
	return i, nil
}

// unmade is the error for an instance that could not be made of what a plug-in
// returned.
func (u *callUnit) unmade(why *Error) *Error {
	e := program.NewError("WrappingRuntimeException", "Exception in plugin %s", u.n.Plugin.Signature.Name)
	e.Causes = []*Error{why}
	return e
}
