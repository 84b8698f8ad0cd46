package scheduler

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The order of work is never a circle, whatever is to be purged.
func TestTurnedEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := newGraph(modelGen(3, 13).Draw(t, "model"))
		if err != nil {
			t.Fatal(err)
		}
		if c := findCycle(g.before); c != nil {
			t.Fatalf("a circle: %v", c)
		}
		edges := 0
		for i := range g.before {
			edges += len(g.before[i]) - len(g.requires[i])
		}
		if edges != 0 {
			t.Fatalf("%d edges more or fewer than the model has", edges)
		}
		checkTurned(t, g)
	})
}

// checkTurned: an edge is turned only between two purged resources of which one required the other already when it
// was kept; and all such edges are turned where that makes no circle.
func checkTurned(t *rapid.T, g *graph) {
	all := make([][]int32, len(g.requires))
	may := func(i, j int32) bool {
		a, b := g.resources[i], g.resources[j]
		return a.Purged && b.Purged && slices.Contains(a.KeptRequires, b.ID)
	}
	turned := 0
	for i, list := range g.requires {
		for _, j := range list {
			from, to := int32(i), j
			if may(from, to) {
				from, to = to, from
				turned++
			}
			all[from] = append(all[from], to)
		}
	}
	for i, list := range g.before {
		for _, j := range list {
			if !slices.Contains(g.requires[i], j) && !may(j, int32(i)) {
				t.Fatalf("%s goes after %s, and nothing says so", g.resources[i].ID, g.resources[j].ID)
			}
		}
	}
	if findCycle(all) != nil {
		return
	}
	for i := range all {
		if slices.Sort(all[i]); !slices.Equal(all[i], g.before[i]) {
			t.Fatalf("%s goes after %v, want %v (%d could be turned)", g.resources[i].ID, g.before[i], all[i], turned)
		}
	}
}

// The order of work does not depend on the order in which resources, or their requirements, are listed.
func TestTurnedEdgesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := modelGen(3, 13).Draw(t, "model")
		g, err := newGraph(model)
		if err != nil {
			t.Fatal(err)
		}
		other := slices.Clone(model)
		slices.Reverse(other)
		for i := range other {
			other[i].Requires = slices.Clone(other[i].Requires)
			slices.Reverse(other[i].Requires)
			other[i].KeptRequires = slices.Clone(other[i].KeptRequires)
			slices.Reverse(other[i].KeptRequires)
		}
		h, err := newGraph(other)
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.before {
			if !slices.Equal(g.before[i], h.before[i]) {
				t.Fatalf("%s goes after %v or %v", g.resources[i].ID, g.before[i], h.before[i])
			}
		}
	})
}
