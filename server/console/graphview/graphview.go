// Package graphview lays out a graph in layers: nodes and edges in, positions out. It knows nothing of resources, pages
// or SVG, and does no input or output.
//
//	edges ─▶ circles broken ─▶ layers ─▶ long edges bent ─▶ order in each layer ─▶ coordinates
//
// The picture reads from left to right: an edge runs from its start, on the left, to its end, on the right. An edge
// that spans more than one layer passes through a bend in each layer between, so that it does not run across nodes;
// the long edges of one start share their bends. Nodes without edges stand in a grid below the rest.
//
// The same graph always gets the same picture, whatever its states are: nothing is random, and equal choices are made
// by number. This is the method of Sugiyama, Tagawa and Toda (1981); see docs/adr/0048 for why it is not a library.
package graphview

import "slices"

// Edge joins two nodes by their numbers, from 0.
type Edge struct{ From, To int }

// Sizes are the measures of a picture, in pixels.
type Sizes struct {
	Width, Height int // of a node
	GapX, GapY    int // between layers, and between the nodes of a layer
	Margin        int
}

// Place is where a node stands. X and Y are its upper left corner. Nodes without edges have the layer after the last.
type Place struct{ Layer, X, Y int }

// Point is a point of a path.
type Point struct{ X, Y int }

// Layout is a picture.
type Layout struct {
	Nodes  []Place
	Edges  [][]Point // the points of each edge, from its start to its end; none for an edge from a node to itself
	Order  []int     // the nodes by layer, and from top to bottom in each: the order in which to visit them
	Layers int
	Width  int
	Height int
}

// maxBends bounds the work on a graph of many long edges. Beyond it, they run straight.
const maxBends = 6000

// Lay lays out a graph of this many nodes. Edges that name no node are ignored.
func Lay(nodes int, edges []Edge, s Sizes) Layout {
	out := Layout{Nodes: make([]Place, nodes), Edges: make([][]Point, len(edges))}
	d := newDrawing(nodes, edges)
	d.breakCircles()
	d.setLayers()
	d.bend()
	d.arrange()
	d.place(s)
	out.Layers = len(d.layers)
	for _, layer := range d.layers {
		for _, v := range layer {
			if v < nodes {
				out.Order = append(out.Order, v)
				out.Nodes[v] = Place{d.layer[v], d.x(d.layer[v], s), d.y[v]}
			}
			out.Height = max(out.Height, d.y[v]+d.height(v, s)+s.Margin)
		}
	}
	out.Width = 2*s.Margin + max(0, out.Layers*(s.Width+s.GapX)-s.GapX)
	d.placeAlone(&out, s)
	for i, e := range edges {
		out.Edges[i] = d.path(e, s)
	}
	return out
}

// placeAlone puts nodes without edges into a grid below the layers.
func (d *drawing) placeAlone(out *Layout, s Sizes) {
	if len(d.alone) == 0 {
		return
	}
	top := s.Margin
	if out.Layers > 0 {
		top = out.Height - s.Margin + 2*s.GapY
	}
	columns := max(out.Layers, min(4, len(d.alone)))
	for i, v := range d.alone {
		column, row := i%columns, i/columns
		out.Nodes[v] = Place{out.Layers, d.x(column, s), top + row*(s.Height+s.GapY)}
		out.Order = append(out.Order, v)
		out.Height = max(out.Height, out.Nodes[v].Y+s.Height+s.Margin)
		out.Width = max(out.Width, out.Nodes[v].X+s.Width+s.Margin)
	}
}

// Implied reports for each edge whether it follows from others: a path of two edges or more leads from its start to its
// end. Without these edges, the graph says the same. Edges of circles never follow from others.
func Implied(nodes int, edges []Edge) []bool {
	d := newDrawing(nodes, edges)
	order := d.sorted()
	reached := make([]bitset, nodes) // where a path of one edge or more leads
	out := make([]bool, len(edges))
	far := make([]bitset, nodes) // where a path of two edges or more leads
	for _, v := range slices.Backward(order) {
		reached[v], far[v] = newBitset(nodes), newBitset(nodes)
		for _, w := range d.after[v] {
			if reached[w] != nil {
				far[v].add(reached[w])
			}
		}
		reached[v].add(far[v])
		for _, w := range d.after[v] {
			reached[v].set(w)
		}
	}
	for i, e := range edges {
		out[i] = d.joins(e) && far[e.From] != nil && far[e.To] != nil && far[e.From].has(e.To)
	}
	return out
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bitset) add(o bitset) {
	for i := range b {
		b[i] |= o[i]
	}
}
