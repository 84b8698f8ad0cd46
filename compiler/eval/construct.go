package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

func (r *run) needConstruct(n *construct, s *scope, f frame) *Error {
	for _, a := range n.direct {
		if err := r.need(a.x.expr, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.splats {
		if err := r.need(x.x, s, f); err != nil {
			return err
		}
	}
	if n.lacks != nil && n.lacks.left != nil {
		return r.need(n.lacks.left, s, f)
	}
	return nil
}

// given is an attribute with its value.
type given struct {
	name  string
	value types.Value
	slot  int // of the attribute, in a constructor
}

func (r *run) evalConstruct(n *construct, s *scope, f frame) (types.Value, *Error) {
	indirect, late, err := r.lateArguments(n, s, f)
	if err != nil {
		return nil, err
	}
	values := make([]given, 0, len(n.direct)+len(late))
	for i := range n.direct {
		a := &n.direct[i]
		v, err := r.eval(a.x.expr, s, f)
		if err != nil {
			return nil, err
		}
		values = append(values, given{a.name, v, a.slot})
	}
	for _, g := range late { // instead of its default, or behind the others
		if i := slices.IndexFunc(values, g.same); i >= 0 {
			values[i] = g
			continue
		}
		values = append(values, g)
	}
	instance, err := r.findByIndex(n, values)
	if err != nil {
		return nil, err
	}
	if instance != nil {
		instance.found = append(instance.found, &n.span)
		for _, g := range values {
			if err := r.assignGiven(n, s, instance, g); err != nil {
				return nil, err
			}
		}
	} else if instance, err = r.createInstance(n, s, values); err != nil {
		return nil, err
	}
	if err := r.assignLater(n, s, instance, indirect); err != nil {
		return nil, err
	}
	return instance, r.implementAll(n, instance, n.info.implements)
}

func (r *run) implementAll(n *construct, i *Instance, implements []*implement) *Error {
	for k, one := range implements {
		if err := r.startImplement(one, i); err != nil {
			r.leave(func(r *run) *Error { return r.implementAll(n, i, implements[k+1:]) })
			return err
		}
	}
	return nil
}

// find looks for an instance with the same key in an index.
func (r *run) findByIndex(n *construct, values []given) (*Instance, *Error) {
	indexes := n.info.entity.Indexes
	if len(indexes) == 0 {
		return nil, nil
	}
	var found *Instance
	var by *types.Index
	plan := r.plan(n.info)
	for k, index := range indexes {
		if index.Twice != "" {
			return nil, runtimeError("Attribute %s provided twice in index lookup", index.Twice).in(n)
		}
		t := plan.steps[k].table
		key, err := t.keyOf(values)
		if err != nil {
			return nil, err
		}
		have := t.find(key)
		if have == nil {
			continue
		}
		if have.entity != n.info.entity {
			return nil, duplicate(n, have, "Type found in index is not an exact match")
		}
		if found != nil && found != have {
			return nil, collision(found, have, by, index).in(n)
		}
		found, by = have, index
	}
	return found, nil
}

func collision(first, second *Instance, one, other *types.Index) *Error {
	e := fail("IndexCollisionException", "Inconsistent indexes detected!\n")
	e.hint = func() string { return explainCollision(first, second, one, other) }
	return e
}

func duplicate(n node, have *Instance, message string) *Error {
	e := fail("DuplicateException", "%s", message)
	e.Stmt, e.bare = "", false
	e.at = n.where()
	return e.twice(n.where(), have.at)
}

func (r *run) createInstance(n *construct, s *scope, values []given) (*Instance, *Error) {
	e := n.info.entity
	if s.by.level() > r.limits.iterations { // which endless rounds reach first
		return nil, r.limits.tooDeep(e).in(n)
	}
	i := &Instance{
		id: uint64(len(r.instances) + 1), entity: e, at: &n.span, made: s.by, converted: n.converted,
		slots: make([]variable, len(e.Attributes)),
	}
	i.self = variable{value: i, has: true, owner: i}
	for k, attr := range e.Attributes {
		v := &i.slots[k]
		v.owner, v.attr = i, attr
		if !attr.Gathers() {
			continue
		}
		v.kind, v.gathering = list, &gathering{}
		if attr.End.Optional() {
			v.kind = option
		}
		if v.kind == option || attr.End.Low <= 0 {
			v.gathering.queued = true
			r.freezable.push(v)
		} else {
			r.drop(v) // until it has as many elements as it needs
		}
	}
	r.instances = append(r.instances, i)
	for _, g := range values {
		if err := r.assignGiven(n, s, i, g); err != nil {
			return nil, err
		}
	}
	return i, r.register(i, n.info, n)
}

func (r *run) assignGiven(n *construct, s *scope, i *Instance, g given) *Error {
	err := i.slot(g.slot).set(r, g.value, source{at: &n.span, by: s.by})
	if err == nil {
		return nil
	}
	told := attributeError(err.near(n), i, g.name, n, &n.span)
	if told == err { // from the other end of the relation
		return wrapAttribute(told, i, g.name, n, &n.span)
	}
	return told
}

// assignLater starts the assignment of what no index wants.
func (r *run) assignLater(n *construct, s *scope, i *Instance, arguments []argument) *Error {
	for len(arguments) > 0 {
		a := &arguments[0]
		if a.known {
			arguments = startKnown(r, s, i, n, arguments)
			continue
		}
		arguments = arguments[1:]
		in := s
		if a.own {
			in = r.inner(s, 1, s.ns)
			in.vars[0].put(r, i, &n.span)
		}
		if err := startSet(r, in, a.x, i.slot(a.slot), n); err != nil {
			return err
		}
	}
	return nil
}

// late gives what is known of the arguments only now: those of `**d`, and the
// other end of the relation that the instance is assigned to, if an index wants
// it; and the indirect arguments that are left then. It comes before any other
// argument is evaluated.
func (r *run) lateArguments(n *construct, s *scope, f frame) ([]argument, []given, *Error) {
	if len(n.splats) == 0 && n.lacks == nil {
		return n.indirect, nil, nil
	}
	late, err := r.splatArguments(n, s, f)
	if err != nil {
		return nil, nil, err
	}
	if n.lacks != nil {
		if late, err = r.completeKey(n, s, f, late); err != nil {
			return nil, nil, err
		}
	}
	indirect := slices.Clone(n.indirect)
	for _, g := range late {
		indirect = slices.DeleteFunc(indirect, func(a argument) bool { return a.name == g.name })
	}
	return indirect, late, nil
}

func (g given) same(other given) bool { return g.name == other.name }

// splat gives the arguments of `**d`.
func (r *run) splatArguments(n *construct, s *scope, f frame) ([]given, *Error) {
	var late []given
	for _, x := range n.splats {
		v, err := r.eval(x.x, s, f)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*types.Dict)
		if !ok {
			return nil, notDict(x)
		}
		for _, k := range d.Keys {
			if n.info.entity.Attribute(k) == nil {
				return nil, typingError("no attribute %s on type %s", k, n.info.entity.Name).in(n)
			}
			g := given{k, d.Values[k], slotNumber(n.info.entity, k)}
			if slices.Contains(n.explicit, k) || slices.ContainsFunc(late, g.same) {
				return nil, runtimeError(
					"The attribute %s is set twice in the constructor call of %s.",
					k,
					n.class,
				).in(n)
			}
			late = append(late, g)
		}
	}
	return late, nil
}

// complete adds the other end of the relation that the instance is assigned to,
// if an index wants it, and checks that indexes have all that they want.
func (r *run) completeKey(n *construct, s *scope, f frame, late []given) ([]given, *Error) {
	e := n.info.entity
	back, err := r.inverseArgument(n.lacks, s, f, n)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(late, func(g given) bool { return g.name == name })
	}
	written := slices.ContainsFunc(n.direct, func(a argument) bool { return a.name == back.name })
	if back.name != "" && !has(back.name) && !written && e.Indexed(back.name) {
		late = append(late, back)
	}
	if missing := slices.DeleteFunc(slices.Clone(n.lacks.names), has); len(missing) > 0 {
		return nil, withoutKey(e, missing).in(n)
	}
	return late, nil
}

// back is the other end of the relation on the left, as an argument of the
// constructor, and nothing where there is no such end.
func (r *run) inverseArgument(l *lacking, s *scope, f frame, n *construct) (given, *Error) {
	if l.left == nil {
		return given{}, nil
	}
	v, err := r.eval(l.left, s, f)
	if err != nil {
		return given{}, err
	}
	of, is := v.(*Instance)
	if !is {
		return given{}, &Error{
			Kind:    "Exception",
			Message: "Invalid state: received lhs_attribute that is not an instance",
			foreign: true,
		}
	}
	e, attr := n.info.entity, of.entity.Attribute(l.attr)
	if attr == nil || attr.End == nil {
		name := "None"
		if attr != nil {
			name = attr.Name
		}
		return given{}, runtimeError(
			"Attempting to assign constructor of type %s to attribute that is not a relation attribute: %s on %s",
			e.Name,
			name,
			of.Text(),
		).in(n)
	}
	if end := attr.End.Inverse; end != nil && e.IsSubclassOf(end.Entity) {
		return given{end.Name, of, slotNumber(e, end.Name)}, nil
	}
	return given{}, nil
}
