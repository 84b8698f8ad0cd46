package solve

import (
	"context"
	"encoding/binary"
	"slices"
)

// A layout exists if three things hold, and they can be decided one after the other:
//
//	limits   no block is needed on more nodes than it may be on
//	filling  each node without a block can get one, within what the blocks may be on
//	packing  the blocks fit on the nodes as often as they are needed
//
// A node may always have fewer blocks, so packing needs no more copies of a block than are needed. And a packing and
// a filling can always be merged: give an empty node the block of the filling, and take a surplus copy of it from a
// node where the filling has another block; each step makes one more node agree with the filling.

// state is a problem of which some nodes are decided.
type state struct {
	classes    []class
	need, most []int // by block, without what the base of the classes has
}

func (s state) clone() state {
	return state{slices.Clone(s.classes), slices.Clone(s.need), slices.Clone(s.most)}
}

// solver decides states. Its effort is bounded: what it cannot decide counts as impossible, and gaveUp is set.
type solver struct {
	*problem
	ctx    context.Context
	effort *int // steps that are left
	gaveUp bool
	hasty  bool // gives up sooner
	failed map[string]bool
	trail  []placement // how the last state that was feasible packs its blocks; parts do not know of each other
}

// placement gives blocks to nodes of a class.
type placement struct {
	class  int
	blocks set
	n      int
}

// start returns the state of the problem with these classes; false if what the nodes have is too much already.
func (s *solver) start(classes []class) (state, bool) {
	st := state{classes: classes, need: make([]int, len(s.blocks)), most: make([]int, len(s.blocks))}
	for b := range s.blocks {
		has := 0
		for i := range classes {
			if classes[i].base.has(b) {
				has += classes[i].n
			}
		}
		st.need[b], st.most[b] = max(s.blocks[b].need-has, 0), s.blocks[b].most-has
		if st.most[b] < 0 {
			return st, false
		}
	}
	for i := range classes {
		if classes[i].n > 0 && !s.valid(&classes[i], classes[i].base) {
			return st, false
		}
	}
	return st, true
}

// feasible reports whether the undecided nodes can be decided.
func (s *solver) feasible(st state) bool {
	var active set
	for b, need := range st.need {
		if need > st.most[b] {
			return false
		}
		if need > 0 {
			active.add(b)
		}
	}
	if s.filled {
		if _, ok := s.filling(st); !ok {
			return false
		}
	}
	s.trail = s.trail[:0]
	for _, part := range s.parts {
		if need := part.and(active); !need.empty() && !s.partFits(st.classes, st.need, need) {
			return false
		}
	}
	return true
}

// partFits reports whether the blocks of a part fit. A short search nearly always knows; where it does not, fractions
// of nodes tell whether there are too few, or lead near to a packing.
func (s *solver) partFits(classes []class, all []int, part set) bool {
	need := make([]int, len(all))
	for b := range part.all {
		need[b] = all[b]
	}
	gaveUp := s.gaveUp
	for round, budget := range []int{40, 400, 3000} {
		if round == 2 && s.hasty {
			break
		}
		if round == 1 {
			rest, left, whole, solved := s.relax(classes, need)
			if solved && rest == nil {
				s.gaveUp = gaveUp
				return false
			}
			if short := 400; solved && s.try(rest, left, &short) {
				s.gaveUp = gaveUp
				s.trail = append(s.trail, whole...)
				return true
			}
		}
		s.gaveUp = gaveUp
		fits := s.try(classes, need, &budget)
		if fits || budget >= 0 && *s.effort >= 0 {
			return fits
		}
	}
	s.gaveUp = true
	return false
}

func (s *solver) try(classes []class, need []int, budget *int) bool {
	clear(s.failed)
	return s.pack(classes, need, budget)
}

// filling gives each empty node a block, in a flow from classes to blocks: how many nodes of a class get which block.
func (s *solver) filling(st state) ([][]int, bool) {
	var empty []int
	left := slices.Clone(st.most)
	for i := range st.classes {
		if c := &st.classes[i]; c.n > 0 && c.base.empty() {
			empty = append(empty, i)
		}
	}
	given := make([][]int, len(empty)) // how many nodes of a class got a block
	options := make([]set, len(empty))
	for k, i := range empty {
		given[k] = make([]int, len(s.blocks))
		for b := range s.blocks {
			if s.fits(&st.classes[i], set{}, b) {
				options[k].add(b)
			}
		}
	}
	for k, i := range empty {
		for todo := st.classes[i].n; todo > 0; {
			seen := make([]bool, len(empty))
			moved := s.augment(k, todo, given, options, left, seen)
			if moved == 0 {
				return nil, false
			}
			todo -= moved
		}
	}
	all := make([][]int, len(st.classes))
	for k, i := range empty {
		all[i] = given[k]
	}
	return all, true
}

// augment gives a class up to n more blocks, taking them from other classes that can have another instead.
func (s *solver) augment(k, n int, given [][]int, options []set, left []int, seen []bool) int {
	seen[k] = true
	for b := range options[k].all {
		if left[b] > 0 {
			m := min(n, left[b])
			left[b] -= m
			given[k][b] += m
			return m
		}
	}
	for b := range options[k].all {
		for other := range given {
			if seen[other] || given[other][b] == 0 {
				continue
			}
			if m := s.augment(other, min(n, given[other][b]), given, options, left, seen); m > 0 {
				given[other][b] -= m
				given[k][b] += m
				return m
			}
		}
	}
	return 0
}

// pack reports whether the blocks fit on the classes as often as they are needed. It decides nodes that are alike
// together: as many as get the same blocks until another choice could be necessary.
func (s *solver) pack(classes []class, need []int, budget *int) bool {
	*budget--
	*s.effort--
	if *budget < 0 || *s.effort < 0 || s.ctx.Err() != nil {
		s.gaveUp = true
		return false
	}
	var active set
	for b, n := range need {
		if n > 0 {
			active.add(b)
		}
	}
	if active.empty() {
		return true
	}
	bound, ok := s.bound(classes, need, active)
	if !ok {
		return false
	}
	id := stateKey(classes, need)
	if s.failed[id] {
		return false
	}
	at := -1 // the class with the fewest choices
	for i := range classes {
		if n := bound.options[i].size(); classes[i].n > 0 && n > 0 && (at < 0 || n < bound.options[at].size()) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	order := slices.Collect(bound.options[at].all)
	slices.SortStableFunc(order, func(a, b int) int {
		if d := bound.slack[a] - bound.slack[b]; d != 0 {
			return d
		}
		return need[b] - need[a]
	})
	found := s.choices(&classes[at], order, func(blocks set) bool {
		added := blocks.minus(classes[at].base)
		n := classes[at].n
		for b := range added.all {
			n = min(n, need[b])
		}
		for b := range bound.options[at].minus(added).all {
			n = min(n, bound.slack[b])
		}
		for k, clique := range s.cliques {
			if clique.meets(bound.options[at]) && !clique.meets(added) {
				n = min(n, bound.cliqueSlack[k])
			}
		}
		for ; n > 0; n /= 2 {
			next, rest := slices.Clone(classes), slices.Clone(need)
			next[at].n -= n
			for b := range added.all {
				rest[b] -= n
			}
			if s.pack(next, rest, budget) {
				s.trail = append(s.trail, placement{at, added, n})
				return true
			}
			if s.gaveUp && *budget < 0 {
				return false
			}
		}
		return false
	})
	if !found && *budget >= 0 {
		s.failed[id] = true
	}
	return found
}

// choices yields the largest sets of blocks that a node of the class can have, until one is taken.
func (s *solver) choices(c *class, order []int, take func(set) bool) bool {
	const most = 2000
	tried := 0
	var choose func(i int, blocks, out set) bool
	choose = func(i int, blocks, out set) bool {
		if tried >= most {
			s.gaveUp = true
			return false
		}
		if i == len(order) {
			for b := range out.all {
				if s.fits(c, blocks, b) {
					return false // not the largest
				}
			}
			tried++
			return take(blocks)
		}
		b := order[i]
		if !s.fits(c, blocks, b) {
			return choose(i+1, blocks, out)
		}
		if choose(i+1, blocks.with(b), out) {
			return true
		}
		// Without b is worth trying only if something that comes later keeps it out.
		if !s.contested(b, order[i+1:]) {
			return false
		}
		return choose(i+1, blocks, out.with(b))
	}
	return choose(0, c.base, set{})
}

func (s *solver) contested(b int, later []int) bool {
	for _, other := range later {
		if s.clash[b].has(other) {
			return true
		}
		for _, others := range s.apartOf[b] {
			if others.has(other) {
				return true
			}
		}
		if s.blocks[other].hardware != s.blocks[b].hardware || s.blocks[other].image != s.blocks[b].image {
			return true
		}
	}
	return false
}

type bound struct {
	options     []set // by class: the blocks that are needed and that a node can get
	slack       []int // by block: nodes that can have it, more than are needed
	cliqueSlack []int
}

// bound counts the nodes that can have each block, and one of each clique; false if there are too few.
func (s *solver) bound(classes []class, need []int, active set) (bound, bool) {
	r := bound{make([]set, len(classes)), make([]int, len(need)), make([]int, len(s.cliques))}
	for i := range classes {
		if classes[i].n == 0 {
			continue
		}
		for b := range active.all {
			if s.fits(&classes[i], classes[i].base, b) {
				r.options[i].add(b)
				r.slack[b] += classes[i].n
			}
		}
	}
	for b := range active.all {
		if r.slack[b] -= need[b]; r.slack[b] < 0 {
			return r, false
		}
	}
	for k, clique := range s.cliques {
		if !clique.meets(active) {
			continue
		}
		for i := range classes {
			if clique.meets(r.options[i]) {
				r.cliqueSlack[k] += classes[i].n
			}
		}
		for b := range clique.and(active).all {
			r.cliqueSlack[k] -= need[b]
		}
		if r.cliqueSlack[k] < 0 {
			return r, false
		}
	}
	return r, true
}

func stateKey(classes []class, need []int) string {
	var key []byte
	for i := range classes {
		key = binary.AppendUvarint(key, uint64(classes[i].n))
	}
	for _, n := range need {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return string(key)
}
