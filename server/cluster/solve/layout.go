package solve

import (
	"cmp"
	"context"
	"slices"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// Layout returns the nodes of a cluster, ordered by number; the error is a *Contradiction if there can be none. The
// same request always has the same layout.
//
// New nodes have the preferred hardware and image where their services allow it, as many services as they can, and
// services that come first in the alphabet. Existing nodes get services that are new to the cluster, and others only
// if there is no other way.
func Layout(ctx context.Context, r Request) ([]Node, error) {
	s, c := newScope(r)
	if c != nil {
		return nil, c
	}
	p := newProblem(s, nil)
	if p == nil {
		return nil, refuse("Use fewer services or types.", "the solver knows at most %d constrained services, "+
			"hardware types and image types on a cluster", capacity)
	}
	sv := newSolver(ctx, p)
	st, kept, ok := sv.first()
	if ok {
		simple := sv.simple(st, kept)
		*sv.effort = choosingEffort
		for _, nodes := range [][]Node{sv.decide(st, kept), simple} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if len(nodes) == s.Size && len(Check(r, nodes)) == 0 {
				return nodes, nil
			}
		}
		sv.gaveUp = true
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if sv.gaveUp {
		return nil, refuse("Loosen the constraints of the template, or choose another size.",
			"no layout was found with reasonable effort; there may be one")
	}
	return nil, explain(ctx, s)
}

// Effort bounds the steps of a search for any layout and, then, for the preferred one. A step takes some microseconds.
const (
	effort         = 200_000
	choosingEffort = 6_000
)

func newSolver(ctx context.Context, p *problem) *solver {
	left := effort
	return &solver{problem: p, ctx: ctx, effort: &left, failed: map[string]bool{}}
}

// possible reports whether the problem has a layout of any size that it allows.
func (s *solver) possible() bool {
	if !s.anySize {
		_, _, ok := s.first()
		return ok
	}
	for _, n := range s.candidateSizes() {
		s.size = n
		if _, _, ok := s.first(); ok {
			return true
		}
	}
	return false
}

// candidateSizes returns sizes of which one has a layout, if any size has. More nodes make packing easier and filling
// harder, so that without existing nodes the largest size that can be filled decides.
func (s *solver) candidateSizes() []int {
	least, most := s.smallest, s.largest
	there, filled, has := 0, 0, make([]int, len(s.blocks))
	for _, c := range s.existing {
		there += c.n
		if !c.base.empty() {
			filled += c.n
		}
		for b := range c.base.all {
			has[b] += c.n
		}
	}
	sizes := []int{most}
	if s.filled {
		n := filled
		for b := range s.blocks {
			if s.fits(&s.fresh, set{}, b) {
				n = min(n+max(s.blocks[b].most-has[b], 0), most)
			}
		}
		sizes[0] = max(n, least)
	}
	for n := there; n > max(there-16, 0); n-- {
		if least <= n && n <= most && n != sizes[0] {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// first returns a state that can be solved: which nodes stay, and how many are new.
func (s *solver) first() (st state, kept []class, ok bool) {
	if s.broken {
		return state{}, nil, false
	}
	there := 0
	for _, c := range s.existing {
		there += c.n
	}
	if there <= s.size {
		st, ok := s.start(s.withFresh(s.existing, s.size-there))
		return st, s.existing, ok && s.feasible(st)
	}
	return s.shrink(there - s.size)
}

func (s *solver) withFresh(existing []class, n int) []class {
	fresh := s.fresh
	fresh.n = n
	return append(slices.Clone(existing), fresh)
}

// shrink chooses the nodes to take away: those after whose loss the fewest services have to be added to others, and
// of these the youngest.
func (s *solver) shrink(surplus int) (best state, kept []class, ok bool) {
	classes := slices.Clone(s.existing)
	// Classes with younger nodes are taken first.
	order := make([]int, len(classes))
	for i := range order {
		order[i] = i
	}
	youngest := func(i int) int { return s.Existing[classes[i].nodes[len(classes[i].nodes)-1]].Number }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(youngest(b), youngest(a)) })
	bestLoss, bestTaken := 0, []int(nil)
	tries := 4000
	var take func(i, left int)
	take = func(i, left int) {
		if tries--; tries < 0 {
			return
		}
		if left > 0 && i == len(order) || ok && s.loss(classes, order[:i]) > bestLoss {
			return
		}
		if left > 0 {
			room := 0
			for _, k := range order[i:] {
				room += classes[k].n
			}
			if room < left {
				return
			}
			c := &classes[order[i]]
			n := c.n
			for m := min(n, left); m >= 0; m-- {
				c.n = n - m
				take(i+1, left-m)
			}
			c.n = n
			return
		}
		loss, taken := s.loss(classes, order), s.taken(classes)
		if ok && (loss > bestLoss || loss == bestLoss && slices.Compare(taken, bestTaken) <= 0) {
			return
		}
		st, valid := s.start(s.withFresh(classes, 0))
		if !valid || !s.feasible(st) {
			return
		}
		best, kept, bestLoss, bestTaken, ok = st, slices.Clone(classes), loss, taken, true
	}
	s.takeGreedily(classes, surplus, func(chosen []class) {
		if st, valid := s.start(s.withFresh(chosen, 0)); valid && s.feasible(st) {
			best, kept, ok = st, slices.Clone(chosen), true
			bestLoss, bestTaken = s.loss(chosen, order), s.taken(chosen)
		}
	})
	if ok && bestLoss == 0 && len(classes) > 6 {
		return best, kept, ok
	}
	take(0, surplus)
	if tries < 0 && !ok {
		s.gaveUp = true
	}
	return best, kept, ok
}

// takeGreedily takes nodes one by one, each time the one that matters least, and of these the youngest.
func (s *solver) takeGreedily(classes []class, surplus int, done func([]class)) {
	classes = slices.Clone(classes)
	every := make([]int, len(classes))
	for i := range every {
		every[i] = i
	}
	for ; surplus > 0; surplus-- {
		best, bestLoss, bestNumber := -1, 0, 0
		for i := range classes {
			if classes[i].n == 0 {
				continue
			}
			number := s.Existing[classes[i].nodes[classes[i].n-1]].Number
			classes[i].n--
			loss := s.loss(classes, every)
			classes[i].n++
			if best < 0 || loss < bestLoss || loss == bestLoss && number > bestNumber {
				best, bestLoss, bestNumber = i, loss, number
			}
		}
		classes[best].n--
	}
	done(classes)
}

// loss counts the services that have to be added to other nodes, when only the classes in decided lose any.
func (s *solver) loss(classes []class, decided []int) int {
	counted := make([]bool, len(classes))
	for _, i := range decided {
		counted[i] = true
	}
	total := 0
	for b := range s.blocks {
		has := 0
		for i := range classes {
			if classes[i].base.has(b) {
				has += classes[i].n
			}
		}
		if s.blocks[b].old {
			total += max(s.blocks[b].need-has, 0) * len(s.blocks[b].services)
		}
	}
	return total
}

// taken lists the numbers of the nodes that are gone, the youngest first: the greater the list, the younger they are.
func (s *solver) taken(classes []class) []int {
	var out []int
	for i := range classes {
		for _, n := range classes[i].nodes[classes[i].n:] {
			out = append(out, s.Existing[n].Number)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(b, a) })
	return out
}

// decision is nodes of a class that are decided.
type decision struct {
	n               int
	blocks          set
	hardware, image int
}

// decide chooses among the layouts of a state that has some.
func (s *solver) decide(st state, kept []class) []Node {
	st, from := s.spare(st, kept)
	fresh := s.fill(&st, len(st.classes)-1)
	next := s.next()
	var out []Node
	taken := make([]int, len(kept)) // nodes of a class that are decided
	for i := range st.classes[:len(st.classes)-1] {
		class := from[i]
		for _, d := range s.fill(&st, i) {
			for range d.n {
				old := s.Existing[kept[class].nodes[taken[class]]]
				taken[class]++
				out = append(out, s.node(old.Number, d))
			}
		}
	}
	for _, d := range fresh {
		for range d.n {
			out = append(out, s.node(next, d))
			next++
		}
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

func (s *solver) node(number int, d decision) Node {
	n := Node{Number: number, HardwareType: s.hardwareNames[d.hardware], ImageType: s.imageNames[d.image]}
	n.Services = slices.Clone(s.everywhere)
	for b := range d.blocks.all {
		n.Services = append(n.Services, s.blocks[b].services...)
	}
	slices.Sort(n.Services)
	return n
}

// spare forbids what existing nodes need not get: services that the cluster had before. It returns for each class
// which of the kept it is of.
func (s *solver) spare(st state, kept []class) (state, []int) {
	from := make([]int, len(kept), len(kept)+8)
	for i := range from {
		from[i] = i
	}
	var old set
	for b := range s.blocks {
		if s.blocks[b].old {
			old.add(b)
		}
	}
	none := st.clone()
	for i := range kept {
		none.classes[i].may = none.classes[i].may.minus(old)
	}
	if s.feasible(none) {
		return none, from
	}
	for b := range old.all {
		for i := 0; i < len(st.classes)-1; i++ {
			c := st.classes[i]
			if c.n == 0 || !c.may.has(b) {
				continue
			}
			// The fewest nodes of the class that may get b.
			split := func(n int) state {
				t := st.clone()
				t.classes[i].n, t.classes[i].may = c.n-n, c.may.without(b)
				more := c
				more.n = n
				t.classes = slices.Insert(t.classes, i+1, more)
				return t
			}
			n := least(c.n, func(n int) bool { return s.feasible(split(n)) })
			st = split(n)
			from = slices.Insert(from, i+1, from[i])
			i++
		}
	}
	return st, from
}

// least returns the smallest n up to most for which ok holds. It holds for most, and for all above one for which it
// holds.
func least(most int, ok func(int) bool) int {
	low := 0
	for high := most; low < high; {
		if mid := (low + high) / 2; ok(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// fill decides all nodes of a class, the best first.
func (s *solver) fill(st *state, at int) []decision {
	var out []decision
	c := st.classes[at]
	hardware, image := c.hardware, c.image
	wishes := []struct{ hardware, image set }{
		{hardware.and(setOf(0)), image.and(setOf(0))},
		{hardware.and(setOf(0)), image},
		{hardware, image.and(setOf(0))},
		{hardware, image},
	}
	if !c.fresh {
		wishes = wishes[3:]
	}
	for i := 0; st.classes[at].n > 0 && i < len(wishes); {
		if wishes[i].hardware.empty() || wishes[i].image.empty() {
			i++
			continue
		}
		blocks, ok := s.best(st, at, wishes[i].hardware, wishes[i].image)
		if !ok {
			i++
			continue
		}
		h, m := wishes[i].hardware, wishes[i].image
		for b := range blocks.all {
			h, m = h.and(s.blocks[b].hardware), m.and(s.blocks[b].image)
		}
		total := st.classes[at].n
		rest := least(total-1, func(rest int) bool {
			return s.feasible(s.place(*st, at, total-rest, blocks))
		})
		*st = s.place(*st, at, total-rest, blocks)
		out = append(out, decision{total - rest, blocks, h.first(), m.first()})
	}
	return out
}

// place decides n nodes of a class.
func (s *solver) place(st state, at, n int, blocks set) state {
	st = st.clone()
	for b := range blocks.minus(st.classes[at].base).all {
		st.need[b] = max(st.need[b]-n, 0)
		st.most[b] -= n
		if st.most[b] < 0 {
			st.need[b] = catalogue.MaxSize + 1 // impossible
		}
	}
	st.classes[at].n -= n
	return st
}

// best returns the most services that one node of the class can have so that the others can still be decided.
func (s *solver) best(st *state, at int, hardware, image set) (set, bool) {
	one := st.classes[at]
	one.n, one.hardware, one.image = 1, hardware, image
	// with is the state in which one node has these blocks, and may get those others.
	with := func(blocks, may set) state {
		t := s.place(*st, at, 1, blocks)
		probe := one
		probe.base, probe.may = blocks, may
		t.classes = append(t.classes, probe)
		return t
	}
	if !s.valid(&one, one.base) || !s.feasible(with(one.base, one.may)) {
		return set{}, false
	}
	var order []int
	for b := range one.may.all {
		if st.most[b] > 0 {
			order = append(order, b)
		}
	}
	var best set
	bestSize, found, tries := -1, false, 400
	var choose func(i int, blocks, may set, size int)
	choose = func(i int, blocks, may set, size int) {
		if tries--; found && tries < 0 {
			return
		}
		c := one
		c.may = may
		left := size
		for _, b := range order[i:] {
			if may.has(b) && s.fits(&c, blocks, b) {
				left += len(s.blocks[b].services)
			}
		}
		if left <= bestSize {
			return
		}
		for ; i < len(order); i++ {
			b := order[i]
			if !s.fits(&c, blocks, b) {
				may = may.without(b)
				continue
			}
			taken := s.feasible(with(blocks.with(b), may.without(b)))
			if taken {
				choose(i+1, blocks.with(b), may.without(b), size+len(s.blocks[b].services))
			}
			may = may.without(b)
			if taken && left-len(s.blocks[b].services) <= bestSize {
				return
			}
			if taken && !s.feasible(with(blocks, may)) {
				return
			}
			choose(i+1, blocks, may, size)
			return
		}
		if size > bestSize {
			best, bestSize, found = blocks, size, true
		}
	}
	choose(0, one.base, one.may, 0)
	return best, found
}
