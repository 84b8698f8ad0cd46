package eval

import (
	"cmp"
	"fmt"
	"slices"

	"ordain.dev/ordain/compiler/eval/internal/program"
	"ordain.dev/ordain/compiler/types"
)

// waiter is a unit of work: it waits for variables and then runs once.
type waiter interface {
	base() *unit
	run(r *run) *Error
	// blame names the place of an error of run. Units differ in this, since some
	// nodes take over the errors of their parts and others do not.
	blame(err *Error) *Error
	// node is what the unit works on.
	node() program.Node
}

// unit is the part that all units of work have.
type unit struct {
	frame   frame
	scope   *scope
	pending int32 // variables that it waits for
	ran     bool  // it is still in the waiting list, but has run
	number  int   // in the order of the waiting list, from 1; 0: it never had to wait
}

func (u *unit) base() *unit { return u }

// frame holds the variables that one evaluation of an expression needs. The
// nodes know their places in it.
type frame []*variable

// run is the execution of a program.
//
//	    start            wake             run
//	unit ──▶ waiting list ──▶ ready queue ──▶ sets variables, starts units
//	                                              │
//	      freeze one list ◀── nothing is ready ◀──┘
//
// When the ready queue is empty, one variable of the freeze queue is frozen, and
// its waiters may run. The order in which variables are frozen decides which models
// compile, so it is that of the reference:
//
//  1. freezable, in its order, without what nobody waits for (moved to unread)
//     and what more is promised to (dropped);
//  2. those of unread that some unit waits for by now;
//  3. one that is dropped, although more is promised: all that is left waits in
//     circles (cycle.go);
//  4. all that is left in unread.
type run struct {
	*session
	prog      *program.Program
	direct    bool // it evaluates the condition of a typedef, at once
	ready     queue[waiter]
	waiting   waitingList
	freezable freezeQueue
	unread    []*variable // variables that nobody waited for when they were considered
	reread    []*variable // those of unread that some unit waits for now
	unreads   int32       // how many were ever added to unread
	circles   circles     // variables that left the freeze queue because of promises
	ofSelf    map[*program.AttrRef]*variable

	instances []*Instance
	extents   []extent        // by number of the entity
	notes     []notedRelation // relations with annotations
	indexes   map[tableOf]*indexTable
	tables    []*indexTable // in the order in which they were asked for
	declared  map[*types.Index]*instancesByKey
	plans     []*indexPlan // by number of the entity
	warnings  []Warning
	rounds    int
	emitter   string // a plug-in that was called and has no value to give

	postponed []func(r *run) *Error // what failed units had still to do
	finished  bool                  // everything ran that could
	failed    bool                  // there was an error: no plug-in is called any more
	unitsRun  uint64
	idlePosts int // how often in a row no calls to post were found
	limits    limits
}

func newRun(se *session, p *program.Program) *run {
	return &run{
		session: se, prog: p, limits: newLimits(se.in),
		ofSelf:  map[*program.AttrRef]*variable{},
		indexes: map[tableOf]*indexTable{}, declared: map[*types.Index]*instancesByKey{},
	}
}

// start announces a unit that waits for the variables in its frame. With
// attributes of self among them it has two turns: see resolveSelf.
func (r *run) start(w waiter, f frame) {
	u := w.base()
	u.frame = f
	u.pending = 1
	twoTurns := false
	for _, v := range f {
		switch {
		case v == nil:
		case v.kind == ofSelf:
			twoTurns = true
			u.pending++
		case !v.waitFor(w):
			u.pending++
			r.noteWaiter(v, w)
		}
	}
	if u.number == 0 && (u.pending > 1 || mayRepeat(w)) {
		r.waiting.add(w)
	}
	r.arrived(w)
	if twoTurns {
		r.ready.push(w)
	}
}

// resolveSelf is the first turn of a unit that needs attributes of self: it
// looks them up, and the unit waits for them.
//
// `x.a` in general takes a unit that waits for x (attrHook). What self is needs no
// waiting, so `self.a` takes none; the first turn is where the turn of that unit
// would have been, and the order in which all else runs stays the same.
func (r *run) resolveSelf(w waiter) *Error {
	u := w.base()
	for i, v := range u.frame {
		if v == nil || v.kind != ofSelf {
			continue
		}
		n := v.pending.attribute
		self, err := r.variableOf(n.X.Expr.(*program.Ref), u.scope)
		if err != nil {
			return withOrigin(err.Drawn(n), u.scope)
		}
		slot, err := slotOf(self.value, n.X.Expr, n.Attr, n)
		if err != nil {
			return withOrigin(err.Drawn(n), u.scope)
		}
		u.frame[i] = slot
		if slot.waitFor(w) {
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

// arrived counts one variable that a unit waited for and queues the unit when it
// was the last.
func (r *run) arrived(w waiter) {
	u := w.base()
	u.pending--
	if u.pending == 0 {
		r.ready.push(w)
	}
}

// noteWaiter notes that a unit waits for a variable which nobody waited for
// before, or which left the freeze queue.
func (r *run) noteWaiter(v *variable, w waiter) {
	v = v.target()
	switch g := v.gathering; {
	case g == nil:
	case g.unread:
		r.reread = append(r.reread, v)
	case g.dropped:
		r.circles.note(v, w)
	}
}

// enqueueIfComplete puts a variable into the freeze queue when nothing more is
// promised to it. The list of a literal is frozen at once.
func (r *run) enqueueIfComplete(v *variable) {
	g := v.gathering
	if v.has || g.promises > 0 || g.queued {
		return
	}
	switch {
	case v.kind == gathered:
		v.freeze(r)
		return
	case v.kind == list && len(g.list.Items) < v.attr.End.Low:
		return
	}
	g.queued, g.dropped = true, false
	r.freezable.push(v)
}

// drain runs all units that are ready.
func (r *run) drain() *Error {
	budget := -1
	return r.drainSome(&budget)
}

// drainSome runs as many units as the budget allows; a budget below zero allows
// all of them.
func (r *run) drainSome(budget *int) *Error {
	for n := 0; r.ready.len() > 0 && *budget != 0; n++ {
		*budget--
		if n&1023 == 0 && r.ctx.Err() != nil {
			return cancelled(r.ctx)
		}
		if r.unitsRun++; r.unitsRun&0xffff == 0 {
			if err := r.limits.checkMemory(); err != nil {
				return err
			}
		}
		w := r.ready.pop()
		if w.base().pending > 0 {
			if err := r.resolveSelf(w); err != nil {
				return err
			}
			continue
		}
		if err := w.run(r); err != nil {
			if r.direct {
				return err // of the condition of a typedef: reported where the value is set
			}
			return withOrigin(w.blame(err), w.base().scope)
		}
		r.waiting.remove(w)
	}
	return nil
}

// execute runs until nothing moves any more. A round counts when there was
// something to do at its start, even if it freezes nothing.
func (r *run) execute() *Error {
	limit := r.limits.iterations
	for r.hasWork() && r.rounds < limit {
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
			Bare:    true,
			Final:   true,
			Hint: "raise the limit with INMANTA_MAX_ITERATIONS if the model is that deep, " +
				"else look for a list that feeds itself",
		}
	}
	return nil
}

// hasWork reports whether anything is ready or may be frozen.
func (r *run) hasWork() bool { return r.ready.len() > 0 || len(r.unread) > 0 || !r.freezable.empty() }

// freezeNext freezes the next variable and reports whether there was one.
func (r *run) freezeNext() bool {
	for v := r.freezable.pop(); v != nil; v = r.freezable.pop() {
		switch {
		case v.has:
		case v.blockedUnits() <= 0:
			r.leaveUnread(v)
		case v.gathering.promises > 0:
			r.drop(v)
		default:
			r.freezeForReader(v)
			return true
		}
	}
	r.requeueReread()
	for v := r.freezable.pop(); v != nil; v = r.freezable.pop() {
		switch {
		case v.has:
		case v.gathering.promises > 0:
			r.drop(v)
		default:
			r.freezeForReader(v)
			return true
		}
	}
	return r.breakCircle() || r.freezeUnread()
}

// leaveUnread takes a variable that nobody waits for out of the freeze queue.
func (r *run) leaveUnread(v *variable) {
	r.unreads++
	v.gathering.unread, v.gathering.unreadRank = true, r.unreads
	r.unread = append(doubled(r.unread), v)
}

// drop takes a variable out of the freeze queue until its promises are kept.
func (r *run) drop(v *variable) {
	g := v.gathering
	g.queued = false
	if !g.dropped {
		g.dropped, g.parked = true, false
		r.circles.note(v, nil)
	}
}

// requeueReread puts the variables of unread that some unit waits for by now
// back into the freeze queue, in the order in which they left it.
func (r *run) requeueReread() {
	reread := slices.DeleteFunc(r.reread, func(v *variable) bool { return v.has })
	r.reread = nil
	slices.SortStableFunc(reread,
		func(a, b *variable) int { return cmp.Compare(a.gathering.unreadRank, b.gathering.unreadRank) })
	for _, v := range reread {
		if v.gathering.unread && v.blockedUnits() > 0 {
			v.gathering.unread = false
			r.freezable.push(v)
		}
	}
}

// breakCircle freezes a variable although more is promised to it: all promises
// that are left wait for such a freeze.
func (r *run) breakCircle() bool {
	v := r.circles.next()
	if v == nil {
		return false
	}
	r.freezeForReader(v)
	return true
}

// freezeUnread freezes all variables that nobody waits for, the last first.
func (r *run) freezeUnread() bool {
	progress := false
	unread := r.unread
	r.unread = nil
	for _, v := range slices.Backward(unread) {
		if v.has || !v.gathering.unread {
			continue
		}
		v.gathering.unread = false
		v.freeze(r)
		progress = true
	}
	return progress
}
