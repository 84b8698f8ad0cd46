package eval

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sort"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/prefetch"
)

// waiter is a piece of work that waits for variables and then runs once.
type waiter interface {
	base() *unit
	run(r *run) *Error
	// blame says where an error of run is reported: which differs, since some
	// nodes take over the errors of their parts and others do not.
	blame(err *Error) *Error
	by() node
	// over takes the unit back when it has run, unless something holds it.
	over(r *run)
}

// unit is what all waiters have.
type unit struct {
	frame   frame
	scope   *scope
	pending int32
	row     int32 // in the waiting list, from 1; 0: it never had to wait
}

func (u *unit) base() *unit { return u }
func (u *unit) over(*run)   {}

// frame holds the variables that one evaluation of an expression needs; the
// nodes know their places in it.
type frame []*variable

// run is one execution of a program.
type run struct {
	prog    *program
	host    Host
	ctx     context.Context
	ready   queue[waiter]
	waiting waitingList
	wait    freezeQueue
	zero    pile[*variable] // what nobody waited for when it was looked at
	revived []*variable     // of zero: somebody waits for it now
	nzero   int32
	circles circles // what left the queue because of outstanding promises

	slots      slab[variable]
	delayed    slab[delayed]
	frames     slab[*variable]
	values     growing[types.Value]
	book       *book
	waiters    again[waiters]
	hooks      slab[attrHook]
	sets       again[setUnit]
	known      again[knownUnit]
	evals      again[evalUnit]
	literals   slab[gatheredList]
	assigns    again[assignUnit]
	conditions again[conditionUnit]
	branches   again[branchUnit]
	lefts      again[lazyUnit]
	defined    again[definedHook]
	lookups    again[lookupUnit]
	attributes again[setAttrUnit]
	chosen     slab[implementUnit]
	scopes     slab[scope]
	made       slab[Instance]
	results    slab[variable] // of expressions
	instances  []*Instance
	byEntity   []roll  // by number of the entity
	notes      []noted // annotations of relations
	indexes    map[tableOf]*indexTable
	tables     []*indexTable // in the order in which they were asked for
	declared   map[*types.Index]*instancesByKey
	plans      []*indexPlan // by number of the entity
	text       []byte       // of a string, while it is put together
	key        []byte       // of an index, while it is looked for
	other      []byte       // the key of an instance that may have it
	seed       maphash.Seed // of the sums of keys
	given      []given      // to the constructors in work
	warnings   []Warning
	rounds     int
	emitter    string // a plug-in that was called and has no value to give

	rests   []rest // what failed units had still to do
	settled bool   // everything ran that could
	ended   bool   // there was an error: no plug-in is called any more
	units   uint64 // that have run
	inVain  int    // how often in a row no calls to post were found
	limits  limits
}

// start announces a unit that needs what is in its frame.
func (r *run) start(w waiter, f frame) {
	u := w.base()
	u.frame = f
	u.pending = 1
	marked := false
	for _, v := range f {
		if v == nil {
			continue
		}
		if v.kind == mark {
			marked = true
			u.pending++
		} else if !v.waitFor(r, w) {
			u.pending++
			r.noteWaiter(v, w)
		}
	}
	if u.row == 0 && (u.pending > 1 || repeats(w)) {
		r.waiting.add(w)
	}
	if r.arrived(w); marked {
		r.ready.push(w) // its turn is to look the marked ones up
	}
}

// lookUp puts the attributes of self into the frame of a unit in the place of
// their marks, and has the unit wait for them.
func (r *run) lookUp(w waiter) *Error {
	u := w.base()
	for i, v := range u.frame {
		if v == nil || v.kind != mark {
			continue
		}
		n := v.value.(attrOfSelf).n
		slot, err := n.resolve(r, u.scope, nil)
		if err != nil {
			return err.drawn(n).led(u.scope)
		}
		u.frame[i] = slot
		if slot.waitFor(r, w) {
			u.pending--
		} else {
			r.noteWaiter(slot, w)
		}
	}
	if u.pending == 0 {
		r.ready.push(w)
	}
	return nil
}

// startOn is start for a unit that waits for one variable beside its frame.
func (r *run) startOn(w waiter, v *variable) {
	r.start(w, frame{v})
}

func (r *run) arrived(w waiter) {
	u := w.base()
	u.pending--
	if u.pending == 0 {
		r.ready.push(w)
	}
}

// noteWaiter remembers a variable of the second queue, or outside the queues,
// that somebody wants now.
func (r *run) noteWaiter(v *variable, w waiter) {
	v = v.target()
	switch d := v.more(); {
	case d == nil:
	case d.inZero:
		r.revived = append(r.revived, v)
	case d.dropped:
		r.circles.note(v, w)
	}
}

// enqueueIfComplete puts a delayed variable into the freeze queue when nobody
// has promised more. A gathered list is frozen at once.
func (r *run) enqueueIfComplete(v *variable) {
	d := v.more()
	if v.has || d.promises > 0 || d.queued {
		return
	}
	switch {
	case v.kind == gathered:
		v.freeze(r)
		return
	case v.kind == list && len(d.list.Items) < v.attr().End.Low:
		return
	}
	d.queued = true
	r.pick(v)
	r.wait.push(v)
}

// drain runs all that is ready, first come first served.
func (r *run) drain() *Error {
	budget := -1
	return r.drainSome(&budget)
}

// drainSome is drain for as many units as the budget allows; a budget below
// zero does not end.
func (r *run) drainSome(budget *int) *Error {
	for n := 0; r.ready.len() > 0 && *budget != 0; n++ {
		*budget--
		if n&1023 == 0 && r.ctx.Err() != nil {
			return cancelled(r.ctx)
		}
		if r.units++; r.units&0xffff == 0 {
			if err := r.limits.memory(); err != nil {
				return err
			}
		}
		r.soon()
		w := r.ready.pop()
		if w.base().pending > 0 {
			if err := r.lookUp(w); err != nil {
				return err
			}
			continue
		}
		if err := w.run(r); err != nil {
			if r == r.prog.direct {
				return err // the condition of a typedef: who sets the value is to blame
			}
			return w.blame(err).led(w.base().scope)
		}
		r.waiting.remove(w)
		w.over(r)
	}
	return nil
}

// execute runs until nothing moves any more. A round counts when there was
// something to do at its start, also where it freezes nothing.
func (r *run) execute() *Error {
	limit := r.limits.iterations
	for r.queued() && r.rounds < limit {
		r.rounds++
		if err := r.drain(); err != nil {
			return err
		}
		if !r.freezeNext() {
			break
		}
	}
	if r.rounds == limit {
		return &Error{
			Kind:    "CompilerException",
			Message: fmt.Sprintf("Could not complete model, max_iterations %d reached.", limit),
			bare:    true,
			final:   true,
			Hint:    "raise the limit with INMANTA_MAX_ITERATIONS if the model is that deep, else look for a list that feeds itself",
		}
	}
	return nil
}

// queued reports whether anything is ready or may be frozen.
func (r *run) queued() bool {
	return r.ready.len() > 0 || r.wait.free.len() > 0 || r.zero.n > 0 ||
		slices.ContainsFunc(r.wait.ruled, func(q queue[*variable]) bool { return q.len() > 0 })
}

// freezeNext freezes the next list in order; false when there is nothing left.
func (r *run) freezeNext() bool {
	for v := r.wait.pop(); v != nil; v = r.wait.pop() {
		switch {
		case v.has:
		case v.potential() <= 0:
			r.toZero(v)
		case v.more().promises > 0:
			r.drop(v)
		default:
			r.freezeForReader(v)
			return true
		}
	}
	r.reviveZero()
	for v := r.wait.pop(); v != nil; v = r.wait.pop() {
		if v.has {
			continue
		}
		if v.more().promises > 0 {
			r.drop(v)
			continue
		}
		r.freezeForReader(v)
		return true
	}
	return r.breakCycle() || r.freezeRest()
}

func (r *run) toZero(v *variable) {
	d := v.more()
	d.inZero = true
	r.nzero++
	d.zeroRank = r.nzero
	r.zero.add(v)
}

// drop takes a variable out of the queues until its promises are kept.
func (r *run) drop(v *variable) {
	d := v.more()
	d.queued = false
	if !d.dropped {
		d.dropped, d.parked = true, false
		r.circles.dropped(v)
	}
}

// pick notes that a variable is no longer dropped: it is back in the queue, or
// has its value.
func (r *run) pick(v *variable) {
	if d := v.more(); d != nil {
		d.dropped = false
	}
}

// reviveZero moves what somebody waits for by now from the second queue to
// the first, in the order of the second.
func (r *run) reviveZero() {
	revived := slices.DeleteFunc(r.revived, func(v *variable) bool { return v.has })
	r.revived = nil
	sort.Slice(revived, func(i, j int) bool { return revived[i].more().zeroRank < revived[j].more().zeroRank })
	for _, v := range revived {
		if !v.more().inZero || v.potential() <= 0 {
			continue
		}
		v.more().inZero = false
		r.wait.push(v)
	}
}

// breakCycle freezes one of the variables that units wait for although more
// is promised: all promises that are left wait for such a freeze.
func (r *run) breakCycle() bool {
	v := r.circles.first(&r.waiting)
	if v == nil {
		return false
	}
	r.freezeForReader(v)
	return true
}

// freezeRest freezes all that nobody waits for, the last first.
func (r *run) freezeRest() bool {
	progress := false
	zero := r.zero
	r.zero = pile[*variable]{}
	for i := zero.n - 1; i >= 0; i-- {
		if i >= near {
			prefetch.Of(*zero.at(i - near))
		}
		v := *zero.at(i)
		if v.has || !v.more().inZero {
			continue
		}
		v.more().inZero = false
		v.freeze(r)
		progress = true
	}
	return progress
}

// freezeQueue holds the lists that could be frozen: those without a relation
// precedence rule first, then the others in the order of the policy.
type freezeQueue struct {
	free  queue[*variable]
	ruled []queue[*variable] // by rank-1
}

func rank(v *variable) int {
	if attr := v.attr(); attr != nil {
		return attr.End.Precedence
	}
	return 0
}

func (q *freezeQueue) push(v *variable) {
	n := rank(v)
	if n == 0 {
		q.free.push(v)
		return
	}
	for len(q.ruled) < n {
		q.ruled = append(q.ruled, queue[*variable]{})
	}
	q.ruled[n-1].push(v)
}

// pop gives the next candidate, nil when there is none.
func (q *freezeQueue) pop() *variable {
	if q.free.len() > 0 {
		q.soon()
		return q.free.pop()
	}
	for i := range q.ruled {
		if q.ruled[i].len() > 0 {
			return q.ruled[i].pop()
		}
	}
	return nil
}
