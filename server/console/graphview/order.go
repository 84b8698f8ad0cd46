package graphview

import "slices"

// sweeps is how often the layers are ordered from one side and then from the other.
const sweeps = 12

// arrange orders each layer so that few edges cross: again and again, each node goes to the middle of its neighbours in
// the layer before, then in the layer after. The best order of all wins.
func (d *drawing) arrange() {
	place := make([]int, len(d.after)) // of each node in its layer
	number := func(layer []int) {
		for i, v := range layer {
			place[v] = i
		}
	}
	for _, layer := range d.layers {
		number(layer)
	}
	best, fewest := d.copyLayers(), d.crossings(place)
	middle := make([]float64, len(d.after))
	sortBy := func(layer []int, neighbours [][]int) {
		for _, v := range layer {
			middle[v] = float64(place[v])
			if near := neighbours[v]; len(near) > 0 {
				sum := 0
				for _, w := range near {
					sum += place[w]
				}
				middle[v] = float64(sum) / float64(len(near))
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int {
			switch {
			case middle[a] < middle[b]:
				return -1
			case middle[a] > middle[b]:
				return 1
			}
			return 0
		})
		number(layer)
	}
	idle := 0
	for range sweeps {
		if fewest == 0 || idle == 4 {
			break
		}
		for l := 1; l < len(d.layers); l++ {
			sortBy(d.layers[l], d.before)
		}
		for l := len(d.layers) - 2; l >= 0; l-- {
			sortBy(d.layers[l], d.after)
		}
		if n := d.crossings(place); n < fewest {
			best, fewest, idle = d.copyLayers(), n, 0
		} else {
			idle++
		}
	}
	d.layers = best
}

func (d *drawing) copyLayers() [][]int {
	out := make([][]int, len(d.layers))
	for i, layer := range d.layers {
		out[i] = slices.Clone(layer)
	}
	return out
}

// crossings counts the pairs of edges that cross, when nodes stand at these places in their layers.
func (d *drawing) crossings(place []int) int {
	total := 0
	var ends, tree []int
	for l := 0; l+1 < len(d.layers); l++ {
		size := len(d.layers[l+1])
		tree = append(tree[:0], make([]int, size+1)...) // a Fenwick tree: how many edges end at or before a place
		seen := 0
		for _, v := range d.layers[l] {
			ends = ends[:0]
			for _, w := range d.after[v] {
				ends = append(ends, place[w])
			}
			slices.Sort(ends)
			for _, e := range ends {
				before := 0
				for i := e + 1; i > 0; i -= i & -i {
					before += tree[i]
				}
				total += seen - before
			}
			for _, e := range ends {
				for i := e + 1; i <= size; i += i & -i {
					tree[i]++
				}
			}
			seen += len(ends)
		}
	}
	return total
}
