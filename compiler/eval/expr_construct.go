package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

// construct is `C(k=v, **d)`.
type construct struct {
	at
	info *entityInfo
	// direct arguments must be known before the instance is made: those of
	// indexes. The others are assigned when it exists.
	direct   []argument
	indirect []argument
	splats   []splat
	explicit []string // names of the arguments that are written, where there are splats
	class    string   // as it is written, there too
	lacks    *lacking // nil: all that indexes want is in direct
	// converted: the instance stands for an object that a plug-in returned.
	converted bool
}

// argument is `k = v` of a constructor or lookup.
type argument struct {
	name string
	// x has a frame of its own in an indirect argument of a constructor; other
	// arguments lie in the frame of the whole.
	x    root
	slot int // the position of the attribute in its instance
	// own: x stands in a scope that has the new instance as its variable.
	own bool
	// known: the value is there before anything runs. x is a *literal, for an
	// attribute that is no relation, or the *ref of self, for a relation [1].
	known bool
}

func (n *construct) layout(l *layouter) {
	for _, a := range n.direct {
		a.x.expr.layout(l)
	}
	for _, x := range n.splats {
		x.x.layout(l)
	}
	if n.lacks != nil && n.lacks.left != nil {
		n.lacks.left.layout(l)
	}
}

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
