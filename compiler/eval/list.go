package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

func (r *run) needList(n *program.List, s *scope, f frame) *Error {
	for _, item := range n.Parts {
		if err := r.need(item, s, f); err != nil {
			return err.In(n)
		}
	}
	return nil
}

func (r *run) needGradualList(n *program.List, s *scope, f frame, c collector) (bool, *Error) {
	if n.Items == nil {
		return true, r.need(n, s, f)
	}
	all := new(newGathering(gathered))
	all.gathering.promises = int32(len(n.Items))
	f[n.Slot] = all
	for _, item := range n.Items {
		frame, report, err := r.prepareGradual(item, s, c)
		if err != nil {
			return false, err
		}
		u := &evalUnit{unit: unit{scope: s}, x: item.Expr, target: all, kept: true, stmt: n}
		if report || mayPassOn(item.Expr) {
			u.c = c
		}
		r.start(u, frame)
	}
	return false, nil
}

func (r *run) evalList(n *program.List, s *scope, f frame) (types.Value, *Error) {
	if f[n.Slot] != nil {
		return f[n.Slot].get()
	}
	items := make([]types.Value, 0, len(n.Parts))
	for _, part := range n.Parts {
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

func (r *run) needDict(n *program.Dict, s *scope, f frame) *Error {
	for _, e := range n.Entries {
		if err := r.need(e.Value, s, f); err != nil {
			return err.In(n)
		}
	}
	return nil
}

func (r *run) evalDict(n *program.Dict, s *scope, f frame) (types.Value, *Error) {
	d := &types.Dict{Keys: make([]string, 0, len(n.Entries)), Values: make(map[string]types.Value, len(n.Entries))}
	for _, e := range n.Entries {
		v, err := r.eval(e.Value, s, f)
		if err != nil {
			return nil, err
		}
		d.Keys = append(d.Keys, e.Key)
		d.Values[e.Key] = v
	}
	return d, r.overgrownParts(d)
}

func (r *run) needMapLookup(n *program.MapLookup, s *scope, f frame) *Error {
	if err := r.need(n.X, s, f); err != nil {
		return err.In(n)
	}
	return r.need(n.Key, s, f).In(n)
}

func (r *run) evalMapLookup(n *program.MapLookup, s *scope, f frame) (types.Value, *Error) {
	of, err := r.eval(n.X, s, f)
	if err != nil {
		return nil, err
	}
	if isUnknown(of) {
		return r.unknown(), nil
	}
	d, ok := of.(*types.Dict)
	if !ok {
		return nil, program.TypingError("dict lookup is only possible on dicts, %s is not an object",
			types.Text(of)).Coded(diag.WrongOperand).In(n)
	}
	key, err := r.eval(n.Key, s, f)
	if err != nil {
		return nil, err
	}
	if isUnknown(key) {
		return r.unknown(), nil
	}
	k, ok := key.(types.Str)
	if !ok {
		return nil, program.TypingError("dict keys must be string, %s is not a string",
			types.Text(key)).Coded(diag.WrongOperand).In(n)
	}
	v, ok := d.Values[string(k)]
	if !ok {
		e := program.NewError("KeyException", "key %s not found in dict, options are [%s]", k,
			strings.Join(d.Keys, ","))
		e.Hint = program.Suggest("key", string(k), d.Keys)
		return nil, e.In(n)
	}
	return v, nil
}

// evalUnit evaluates an expression and sets a variable to the value.
type evalUnit struct {
	unit
	x      program.Expr
	target *variable
	c      collector    // gets the value too
	kept   bool         // set for an item of a list literal, which keeps a promise of target
	stmt   program.Node // the node that errors are reported in; nil
}

func (u *evalUnit) node() program.Node {
	if u.stmt != nil {
		return u.stmt
	}
	return u.x
}

func (u *evalUnit) blame(err *Error) *Error { return err.In(u.node()) }

func (u *evalUnit) run(r *run) *Error {
	v, err := r.eval(u.x, u.scope, u.frame)
	if err != nil {
		return err
	}
	at := u.x.Where()
	if u.c != nil && !passedOn(u.x, u.frame) {
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

// inOrder passes the elements of a list to a collector.
func inOrder(r *run, v types.Value, at *program.Place, c collector) *Error {
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
