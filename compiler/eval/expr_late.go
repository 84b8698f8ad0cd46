package eval

import (
	"slices"

	"ordain.dev/ordain/compiler/types"
)

// lacking are attributes of indexes that a constructor has neither written nor
// as a default: one of several indexes as often as it is in them.
type lacking struct {
	names []string
	left  expr   // the instance on the left of the assignment that the constructor stands in; nil: none
	attr  string // and its attribute
}

// splat is the d of `**d`.
type splat struct {
	x     expr
	stars place
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
