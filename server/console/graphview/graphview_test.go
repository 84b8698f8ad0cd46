package graphview

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var sizes = Sizes{Width: 150, Height: 44, GapX: 40, GapY: 12, Margin: 4}

// drawn returns a generator of graphs, with circles, edges from nodes to themselves, and the same edge twice.
func drawn(t *rapid.T) (nodes int, edges []Edge) {
	nodes = rapid.IntRange(0, 40).Draw(t, "nodes")
	if nodes == 0 {
		return 0, nil
	}
	end := rapid.IntRange(0, nodes-1)
	for range rapid.IntRange(0, 80).Draw(t, "edges") {
		edges = append(edges, Edge{end.Draw(t, "from"), end.Draw(t, "to")})
	}
	return nodes, edges
}

// In every picture, no two nodes overlap, each node is inside, each edge leads from its start to its end in another
// layer and runs across no node, and each node is visited once, layer by layer.
func TestEveryPictureCanBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawn(t)
		l := Lay(nodes, edges, sizes)
		for i, a := range l.Nodes {
			if a.X < sizes.Margin || a.Y < sizes.Margin || a.X+sizes.Width > l.Width-sizes.Margin ||
				a.Y+sizes.Height > l.Height-sizes.Margin {
				t.Fatalf("node %d at %+v is outside of %d × %d", i, a, l.Width, l.Height)
			}
			for j, b := range l.Nodes[:i] {
				if a.X < b.X+sizes.Width && b.X < a.X+sizes.Width && a.Y < b.Y+sizes.Height+sizes.GapY &&
					b.Y < a.Y+sizes.Height+sizes.GapY {
					t.Fatalf("nodes %d at %+v and %d at %+v are too close", i, a, j, b)
				}
			}
		}
		for i, e := range edges {
			path := l.Edges[i]
			if e.From == e.To {
				if path != nil {
					t.Fatalf("an edge from %d to itself is drawn", e.From)
				}
				continue
			}
			from, to := l.Nodes[e.From], l.Nodes[e.To]
			if from.Layer == to.Layer {
				t.Fatalf("edge %v is within layer %d", e, from.Layer)
			}
			start := Point{from.X + sizes.Width, from.Y + sizes.Height/2}
			end := Point{to.X, to.Y + sizes.Height/2}
			if from.Layer > to.Layer {
				start.X, end.X = from.X, to.X+sizes.Width
			}
			if path[0] != start || path[len(path)-1] != end {
				t.Fatalf("edge %v runs from %v to %v, want %v to %v", e, path[0], path[len(path)-1], start, end)
			}
			for _, p := range path[1 : len(path)-1] {
				for j, n := range l.Nodes {
					if p.X >= n.X && p.X <= n.X+sizes.Width && p.Y >= n.Y && p.Y <= n.Y+sizes.Height {
						t.Fatalf("edge %v runs across node %d", e, j)
					}
				}
			}
		}
		if len(l.Order) != nodes {
			t.Fatalf("%d of %d nodes are visited", len(l.Order), nodes)
		}
		seen := map[int]bool{}
		for i, v := range l.Order {
			if seen[v] || i > 0 && l.Nodes[l.Order[i-1]].Layer > l.Nodes[v].Layer {
				t.Fatalf("the order %v is not by layer", l.Order)
			}
			seen[v] = true
		}
		if again := Lay(nodes, edges, sizes); !reflect.DeepEqual(l, again) {
			t.Fatalf("the same graph has two pictures:\n%+v\n%+v", l, again)
		}
	})
}

// In a graph without circles, all edges lead to the right.
func TestEdgesLeadToTheRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawn(t)
		for i, e := range edges {
			edges[i] = Edge{min(e.From, e.To), max(e.From, e.To)}
		}
		l := Lay(nodes, edges, sizes)
		for _, e := range edges {
			if e.From != e.To && l.Nodes[e.From].Layer >= l.Nodes[e.To].Layer {
				t.Fatalf("edge %v leads from layer %d to layer %d", e, l.Nodes[e.From].Layer, l.Nodes[e.To].Layer)
			}
		}
	})
}

// Without implied edges, each node still reaches the same ones.
func TestImpliedEdgesSayNothingNew(t *testing.T) {
	reach := func(nodes int, edges []Edge, skip []bool) [][]bool {
		out := make([][]bool, nodes)
		for v := range nodes {
			out[v] = make([]bool, nodes)
			stack := []int{v}
			for len(stack) > 0 {
				at := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				for i, e := range edges {
					if e.From == at && !out[v][e.To] && (skip == nil || !skip[i]) {
						out[v][e.To] = true
						stack = append(stack, e.To)
					}
				}
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawn(t)
		if !reflect.DeepEqual(reach(nodes, edges, nil), reach(nodes, edges, Implied(nodes, edges))) {
			t.Fatal("an edge is called implied that is not")
		}
	})
	if got := Implied(3, []Edge{{0, 1}, {1, 2}, {0, 2}}); !reflect.DeepEqual(got, []bool{false, false, true}) {
		t.Errorf("implied: %v", got)
	}
}

// A diamond has three layers and no crossing, whatever the order in which it is written.
func TestADiamondHasNoCrossing(t *testing.T) {
	l := Lay(6, []Edge{{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}}, sizes)
	above := l.Nodes[1].Y < l.Nodes[2].Y
	if l.Layers != 4 || above != (l.Nodes[3].Y < l.Nodes[4].Y) {
		t.Errorf("%+v", l.Nodes)
	}
}

// random returns a graph like those of models: each node requires up to two of those made shortly before.
func random(nodes int) (edges []Edge) {
	r := rand.New(rand.NewPCG(1, 2))
	for v := 1; v < nodes; v++ {
		for range r.IntN(3) {
			edges = append(edges, Edge{max(0, v-1-r.IntN(30)), v})
		}
	}
	return edges
}

// The worst graph that a page draws is laid out well within the time of a page.
func TestABigGraphIsQuick(t *testing.T) {
	var dense []Edge
	for v := range 300 {
		for w := v + 1; w < min(300, v+18); w++ {
			dense = append(dense, Edge{v, w})
		}
	}
	for name, edges := range map[string][]Edge{"of a model": random(300), "of many long edges": dense} {
		began := time.Now()
		Lay(300, edges, sizes)
		Implied(300, edges)
		if took := time.Since(began); took > 2*time.Second { // some 10 ms; a busy machine gets room
			t.Errorf("a graph %s took %v", name, took)
		}
	}
}

func BenchmarkLay(b *testing.B) {
	for _, nodes := range []int{30, 300, 1000} {
		edges := random(nodes)
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			for b.Loop() {
				Lay(nodes, edges, sizes)
			}
		})
	}
}
