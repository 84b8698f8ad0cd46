package eval

import minheap "container/heap"

// wanted is a variable that left the queues of what is to be frozen, because of
// outstanding promises, and one of the units that wait for it.
type wanted struct {
	v    *variable
	w    waiter
	rank int   // of the relation, by the precedence rules
	row  int32 // of w in the waiting list
	spot int32 // of v in w's frame
}

// circles finds which variable to freeze when all that is left waits for what
// waits for it: the one of lowest rank that is first in the frame of the first
// unit that waits. Finding it costs no look at all units: there may be as many
// circles as units.
//
//	noted ──▶ heap ──▶ freeze
//	           │  ▲
//	           ▼  │ when another unit waits for it
//	         parked: nobody counts as blocked by it
type circles struct {
	noted []wanted // not in the heap yet: their units may have had no row
	heap  wantedHeap
	close int // how often the waiting list had been closed: rows are others then
}

// dropped notes a variable that leaves the queues.
func (c *circles) dropped(v *variable) { c.note(v, nil) }

// note says that a unit waits for a variable that left the queues; nil stands
// for all that do.
func (c *circles) note(v *variable, w waiter) {
	c.noted = append(c.noted, wanted{v: v, w: w})
}

// first gives the variable to freeze, nil when there is none. It stays where
// it is until it has its value.
func (c *circles) first(waiting *waitingList) *variable {
	c.renumber(waiting)
	for _, w := range c.noted {
		c.admit(w)
	}
	clear(c.noted)
	c.noted = c.noted[:0]
	var idle []wanted
	var found *variable
	for found == nil && len(c.heap) > 0 {
		switch top := c.heap[0]; {
		case !top.counts():
			minheap.Pop(&c.heap)
		case top.v.potential() <= 0:
			top.v.more().parked = true
			minheap.Pop(&c.heap)
		case top.v.more().promises <= 0:
			idle = append(idle, minheap.Pop(&c.heap).(wanted)) // something may be promised yet
		default:
			found = top.v
		}
	}
	for _, w := range idle {
		minheap.Push(&c.heap, w)
	}
	return found
}

// counts tells that the variable is still out of the queues and without a
// value, so that the unit still waits for it.
func (w wanted) counts() bool { return !w.v.has && w.v.more().dropped }

// admit puts what was noted into the heap: of all units that wait for a
// variable the first.
func (c *circles) admit(w wanted) {
	if !w.counts() {
		return
	}
	d := w.v.more()
	if d.waiters == nil {
		return
	}
	if w.w == nil || d.parked {
		d.parked = false
		w.w = d.waiters.first
		for _, other := range d.waiters.rest {
			if other.base().row < w.w.base().row {
				w.w = other
			}
		}
	}
	if w.place() {
		minheap.Push(&c.heap, w)
	}
}

// place looks up where the unit is in the waiting list, and the variable with it.
func (w *wanted) place() bool {
	u := w.w.base()
	for spot, v := range u.frame {
		if v != nil && v.target() == w.v {
			w.rank, w.row, w.spot = rank(w.v), u.row, int32(spot)
			return u.row > 0
		}
	}
	return false
}

// renumber gives what is in the heap the rows that its units have now. Their
// order is the same, so the heap needs no other.
func (c *circles) renumber(waiting *waitingList) {
	if c.close == waiting.closed {
		return
	}
	c.close = waiting.closed
	kept := c.heap[:0]
	for _, w := range c.heap {
		if w.counts() && w.place() {
			kept = append(kept, w)
		}
	}
	clear(c.heap[len(kept):])
	c.heap = kept
	minheap.Init(&c.heap)
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
	case a.row != b.row:
		return a.row < b.row
	}
	return a.spot < b.spot
}

// Push is for container/heap.
func (h *wantedHeap) Push(x any) { *h = append(*h, x.(wanted)) }

// Pop is for container/heap.
func (h *wantedHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = wanted{}
	*h = (*h)[:last]
	return w
}
