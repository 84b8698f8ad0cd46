package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) needList(n *listExpr, s *scope, f frame) *Error {
	for _, item := range n.parts {
		if err := r.need(item, s, f); err != nil {
			return err.in(n)
		}
	}
	return nil
}

func (r *run) needGradualList(n *listExpr, s *scope, f frame, c collector) (bool, *Error) {
	if n.items == nil {
		return true, r.need(n, s, f)
	}
	all := new(newGathering(gathered))
	all.gathering.promises = int32(len(n.items))
	f[n.slot] = all
	for _, item := range n.items {
		frame, report, err := r.prepareGradual(item, s, c)
		if err != nil {
			return false, err
		}
		u := &evalUnit{unit: unit{scope: s}, x: item.expr, target: all, kept: true, stmt: n}
		if report || late(item.expr) {
			u.c = c
		}
		r.start(u, frame)
	}
	return false, nil
}

func (r *run) evalList(n *listExpr, s *scope, f frame) (types.Value, *Error) {
	if f[n.slot] != nil {
		return f[n.slot].get()
	}
	items := make([]types.Value, 0, len(n.parts))
	for _, part := range n.parts {
		v, err := r.eval(part, s, f)
		if err != nil {
			return nil, err
		}
		if l, ok := v.(*types.List); ok {
			items = append(items, l.Items...)
			continue
		}
		items = append(items, v)
	}
	l := &types.List{Items: items}
	return l, r.overgrownParts(l)
}

func (r *run) needDict(n *dictExpr, s *scope, f frame) *Error {
	for _, e := range n.entries {
		if err := r.need(e.value, s, f); err != nil {
			return err.in(n)
		}
	}
	return nil
}

func (r *run) evalDict(n *dictExpr, s *scope, f frame) (types.Value, *Error) {
	d := &types.Dict{Keys: make([]string, 0, len(n.entries)), Values: make(map[string]types.Value, len(n.entries))}
	for _, e := range n.entries {
		v, err := r.eval(e.value, s, f)
		if err != nil {
			return nil, err
		}
		d.Keys = append(d.Keys, e.key)
		d.Values[e.key] = v
	}
	return d, r.overgrownParts(d)
}

func (r *run) needMapLookup(n *mapLookup, s *scope, f frame) *Error {
	if err := r.need(n.x, s, f); err != nil {
		return err.in(n)
	}
	return r.need(n.key, s, f).in(n)
}

func (r *run) evalMapLookup(n *mapLookup, s *scope, f frame) (types.Value, *Error) {
	of, err := r.eval(n.x, s, f)
	if err != nil {
		return nil, err
	}
	if isUnknown(of) {
		return r.unknown(), nil
	}
	d, ok := of.(*types.Dict)
	if !ok {
		return nil, typingError(
			"dict lookup is only possible on dicts, %s is not an object",
			types.Text(of),
		).coded(diag.WrongOperand).
			in(n)
	}
	key, err := r.eval(n.key, s, f)
	if err != nil {
		return nil, err
	}
	if isUnknown(key) {
		return r.unknown(), nil
	}
	k, ok := key.(types.Str)
	if !ok {
		return nil, typingError(
			"dict keys must be string, %s is not a string",
			types.Text(key),
		).coded(diag.WrongOperand).
			in(n)
	}
	v, ok := d.Values[string(k)]
	if !ok {
		e := fail("KeyException", "key %s not found in dict, options are [%s]", k, strings.Join(d.Keys, ","))
		e.Hint = suggest("key", string(k), d.Keys)
		return nil, e.in(n)
	}
	return v, nil
}

// evalUnit evaluates an expression and puts the value into a variable.
type evalUnit struct {
	unit
	x      expr
	target *variable
	c      collector // gets the value too
	kept   bool      // an item of a list literal: a promise of target is kept by it
	stmt   node      // what errors are reported in; nil: x
}

func (u *evalUnit) node() node {
	if u.stmt != nil {
		return u.stmt
	}
	return u.x
}

func (u *evalUnit) blame(err *Error) *Error { return err.in(u.node()) }

func (u *evalUnit) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		return err
	}
	at := u.x.where()
	if u.c != nil && !told(u.x, u.frame) {
		if err := inOrder(r, v, at, u.c); err != nil {
			return err
		}
	}
	if u.target == nil {
		return nil
	}
	if err := u.target.set(r, v, source{at: at, by: u.scope.by}); err != nil {
		return err
	}
	if u.kept {
		u.target.fulfil(r)
	}
	return nil
}

// inOrder gives the elements of a list to a collector.
func inOrder(r *run, v types.Value, at *place, c collector) *Error {
	if l, ok := v.(*types.List); ok {
		for _, item := range l.Items {
			if err := c.receive(r, item, at, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return c.receive(r, v, at, nil)
}
