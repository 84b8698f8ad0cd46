package eval

import "slices"

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
	q.items = append(doubled(q.items), item)
}

// doubled returns a slice with room for one more item at least. When it is full, it
// grows to twice its size: append adds a quarter, and copies a large slice often.
func doubled[T any](items []T) []T {
	if len(items) == cap(items) {
		return slices.Grow(items, len(items))
	}
	return items
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

// waitingList holds the units that wait, or may have to, and have not run.
type waitingList struct {
	units []waiter // some of them have run
	ran   int      // how many
	n     int      // how many were ever added
}

func (l *waitingList) add(w waiter) {
	l.n++
	w.base().number = l.n
	l.append(w)
}

func (l *waitingList) append(w waiter) {
	if l.ran > 1000 && l.ran > len(l.units)/2 {
		l.units = slices.DeleteFunc(l.units, func(w waiter) bool { return w.base().ran })
		l.ran = 0
	}
	l.units = append(doubled(l.units), w)
}

// replace returns the number of a unit to another one that goes on in its stead.
func (l *waitingList) replace(old, w waiter) {
	if old.base().number > 0 {
		w.base().number = old.base().number
		l.append(w)
	}
}

// remove takes a unit out that has run.
func (l *waitingList) remove(w waiter) {
	if u := w.base(); u.number > 0 {
		u.ran = true
		l.ran++
	}
}

// all returns the units in the order in which they began.
func (l *waitingList) all() []waiter {
	units := slices.DeleteFunc(slices.Clone(l.units), func(w waiter) bool { return w.base().ran })
	slices.SortStableFunc(units, func(a, b waiter) int { return a.base().number - b.base().number })
	return units
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
