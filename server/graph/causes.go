package graph

import (
	"context"
	"slices"

	"ordain.dev/ordain/internal/intent"
)

// Bounds of the search for causes. Chains that are longer have a cause all the same; nobody is told which.
const (
	maxCauseSteps   = 64
	maxCauseFront   = 200 // resources that are looked at in one step
	blockersOfOne   = 10
	maxCauseVisited = 2000
)

// Causes says because of what resources cannot be deployed, however far away that is: of all that failed, is parked or
// has a value that is not known, what is nearest. Resources that wait for nothing of that kind are left out.
func (g *Graphs) Causes(
	ctx context.Context, env intent.EnvironmentID, of []intent.ResourceID,
) (map[intent.ResourceID]intent.GraphCause, error) {
	blockers := map[intent.ResourceID][]intent.GraphNode{}
	seen := map[intent.ResourceID]bool{}
	var front []intent.ResourceID
	look := func(id intent.ResourceID) {
		if !seen[id] && len(seen) < maxCauseVisited && len(front) < maxCauseFront {
			seen[id] = true
			front = append(front, id)
		}
	}
	for _, id := range of {
		look(id)
	}
	for range maxCauseSteps {
		if len(front) == 0 {
			break
		}
		found, err := g.store.GraphBlocking(ctx, env, front, blockersOfOne)
		if err != nil {
			return nil, err
		}
		front = nil
		for _, b := range found {
			blockers[b.Of] = append(blockers[b.Of], b.GraphNode)
		}
		// Where a cause is found, nothing behind its brothers is nearer.
		for _, b := range found {
			if !slices.ContainsFunc(blockers[b.Of], func(n intent.GraphNode) bool { return n.Cause }) {
				look(b.ID)
			}
		}
	}
	out := map[intent.ResourceID]intent.GraphCause{}
	for _, id := range of {
		if cause, ok := nearestCause(id, blockers); ok {
			out[id] = cause
		}
	}
	return out, nil
}

// nearestCause walks from a resource to what blocks it, step by step, until it finds a cause.
func nearestCause(
	id intent.ResourceID, blockers map[intent.ResourceID][]intent.GraphNode,
) (intent.GraphCause, bool) {
	from := map[intent.ResourceID]intent.ResourceID{}
	for front := []intent.ResourceID{id}; len(front) > 0; {
		var next []intent.ResourceID
		for _, at := range front {
			for _, b := range blockers[at] {
				if _, been := from[b.ID]; been || b.ID == id {
					continue
				}
				from[b.ID] = at
				if b.Cause {
					out := intent.GraphCause{GraphNode: b}
					for v := at; v != id; v = from[v] {
						out.Via = append(out.Via, v)
					}
					slices.Reverse(out.Via)
					return out, true
				}
				next = append(next, b.ID)
			}
		}
		front = next
	}
	return intent.GraphCause{}, false
}
