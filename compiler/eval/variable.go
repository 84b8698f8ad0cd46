package eval

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
)

// kind of a variable.
type kind uint8

const (
	plain    kind = iota // assigned once: variables, attributes, relations [1]
	proxy                // stands for another variable that is not known yet
	option               // relation [0:1]
	list                 // relation with more
	gathered             // elements of a list literal that feeds a relation
	element              // the variable of a comprehension: there from the start
	mark                 // no variable yet: `self.a` in a frame, see attrOfSelf
)

// variable is a place that gets a value some time: a future. Units that need
// the value wait for it.
//
//	plain     ──set──▶ has
//	option    ──set or freeze──▶ has
//	list      ──set, set, set … freeze──▶ has
//
// Most of the memory of a model is variables, so they are kept small: what only
// matters as long as there is no value lies where the value will be.
type variable struct {
	types.IsValue // a proxy's value is the variable that it stands for, once known
	// value is what content gives, or else *waiters or *delayed. A list is
	// *delayed to its end, an option that was frozen too.
	value   types.Value
	owner   *Instance // nil for what is no slot of an instance
	from    entry     // where the value comes from, 0: from nowhere
	kind    kind
	has     bool
	implied bool // set by the other end of its relation
}

// waiters are the units that wait for a variable, mostly one.
type waiters struct {
	types.IsValue
	first waiter
	rest  []waiter
}

// more is what a variable that must be frozen has besides; nil for others, and
// for an option that was given its value.
func (v *variable) more() *delayed {
	d, _ := v.value.(*delayed)
	return d
}

// content is the value of a variable that has one.
func (v *variable) content() types.Value {
	d, is := v.value.(*delayed)
	switch {
	case !is:
		return v.value
	case v.kind == option:
		return null
	}
	return &d.list
}

// waiting are the units that wait; nil when there are none.
func (v *variable) waiting() *waiters {
	switch in := v.value.(type) {
	case *waiters:
		return in
	case *delayed:
		return in.waiters
	}
	return nil
}

// part takes the units that wait away, for who is about to tell them.
func (v *variable) part() *waiters {
	waiting := v.waiting()
	if d := v.more(); d != nil {
		d.waiters = nil
	} else if waiting != nil {
		v.value = nil
	}
	return waiting
}

// attr is the attribute that the variable is a slot for; nil for others.
func (v *variable) attr() *types.Attribute {
	if v.owner == nil {
		return nil
	}
	n := v.position()
	if n >= uintptr(len(v.owner.slots)) { // its self
		return nil
	}
	return v.owner.entity.Attributes[n]
}

// position is the place among the slots of the owner, which lie side by side;
// for what is none of them a number beyond.
func (v *variable) position() uintptr {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(v.owner.slots)))
	return (uintptr(unsafe.Pointer(v)) - first) / unsafe.Sizeof(*v)
}

// delayed is what variables have that must be frozen.
type delayed struct {
	types.IsValue
	waiters  *waiters
	list     types.List // what is there, and in the end the value
	sources  chain      // of its items
	promises int32      // outstanding
	queued   bool
	inZero   bool  // waits in the second queue
	dropped  bool  // left the queues until its promises are kept
	parked   bool  // nobody was blocked by it when its circle was looked at
	zeroRank int32 // its place there
	pure     int32 // listeners that do not count as blocked
	rare     *rarely
}

// rarely is what few of them have.
type rarely struct {
	members   map[uint64]struct{} // of the list, when there are many
	noted     int                 // how many of the items members has
	listeners []collector
	hearing   map[collector]struct{} // the same, when there are many
	reader    *place                 // who waited for the list when it was frozen
}

const (
	membersFrom = 12
	usualItems  = 2 // what a relation has place for with its first element
)

// hear adds a listener, and reports whether it is a new one.
func (d *rarely) hear(c collector) bool {
	if len(d.listeners) < membersFrom {
		if slices.Contains(d.listeners, c) {
			return false
		}
		d.listeners = append(d.listeners, c)
		return true
	}
	if d.hearing == nil {
		d.hearing = make(map[collector]struct{}, 2*membersFrom)
		for _, have := range d.listeners {
			d.hearing[have] = struct{}{}
		}
	}
	if _, have := d.hearing[c]; have {
		return false
	}
	d.hearing[c] = struct{}{}
	d.listeners = append(d.listeners, c)
	return true
}

// collector takes the elements of a list as they arrive.
type collector interface {
	// receive is told of an element where it was added to the list, or, when it was
	// there already, where the list is read and from where the element is.
	receive(r *run, v types.Value, at, from *place) *Error
	// pure tells that the collector needs nothing but the elements, so that
	// who waits with it does not count as blocked.
	pure() bool
}

func (v *variable) target() *variable {
	for v.kind == proxy {
		to, connected := v.value.(*variable)
		if !connected {
			break
		}
		v = to
	}
	return v
}

// name is that of the attribute; an instance's self has none of its own.
func (v *variable) name() string {
	if v.attr() == nil {
		return "self"
	}
	return v.attr().Name
}

// ready reports whether the value is known.
func (v *variable) ready() bool { return v.target().has }

// get reads a value that is known.
func (v *variable) get() (types.Value, *Error) {
	v = v.target()
	if v.kind == option {
		if _, null := v.content().(types.Null); null {
			return nil, optionalError(v)
		}
	}
	return v.content(), nil
}

func optionalError(v *variable) *Error {
	return fail("OptionalValueException", "Optional variable accessed that has no value (attribute `%s.%s` of `%s`)",
		v.attr().Entity.Name, v.attr().Name, v.owner.Text())
}

// peek reads a value for the result: ok is false when there is none.
func (v *variable) peek() (types.Value, bool) {
	if v = v.target(); !v.has {
		return nil, false
	}
	return v.content(), true
}

// waitFor has w told when v has its value; true when it has it already.
func (v *variable) waitFor(r *run, w waiter) bool {
	v = v.target()
	if v.has {
		return true
	}
	if waiting := v.waiting(); waiting != nil {
		waiting.rest = append(waiting.rest, w)
		return false
	}
	waiting := r.waiters.one()
	waiting.first = w
	if d := v.more(); d != nil {
		d.waiters = waiting
	} else {
		v.value = waiting
	}
	return false
}

// wake tells units that what they waited for is there.
func (r *run) wake(waiting *waiters) {
	if waiting == nil {
		return
	}
	r.arrived(waiting.first)
	for _, w := range waiting.rest {
		r.arrived(w)
	}
	r.waiters.back(waiting)
}

// connect tells a proxy what it stands for.
func (v *variable) connect(r *run, to *variable) {
	waiting := v.part()
	v.value = to
	if waiting == nil {
		return
	}
	to.takeOver(r, waiting.first)
	for _, w := range waiting.rest {
		to.takeOver(r, w)
	}
	r.waiters.back(waiting)
}

// takeOver lets a unit that waited for a proxy wait for v.
func (v *variable) takeOver(r *run, w waiter) {
	if v.waitFor(r, w) {
		r.arrived(w)
	} else {
		r.noteWaiter(v, w)
	}
}

// put is set for a value that needs no check: no instance's slot, no type.
func (v *variable) put(r *run, value types.Value, at *place) {
	waiting := v.part()
	v.value, v.has = value, true
	r.book.enter(v, stamp{at: r.book.place(at)})
	r.wake(waiting)
}

// set gives the variable a value, or a list one more.
func (v *variable) set(r *run, value types.Value, at *place, by *origin) *Error {
	return v.setFrom(r, value, r.book.stamp(at, by))
}

func (v *variable) setFrom(r *run, value types.Value, from stamp) *Error {
	v = v.target()
	switch v.kind {
	case list, gathered:
		return v.add(r, value, from)
	case option:
		return v.setOption(r, value, from)
	}
	return v.setPlain(r, value, from)
}

// take keeps the only value of a variable.
func (v *variable) take(r *run, value types.Value, from stamp) {
	v.value, v.has = value, true
	r.book.enter(v, from)
}

// placeText is how the reference prints a place, of what has none too.
func placeText(p *place) string {
	if p == nil {
		return "None"
	}
	return p.String()
}

func (v *variable) doubleSet(r *run, value types.Value, from stamp) *Error {
	refused := r.book.source(from)
	at, before := refused.at, r.book.sourceOf(v).at
	e := fail(
		"DoubleSetException",
		"value set twice:\n\told value: %s\n\t\tset at %s\n\tnew value: %s\n\t\tset at %s\n",
		types.Text(v.content()),
		placeText(before),
		types.Text(value),
		at,
	)
	e.Hint = "a variable or attribute has one value for the whole compile: keep one of the two"
	e.slot, e.refused = v, &refused
	return e.with("set to "+titleOf(v.content()), before).focused(at)
}

func (v *variable) setPlain(r *run, value types.Value, from stamp) *Error {
	if v.has {
		if !types.Equal(v.value, value) {
			return v.doubleSet(r, value, from)
		}
		return nil
	}
	attr := v.attr()
	if attr != nil && !from.implied { // the other end of a relation gives what belongs here
		if err := v.validate(attr.Type, value); err != nil {
			return err
		}
	}
	waiting := v.part()
	v.take(r, value, from)
	if err := v.setInverse(r, attr, value, from); err != nil {
		return err
	}
	r.wake(waiting)
	return nil
}

func (v *variable) setOption(r *run, value types.Value, from stamp) *Error {
	if v.has {
		same := types.Equal(v.content(), value)
		if _, empty := v.content().(types.Null); empty && same {
			return nil
		} else if empty {
			return afterFreeze(v, value, r.book.placeOf(from.at))
		}
		if !same {
			return v.doubleSet(r, value, from)
		}
		r.book.enter(v, from) // who sets it last decided it, as upstream
		return v.setInverse(r, v.attr(), value, from)
	}
	_, null := value.(types.Null)
	attr := v.attr()
	if !null && !from.implied {
		if err := v.validate(attr.Type, value); err != nil {
			return err
		}
	}
	// The other end is told first: what it passes on may come back and give this
	// end its value meanwhile, which waiters then see, but this one stays.
	if !null {
		if err := v.setInverse(r, attr, value, from); err != nil {
			return err
		}
	}
	r.pick(v)
	waiting := v.part()
	v.take(r, value, from)
	r.wake(waiting)
	return nil
}

// setInverse tells the other end of the relation, unless it is from there that
// the value came.
func (v *variable) setInverse(r *run, attr *types.Attribute, value types.Value, from stamp) *Error {
	if from.implied || attr == nil || attr.End == nil || attr.End.Inverse == nil {
		return nil
	}
	other, ok := value.(*Instance)
	if !ok && v.kind == plain && isUnknown(value) {
		e := &Error{Kind: "AssertionError", foreign: true} // upstream nobody thought of it
		e.Hint = "the relation " + attr.Name + " has another end, which something unknown cannot be told of"
		return e
	}
	if !ok {
		return nil
	}
	slot := other.end(attr.End.Inverse)
	from.implied, from.only = true, v.kind == plain
	if err := slot.setFrom(r, v.owner, from); err != nil {
		return wrapAttribute(err, other, slot.name(), other, other.lastAt(), r.book.placeOf(from.at))
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
	e := typeError(err)
	e.Expected, e.Found = typeText(t), valueText(value)
	if attr := v.attr(); attr != nil {
		e.with(attr.Entity.Name+"."+attr.Name+" is declared", &attr.At)
	}
	return e
}

func (v *variable) holds(value types.Value) bool {
	d := v.more()
	if i, ok := value.(*Instance); ok {
		if len(d.list.Items) >= membersFrom {
			return d.member(i)
		}
		for _, have := range d.list.Items {
			if j, is := have.(*Instance); is && i == j || !is && types.Equal(have, value) {
				return true
			}
		}
		return false
	}
	for _, have := range d.list.Items {
		if types.Equal(have, value) {
			return true
		}
	}
	return false
}

// empty is what null does to a list: it says that there will be nothing.
func (v *variable) empty(r *run, value types.Value, from stamp) *Error {
	if items := v.more().list.Items; len(items) > 0 {
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = types.Text(item)
		}
		e := runtimeError(
			"Trying to set relation attribute `%s` of instance `%s` to null but it has values `%s` assigned already",
			v.attr().Name,
			v.owner.Text(),
			strings.Join(texts, ", "),
		)
		e.at = r.book.placeOf(from.at)
		return e
	}
	if !v.has {
		r.book.enter(v, stamp{at: from.at, by: from.by})
		v.freeze(r)
	}
	return nil
}

// add puts one more element, or the elements of a list, into a list. With as
// many as the relation takes it is complete.
func (v *variable) add(r *run, value types.Value, from stamp) *Error {
	if _, null := value.(types.Null); null && v.kind == list {
		return v.empty(r, value, from)
	}
	if l, ok := value.(*types.List); ok {
		if v.has && v.kind == list {
			return v.late(r.book.placeOf(from.at), l.Items...)
		}
		for _, item := range l.Items {
			if v.kind == gathered { // what lists in it hold is not taken out of them
				if err := v.gather(r, item, from); err != nil {
					return err
				}
			} else if err := v.add(r, item, from); err != nil {
				return err
			}
		}
		if len(l.Items) == 0 && v.kind == list {
			r.enqueueIfComplete(v)
		}
		return nil
	}
	d := v.more()
	if v.kind == gathered {
		return v.gather(r, value, from)
	}
	if v.has {
		return v.late(r.book.placeOf(from.at), value)
	}
	attr := v.attr()
	if !from.implied {
		if err := v.validate(attr.End.Target, value); err != nil {
			return err
		}
	}
	if !from.only && v.holds(value) {
		r.enqueueIfComplete(v)
		return nil
	}
	if isUnknown(value) && attr.End.Inverse != nil {
		return unknownMember(v)
	}
	d.list.Items = r.values.add(d.list.Items, value)
	r.book.add(&d.sources, from)
	if v.from == 0 {
		r.book.enter(v, stamp{at: from.at, by: from.by})
	}
	if err := v.tell(r, value, from); err != nil {
		return err
	}
	if err := v.setInverse(r, attr, value, from); err != nil {
		return err
	}
	if high := attr.End.High; len(d.list.Items) > high {
		return runtimeError(
			"List over full: max nr of items is %d, content is %s",
			high,
			types.Repr(&d.list),
		).coded(diag.Arity)
	} else if len(d.list.Items) == high {
		v.freeze(r)
	}
	r.enqueueIfComplete(v)
	return nil
}

// gather puts one more item into the list of a list literal.
func (v *variable) gather(r *run, value types.Value, from stamp) *Error {
	d := v.more()
	d.list.Items = append(d.list.Items, value)
	r.book.add(&d.sources, from)
	return v.tell(r, value, from)
}

// member reports whether a long list holds an instance. Its members are known by
// their ids once somebody asks.
func (d *delayed) member(i *Instance) bool {
	more := d.rarely()
	if more.members == nil {
		more.members = make(map[uint64]struct{}, 2*membersFrom)
	}
	for _, item := range d.list.Items[more.noted:] {
		if one, ok := item.(*Instance); ok {
			more.members[one.id] = struct{}{}
		}
	}
	more.noted = len(d.list.Items)
	_, have := more.members[i.id]
	return have
}

func (d *delayed) rarely() *rarely {
	if d.rare == nil {
		d.rare = &rarely{}
	}
	return d.rare
}

// late refuses what comes when the list is complete, unless it is there.
func (v *variable) late(at *place, values ...types.Value) *Error {
	for _, value := range values {
		switch {
		case v.holds(value):
		case len(v.more().list.Items) == v.attr().End.High:
			return v.full(at)
		default:
			return afterFreeze(v, value, at)
		}
	}
	return nil
}

// full refuses an element beyond what the relation takes.
func (v *variable) full(at *place) *Error {
	e := runtimeError(
		"Exceeded relation arity on attribute '%s' of instance '%s'",
		v.attr().Name,
		v.owner.Text(),
	).coded(diag.Arity)
	e.at = at
	e.Hint = fmt.Sprintf("%s.%s takes %d at most", v.attr().Entity.Name, v.attr().Name, v.attr().End.High)
	return e
}

func afterFreeze(v *variable, value types.Value, at *place) *Error {
	e := fail("ModifiedAfterFreezeException", "List modified after freeze")
	e.Importance, e.at = 5, at
	e.hint = func() string { return explainFreeze(v, value) }
	if d := v.more(); d != nil && d.rare != nil && d.rare.reader != nil {
		e.with("it was closed to be read", d.rare.reader)
	}
	return e
}

// tell gives the listeners a value that is in the list by now: who begins to listen
// meanwhile finds it there, as does a loop in a loop over the same list.
func (v *variable) tell(r *run, value types.Value, from stamp) *Error {
	more := v.more().rare
	if more == nil {
		return nil
	}
	for _, c := range more.listeners {
		if err := c.receive(r, value, r.book.placeOf(from.at), r.book.readFrom(from)); err != nil {
			return err
		}
	}
	return nil
}

// hold notes that something may still know of a collector when it has run.
func hold(c collector) {
	if u, is := c.(*setUnit); is {
		u.held = true
	}
}

// tells is whether listen gives a collector something.
func (v *variable) tells() bool {
	switch v.target().kind {
	case element, list, gathered:
		return true
	}
	return false
}

// listen gives c what is there, located where it is read, and what will come. A
// plain variable tells nothing: who evaluates it does.
func (v *variable) listen(r *run, c collector, at *place) *Error {
	v = v.target()
	switch v.kind {
	case element:
		return c.receive(r, v.value, at, r.book.sourceOf(v).at)
	case list, gathered:
		d := v.more()
		var from source
		var n number
		for i := 0; i < len(d.list.Items); i++ { // which may become more meanwhile
			from, n = r.book.follow(&d.sources, n)
			if err := c.receive(r, d.list.Items[i], at, from.at); err != nil {
				return err
			}
		}
		if v.has {
			return nil
		}
		hold(c)
		more := d.rarely()
		if !more.hear(c) { // `[x.a, x.a]`: what comes is told once, and nobody waits for it but gradually
			d.pure++
			return nil
		}
		if c.pure() {
			d.pure++
		}
	}
	return nil
}

// promise announces a value; keep it with fulfil.
func (v *variable) promise() {
	if d := v.target().more(); d != nil {
		d.promises++
	}
}

func (v *variable) fulfil(r *run) {
	v = v.target()
	d := v.more()
	if d == nil {
		return
	}
	d.promises--
	r.enqueueIfComplete(v)
}

// potential is how many are blocked until v is frozen.
func (v *variable) potential() int {
	n := 0
	if waiting := v.waiting(); waiting != nil {
		n = 1 + len(waiting.rest)
	}
	if v.kind == list {
		n -= int(v.more().pure)
	}
	if attr := v.attr(); attr != nil && attr.End.Leads {
		n++
	}
	return n
}

// freeze ends the gathering: what is there is the value.
func (v *variable) freeze(r *run) {
	if v.has {
		return
	}
	v.has = true
	r.pick(v)
	r.wake(v.part())
}

// typeError turns what a type says of a value into an error of the language.
func typeError(err error) *Error {
	switch err := err.(type) {
	case nil:
		return nil
	case *Error:
		return err
	case types.PythonError:
		return &Error{Kind: err.Class, Message: err.Text, foreign: true}
	case *types.Mismatch:
		e := runtimeError("%s", err.Message).coded(diag.WrongType)
		if err.Typing {
			e.Kind = "TypingException"
		}
		if err.Unexpected {
			e.Kind = "UnexpectedReference"
		}
		if err.Typedef != nil {
			e.Stmt = err.Typedef.Name
			e.at, _ = err.Typedef.At.(*place)
		}
		return e
	default:
		return runtimeError("%s", err)
	}
}

// attributeError wraps an error of setting an attribute, unless it comes from
// the other end of the relation and is wrapped already.
func attributeError(cause *Error, of *Instance, attribute string, stmt fmt.Stringer, at, causeAt *place) *Error {
	if cause.Kind != "AttributeException" || cause.foreign || cause.final {
		return wrapAttribute(cause, of, attribute, stmt, at, causeAt)
	}
	inner := cause
	for len(inner.Causes) > 0 && inner.Kind == "AttributeException" {
		inner = inner.Causes[0]
	}
	inner.located(stmt, at)
	return cause
}

// wrapAttribute is attributeError for the ends of relations: each that the
// error went through is named.
func wrapAttribute(cause *Error, of *Instance, attribute string, stmt fmt.Stringer, at, causeAt *place) *Error {
	if cause.foreign || cause.final {
		return cause // no CompilerException: nothing wraps it
	}
	e := fail("AttributeException", "Could not set attribute `%s` on instance `%s`", attribute, of.Text())
	e.Causes = []*Error{cause}
	e.Hint, e.hint, e.focus, e.related = cause.Hint, cause.hint, cause.focus, cause.related
	e.Expected, e.Found = cause.Expected, cause.Found
	e.Importance = cause.Importance
	e.Stmt, e.at, e.stmtAt = stmt.String(), at, at
	return e
}

// unknownMember says that a list of a relation with two ends cannot hold what is
// unknown, which has no other end. Upstream that is a Python error.
func unknownMember(v *variable) *Error {
	e := &Error{Kind: "AttributeError", Message: "'Unknown' object has no attribute 'set_attribute'", foreign: true}
	e.Hint = "the relation " + v.attr().Name + " has another end, which something unknown cannot be told of"
	return e
}
