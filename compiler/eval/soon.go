package eval

import (
	"unsafe"

	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/prefetch"
)

// How many units before its turn a unit is fetched, then what it refers to, and
// then what that refers to: a fetch takes as long as a unit or two.
//
//	queue: turn │ … │ nearest: variables │ … │ near: targets, instances, frames │ … │ far: units │ …
const (
	nearest = 4
	near    = 8
	far     = 12
)

// soon has the processor fetch what the units that are next will read. They
// run in the order in which they were made, each over what was made one round
// before: with ten thousand instances that has left the caches.
func (r *run) soon() {
	if w := r.ready.ahead(far); w != nil {
		prefetch.Two((*[2]unsafe.Pointer)(unsafe.Pointer(&w))[1]) // without a look into it
	}
	if w := r.ready.ahead(near); w != nil {
		fetchReferred(w)
	}
	if w := r.ready.ahead(nearest); w != nil {
		fetchVariables(w)
	}
}

func fetchReferred(w waiter) {
	var u *unit
	switch w := w.(type) {
	case *knownUnit:
		prefetch.Of(w.of)
		prefetch.Of(w.scope)
		return
	case *setUnit:
		prefetch.Of(w.target)
		u = &w.unit
	case *evalUnit:
		prefetch.Of(w.target)
		u = &w.unit
	case *implementUnit:
		prefetch.Of(w.i)
		u = &w.unit
	default:
		u = w.base()
	}
	prefetch.Of(u.scope)
	prefetch.Of(unsafe.SliceData(u.frame))
}

func fetchVariables(w waiter) {
	var f frame
	switch w := w.(type) {
	case *knownUnit:
		slots := w.of.slots
		for n := range w.arguments {
			if slot := w.arguments[n].slot; uint(slot) < uint(len(slots)) {
				prefetch.Of(&slots[slot])
			}
		}
		return
	case *setUnit:
		prefetch.Of(w.target.owner)
		if d, is := w.target.value.(*delayed); is {
			prefetch.Of(d)
		}
		f = w.frame
	default:
		f = w.base().frame
	}
	if len(f) > 0 {
		prefetch.Of(f[0])
		prefetch.Of(f[len(f)-1])
	}
}

// soon fetches the variables that are next, and what they have.
func (q *freezeQueue) soon() {
	if v := q.free.ahead(2 * near); v != nil {
		prefetch.Of(v)
	}
	if v := q.free.ahead(near); v != nil {
		prefetch.Of(v.owner)
		if d, is := v.value.(*delayed); is {
			prefetch.Of(d)
		}
	}
}

// FetchNext is for who goes through many instances and is at one of them: it
// has the processor fetch those that come next, and their attributes.
func FetchNext[I types.Instance](all []I, at int) {
	if at+near < len(all) {
		if i, is := any(all[at+near]).(*Instance); is {
			prefetch.Of(i)
		}
	}
	if at+nearest < len(all) {
		if i, is := any(all[at+nearest]).(*Instance); is {
			for n := 0; n < len(i.slots); n += prefetch.Line / int(unsafe.Sizeof(i.slots[0])) {
				prefetch.Of(&i.slots[n])
			}
		}
	}
}
