package solve

import "math/bits"

// capacity is how many members a set can number.
const capacity = 128

// set holds small numbers. It is a value: comparable, and copied by assignment.
type set [capacity / 64]uint64

func setOf(members ...int) (s set) {
	for _, m := range members {
		s.add(m)
	}
	return s
}

func (s *set) add(m int)     { s[m/64] |= 1 << (m % 64) }
func (s set) has(m int) bool { return s[m/64]&(1<<(m%64)) != 0 }
func (s set) with(m int) set { s.add(m); return s }

func (s set) without(m int) set {
	s[m/64] &^= 1 << (m % 64)
	return s
}

func (s set) empty() bool { return s == set{} }

func (s set) or(t set) set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

func (s set) and(t set) set {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

func (s set) minus(t set) set {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

func (s set) meets(t set) bool { return !s.and(t).empty() }
func (s set) holds(t set) bool { return t.minus(s).empty() }

func (s set) size() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// first is the smallest member; -1 when there is none.
func (s set) first() int {
	for i, w := range s {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// all yields the members in order.
func (s set) all(yield func(int) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !yield(i*64 + bits.TrailingZeros64(w)) {
				return
			}
		}
	}
}
