package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Errors of NewVersion. The text names the resources.
var (
	ErrCycle     = errors.New("resources require each other in a circle")
	ErrDuplicate = errors.New("two resources have the same id")
	ErrOld       = errors.New("not newer than the version being deployed")
)

// graph is the order among the resources of one version. Resources are numbered by their id, so that nothing depends
// on the order in which they came.
//
// requires is as in the model. before is the order of work: the same, except that of two resources to be purged the
// one that requires the other goes first, as a file is removed before its folder. This applies to what a resource
// required already when it was last kept. What it has required only since it is to be purged (or when it was never
// kept) states itself what goes first, as in models that then let the folder require the file. Where turning an edge
// would close a circle (a kept resource lies between two purged ones) the model's order stays.
type graph struct {
	resources []*intent.Resource
	index     map[intent.ResourceID]int32
	requires  [][]int32
	provides  [][]int32
	before    [][]int32
	after     [][]int32
}

func newGraph(given []intent.Resource) (*graph, error) {
	n := len(given)
	resources := make([]*intent.Resource, n)
	for i := range given {
		resources[i] = &given[i]
	}
	slices.SortFunc(resources, func(a, b *intent.Resource) int { return a.ID.Compare(b.ID) })
	g := &graph{
		resources: resources,
		index:     make(map[intent.ResourceID]int32, n),
		requires:  make([][]int32, n),
	}
	for i := range resources {
		if i > 0 && resources[i].ID == resources[i-1].ID {
			return nil, fmt.Errorf("%s: %w", resources[i].ID, ErrDuplicate)
		}
		g.index[resources[i].ID] = int32(i)
	}
	for i := range resources {
		for _, id := range resources[i].Requires {
			// A resource that the version does not have cannot be waited for.
			if j, ok := g.index[id]; ok {
				g.requires[i] = append(g.requires[i], j)
			}
		}
		slices.Sort(g.requires[i])
		g.requires[i] = slices.Compact(g.requires[i])
	}
	if cycle := findCycle(g.requires); cycle != nil {
		names := make([]string, 0, len(cycle)+1)
		for _, i := range append(cycle, cycle[0]) {
			names = append(names, resources[i].ID.String())
		}
		return nil, fmt.Errorf("%w: %s", ErrCycle, strings.Join(names, " requires "))
	}
	g.provides = inverse(g.requires)
	g.before, g.after = g.requires, g.provides
	g.turnPurged()
	return g, nil
}

// turnPurged makes before and after; see graph.
func (g *graph) turnPurged() {
	both := func(i, j int32) bool {
		r, needed := g.resources[i], g.resources[j]
		return r.Purged && needed.Purged && slices.Contains(r.KeptRequires, needed.ID)
	}
	found := false
	for i := range g.requires {
		found = found || slices.ContainsFunc(g.requires[i], func(j int32) bool { return both(int32(i), j) })
	}
	if !found {
		return
	}
	turn := func(keep func(i, j int32) bool) [][]int32 {
		out := make([][]int32, len(g.requires))
		for i, list := range g.requires {
			for _, j := range list {
				if both(int32(i), j) && !keep(int32(i), j) {
					out[j] = append(out[j], int32(i))
				} else {
					out[i] = append(out[i], j)
				}
			}
		}
		for i := range out {
			slices.Sort(out[i])
		}
		return out
	}
	turned := turn(func(int32, int32) bool { return false })
	component := components(turned)
	g.before = turn(func(i, j int32) bool { return component[i] == component[j] })
	g.after = inverse(g.before)
}

func inverse(edges [][]int32) [][]int32 {
	degree := make([]int32, len(edges))
	total := 0
	for _, list := range edges {
		total += len(list)
		for _, j := range list {
			degree[j]++
		}
	}
	room := make([]int32, total)
	out := make([][]int32, len(edges))
	for i, d := range degree {
		out[i], room = room[:0:d], room[d:]
	}
	for i, list := range edges {
		for _, j := range list {
			out[j] = append(out[j], int32(i))
		}
	}
	return out
}

// findCycle returns one circle, each element requiring the next and the last the first, starting at its smallest
// member; nil when there is none.
func findCycle(edges [][]int32) []int32 {
	const (
		unseen = iota
		open
		done
	)
	state := make([]uint8, len(edges))
	next := make([]int32, len(edges))
	var path []int32
	for root := range edges {
		if state[root] != unseen {
			continue
		}
		path = append(path[:0], int32(root))
		state[root] = open
		for len(path) > 0 {
			i := path[len(path)-1]
			if int(next[i]) == len(edges[i]) {
				state[i] = done
				path = path[:len(path)-1]
				continue
			}
			j := edges[i][next[i]]
			next[i]++
			switch state[j] {
			case unseen:
				state[j] = open
				path = append(path, j)
			case open:
				cycle := slices.Clone(path[slices.Index(path, j):])
				least := slices.Index(cycle, slices.Min(cycle))
				return append(cycle[least:], cycle[:least]...)
			}
		}
	}
	return nil
}

// components numbers the strongly connected components (Tarjan, without recursion).
func components(edges [][]int32) []int32 {
	n := len(edges)
	component := make([]int32, n)
	order := make([]int32, n) // 0: unseen
	low := make([]int32, n)
	next := make([]int32, n)
	onStack := make([]bool, n)
	var stack, path []int32
	var count, clock int32
	for root := range edges {
		if order[root] != 0 {
			continue
		}
		path = append(path[:0], int32(root))
		for len(path) > 0 {
			i := path[len(path)-1]
			if order[i] == 0 {
				clock++
				order[i], low[i] = clock, clock
				stack = append(stack, i)
				onStack[i] = true
			}
			if int(next[i]) < len(edges[i]) {
				j := edges[i][next[i]]
				next[i]++
				if order[j] == 0 {
					path = append(path, j)
				} else if onStack[j] {
					low[i] = min(low[i], order[j])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				parent := path[len(path)-1]
				low[parent] = min(low[parent], low[i])
			}
			if low[i] == order[i] {
				for {
					j := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					onStack[j] = false
					component[j] = count
					if j == i {
						break
					}
				}
				count++
			}
		}
	}
	return component
}
