package eval

// queue is first come, first served. It grows by pieces, which are used again:
// a long queue is never copied.
type queue[T any] struct {
	head, tail *piece[T]
	from, to   int // of head, of tail
	n          int
	spare      *piece[T] // and those behind it: used up
}

type piece[T any] struct {
	items [256]T
	next  *piece[T]
}

func (q *queue[T]) len() int { return q.n }

func (q *queue[T]) push(item T) {
	if q.tail == nil || q.to == len(q.tail.items) {
		p := q.spare
		if p == nil {
			p = &piece[T]{}
		} else {
			q.spare, p.next = p.next, nil
		}
		if q.tail == nil {
			q.head = p
		} else {
			q.tail.next = p
		}
		q.tail, q.to = p, 0
	}
	q.tail.items[q.to] = item
	q.to++
	q.n++
}

// pop gives the first item of a queue that is not empty.
func (q *queue[T]) pop() T {
	if q.from == len(q.head.items) {
		used := q.head
		q.head, q.from = used.next, 0
		used.next, q.spare = q.spare, used
	}
	var none T
	item := q.head.items[q.from]
	q.head.items[q.from] = none
	q.from++
	q.n--
	return item
}

// ahead gives the item that so many others come before, if it is near.
func (q *queue[T]) ahead(n int) (none T) {
	if q.n <= n {
		return none
	}
	p, at := q.head, q.from+n
	if at >= len(p.items) {
		p, at = p.next, at-len(p.items)
	}
	if at >= len(p.items) {
		return none
	}
	return p.items[at]
}

// first gives the next items in their order, at most so many, and leaves them.
func (q *queue[T]) first(limit int) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		p, at := q.head, q.from
		for range min(limit, q.n) {
			if at == len(p.items) {
				p, at = p.next, 0
			}
			if !yield(p.items[at]) {
				return
			}
			at++
		}
	}
}

// waitingList holds the units that wait, or may have to, and have not run, in
// order of creation. What has run leaves a hole; holes are closed when they are many.
type waitingList struct {
	rows   pile[waiter]
	holes  int
	from   int // the rows before are holes
	closed int // how often holes were closed, so that rows changed
}

func (l *waitingList) add(w waiter) {
	if l.rows.n%partOfPile == 0 && l.holes > l.rows.n/2 {
		l.close()
	}
	l.rows.add(w)
	w.base().row = int32(l.rows.n)
}

// replace gives the place of a unit to another that goes on in its stead.
func (l *waitingList) replace(old, w waiter) {
	if row := old.base().row; row > 0 {
		*l.rows.at(int(row) - 1) = w
		w.base().row, old.base().row = row, 0
	}
}

func (l *waitingList) remove(w waiter) {
	if row := w.base().row; row > 0 {
		*l.rows.at(int(row) - 1) = nil
		l.holes++
	}
}

func (l *waitingList) close() {
	kept := 0
	for n := range l.rows.n {
		if w := *l.rows.at(n); w != nil {
			*l.rows.at(kept) = w
			kept++
			w.base().row = int32(kept)
		}
	}
	l.rows.cut(kept)
	l.holes, l.from = 0, 0
	l.closed++
}

// all gives the units one by one; none is added meanwhile.
func (l *waitingList) all(yield func(waiter) bool) {
	for l.from < l.rows.n && *l.rows.at(l.from) == nil {
		l.from++
	}
	for from := range l.rows.slices(l.from) {
		for _, w := range from {
			if w != nil && !yield(w) {
				return
			}
		}
	}
}
