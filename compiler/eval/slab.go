package eval

// slab gives short slices out of longer ones, so that a model of a hundred
// thousand instances is some thousand allocations for the collector to look
// at. The memory of one slab is free when none of its slices is used: short
// slabs are for what is dropped soon.
type slab[T any] struct {
	size int
	rest []T
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
	}
	taken := s.rest[:n:n]
	s.rest = s.rest[n:]
	return taken
}
