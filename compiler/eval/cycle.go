package eval

import minheap "container/heap"

// circles finds the variable to freeze when everything that is left waits for
// something that waits for it: the one of lowest rank that comes first in the frame
// of the first unit that waits. It does not look at all units for that, since there
// may be as many circles as units.
//
//	noted ──▶ heap ──▶ freeze
//	           │  ▲
//	           ▼  │ another unit waits for it
//	         parked: no unit is blocked by it
type circles struct {
	noted []wanted // not in the heap yet: their units may not have had a number
	heap  wantedHeap
}

// wanted is a variable that left the freeze queue because of promises, and the
// first unit that waits for it.
type wanted struct {
	v    *variable
	w    waiter
	rank int // of the relation, by the precedence policy
	unit int // the number of w in the waiting list
	spot int // where v is in w's frame
}

// note records that a unit waits for a variable that left the freeze queue. nil
// stands for all units that wait for it.
func (c *circles) note(v *variable, w waiter) {
	c.noted = append(c.noted, wanted{v: v, w: w})
}

// next returns the variable to freeze, nil when there is none. The variable
// stays in the heap until it has its value.
func (c *circles) next() *variable {
	for _, w := range c.noted {
		c.admit(w)
	}
	c.noted = nil
	var idle []wanted
	var found *variable
	for found == nil && len(c.heap) > 0 {
		switch top := c.heap[0]; {
		case !top.isDropped():
			minheap.Pop(&c.heap)
		case top.v.blockedUnits() <= 0:
			top.v.gathering.parked = true
			minheap.Pop(&c.heap)
		case top.v.gathering.promises <= 0:
			idle = append(idle, minheap.Pop(&c.heap).(wanted)) // more may be promised later
		default:
			found = top.v
		}
	}
	for _, w := range idle {
		minheap.Push(&c.heap, w)
	}
	return found
}

// isDropped reports whether the variable is still out of the freeze queue and
// without a value, so that the unit still waits for it.
func (w wanted) isDropped() bool { return !w.v.has && w.v.gathering.dropped }

// admit puts a noted variable into the heap, with the first unit that waits for it.
func (c *circles) admit(w wanted) {
	if !w.isDropped() || len(w.v.waiters()) == 0 {
		return
	}
	if w.w == nil || w.v.gathering.parked {
		w.v.gathering.parked = false
		waiters := w.v.waiters()
		w.w = waiters[0]
		for _, other := range waiters[1:] {
			if other.base().number < w.w.base().number {
				w.w = other
			}
		}
	}
	if w.locate() {
		minheap.Push(&c.heap, w)
	}
}

// locate finds the unit in the waiting list, and the variable in its frame.
func (w *wanted) locate() bool {
	u := w.w.base()
	for spot, v := range u.frame {
		if v != nil && v.target() == w.v {
			w.rank, w.unit, w.spot = rank(w.v), u.number, spot
			return u.number > 0
		}
	}
	return false
}

// wantedHeap has what to freeze first at its top.
type wantedHeap []wanted

func (h wantedHeap) Len() int      { return len(h) }
func (h wantedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h wantedHeap) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.rank != b.rank:
		return a.rank < b.rank
	case a.unit != b.unit:
		return a.unit < b.unit
	}
	return a.spot < b.spot
}

// Push implements heap.Interface.
func (h *wantedHeap) Push(x any) { *h = append(*h, x.(wanted)) }

// Pop implements heap.Interface.
func (h *wantedHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = wanted{}
	*h = (*h)[:last]
	return w
}
