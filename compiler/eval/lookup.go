package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/python/pytext"
)

func (r *run) needLookup(n *lookup, s *scope, f frame) *Error {
	target := &variable{}
	f[n.slot] = target
	frame, err := r.prepare(n.parts, s)
	if err != nil {
		return err.in(n)
	}
	u := &lookupUnit{unit: unit{scope: s}, n: n, target: target}
	r.start(u, frame)
	return nil
}

func (r *run) needLookupParts(n lookupParts, s *scope, f frame) *Error {
	for _, a := range n.named {
		if err := r.need(a.x.expr, s, f); err != nil {
			return err
		}
	}
	if n.x != nil {
		if err := r.need(n.x, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.splats {
		if err := r.need(x.x, s, f); err != nil {
			return err
		}
	}
	return nil
}

// lookupUnit waits for the key and then for an instance with it.
type lookupUnit struct {
	unit
	n      *lookup
	target *variable
}

func (u *lookupUnit) node() node { return u.n }

func (u *lookupUnit) blame(err *Error) *Error { return err.claimed(u.n, u.n.where()) }

func (u *lookupUnit) run(r *run) *Error {
	n := u.n
	var values []given
	info := n.info
	if n.x != nil {
		of, err := r.eval(n.x, u.scope, u.frame)
		if err != nil {
			return err
		}
		instance, ok := of.(*Instance)
		if !ok {
			return typingError(
				"short index lookup is only possible one objects, %s is not an object",
				types.Text(of),
			).in(n)
		}
		attr := instance.entity.Attribute(n.rel)
		if attr == nil {
			e := typingError("short index lookup is only possible on relations, None is an attribute").in(n)
			e.Hint = suggest("attribute", n.rel, attributeNames(instance.entity))
			return e
		}
		if attr.End == nil {
			return typingError("short index lookup is only possible on relations, %s is an attribute", n.rel).in(n)
		}
		if attr.End.Inverse == nil {
			return typingError(
				"short index lookup is only possible on bi-drectional relations, %s.%s is unidirectional",
				attr.Entity.Name,
				n.rel,
			).in(n)
		}
		values = append(values, given{name: attr.End.Inverse.Name, value: instance})
		info = r.prog.info[attr.End.Target.Number]
	}
	for _, a := range n.named {
		v, err := r.eval(a.x.expr, u.scope, u.frame)
		if err != nil {
			return err
		}
		values = append(values, given{name: a.name, value: v})
	}
	for _, x := range n.splats {
		v, err := r.eval(x.x, u.scope, u.frame)
		if err != nil {
			return err
		}
		d, ok := v.(*types.Dict)
		if !ok {
			return notDict(x)
		}
		for _, k := range d.Keys {
			values = append(values, given{name: k, value: d.Values[k]})
		}
	}
	return r.lookup(info.entity, values, u.target, n)
}

// notDict refuses a `**` on something else.
func notDict(x splat) *Error {
	e := typingError("The ** operator can only be applied to dictionaries").coded(diag.WrongOperand)
	e.Stmt, e.at, e.stmtAt = "**"+syntax.RenderRepr(x.x.tree()), &x.stars, &x.stars
	return e
}

// pendingLookup is a lookup that waits for an instance with its key.
type pendingLookup struct {
	target *variable
	n      *lookup
	values []given // the key
}

// lookup sets target to the instance with a key, now or once there is one.
func (r *run) lookup(e *types.Entity, values []given, target *variable, n *lookup) *Error {
	names := make([]string, 0, 4)
	for _, g := range values {
		names = append(names, g.name)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return runtimeError("Attribute %s provided twice in index lookup", name).in(n)
		}
	}
	var index *types.Index
	for _, x := range e.Indexes {
		if x.Matches(names) {
			index = x
			break
		}
	}
	if index == nil {
		pairs := make([]string, len(values))
		for i, g := range values {
			pairs[i] = fmt.Sprintf("(%s, %s)", pytext.Quote(g.name), types.Repr(g.value))
		}
		err := notFound("No index defined on %s for this lookup: [%s]", e.Name, strings.Join(pairs, ", "))
		err.Hint = "the indexes are " + indexNames(e)
		if len(e.Indexes) == 0 {
			err.Hint = fmt.Sprintf("add `index %s(%s)`", e.Short(), strings.Join(names, ", "))
		}
		return err.in(n)
	}
	t := r.table(e, index)
	key, err := t.keyOf(values)
	if err != nil {
		return err.in(n)
	}
	if have := t.find(key); have != nil {
		target.put(r, have, &n.span)
		return nil
	}
	if t.waiting == nil {
		t.waiting = map[string][]*pendingLookup{}
	}
	if t.waiting[key] == nil {
		t.order = append(t.order, key)
	}
	t.waiting[key] = append(t.waiting[key], &pendingLookup{target, n, values})
	return nil
}

func indexNames(e *types.Entity) string {
	parts := make([]string, len(e.Indexes))
	for i, x := range e.Indexes {
		parts[i] = "(" + strings.Join(x.Attributes, ", ") + ")"
	}
	return strings.Join(parts, ", ")
}

// suggestInstance tells what a lookup could have found.
func (r *run) suggestInstance(e *types.Entity) string {
	const most = 3
	have := r.instancesOf(e)
	if len(have) == 0 {
		return "nothing makes an instance of " + e.Name
	}
	titles := make([]string, 0, most)
	for _, i := range have[:min(len(have), most)] {
		titles = append(titles, i.Title())
	}
	text := "there is " + strings.Join(titles, ", ")
	if more := len(have) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
