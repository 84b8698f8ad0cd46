package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

func (r *run) needConstruct(n *program.Construct, s *scope, f frame) *Error {
	for _, a := range n.Direct {
		if err := r.need(a.X.Expr, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.Splats {
		if err := r.need(x.X, s, f); err != nil {
			return err
		}
	}
	if n.Lacks != nil && n.Lacks.Left != nil {
		return r.need(n.Lacks.Left, s, f)
	}
	return nil
}

// given is an attribute with its value.
type given struct {
	name  string
	value types.Value
	slot  int // that of the attribute, in a
}

func (r *run) evalConstruct(n *program.Construct, s *scope, f frame) (types.Value, *Error) {
	late, err := r.lateArguments(n, s, f)
	if err != nil {
		return nil, err
	}
	var room [4]given
	values := room[:0]
	for i := range n.Direct {
		a := &n.Direct[i]
		v, err := r.eval(a.X.Expr, s, f)
		if err != nil {
			return nil, err
		}
		values = append(values, given{a.Name, v, a.Slot})
	}
	for _, g := range late { // it replaces its default, or comes last
		if i := slices.IndexFunc(values, g.sameName); i >= 0 {
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
		instance.found = append(instance.found, &n.Span)
		for _, g := range values {
			if err := r.assignGiven(n, s, instance, g); err != nil {
				return nil, err
			}
		}
	} else if instance, err = r.createInstance(n, s, values); err != nil {
		return nil, err
	}
	if err := r.assignLater(n, s, instance, without(n.Defaults, late), without(n.Indirect, late)); err != nil {
		return nil, err
	}
	return instance, r.implementAll(instance, n.Info.Implements)
}

func (r *run) implementAll(i *Instance, implements []*program.Implement) *Error {
	rest, err := r.startImplements(implements, i)
	if err != nil {
		r.postpone(func(r *run) *Error { return r.implementAll(i, rest) })
	}
	return err
}

// findByIndex looks for an instance with the same key in an index.
func (r *run) findByIndex(n *program.Construct, values []given) (*Instance, *Error) {
	indexes := n.Info.Entity.Indexes
	if len(indexes) == 0 {
		return nil, nil
	}
	var found *Instance
	var by *types.Index
	plan := r.plan(n.Info)
	for k, index := range indexes {
		if index.Twice != "" {
			return nil, program.RuntimeError("Attribute %s provided twice in index lookup", index.Twice).In(n)
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
		if have.entity != n.Info.Entity {
			return nil, duplicate(n, have, "Type found in index is not an exact match")
		}
		if found != nil && found != have {
			return nil, collision(found, have, by, index).In(n)
		}
		found, by = have, index
	}
	return found, nil
}

func collision(first, second *Instance, one, other *types.Index) *Error {
	e := program.NewError("IndexCollisionException", "Inconsistent indexes detected!\n")
	e.MakeHint = func() string { return explainCollision(first, second, one, other) }
	return e
}

func duplicate(n program.Node, have *Instance, message string) *Error {
	e := program.NewError("DuplicateException", "%s", message)
	e.Stmt, e.Bare = "", false
	e.Place = n.Where()
	return e.Twice(n.Where(), have.at)
}

func (r *run) createInstance(n *program.Construct, s *scope, values []given) (*Instance, *Error) {
	e := n.Info.Entity
	if s.by.level() > r.limits.iterations { // an endless chain of implementations, before it runs out of rounds
		return nil, r.limits.tooDeep(e).In(n)
	}
	i := &Instance{
		id: uint64(len(r.instances) + 1), entity: e, at: &n.Span, made: s.by, converted: n.Converted,
		slots: make([]variable, len(e.Attributes)),
	}
	i.self = variable{value: i, has: true, owner: i}
	gatherings := make([]gathering, gatheringIn(e))
	for k, attr := range e.Attributes {
		v := &i.slots[k]
		v.owner, v.attr = i, attr
		if !attr.Gathers() {
			continue
		}
		v.kind, v.gathering, gatherings = list, &gatherings[0], gatherings[1:]
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
	r.instances = append(doubled(r.instances), i)
	for _, g := range values {
		if err := r.assignGiven(n, s, i, g); err != nil {
			return nil, err
		}
	}
	return i, r.register(i, n.Info, n)
}

// gatheringIn counts the attributes of an entity that take their values by being frozen.
func gatheringIn(e *types.Entity) (n int) {
	for _, attr := range e.Attributes {
		if attr.Gathers() {
			n++
		}
	}
	return n
}

func (r *run) assignGiven(n *program.Construct, s *scope, i *Instance, g given) *Error {
	err := i.slot(g.slot).set(r, g.value, source{at: &n.Span, by: s.by})
	if err == nil {
		return nil
	}
	wrapped := attributeError(err.Near(n), i, g.name, n, &n.Span)
	if wrapped == err { // from the other end of the relation
		return wrapAttribute(wrapped, i, g.name, n, &n.Span)
	}
	return wrapped
}

// assignLater starts the assignment of the arguments that no index needs.
func (r *run) assignLater(
	n *program.Construct,
	s *scope,
	i *Instance,
	defaults []program.Argument,
	arguments []program.Argument,
) *Error {
	arguments = startKnown(r, s, i, n, defaults, arguments)
	for len(arguments) > 0 {
		a := &arguments[0]
		if a.Known {
			arguments = startKnown(r, s, i, n, nil, arguments)
			continue
		}
		arguments = arguments[1:]
		in := s
		if a.Own {
			in = r.inner(s, 1, s.ns)
			in.vars[0].put(r, i, &n.Span)
		}
		if err := startSet(r, in, a.X, i.slot(a.Slot), n); err != nil {
			return err
		}
	}
	return nil
}

// lateArguments returns the arguments that are known only now: those of `**d`, and
// the other end of the relation that the instance is assigned to, if an index needs
// it. They are evaluated before any other argument.
func (r *run) lateArguments(n *program.Construct, s *scope, f frame) ([]given, *Error) {
	if len(n.Splats) == 0 && n.Lacks == nil {
		return nil, nil
	}
	late, err := r.splatArguments(n, s, f)
	if err == nil && n.Lacks != nil {
		late, err = r.completeKey(n, s, f, late)
	}
	return late, err
}

// without returns the arguments that late does not replace.
func without(arguments []program.Argument, late []given) []program.Argument {
	if len(late) == 0 {
		return arguments
	}
	return slices.DeleteFunc(slices.Clone(arguments), func(a program.Argument) bool {
		return slices.ContainsFunc(late, func(g given) bool { return g.name == a.Name })
	})
}

func (g given) sameName(other given) bool { return g.name == other.name }

// splatArguments returns the arguments of `**d`.
func (r *run) splatArguments(n *program.Construct, s *scope, f frame) ([]given, *Error) {
	var late []given
	for _, x := range n.Splats {
		v, err := r.eval(x.X, s, f)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*types.Dict)
		if !ok {
			return nil, notDict(x)
		}
		for _, k := range d.Keys {
			if n.Info.Entity.Attribute(k) == nil {
				return nil, program.TypingError("no attribute %s on type %s", k, n.Info.Entity.Name).In(n)
			}
			g := given{k, d.Values[k], program.SlotNumber(n.Info.Entity, k)}
			if slices.Contains(n.Explicit, k) || slices.ContainsFunc(late, g.sameName) {
				return nil, program.RuntimeError("The attribute %s is set twice in the constructor call of %s.", k,
					n.Class).In(n)
			}
			late = append(late, g)
		}
	}
	return late, nil
}

// completeKey adds the other end of the relation that the instance is assigned to,
// if an index needs it, and checks that indexes have all that they need.
func (r *run) completeKey(n *program.Construct, s *scope, f frame, late []given) ([]given, *Error) {
	e := n.Info.Entity
	back, err := r.inverseArgument(n.Lacks, s, f, n)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(late, func(g given) bool { return g.name == name })
	}
	written := slices.ContainsFunc(n.Direct, func(a program.Argument) bool { return a.Name == back.name })
	if back.name != "" && !has(back.name) && !written && e.Indexed(back.name) {
		late = append(late, back)
	}
	if missing := slices.DeleteFunc(slices.Clone(n.Lacks.Names), has); len(missing) > 0 {
		return nil, program.WithoutKey(e, missing).In(n)
	}
	return late, nil
}

// inverseArgument returns the other end of the relation on the left side, as an
// argument of the constructor; an empty one when there is no such end.
func (r *run) inverseArgument(l *program.Lacking, s *scope, f frame, n *program.Construct) (given, *Error) {
	if l.Left == nil {
		return given{}, nil
	}
	v, err := r.eval(l.Left, s, f)
	if err != nil {
		return given{}, err
	}
	of, is := v.(*Instance)
	if !is {
		return given{}, &Error{
			Kind:    "Exception",
			Message: "Invalid state: received lhs_attribute that is not an instance",
			Builtin: true,
		}
	}
	e, attr := n.Info.Entity, of.entity.Attribute(l.Attr)
	if attr == nil || attr.End == nil {
		name := "None"
		if attr != nil {
			name = attr.Name
		}
		return given{}, program.RuntimeError(
			"Attempting to assign constructor of type %s to attribute that is not a relation attribute: %s on %s",
			e.Name,
			name,
			of.Text(),
		).In(n)
	}
	if end := attr.End.Inverse; end != nil && e.IsSubclassOf(end.Entity) {
		return given{end.Name, of, program.SlotNumber(e, end.Name)}, nil
	}
	return given{}, nil
}
