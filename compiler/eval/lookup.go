package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/python/pytext"
)

func (r *run) needLookup(n *program.Lookup, s *scope, f frame) *Error {
	target := &variable{}
	f[n.Slot] = target
	frame, err := r.prepare(n.Parts, s)
	if err != nil {
		return err.In(n)
	}
	u := &lookupUnit{unit: unit{scope: s}, n: n, target: target}
	r.start(u, frame)
	return nil
}

func (r *run) needLookupParts(n program.LookupParts, s *scope, f frame) *Error {
	for _, a := range n.Named {
		if err := r.need(a.X.Expr, s, f); err != nil {
			return err
		}
	}
	if n.X != nil {
		if err := r.need(n.X, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.Splats {
		if err := r.need(x.X, s, f); err != nil {
			return err
		}
	}
	return nil
}

// lookupUnit waits for the key and then for an instance with it.
type lookupUnit struct {
	unit
	n      *program.Lookup
	target *variable
}

func (u *lookupUnit) node() program.Node { return u.n }

func (u *lookupUnit) blame(err *Error) *Error { return err.Claimed(u.n, u.n.Where()) }

func (u *lookupUnit) run(r *run) *Error {
	n := u.n
	var values []given
	info := n.Info
	if n.X != nil {
		of, err := r.eval(n.X, u.scope, u.frame)
		if err != nil {
			return err
		}
		instance, ok := of.(*Instance)
		if !ok {
			return program.TypingError("short index lookup is only possible one objects, %s is not an object",
				types.Text(of)).In(n)
		}
		attr := instance.entity.Attribute(n.Rel)
		if attr == nil {
			e := program.TypingError("short index lookup is only possible on relations, None is an attribute").In(n)
			e.Hint = program.Suggest("attribute", n.Rel, program.AttributeNames(instance.entity))
			return e
		}
		if attr.End == nil {
			return program.TypingError("short index lookup is only possible on relations, %s is an attribute",
				n.Rel).In(n)
		}
		if attr.End.Inverse == nil {
			return program.TypingError(
				"short index lookup is only possible on bi-drectional relations, %s.%s is unidirectional",
				attr.Entity.Name,
				n.Rel,
			).In(n)
		}
		values = append(values, given{name: attr.End.Inverse.Name, value: instance})
		info = r.prog.Info[attr.End.Target.Number]
	}
	for _, a := range n.Named {
		v, err := r.eval(a.X.Expr, u.scope, u.frame)
		if err != nil {
			return err
		}
		values = append(values, given{name: a.Name, value: v})
	}
	for _, x := range n.Splats {
		v, err := r.eval(x.X, u.scope, u.frame)
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
	return r.lookup(info.Entity, values, u.target, n)
}

// notDict is the error for `**` on anything but a dict.
func notDict(x program.Splat) *Error {
	e := program.TypingError("The ** operator can only be applied to dictionaries").Coded(diag.WrongOperand)
	e.Stmt, e.Place, e.StmtAt = "**"+syntax.RenderRepr(x.X.Tree()), &x.Stars, &x.Stars
	return e
}

// pendingLookup is a lookup that waits for an instance with its key.
type pendingLookup struct {
	target *variable
	n      *program.Lookup
	values []given // the key
}

// lookup sets target to the instance with a key, now or once there is one.
func (r *run) lookup(e *types.Entity, values []given, target *variable, n *program.Lookup) *Error {
	names := make([]string, 0, 4)
	for _, g := range values {
		names = append(names, g.name)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return program.RuntimeError("Attribute %s provided twice in index lookup", name).In(n)
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
		err := program.NotFound("No index defined on %s for this lookup: [%s]", e.Name, strings.Join(pairs, ", "))
		err.Hint = "the indexes are " + indexNames(e)
		if len(e.Indexes) == 0 {
			err.Hint = fmt.Sprintf("add `index %s(%s)`", e.Short(), strings.Join(names, ", "))
		}
		return err.In(n)
	}
	t := r.table(e, index)
	key, err := t.keyOf(values)
	if err != nil {
		return err.In(n)
	}
	if have := t.find(key); have != nil {
		target.put(r, have, &n.Span)
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

// suggestInstance is the hint for a lookup that finds nothing: what it could have
// found.
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
