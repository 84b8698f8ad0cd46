package store

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

// graphRow is a resource in a graph.
type graphRow struct {
	ID          string
	Status      string
	ResourceSet string
	Parked      bool
	Cause       bool
	Stuck       bool
	Requires    int
}

func (r graphRow) value() (intent.GraphNode, error) {
	id, err := intent.ParseResourceID(r.ID)
	return intent.GraphNode{
		ID: id, Status: intent.Status(r.Status), Set: r.ResourceSet, Parked: r.Parked, Cause: r.Cause, Stuck: r.Stuck,
		Requires: r.Requires,
	}, err
}

// scopeArgs are the first arguments of the statements that have a scope.
func scopeArgs(env intent.EnvironmentID, scope intent.GraphScope, more ...any) []any {
	statuses := make([]string, 0, len(scope.Statuses))
	for _, s := range scope.Statuses {
		statuses = append(statuses, string(s))
	}
	return append([]any{env, scope.Agent, scope.Type, scope.Set, statuses}, more...)
}

// GraphNodes returns the resources of a scope, at most this many: those first that are not as intended.
func (s *Store) GraphNodes(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, limit int,
) ([]intent.GraphNode, error) {
	return listed(ctx, s, "store.GraphNodes", graphRow.value, statements.GraphNodes, scopeArgs(env, scope, limit)...)
}

// GraphCount counts the resources of a scope, up to this many.
func (s *Store) GraphCount(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, limit int,
) (count int, err error) {
	err = s.read(ctx, "store.GraphCount", func(q querier) error {
		return q.QueryRow(ctx, statements.GraphCount, scopeArgs(env, scope, limit)...).Scan(&count)
	})
	return count, err
}

// GraphNamed returns resources by their ids; those that the active version does not have are left out.
func (s *Store) GraphNamed(
	ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID,
) ([]intent.GraphNode, error) {
	return listed(ctx, s, "store.GraphNamed", graphRow.value, statements.GraphNamed, env, idTexts(ids))
}

// GraphNeeds returns what resources require within a scope, without those known, at most this many. With blocking, it
// returns only what keeps them from being deployed.
func (s *Store) GraphNeeds(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, of, known []intent.ResourceID,
	blocking bool, limit int,
) ([]intent.GraphNode, error) {
	return listed(ctx, s, "store.GraphNeeds", graphRow.value, statements.GraphNeeds,
		scopeArgs(env, scope, idTexts(of), idTexts(known), blocking, limit)...)
}

// GraphDependents returns what requires resources, within a scope, without those known, at most this many.
func (s *Store) GraphDependents(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, of, known []intent.ResourceID, limit int,
) ([]intent.GraphNode, error) {
	return listed(ctx, s, "store.GraphDependents", graphRow.value, statements.GraphDependents,
		scopeArgs(env, scope, idTexts(of), idTexts(known), limit)...)
}

// GraphBlocking returns what keeps each of some resources from being deployed: of each at most this many, causes first.
func (s *Store) GraphBlocking(
	ctx context.Context, env intent.EnvironmentID, of []intent.ResourceID, limit int,
) ([]intent.GraphBlocker, error) {
	type row struct {
		ToID string
		graphRow
	}
	return listed(ctx, s, "store.GraphBlocking", func(r row) (b intent.GraphBlocker, err error) {
		if b.GraphNode, err = r.value(); err != nil {
			return b, err
		}
		b.Of, err = intent.ParseResourceID(r.ToID)
		return b, err
	}, statements.GraphBlocking, env, idTexts(of), limit)
}

type graphEdgeRow struct{ FromID, ToID string }

func (r graphEdgeRow) value() (intent.GraphEdge, error) {
	ids, err := parseIDs([]string{r.FromID, r.ToID})
	if err != nil {
		return intent.GraphEdge{}, err
	}
	return intent.GraphEdge{From: ids[0], To: ids[1]}, nil
}

// GraphEdges returns the edges between resources, at most this many.
func (s *Store) GraphEdges(
	ctx context.Context, env intent.EnvironmentID, ids []intent.ResourceID, limit int,
) ([]intent.GraphEdge, error) {
	return listed(ctx, s, "store.GraphEdges", graphEdgeRow.value, statements.GraphEdges, env, idTexts(ids), limit)
}

type graphGroupRow struct {
	Agent, Type string
	Total       int
	Statuses    []string
	Counts      []int
	Parked      int
	Cause       int
	Stuck       int
	Groups      int
	Resources   int
}

// GraphGroups counts the resources of a scope by group and state, and returns at most this many groups: those first
// with the most resources that are not as intended. It also returns how many groups there are, and how many resources
// all of them have.
func (s *Store) GraphGroups(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, by intent.GraphGrouping, limit int,
) (out []intent.GraphGroup, groups, resources int, err error) {
	err = s.read(ctx, "store.GraphGroups", func(q querier) error {
		rows, err := many[graphGroupRow](ctx, q, statements.GraphGroups,
			scopeArgs(env, scope, by.Agent, by.Type, limit)...)
		out, groups, resources = nil, 0, 0
		for _, r := range rows {
			g := intent.GraphGroup{
				GraphGroupKey: intent.GraphGroupKey{Agent: r.Agent, Type: r.Type}, Total: r.Total,
				Counts: make(map[intent.Status]int, len(r.Statuses)), Parked: r.Parked, Cause: r.Cause, Stuck: r.Stuck,
			}
			for i, status := range r.Statuses {
				g.Counts[intent.Status(status)] = r.Counts[i]
			}
			out, groups, resources = append(out, g), r.Groups, r.Resources
		}
		return err
	})
	return out, groups, resources, err
}

type graphGroupEdgeRow struct {
	FromAgent, FromType, ToAgent, ToType string
	Edges                                int
}

func (r graphGroupEdgeRow) value() (intent.GraphGroupEdge, error) {
	return intent.GraphGroupEdge{
		From: intent.GraphGroupKey{Agent: r.FromAgent, Type: r.FromType},
		To:   intent.GraphGroupKey{Agent: r.ToAgent, Type: r.ToType}, Edges: r.Edges,
	}, nil
}

// GraphGroupEdges returns the edges between the groups of a scope, at most this many. They do not depend on states, so
// those of a version stay the same.
func (s *Store) GraphGroupEdges(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, by intent.GraphGrouping, limit int,
) ([]intent.GraphGroupEdge, error) {
	return listed(ctx, s, "store.GraphGroupEdges", graphGroupEdgeRow.value, statements.GraphGroupEdges,
		scopeArgs(env, scope, by.Agent, by.Type, limit)...)
}

// stuckCounted is how many stuck resources are looked at to find out which groups block which.
const stuckCounted = 2000

// GraphGroupBlocking returns the edges between groups whose end is stuck because of their start, at most this many.
func (s *Store) GraphGroupBlocking(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, by intent.GraphGrouping, limit int,
) ([]intent.GraphGroupEdge, error) {
	return listed(ctx, s, "store.GraphGroupBlocking", graphGroupEdgeRow.value, statements.GraphGroupBlocking,
		scopeArgs(env, scope, by.Agent, by.Type, limit, stuckCounted)...)
}
