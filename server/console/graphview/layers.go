package graphview

import "slices"

// drawing is a graph on its way to a picture. After bend, the numbers from nodes on are bends.
type drawing struct {
	nodes  int
	after  [][]int // the ends of the edges of each node, sorted, each once
	before [][]int
	alone  []int   // nodes without edges
	layer  []int   // of each node and bend
	layers [][]int // the nodes and bends of each layer, from top to bottom
	y      []int   // the upper edge of each node and bend
	// turned holds the edges that were turned round to break circles.
	turned map[Edge]bool
	// bends are the bends of the long edges of each start, one for each layer after its own.
	bends [][]int
}

func newDrawing(nodes int, edges []Edge) *drawing {
	d := &drawing{
		nodes: nodes, after: make([][]int, nodes), before: make([][]int, nodes), turned: map[Edge]bool{},
	}
	for _, e := range edges {
		if d.joins(e) {
			d.after[e.From] = append(d.after[e.From], e.To)
		}
	}
	d.link()
	return d
}

// joins reports whether an edge joins two nodes of the graph.
func (d *drawing) joins(e Edge) bool {
	return e.From != e.To && e.From >= 0 && e.From < d.nodes && e.To >= 0 && e.To < d.nodes
}

// link sorts the ends of all edges, and sets where the edges of each node come from.
func (d *drawing) link() {
	for v := range d.before {
		d.before[v] = nil
	}
	for v := range d.after {
		slices.Sort(d.after[v])
		d.after[v] = slices.Compact(d.after[v])
		for _, w := range d.after[v] {
			d.before[w] = append(d.before[w], v)
		}
	}
}

// breakCircles turns round the edges that lead back to where a walk along the edges came from.
func (d *drawing) breakCircles() {
	const unseen, open, done = 0, 1, 2
	state := make([]int, d.nodes)
	next := make([]int, d.nodes)
	visit := func(start int) {
		stack := []int{start}
		state[start] = open
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			if next[v] == len(d.after[v]) {
				state[v] = done
				stack = stack[:len(stack)-1]
				continue
			}
			w := d.after[v][next[v]]
			next[v]++
			switch state[w] {
			case open:
				d.turned[Edge{v, w}] = true
			case unseen:
				state[w] = open
				stack = append(stack, w)
			}
		}
	}
	for v := range d.nodes { // where nothing leads to comes first, so that few edges are turned
		if len(d.before[v]) == 0 && state[v] == unseen {
			visit(v)
		}
	}
	for v := range d.nodes {
		if state[v] == unseen {
			visit(v)
		}
	}
	if len(d.turned) == 0 {
		return
	}
	old := d.after
	d.after = make([][]int, d.nodes)
	for v, ends := range old {
		for _, w := range ends {
			if d.turned[Edge{v, w}] {
				d.after[w] = append(d.after[w], v)
			} else {
				d.after[v] = append(d.after[v], w)
			}
		}
	}
	d.link()
}

// sorted returns the nodes such that edges lead forward. Nodes of circles are left out, and what comes after them.
func (d *drawing) sorted() []int {
	open := make([]int, d.nodes)
	order := make([]int, 0, d.nodes)
	for v := range d.nodes {
		if open[v] = len(d.before[v]); open[v] == 0 {
			order = append(order, v)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, w := range d.after[order[i]] {
			if open[w]--; open[w] == 0 {
				order = append(order, w)
			}
		}
	}
	return order
}

// setLayers puts each node as far left as its edges allow, and then moves those to the right that have more edges that
// way, so that edges get shorter.
func (d *drawing) setLayers() {
	d.layer = make([]int, d.nodes)
	order := d.sorted()
	for _, v := range order {
		for _, w := range d.after[v] {
			d.layer[w] = max(d.layer[w], d.layer[v]+1)
		}
	}
	for _, v := range slices.Backward(order) {
		if len(d.after[v]) > len(d.before[v]) {
			to := d.layer[d.after[v][0]]
			for _, w := range d.after[v] {
				to = min(to, d.layer[w])
			}
			d.layer[v] = to - 1
		}
	}
	for _, v := range order {
		if len(d.after[v])+len(d.before[v]) == 0 {
			d.alone = append(d.alone, v)
			continue
		}
		for len(d.layers) <= d.layer[v] {
			d.layers = append(d.layers, nil)
		}
		d.layers[d.layer[v]] = append(d.layers[d.layer[v]], v)
	}
}

// bend puts bends into the layers that long edges cross.
func (d *drawing) bend() {
	d.bends = make([][]int, d.nodes)
	total := 0
	for v := range d.nodes {
		total += max(0, d.farthest(v)-d.layer[v]-1)
	}
	after := make([][]int, d.nodes, d.nodes+total)
	if total > maxBends {
		for v := range d.nodes { // long edges do not count: they run straight
			for _, w := range d.after[v] {
				if d.layer[w] == d.layer[v]+1 {
					after[v] = append(after[v], w)
				}
			}
		}
		d.relink(after)
		return
	}
	for v := range d.nodes {
		last := v
		for l := d.layer[v] + 1; l < d.farthest(v); l++ {
			b := len(after)
			after = append(after, nil)
			d.layer = append(d.layer, l)
			d.layers[l] = append(d.layers[l], b)
			d.bends[v] = append(d.bends[v], b)
			after[last] = append(after[last], b)
			last = b
		}
		for _, w := range d.after[v] {
			from := v
			if n := d.layer[w] - d.layer[v] - 1; n > 0 {
				from = d.bends[v][n-1]
			}
			after[from] = append(after[from], w)
		}
	}
	d.relink(after)
}

func (d *drawing) relink(after [][]int) {
	d.after, d.before = after, make([][]int, len(after))
	d.link()
}

// farthest is the layer of the farthest end of a node's edges.
func (d *drawing) farthest(v int) int {
	out := d.layer[v]
	for _, w := range d.after[v] {
		out = max(out, d.layer[w])
	}
	return out
}
