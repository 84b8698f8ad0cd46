package eval

import (
	"math/bits"
	"unsafe"
)

// slab gives short slices out of longer ones, so that a model of a hundred
// thousand instances is some thousand allocations for the collector to look
// at. The memory of one slab is free when none of its slices is used: what
// is dropped at other times lies in another.
type slab[T any] struct {
	size   int
	rest   []T
	onMore func(address uintptr) // told of each slab; may be nil
}

// one gives a zero value.
func (s *slab[T]) one() *T { return &s.take(1)[0] }

// take gives n zero values.
func (s *slab[T]) take(n int) []T {
	if n > len(s.rest) {
		if n > s.size/2 {
			return make([]T, n)
		}
		s.rest = make([]T, s.size)
		if s.onMore != nil {
			s.onMore(uintptr(unsafe.Pointer(unsafe.SliceData(s.rest))))
		}
	}
	taken := s.rest[:n:n]
	s.rest = s.rest[n:]
	return taken
}

// again is a slab of values that come back when they have been used, to be
// given out once more: most compiles are over before memory is collected.
type again[T any] struct {
	slab[T]
	used pile[*T]
}

// one gives a zero value.
func (a *again[T]) one() *T {
	if a.used.n == 0 {
		return a.slab.one()
	}
	t := a.used.pop()
	var zero T
	*t = zero
	return t
}

// next is one for who writes the whole value: it may be anything.
func (a *again[T]) next() *T {
	if a.used.n == 0 {
		return a.slab.one()
	}
	return a.used.pop()
}

// back takes a value that nobody holds any more.
func (a *again[T]) back(t *T) { a.used.add(t) }

// growing is a slab for slices that grow by one and one. What a slice has
// outgrown becomes the place of another.
type growing[T any] struct {
	slab[T]
	outgrown [largestOutgrown + 1][][]T // by the logarithm of how many they take
}

const largestOutgrown = 8 // longer slices grow as others do

// add is append.
func (g *growing[T]) add(s []T, item T) []T {
	if len(s) < cap(s) || cap(s) > 1<<(largestOutgrown-1) {
		return append(s, item)
	}
	n := max(usualItems, 2*cap(s))
	var more []T
	if free := &g.outgrown[bits.Len(uint(n))-1]; len(*free) > 0 {
		last := len(*free) - 1
		more, *free = (*free)[last], (*free)[:last]
	} else {
		more = g.take(n)[:0]
	}
	more = append(more, s...)
	if s != nil {
		clear(s)
		size := bits.Len(uint(cap(s))) - 1
		g.outgrown[size] = append(g.outgrown[size], s[:0])
	}
	return append(more, item)
}

// pile is a slice that is long and never copied.
type pile[T any] struct {
	parts [][]T
	n     int
}

const partOfPile = 512

func (p *pile[T]) add(item T) {
	part := p.n / partOfPile
	if part == len(p.parts) {
		p.parts = append(p.parts, make([]T, 0, partOfPile))
	}
	p.parts[part] = append(p.parts[part], item)
	p.n++
}

// pop takes the last item of a pile that is not empty.
func (p *pile[T]) pop() T {
	p.n--
	part := &p.parts[p.n/partOfPile]
	last := &(*part)[p.n%partOfPile]
	item := *last
	var none T
	*last = none
	*part = (*part)[:p.n%partOfPile]
	return item
}

func (p *pile[T]) at(n int) *T { return &p.parts[n/partOfPile][n%partOfPile] }

// slices gives what lies behind the first n, part by part.
func (p *pile[T]) slices(n int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for first := n / partOfPile; first < len(p.parts); first++ {
			part := p.parts[first]
			if first == n/partOfPile {
				part = part[n%partOfPile:]
			}
			if !yield(part) {
				return
			}
		}
	}
}

// cut leaves the first n. What the others took is kept for what comes.
func (p *pile[T]) cut(n int) {
	for k := n / partOfPile; k < len(p.parts); k++ {
		part := p.parts[k]
		kept := max(0, n-k*partOfPile)
		clear(part[kept:])
		p.parts[k] = part[:kept]
	}
	p.n = n
}
