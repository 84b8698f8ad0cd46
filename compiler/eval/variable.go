package eval

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// kind says how a variable gets its value.
type kind uint8

const (
	plain    kind = iota // assigned once: variables, attributes, relations [1]
	proxy                // stands for another variable, which is not known at first
	option               // a relation [0:1]
	list                 // a relation that may have more than one element
	gathered             // the elements of a list literal that feeds a relation
	element              // the variable of a comprehension, which has its value from the start
	ofSelf               // stands for `self.a` in a frame until the unit of the frame has its first turn
)

// variable is a place that gets its value at some time: a future. Units that
// need the value wait for it.
//
//	plain     ──set──▶ has
//	option    ──set or freeze──▶ has
//	list      ──set, set, set … freeze──▶ has
type variable struct {
	value   types.Value
	kind    kind
	has     bool // the value is final
	implied bool // the other end of the relation set it
	// owner and attr are set for the slots of an instance. Its self has an owner only.
	owner *Instance
	attr  *types.Attribute
	// at and by say where the value was set, and for which implementation.
	at *program.Place
	by *origin
	// pending is set when a unit waits for the value, and for a proxy.
	pending *pending
	// gathering is set for the kinds that are frozen: option, list and gathered.
	gathering *gathering
}

// pending is what only variables without a value have.
type pending struct {
	waiters   []waiter         // the units that wait for the value
	connected *variable        // what a proxy stands for; nil until it is known
	attribute *program.AttrRef // what a variable ofSelf stands for
}

// gathering is the state of a variable until it is frozen.
type gathering struct {
	list     types.List // the elements so far, and in the end the value
	sources  []source   // where each element comes from
	promises int32      // assignments that are announced and have not happened yet
	queued   bool       // the variable is in the freeze queue, or was
	unread   bool       // it is among those that nobody waited for (run.unread)
	dropped  bool       // it left the freeze queue because of promises
	parked   bool       // it was dropped, and nobody was blocked by it when it was considered
	// unreadRank is its position in run.unread.
	unreadRank int32
	counted    int32                  // how many elements members covers
	members    map[*Instance]struct{} // the elements of a long list
	listeners  *listeners             // nil: there are none
	reader     *program.Place         // the first unit that was waiting when the list was frozen
}

// listeners are the collectors that take the elements of a list which is not frozen.
type listeners struct {
	all []collector
	set map[collector]struct{} // the same
	// passive counts those that wait but are not blocked: they take the elements as
	// they come.
	passive int
}

// membersFrom is the number of elements from which a list has a set of members.
const membersFrom = 12

// newGathering returns a variable of a kind that is frozen.
func newGathering(k kind) variable { return variable{kind: k, gathering: &gathering{}} }

// collector takes the elements of a list as they arrive.
type collector interface {
	// receive gets an element. at is where it was added to the list or, when it
	// was already there, where the list is read; from is then where it was added.
	receive(r *run, v types.Value, at, from *program.Place) *Error
	// passive reports whether the collector needs nothing but the elements, so
	// that the unit that waits with it does not count as blocked.
	passive() bool
}

// add adds a collector and reports whether it is new.
func (l *listeners) add(c collector) bool {
	if _, have := l.set[c]; have {
		return false
	}
	l.set[c] = struct{}{}
	l.all = append(l.all, c)
	return true
}

// target returns the variable that a proxy stands for, as far as it is known.
func (v *variable) target() *variable {
	for v.kind == proxy && v.pending != nil && v.pending.connected != nil {
		v = v.pending.connected
	}
	return v
}

// name returns the name of the attribute, or self.
func (v *variable) name() string {
	if v.attr == nil {
		return "self"
	}
	return v.attr.Name
}

// ready reports whether the value is known.
func (v *variable) ready() bool { return v.target().has }

// get returns a value that is known.
func (v *variable) get() (types.Value, *Error) {
	v = v.target()
	if _, null := v.value.(types.Null); null && v.kind == option {
		return nil, optionalError(v)
	}
	return v.value, nil
}

func optionalError(v *variable) *Error {
	return program.NewError("OptionalValueException",
		"Optional variable accessed that has no value (attribute `%s.%s` of `%s`)", v.attr.Entity.Name, v.attr.Name,
		v.owner.Text())
}

// peek returns the value, if there is one.
func (v *variable) peek() (types.Value, bool) {
	if v = v.target(); !v.has {
		return nil, false
	}
	return v.value, true
}

// waitFor adds a unit to those that are woken when v has its value. It reports
// true, and adds nothing, when v has it already.
func (v *variable) waitFor(w waiter) bool {
	v = v.target()
	if v.has {
		return true
	}
	if v.pending == nil {
		v.pending = &pending{}
	}
	v.pending.waiters = append(v.pending.waiters, w)
	return false
}

// takeWaiters removes and returns the units waiting on v, so that the caller can
// wake them.
func (v *variable) takeWaiters() []waiter {
	waiters := v.waiters()
	v.pending = nil
	return waiters
}

// waiters returns the units waiting on v.
func (v *variable) waiters() []waiter {
	if v.pending == nil {
		return nil
	}
	return v.pending.waiters
}

// wake reports whether units that a variable which they waited for has its value.
func (r *run) wake(waiters []waiter) {
	for _, w := range waiters {
		r.arrived(w)
	}
}

// connect sets the variable that a proxy stands for. The units that waited for
// the proxy wait for that variable from now on.
func (v *variable) connect(r *run, to *variable) {
	waiters := v.takeWaiters()
	v.pending = &pending{connected: to}
	for _, w := range waiters {
		if to.waitFor(w) {
			r.arrived(w)
		} else {
			r.noteWaiter(to, w)
		}
	}
}

// put sets a value that needs no check, of a variable that is no slot.
func (v *variable) put(r *run, value types.Value, at *program.Place) {
	waiters := v.takeWaiters()
	v.settle(value, source{at: at})
	r.wake(waiters)
}

// settle makes a value the final one.
func (v *variable) settle(value types.Value, from source) {
	v.value, v.has = value, true
	v.setSource(from)
}

// setSource notes where the value comes from.
func (v *variable) setSource(from source) { v.at, v.by, v.implied = from.at, from.by, from.implied }

// source returns where the value comes from.
func (v *variable) source() source { return source{at: v.at, by: v.by, implied: v.implied} }

// set sets the value, or adds one more to a list.
func (v *variable) set(r *run, value types.Value, from source) *Error {
	v = v.target()
	switch v.kind {
	case list, gathered:
		return v.add(r, value, from)
	case option:
		return v.setOption(r, value, from)
	}
	return v.setPlain(r, value, from)
}

// placeText is how the reference prints a place, or the lack of one.
func placeText(p *program.Place) string {
	if p == nil {
		return "None"
	}
	return p.String()
}

func (v *variable) doubleSet(value types.Value, from source) *Error {
	e := program.NewError("DoubleSetException",
		"value set twice:\n\told value: %s\n\t\tset at %s\n\tnew value: %s\n\t\tset at %s\n", types.Text(v.value),
		placeText(v.at), types.Text(value), from.at)
	e.Hint = "a variable or attribute has one value for the whole compile: keep one of the two"
	e.Subject = assignment{v, &from}
	return e.With("set to "+titleOf(v.value), v.at).Focused(from.at)
}

func (v *variable) setPlain(r *run, value types.Value, from source) *Error {
	if v.has {
		if !types.Equal(v.value, value) {
			return v.doubleSet(value, from)
		}
		return nil
	}
	if v.attr != nil && !from.implied { // the other end of a relation has the right type already
		if err := v.validate(v.attr.Type, value); err != nil {
			return err
		}
	}
	waiters := v.takeWaiters()
	v.settle(value, from)
	if err := v.setInverse(r, value, from); err != nil {
		return err
	}
	r.wake(waiters)
	return nil
}

func (v *variable) setOption(r *run, value types.Value, from source) *Error {
	if v.has {
		same := types.Equal(v.value, value)
		if _, empty := v.value.(types.Null); empty && same {
			return nil
		} else if empty {
			return afterFreeze(v, value, from.at)
		}
		if !same {
			return v.doubleSet(value, from)
		}
		v.setSource(from) // as in the reference, the last assignment counts
		return v.setInverse(r, value, from)
	}
	_, null := value.(types.Null)
	if !null && !from.implied {
		if err := v.validate(v.attr.Type, value); err != nil {
			return err
		}
	}
	// The other end comes first. What it sets in turn may come back and set this
	// end meanwhile; the waiters then see that value, but this one stays.
	if !null {
		if err := v.setInverse(r, value, from); err != nil {
			return err
		}
	}
	v.gathering.dropped = false
	waiters := v.takeWaiters()
	v.settle(value, from)
	r.wake(waiters)
	return nil
}

// setInverse sets the other end of a relation, unless the value comes from there.
func (v *variable) setInverse(r *run, value types.Value, from source) *Error {
	if from.implied || v.attr == nil || v.attr.End == nil || v.attr.End.Inverse == nil {
		return nil
	}
	other, ok := value.(*Instance)
	if !ok && v.kind == plain && isUnknown(value) {
		e := &Error{Kind: "AssertionError", Builtin: true} // the reference does not handle this case
		e.Hint = "the relation " + v.attr.Name + " has another end, which something unknown cannot be told of"
		return e
	}
	if !ok {
		return nil
	}
	slot := other.end(v.attr.End.Inverse)
	from.implied = true
	if err := slot.set(r, v.owner, from); err != nil {
		return wrapAttribute(err, other, slot.name(), other, other.lastAt())
	}
	return nil
}

func (v *variable) validate(t types.Type, value types.Value) *Error {
	if _, unknown := value.(types.Unknown); unknown || t == nil {
		return nil
	}
	err := t.Validate(value)
	if err == nil {
		return nil
	}
	e := program.TypeError(err)
	e.Expected, e.Found = typeText(t), valueText(value)
	if v.attr != nil {
		e.With(v.attr.Entity.Name+"."+v.attr.Name+" is declared", &v.attr.At)
	}
	return e
}

// holds reports whether a list has an element.
func (v *variable) holds(value types.Value) bool {
	g := v.gathering
	if i, ok := value.(*Instance); ok && len(g.list.Items) >= membersFrom {
		return g.hasMember(i)
	}
	return slices.ContainsFunc(g.list.Items, func(have types.Value) bool { return types.Equal(have, value) })
}

// hasMember reports whether a long list has an instance.
func (g *gathering) hasMember(i *Instance) bool {
	if g.members == nil {
		g.members = make(map[*Instance]struct{}, 2*membersFrom)
	}
	for _, item := range g.list.Items[g.counted:] {
		if one, ok := item.(*Instance); ok {
			g.members[one] = struct{}{}
		}
	}
	g.counted = int32(len(g.list.Items))
	_, have := g.members[i]
	return have
}

// setEmpty is the assignment of null to a list: it stays empty.
func (v *variable) setEmpty(r *run, from source) *Error {
	if items := v.gathering.list.Items; len(items) > 0 {
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = types.Text(item)
		}
		e := program.RuntimeError(
			"Trying to set relation attribute `%s` of instance `%s` to null but it has values `%s` assigned already",
			v.attr.Name,
			v.owner.Text(),
			strings.Join(texts, ", "),
		)
		e.Place = from.at
		return e
	}
	if !v.has {
		v.setSource(source{at: from.at, by: from.by})
		v.freeze(r)
	}
	return nil
}

// add adds an element, or the elements of a list, to a list. A relation that
// has as many as it may have is frozen.
func (v *variable) add(r *run, value types.Value, from source) *Error {
	if _, null := value.(types.Null); null && v.kind == list {
		return v.setEmpty(r, from)
	}
	if l, ok := value.(*types.List); ok {
		return v.addAll(r, l, from)
	}
	if v.kind == gathered {
		return v.addItem(r, value, from)
	}
	if v.has {
		return v.addLate(from.at, value)
	}
	attr, g := v.attr, v.gathering
	if !from.implied {
		if err := v.validate(attr.End.Target, value); err != nil {
			return err
		}
	}
	if v.holds(value) {
		r.enqueueIfComplete(v)
		return nil
	}
	if isUnknown(value) && attr.End.Inverse != nil {
		return unknownMember(v)
	}
	if v.at == nil {
		v.setSource(source{at: from.at, by: from.by})
	}
	if err := v.addItem(r, value, from); err != nil {
		return err
	}
	if err := v.setInverse(r, value, from); err != nil {
		return err
	}
	if high := attr.End.High; len(g.list.Items) > high {
		return program.RuntimeError("List over full: max nr of items is %d, content is %s", high,
			types.Repr(&g.list)).Coded(diag.Arity)
	} else if len(g.list.Items) == high {
		v.freeze(r)
	}
	r.enqueueIfComplete(v)
	return nil
}

// addAll adds the elements of a list. Lists inside the list of a literal stay as
// they are.
func (v *variable) addAll(r *run, l *types.List, from source) *Error {
	if v.has && v.kind == list {
		return v.addLate(from.at, l.Items...)
	}
	for _, item := range l.Items {
		add := v.add
		if v.kind == gathered {
			add = v.addItem
		}
		if err := add(r, item, from); err != nil {
			return err
		}
	}
	if len(l.Items) == 0 && v.kind == list {
		r.enqueueIfComplete(v)
	}
	return nil
}

// addItem appends an element and passes it on to the listeners. A collector that
// begins to listen meanwhile finds it in the list, as does a loop inside a loop over
// the same list.
func (v *variable) addItem(r *run, value types.Value, from source) *Error {
	g := v.gathering
	g.list.Items = append(g.list.Items, value)
	g.sources = append(g.sources, from.kept())
	if g.listeners == nil {
		return nil
	}
	for _, c := range g.listeners.all {
		if err := c.receive(r, value, from.at, from.addedAt()); err != nil {
			return err
		}
	}
	return nil
}

// addLate rejects elements that come after the list was frozen, unless it has
// them.
func (v *variable) addLate(at *program.Place, values ...types.Value) *Error {
	for _, value := range values {
		switch {
		case v.holds(value):
		case len(v.gathering.list.Items) == v.attr.End.High:
			return v.full(at)
		default:
			return afterFreeze(v, value, at)
		}
	}
	return nil
}

// full is the error for one more element than the relation may have.
func (v *variable) full(at *program.Place) *Error {
	e := program.RuntimeError("Exceeded relation arity on attribute '%s' of instance '%s'", v.attr.Name,
		v.owner.Text()).Coded(diag.Arity)
	e.Place = at
	e.Hint = fmt.Sprintf("%s.%s takes %d at most", v.attr.Entity.Name, v.attr.Name, v.attr.End.High)
	return e
}

func afterFreeze(v *variable, value types.Value, at *program.Place) *Error {
	e := program.NewError("ModifiedAfterFreezeException", "List modified after freeze")
	e.Importance, e.Place = 5, at
	e.MakeHint = func() string { return explainFreeze(v, value) }
	if reader := v.gathering.reader; reader != nil {
		e.With("it was closed to be read", reader)
	}
	return e
}

// passesOn reports whether listen gives a collector the elements of v.
func (v *variable) passesOn() bool {
	switch v.target().kind {
	case element, list, gathered:
		return true
	}
	return false
}

// listen returns a collector the elements that are there, located where they are
// read, and those that will come. Of a plain variable it gives nothing: the unit
// that evaluates it does.
func (v *variable) listen(r *run, c collector, at *program.Place) *Error {
	v = v.target()
	switch v.kind {
	case element:
		return c.receive(r, v.value, at, v.at)
	case list, gathered:
		g := v.gathering
		for i := 0; i < len(g.list.Items); i++ { // the list may grow meanwhile
			if err := c.receive(r, g.list.Items[i], at, g.sources[i].at); err != nil {
				return err
			}
		}
		if v.has {
			return nil
		}
		// `[x.a, x.a]` listens twice: it receives what comes once, and no unit
		// is blocked by the second.
		if g.listeners == nil {
			g.listeners = &listeners{set: map[collector]struct{}{}}
		}
		if !g.listeners.add(c) || c.passive() {
			g.listeners.passive++
		}
	}
	return nil
}

// promise announces an assignment; fulfil is called when it has happened.
func (v *variable) promise() {
	if g := v.target().gathering; g != nil {
		g.promises++
	}
}

// fulfil takes back a promise.
func (v *variable) fulfil(r *run) {
	v = v.target()
	if v.gathering != nil {
		v.gathering.promises--
		r.enqueueIfComplete(v)
	}
}

// blockedUnits returns how many units are blocked until v is frozen.
func (v *variable) blockedUnits() int {
	n := len(v.waiters())
	if v.kind == list && v.gathering.listeners != nil {
		n -= v.gathering.listeners.passive
	}
	if v.attr != nil && v.attr.End.Leads {
		n++
	}
	return n
}

// freeze makes what there is the value: the elements of a list, null for an
// optional relation.
func (v *variable) freeze(r *run) {
	if v.has {
		return
	}
	g := v.gathering
	v.has, g.dropped, g.listeners = true, false, nil
	v.value = &g.list
	if v.kind == option {
		v.value = null
	}
	r.wake(v.takeWaiters())
}

// unknownMember is the error for an unknown value in a relation with two ends:
// it has no other end to set. In the reference that is a Python error.
func unknownMember(v *variable) *Error {
	e := &Error{Kind: "AttributeError", Message: "'Unknown' object has no attribute 'set_attribute'", Builtin: true}
	e.Hint = "the relation " + v.attr.Name + " has another end, which something unknown cannot be told of"
	return e
}
