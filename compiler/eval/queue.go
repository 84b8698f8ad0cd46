package eval

// queue is first in, first out.
type queue[T any] struct {
	items []T
	head  int // the items before are gone
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(item T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

// pop removes and returns the first item of a queue that is not empty.
func (q *queue[T]) pop() T {
	var none T
	item := q.items[q.head]
	q.items[q.head] = none
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return item
}

// next returns the items that come next, at most so many, and leaves them.
func (q *queue[T]) next(limit int) []T { return q.items[q.head:][:min(limit, q.len())] }

// waitingList holds the units that wait, or may have to, and have not run, in
// the order in which they began. It is a linked list through the units.
type waitingList struct {
	first, last waiter
	n           int // units that were ever added
}

func (l *waitingList) add(w waiter) {
	l.n++
	u := w.base()
	u.number, u.before = l.n, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.base().behind = w
	}
	l.last = w
}

// replace gives the place of a unit to another one that goes on in its stead.
func (l *waitingList) replace(old, w waiter) {
	from, to := old.base(), w.base()
	if from.number == 0 {
		return
	}
	to.number, to.before, to.behind = from.number, from.before, from.behind
	from.number, from.before, from.behind = 0, nil, nil
	l.link(to.before, w)
	l.link(w, to.behind)
}

func (l *waitingList) remove(w waiter) {
	u := w.base()
	if u.number == 0 {
		return
	}
	l.link(u.before, u.behind)
	u.number, u.before, u.behind = 0, nil, nil
}

// link makes two units neighbours; nil stands for the end of the list.
func (l *waitingList) link(before, behind waiter) {
	if before == nil {
		l.first = behind
	} else {
		before.base().behind = behind
	}
	if behind == nil {
		l.last = before
	} else {
		behind.base().before = before
	}
}

// all yields the units one by one; none may be added meanwhile.
func (l *waitingList) all(yield func(waiter) bool) {
	for w := l.first; w != nil; w = w.base().behind {
		if !yield(w) {
			return
		}
	}
}

// freezeQueue holds the variables that could be frozen: those without a relation
// precedence rule first, then the others in the order of the policy.
type freezeQueue struct {
	free  queue[*variable]
	ruled []queue[*variable] // by rank-1
}

// rank is the place of a variable's relation in the relation precedence policy;
// 0 for none.
func rank(v *variable) int {
	if v.attr != nil {
		return v.attr.End.Precedence
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

// pop removes and returns the next variable; nil when there is none.
func (q *freezeQueue) pop() *variable {
	if q.free.len() > 0 {
		return q.free.pop()
	}
	for i := range q.ruled {
		if q.ruled[i].len() > 0 {
			return q.ruled[i].pop()
		}
	}
	return nil
}

func (q *freezeQueue) empty() bool {
	if q.free.len() > 0 {
		return false
	}
	for i := range q.ruled {
		if q.ruled[i].len() > 0 {
			return false
		}
	}
	return true
}
