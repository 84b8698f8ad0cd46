package eval

import (
	"strings"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// literal is a constant.
type literal struct {
	at
	value types.Value
}

func (n *literal) layout(*layouter) {}

// refKind says where a variable is found.
type refKind uint8

const (
	refLocal  refKind = iota // in the scope depth levels up
	refSelf                  // self of the implementation
	refMember                // attribute of self, else at module level
	refModule                // at module level of a namespace
	refAbsent                // nowhere: an error when it is needed
)

// ref is a variable.
type ref struct {
	at
	name   string
	kind   refKind
	depth  int
	index  int
	ns     *namespace // refModule, and refMember's second choice
	absent *Error     // refAbsent, and refMember without a second choice
	slot   int
}

func (n *ref) layout(l *layouter) { n.slot = l.name(n.name) }

// variableOf finds the variable that a name stands for.
func (r *run) variableOf(n *ref, s *scope) (*variable, *Error) {
	switch n.kind {
	case refLocal, refSelf, refMember:
		for range n.depth {
			s = s.up
		}
	}
	switch n.kind {
	case refLocal:
		return &s.vars[n.index], nil
	case refSelf:
		return &s.self.self, nil
	case refMember:
		if v := s.self.variable(n.name); v != nil {
			return v, nil
		}
	}
	if n.absent != nil {
		e := *n.absent
		return nil, &e
	}
	return &r.scopeOf(n.ns).vars[n.index], nil
}

func (r *run) needRef(n *ref, s *scope, f frame) *Error {
	v, err := r.variableOf(n, s)
	if err != nil {
		return err
	}
	f[n.slot] = v
	return nil
}

func (r *run) needGradualRef(n *ref, s *scope, f frame, c collector) (bool, *Error) {
	if err := r.need(n, s, f); err != nil {
		return false, err
	}
	v := f[n.slot]
	if err := v.listen(r, c, &n.span); err != nil {
		return false, err
	}
	return !v.passesOn(), nil
}

// attrRef is `x.a`.
type attrRef struct {
	at
	x    root
	attr string
	slot int
	// unset: where x is an optional relation without a value, so is this.
	unset bool
}

// passUnset says so of `x.a` and all before it. What a promise goes through may
// be not there: no error, as upstream, until its statement goes there too.
func passUnset(x expr) {
	for n, is := x.(*attrRef); is; n, is = n.x.expr.(*attrRef) {
		n.unset = true
	}
}

func (n *attrRef) layout(l *layouter) { n.slot = l.next() }

func (r *run) needAttrRef(n *attrRef, s *scope, f frame, c collector) *Error {
	if of, is := n.x.expr.(*ref); is && of.kind == refSelf && c == nil {
		if r.ofSelf[n] == nil {
			r.ofSelf[n] = &variable{kind: ofSelf, pending: &pending{attribute: n}}
		}
		f[n.slot] = r.ofSelf[n]
		return nil
	}
	u := &attrHook{unit: unit{scope: s}, n: n, c: c, target: variable{kind: proxy}}
	f[n.slot] = &u.target
	frame, err := r.prepare(n.x, s)
	if err != nil {
		return err
	}
	r.start(u, frame)
	return nil
}

// late tells that only when it is evaluated it is known whether an expression
// has told its collector: `x.a` does, where a is a relation to many.
func late(x expr) bool {
	_, is := x.(*attrRef)
	return is
}

// told tells whether it has; if not, who evaluates the expression is to tell.
func told(x expr, f frame) bool {
	n, is := x.(*attrRef)
	return is && f[n.slot].passesOn()
}

// unheard tells whether a collector has yet to receive the value of an
// expression, now that it is known.
func unheard(x expr, f frame, report bool) bool { return report || late(x) && !told(x, f) }

// attrHook waits for the instance of `x.a` and then connects its slot.
type attrHook struct {
	unit
	n      *attrRef
	target variable // a proxy
	c      collector
}

func (u *attrHook) node() node              { return u.n }
func (u *attrHook) blame(err *Error) *Error { return err.drawn(u.n) }

func (u *attrHook) run(r *run) *Error {
	v, err := r.slotOfRef(u.n, u.scope, u.frame)
	if err != nil && u.n.unset && err.Kind == "OptionalValueException" && len(u.frame) == 1 {
		u.target.connect(r, u.frame[0].target())
		return nil
	}
	if err != nil {
		return err
	}
	if u.c != nil {
		if err := v.listen(r, u.c, &u.n.span); err != nil {
			return err
		}
	}
	u.target.connect(r, v)
	return nil
}

// slotOfRef finds the slot of `x.a`. As in the reference, what is unknown has no
// attributes.
func (r *run) slotOfRef(n *attrRef, s *scope, f frame) (*variable, *Error) {
	of, err := r.eval(n.x.expr, s, f)
	if err != nil {
		return nil, err
	}
	return slotOf(of, n.x.expr, n.attr, n)
}

func slotOf(of types.Value, x expr, attr string, n node) (*variable, *Error) {
	switch of := of.(type) {
	case *Instance:
		if v := of.variable(attr); v != nil {
			return v, nil
		}
		e := notFound("could not find attribute with name: %s in type %s", attr, of.entity.Name)
		e.Hint = suggest("attribute", attr, attributeNames(of.entity))
		return nil, e.in(n)
	case *types.List:
		return nil, runtimeError("can not get attribute %s, %s is not an entity but a list", attr, types.Text(of)).in(n)
	default:
		return nil, runtimeError("can not get attribute %s, %s is not an entity but a %s with value '%s'", attr, x.String(), types.PythonName(of), types.Text(of)).in(n)
	}
}

// listExpr is `[a, b]` of which something is no constant.
type listExpr struct {
	at
	items []root // each with a frame of its own, for the gradual case
	parts []expr
	slot  int // of the gathered list, in the gradual case
}

func (n *listExpr) layout(l *layouter) {
	n.slot = l.next()
	for _, item := range n.parts {
		item.layout(l)
	}
}

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

// dictEntry is one pair of a dict.
type dictEntry struct {
	key   string
	value expr
}

// dictExpr is `{"k": v}` of which something is no constant.
type dictExpr struct {
	at
	entries []dictEntry
}

func (n *dictExpr) layout(l *layouter) {
	for _, e := range n.entries {
		e.value.layout(l)
	}
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

// mapLookup is `d["k"]`.
type mapLookup struct {
	at
	x, key expr
}

func (n *mapLookup) layout(l *layouter) {
	n.x.layout(l)
	n.key.layout(l)
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
