package solve

import "slices"

// simple returns the layout that shows that a state is feasible: each node has no more than is needed. It is for
// constraints so intricate that choosing the preferred layout takes too long.
func (s *solver) simple(st state, kept []class) []Node {
	if !s.feasible(st) {
		return nil
	}
	nodes := make([][]set, len(st.classes))
	count := make([]int, len(s.blocks)) // copies that are placed
	for i, c := range st.classes {
		nodes[i] = slices.Repeat([]set{c.base}, c.n)
	}
	// The placements of a part go on the first nodes of a class, one after the other; other parts do not mind.
	for _, part := range s.parts {
		used := make([]int, len(st.classes))
		for _, p := range s.trail {
			if !p.blocks.meets(part) {
				continue
			}
			for range p.n {
				for b := range p.blocks.all {
					if count[b] < st.need[b] { // fractions may place more
						nodes[p.class][used[p.class]].add(b)
						count[b]++
					}
				}
				used[p.class]++
			}
		}
	}
	if s.filled && !s.fillNodes(st, nodes, count) {
		return nil
	}
	var out []Node
	next := s.next()
	for i, c := range st.classes {
		for k, blocks := range nodes[i] {
			number := next
			if c.fresh {
				next++
			} else {
				number = s.Existing[kept[i].nodes[k]].Number
			}
			hardware, image := s.types(&c, blocks)
			out = append(out, s.node(number, decision{1, blocks, hardware.first(), image.first()}))
		}
	}
	slices.SortFunc(out, func(a, b Node) int { return a.Number - b.Number })
	return out
}

// fillNodes gives each empty node a block, by the exchange that the comment on packing and filling describes.
func (s *solver) fillNodes(st state, nodes [][]set, count []int) bool {
	given, ok := s.filling(st)
	if !ok {
		return false
	}
	type place struct{ class, node int }
	wish := map[place]int{} // the block of the filling
	var empty []place
	for i := range nodes {
		k := 0
		for b, n := range given[i] {
			for range n {
				wish[place{i, k}] = b
				k++
			}
		}
		for k, blocks := range nodes[i] {
			if blocks.empty() {
				empty = append(empty, place{i, k})
			}
		}
	}
	for len(empty) > 0 {
		at := empty[len(empty)-1]
		empty = empty[:len(empty)-1]
		b, found := wish[at]
		if !found {
			return false
		}
		nodes[at.class][at.node].add(b)
		if count[b]++; count[b] <= st.most[b] {
			continue
		}
		count[b]--
		from := place{-1, 0}
		for i := range nodes {
			for k, blocks := range nodes[i] {
				other := place{i, k}
				if w, has := wish[other]; other != at && blocks.minus(st.classes[i].base).has(b) && (!has || w != b) {
					from = other
				}
			}
		}
		if from.class < 0 {
			return false
		}
		rest := nodes[from.class][from.node].without(b)
		if nodes[from.class][from.node] = rest; rest.empty() {
			empty = append(empty, from)
		}
	}
	return true
}
