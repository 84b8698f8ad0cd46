package graphview

import "math"

// rounds is how often nodes move towards their neighbours.
const rounds = 8

// bendHeight is the room of a bend, and bendGap the room around it.
const bendHeight, bendGap = 2, 8

// x is the left side of a layer.
func (d *drawing) x(layer int, s Sizes) int { return s.Margin + layer*(s.Width+s.GapX) }

func (d *drawing) height(v int, s Sizes) int {
	if v >= d.nodes {
		return bendHeight
	}
	return s.Height
}

// apart is how far the middles of two neighbours of a layer have to be from each other at least.
func (d *drawing) apart(above, below int, s Sizes) float64 {
	gap := s.GapY
	if above >= d.nodes || below >= d.nodes {
		gap = min(gap, bendGap)
	}
	return float64((d.height(above, s)+d.height(below, s)+1)/2 + gap)
}

// place sets how high all nodes and bends stand. In each round, a layer moves as close to its neighbours' middles as
// the order and the room of its nodes allow.
func (d *drawing) place(s Sizes) {
	middle := make([]float64, len(d.after))
	for _, layer := range d.layers {
		for i := 1; i < len(layer); i++ {
			middle[layer[i]] = middle[layer[i-1]] + d.apart(layer[i-1], layer[i], s)
		}
	}
	move := func(layer []int, neighbours [][]int) {
		wish := make([]float64, len(layer))
		for i, v := range layer {
			wish[i] = middle[v]
			if near := neighbours[v]; len(near) > 0 {
				wish[i] = 0
				for _, w := range near {
					wish[i] += middle[w]
				}
				wish[i] /= float64(len(near))
			}
		}
		d.settle(layer, wish, middle, s)
	}
	for range rounds {
		for l := 1; l < len(d.layers); l++ {
			move(d.layers[l], d.before)
		}
		for l := len(d.layers) - 2; l >= 0; l-- {
			move(d.layers[l], d.after)
		}
	}
	d.y = make([]int, len(d.after))
	top := math.Inf(1)
	for _, layer := range d.layers {
		for _, v := range layer {
			top = min(top, middle[v]-float64(d.height(v, s))/2)
		}
	}
	for _, layer := range d.layers {
		for i, v := range layer {
			d.y[v] = s.Margin + int(math.Round(middle[v]-float64(d.height(v, s))/2-top))
			if i > 0 { // rounding must not cost room
				above := layer[i-1]
				least := d.y[above] + d.height(above, s) + int(d.apart(above, v, s)) -
					(d.height(above, s)+d.height(v, s)+1)/2
				d.y[v] = max(d.y[v], least)
			}
		}
	}
}

// settle moves a layer as close to what its nodes wish as it can, by least squares: nodes that push each other form a
// block, which goes to the mean of the wishes in it.
func (d *drawing) settle(layer []int, wish, middle []float64, s Sizes) {
	type block struct {
		sum  float64
		size int
	}
	var blocks []block
	offset := make([]float64, len(layer)) // of each node, when all stand as close as they can
	for i := range layer {
		if i > 0 {
			offset[i] = offset[i-1] + d.apart(layer[i-1], layer[i], s)
		}
		blocks = append(blocks, block{wish[i] - offset[i], 1})
		for n := len(blocks); n > 1; n = len(blocks) {
			a, b := blocks[n-2], blocks[n-1]
			if a.sum/float64(a.size) < b.sum/float64(b.size) {
				break
			}
			blocks = append(blocks[:n-2], block{a.sum + b.sum, a.size + b.size})
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.size {
			middle[layer[i]] = b.sum/float64(b.size) + offset[i]
			i++
		}
	}
}

// path returns the points of an edge: the right side of its start, both ends of each bend, and the left side of its
// end. A turned edge leads from the left side of its start to the right side of its end.
func (d *drawing) path(e Edge, s Sizes) []Point {
	if !d.joins(e) {
		return nil
	}
	from, to := e.From, e.To
	turned := d.turned[e]
	if turned {
		from, to = to, from
	}
	middle := func(v int) int { return d.y[v] + d.height(v, s)/2 }
	points := []Point{{d.x(d.layer[from], s) + s.Width, middle(from)}}
	for i := range min(len(d.bends[from]), d.layer[to]-d.layer[from]-1) {
		b := d.bends[from][i]
		left := d.x(d.layer[b], s)
		points = append(points, Point{left, middle(b)}, Point{left + s.Width, middle(b)})
	}
	points = append(points, Point{d.x(d.layer[to], s), middle(to)})
	if turned {
		for i, j := 0, len(points)-1; i < j; i, j = i+1, j-1 {
			points[i], points[j] = points[j], points[i]
		}
	}
	return points
}
