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
//
// A large model is thousands of constructors with some arguments each, so they
// are kept small.
type argument struct {
	name string
	x    expr
	size int32 // of x's own frame, when it has one: arguments of indexes and lookups lie in that of the whole
	slot int32 // the place of the attribute in its instance
	// own: x stands in a scope that has the new instance as its variable.
	own bool
	// known: the value is there before anything runs. x is a *literal, for an
	// attribute that is no relation, or the *ref of self, for one with one value.
	known bool
	// sure: it is known, and of the attribute's type.
	sure bool
}

func (a *argument) root() root { return root{a.x, int(a.size)} }

func (n *construct) layout(l *layouter) {
	for _, a := range n.direct {
		a.x.layout(l)
	}
	for _, x := range n.splats {
		x.layout(l)
	}
	if n.lacks != nil && n.lacks.left != nil {
		n.lacks.left.layout(l)
	}
}

func (n *construct) need(r *run, s *scope, f frame) *Error {
	for _, a := range n.direct {
		if err := a.x.need(r, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.splats {
		if err := x.need(r, s, f); err != nil {
			return err
		}
	}
	if n.lacks != nil && n.lacks.left != nil {
		return n.lacks.left.need(r, s, f)
	}
	return nil
}

func (n *construct) needGradual(r *run, s *scope, f frame, _ collector) (bool, *Error) {
	return true, n.need(r, s, f)
}

// given is an attribute with its value.
type given struct {
	name  string
	value types.Value
	slot  int32 // of the attribute, in a constructor
}

func (n *construct) eval(r *run, s *scope, f frame) (types.Value, *Error) {
	indirect, late, err := n.late(r, s, f)
	if err != nil {
		return nil, err
	}
	from := len(r.given)
	defer func() { r.given = r.given[:from] }()
	for i := range n.direct {
		a := &n.direct[i]
		v, err := a.x.eval(r, s, f)
		if err != nil {
			return nil, err
		}
		r.given = append(r.given, given{a.name, v, a.slot})
	}
	for _, g := range late { // instead of its default, or behind the others
		if i := slices.IndexFunc(r.given[from:], g.same); i >= 0 {
			r.given[from+i] = g
			continue
		}
		r.given = append(r.given, g)
	}
	values := r.given[from:len(r.given):len(r.given)]
	instance, free, err := n.find(r, values)
	if err != nil {
		return nil, err
	}
	if instance != nil {
		more := instance.rarely()
		more.again = append(more.again, &n.span)
		for _, g := range values {
			if err := n.assign(r, s, instance, g); err != nil {
				return nil, err
			}
		}
	} else if instance, err = n.create(r, s, values, free); err != nil {
		return nil, err
	}
	if err := n.assignLater(r, s, instance, indirect); err != nil {
		return nil, err
	}
	return instance, n.implement(r, instance, n.info.implements)
}

func (n *construct) implement(r *run, i *Instance, implements []*implement) *Error {
	for k, one := range implements {
		if err := one.start(r, i); err != nil {
			r.leave(func(r *run) *Error { return n.implement(r, i, implements[k+1:]) })
			return err
		}
	}
	return nil
}

// find looks for an instance with the same key in an index. It gives the key
// that it looked for last too, where nobody has it.
func (n *construct) find(r *run, values []given) (*Instance, freeKey, *Error) {
	indexes := n.info.entity.Indexes
	if len(indexes) == 0 {
		return nil, freeKey{}, nil
	}
	var found *Instance
	var free freeKey
	var by *types.Index
	plan := r.plan(n.info)
	for k, index := range indexes {
		if index.Twice != "" {
			return nil, free, runtimeError("Attribute %s provided twice in index lookup", index.Twice).in(n)
		}
		var err *Error
		t := plan.steps[k].table
		if r.key, err = indexKey(r.key, t, values); err != nil {
			return nil, free, err
		}
		var have *Instance
		have, free = r.find(t, r.key)
		if have == nil {
			continue
		}
		if have.entity != n.info.entity {
			return nil, free, duplicate(n, have, "Type found in index is not an exact match")
		}
		if found != nil && found != have {
			return nil, free, collision(found, have, by, index).in(n)
		}
		found, by = have, index
	}
	return found, free, nil
}

// collision is in a function of its own: what a closure holds is allocated at
// each call.
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

func (n *construct) create(r *run, s *scope, values []given, free freeKey) (*Instance, *Error) {
	e := n.info.entity
	if int(s.by.deep()) > r.limits.iterations { // which endless rounds reach first
		return nil, r.limits.tooDeep(e).in(n)
	}
	i := r.made.one()
	i.id, i.entity, i.made, i.book = uint64(len(r.instances)+1), e, s.by, r.book
	i.at = &n.span
	if n.converted {
		i.rarely().converted = true
	}
	i.slots = r.slots.take(len(e.Attributes))
	more := r.delayed.take(n.info.delayed)
	for k, attr := range e.Attributes {
		v := &i.slots[k]
		v.owner = i
		if !attr.Gathers() {
			continue
		}
		v.kind = list
		if attr.End.Optional() {
			v.kind = option
		}
		d := &more[0]
		v.value, more = d, more[1:]
		if v.kind == option || attr.End.Low <= 0 {
			d.queued = true
			r.wait.push(v)
		} else {
			r.drop(v) // until it has as many as it needs
		}
	}
	r.instances = append(r.instances, i)
	for _, g := range values {
		if err := n.assign(r, s, i, g); err != nil {
			return nil, err
		}
	}
	return i, r.register(i, n.info, n, free)
}

func (n *construct) assign(r *run, s *scope, i *Instance, g given) *Error {
	err := i.slot(g.slot).set(r, g.value, &n.span, s.by)
	if err == nil {
		return nil
	}
	told := attributeError(err.near(n), i, g.name, n, &n.span, &n.span)
	if told == err { // from the other end of the relation
		return wrapAttribute(told, i, g.name, n, &n.span, &n.span)
	}
	return told
}

// assignLater starts the assignment of what no index wants.
func (n *construct) assignLater(r *run, s *scope, i *Instance, arguments []argument) *Error {
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
		if err := startSet(r, in, a.root(), i.slot(a.slot), n); err != nil {
			return err
		}
	}
	return nil
}
