package eval

import (
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
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
	return nil
}

func (n *construct) needGradual(r *run, s *scope, f frame, _ collector) (bool, *Error) {
	return true, n.need(r, s, f)
}

// splat is the d of `**d`.
type splat struct {
	expr
	stars place
}

// given is an attribute with its value.
type given struct {
	name  string
	value types.Value
	slot  int32 // of the attribute, in a constructor
}

func (n *construct) eval(r *run, s *scope, f frame) (types.Value, *Error) {
	indirect := n.indirect
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
	values := r.given[from:len(r.given):len(r.given)]
	if len(n.splats) > 0 {
		var err *Error
		if values, indirect, err = n.splat(r, s, f, values); err != nil {
			return nil, err
		}
	}
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

// splat adds the arguments of `**d` and checks that what indexes want is there.
func (n *construct) splat(r *run, s *scope, f frame, values []given) ([]given, []argument, *Error) {
	seen := map[string]bool{}
	for _, g := range values {
		seen[g.name] = true
	}
	explicit := map[string]bool{}
	for _, name := range n.explicit {
		explicit[name] = true
	}
	indirect := append([]argument(nil), n.indirect...)
	for _, x := range n.splats {
		v, err := x.eval(r, s, f)
		if err != nil {
			return nil, nil, err
		}
		d, ok := v.(*types.Dict)
		if !ok {
			return nil, nil, notDict(x)
		}
		for _, k := range d.Keys {
			if n.info.entity.Attribute(k) == nil {
				return nil, nil, typingError("no attribute %s on type %s", k, n.info.entity.Name).in(n)
			}
			if explicit[k] {
				return nil, nil, runtimeError("The attribute %s is set twice in the constructor call of %s.", k, n.info.entity.Short()).in(n)
			}
			explicit[k] = true
			replaced := false
			for i, g := range values {
				if g.name == k {
					values[i].value, replaced = d.Values[k], true
				}
			}
			for i, a := range indirect {
				if a.name == k {
					indirect = append(indirect[:i], indirect[i+1:]...)
					break
				}
			}
			if !replaced {
				values = append(values, given{k, d.Values[k], slotNumber(n.info.entity, k)})
			}
			seen[k] = true
		}
	}
	if missing := unwritten(n.info.entity, func(name string) bool { return seen[name] }); missing != nil {
		return nil, nil, withoutKey(n.info.entity, missing).in(n)
	}
	return values, indirect, nil
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
	if int(s.by.deep()) >= r.limits.iterations {
		return nil, r.limits.tooDeep(e).in(n)
	}
	i := r.made.one()
	i.id, i.entity, i.made, i.book = uint64(len(r.instances)+1), e, s.by, r.book
	i.at = &n.span
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
		if v.kind == option || attr.End.Low == 0 {
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
	told := attributeError(err.in(n), i, g.name, n, &n.span, &n.span)
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

// startSet starts the assignment of an expression to an attribute. A list
// takes elements as they arrive.
func startSet(r *run, s *scope, x root, v *variable, stmt node) *Error {
	u := r.sets.next()
	*u = setUnit{unit: unit{scope: s}, x: x.expr, target: v, stmt: stmt}
	var f frame
	var err *Error
	if v.kind == list {
		var report bool
		f, report, err = x.prepareGradual(r, s, u)
		u.report = report
	} else {
		f, err = x.prepare(r, s)
	}
	if err != nil {
		return err
	}
	v.promise()
	r.start(u, f)
	return nil
}

// startKnown starts the assignment of the known values that the arguments
// begin with and gives the others. One unit does for all of them: units that
// wait for nothing and follow each other run one after the other anyway.
func startKnown(r *run, s *scope, i *Instance, stmt node, arguments []argument) []argument {
	n := 1
	for n < len(arguments) && arguments[n].known {
		n++
	}
	u := r.known.next()
	*u = knownUnit{unit: unit{scope: s}, stmt: stmt, of: i, arguments: arguments[:n]}
	r.start(u, nil)
	return arguments[n:]
}

// knownUnit assigns known values to attributes of an instance.
type knownUnit struct {
	unit
	stmt      node
	of        *Instance
	arguments []argument
}

func (u *knownUnit) over(r *run)             { r.known.back(u) }
func (u *knownUnit) by() node                { return u.stmt }
func (u *knownUnit) blame(err *Error) *Error { return err.in(u.stmt) }

func (u *knownUnit) run(r *run) *Error {
	for n := range u.arguments {
		a := &u.arguments[n]
		if a.sure && u.settle(r, a) {
			continue
		}
		if err := u.assign(r, a); err != nil {
			if more := u.arguments[n+1:]; len(more) > 0 {
				r.leave(func(r *run) *Error { startKnown(r, u.scope, u.of, u.stmt, more); return nil })
			}
			return attributeError(err.in(u.stmt).focused(a.x.where()), u.of, a.name, u.stmt, u.stmt.where(), u.stmt.where())
		}
	}
	return nil
}

// settle is assign for a value that is sure, where the attribute has none and
// nobody waits for it; else it does nothing and gives false.
func (u *knownUnit) settle(r *run, a *argument) bool {
	slot := &u.of.slots[a.slot]
	if slot.has || slot.value != nil {
		return false
	}
	constant := a.x.(*literal)
	slot.take(r, constant.value, r.book.stamp(&constant.span, u.scope.by))
	return true
}

func (u *knownUnit) assign(r *run, a *argument) *Error {
	slot := u.of.slot(a.slot)
	if constant, is := a.x.(*literal); is {
		return slot.set(r, constant.value, constant.where(), u.scope.by)
	}
	self, err := a.x.(*ref).lookup(r, u.scope)
	if err != nil {
		return err
	}
	return slot.set(r, self.value, a.x.where(), u.scope.by)
}

// setUnit assigns the value of an expression to an attribute of an instance.
type setUnit struct {
	unit
	x      expr
	target *variable
	stmt   node
	report bool
	held   bool // as a collector
}

func (u *setUnit) over(r *run) {
	if !u.held {
		r.sets.back(u)
	}
}

func (u *setUnit) by() node                { return u.stmt }
func (u *setUnit) blame(err *Error) *Error { return err.in(u.stmt) }

func (u *setUnit) run(r *run) *Error {
	v, err := u.x.eval(r, u.scope, u.frame)
	if err != nil {
		if err.Kind == "OptionalValueException" {
			return u.wrap(err.drawn(u.stmt))
		}
		return u.wrap(err)
	}
	at := u.x.where()
	if u.report {
		if err := inOrder(r, v, at, u); err != nil {
			return err
		}
	}
	if err := u.target.set(r, v, at, u.scope.by); err != nil {
		return u.wrap(err)
	}
	u.target.fulfil(r)
	return nil
}

func (u *setUnit) wrap(err *Error) *Error {
	return attributeError(err.in(u.stmt).focused(u.x.where()), u.target.owner, u.target.name(), u.stmt, u.stmt.where(), u.stmt.where())
}

func (u *setUnit) pure() bool { return true }

func (u *setUnit) receive(r *run, v types.Value, at *place) *Error {
	from := r.book.stamp(at, u.scope.by)
	if own := u.x.where(); own != at {
		from.expr = r.book.place(own)
	}
	if err := u.target.setFrom(r, v, from); err != nil {
		return u.wrap(err)
	}
	return nil
}

// lookup is `C[k=v]`, or `x.rel[k=v]` when x is set.
type lookup struct {
	at
	x      expr // short lookup: the instance
	rel    string
	info   *entityInfo
	named  []argument
	splats []splat
	parts  root // of everything that must be known
	slot   int
}

func (n *lookup) layout(l *layouter) { n.slot = l.next() }

func (n *lookup) need(r *run, s *scope, f frame) *Error {
	target := r.results.one()
	f[n.slot] = target
	frame, err := n.parts.prepare(r, s)
	if err != nil {
		return err.in(n)
	}
	u := r.lookups.next()
	*u = lookupUnit{unit: unit{scope: s}, n: n, target: target}
	r.start(u, frame)
	return nil
}

func (n *lookup) needGradual(r *run, s *scope, f frame, _ collector) (bool, *Error) {
	return true, n.need(r, s, f)
}

func (n *lookup) eval(_ *run, _ *scope, f frame) (types.Value, *Error) { return f[n.slot].get() }

// lookupParts evaluates all that a lookup needs, in one frame.
type lookupParts struct{ *lookup }

func (n lookupParts) layout(l *layouter) {
	if n.x != nil {
		n.x.layout(l)
	}
	for _, a := range n.named {
		a.x.layout(l)
	}
	for _, x := range n.splats {
		x.layout(l)
	}
}

func (n lookupParts) need(r *run, s *scope, f frame) *Error {
	for _, a := range n.named {
		if err := a.x.need(r, s, f); err != nil {
			return err
		}
	}
	if n.x != nil {
		if err := n.x.need(r, s, f); err != nil {
			return err
		}
	}
	for _, x := range n.splats {
		if err := x.need(r, s, f); err != nil {
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

func (u *lookupUnit) over(r *run)             { r.lookups.back(u) }
func (u *lookupUnit) by() node                { return u.n }
func (u *lookupUnit) blame(err *Error) *Error { return err.claimed(u.n, u.n.where()) }

func (u *lookupUnit) run(r *run) *Error {
	n := u.n
	var values []given
	info := n.info
	if n.x != nil {
		of, err := n.x.eval(r, u.scope, u.frame)
		if err != nil {
			return err
		}
		instance, ok := of.(*Instance)
		if !ok {
			return typingError("short index lookup is only possible one objects, %s is not an object", types.Text(of)).in(n)
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
			return typingError("short index lookup is only possible on bi-drectional relations, %s.%s is unidirectional", attr.Entity.Name, n.rel).in(n)
		}
		values = append(values, given{name: attr.End.Inverse.Name, value: instance})
		info = r.prog.info[attr.End.Target.Number]
	}
	for _, a := range n.named {
		v, err := a.x.eval(r, u.scope, u.frame)
		if err != nil {
			return err
		}
		values = append(values, given{name: a.name, value: v})
	}
	for _, x := range n.splats {
		v, err := x.eval(r, u.scope, u.frame)
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
	e.Stmt, e.at, e.stmtAt = "**"+syntax.RenderRepr(x.tree()), &x.stars, &x.stars
	return e
}
