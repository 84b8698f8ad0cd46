// Package graph chooses what a graph of an environment shows, and marks what blocks what. The console draws its answer,
// and the API sends it.
//
//	query ─┬─ a root ─▶ its neighbourhood, and what blocks it
//	       ├─ a scope of at most MaxNodes resources ─▶ each of them
//	       └─ a larger scope ─▶ groups by agent, type or both, with counts
//
// Every answer is bounded: at most MaxNodes nodes and MaxEdges edges, however large the environment is. When there are
// more, the resources that are not as intended come first, and the answer says how many there are.
package graph

import (
	"context"
	"math"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// The bounds of an answer.
const (
	MaxNodes = 300
	MaxEdges = 3000
	MaxDepth = 10
	// DefaultDepth is how far a neighbourhood reaches when the query does not say.
	DefaultDepth = 2
	// readable is how many groups people can take in; when there are more, the grouping gets coarser.
	readable = 60
)

// Collapse says by what resources are drawn as one node.
type Collapse string

// Ways to collapse.
const (
	Auto        Collapse = ""           // as far as the bounds make it necessary
	Single      Collapse = "none"       // each resource is a node
	ByAgent     Collapse = "agent"      // one node for each agent
	ByType      Collapse = "type"       // one node for each type
	ByAgentType Collapse = "agent,type" // one node for the resources of one type on one agent
)

func (c Collapse) grouping() intent.GraphGrouping {
	return intent.GraphGrouping{Agent: c == ByAgent || c == ByAgentType, Type: c == ByType || c == ByAgentType}
}

// Query asks for a graph.
type Query struct {
	Root  *intent.ResourceID // nil: of all resources of the scope
	Depth int                // how far from the root; 0 is DefaultDepth
	Scope intent.GraphScope
	By    Collapse
}

// Validate reports what is wrong with a query.
func (q Query) Validate() error {
	if q.Depth < 0 || q.Depth > MaxDepth {
		return fault.New("graph", fault.Invalid, "the depth of a graph is 1 to 10").
			Hint("ask for a smaller depth, or for the graph of another resource")
	}
	switch q.By {
	case Auto, Single, ByAgent, ByType, ByAgentType:
		return nil
	}
	return fault.New("graph", fault.Invalid, "a graph can be collapsed by agent, type, or agent,type, or by none").
		Hint("choose one of these")
}

// Statuses returns the statuses that a filter on the state means: one, or with ! before it all others.
func Statuses(filter string) []intent.Status {
	if filter == "" {
		return nil
	}
	not, others := strings.CutPrefix(filter, "!")
	if !others {
		return []intent.Status{intent.Status(filter)}
	}
	return slices.DeleteFunc([]intent.Status{
		intent.StatusUnavailable, intent.StatusSkipped, intent.StatusDeployed, intent.StatusFailed,
		intent.StatusDeploying, intent.StatusAvailable, intent.StatusCancelled, intent.StatusUndefined,
		intent.StatusSkippedForUndefined, intent.StatusSkippedForDependency, intent.StatusNonCompliant,
	}, func(s intent.Status) bool { return string(s) == not })
}

// Node is a resource or a group of them.
type Node struct {
	intent.GraphNode // of a resource
	Group            *intent.GraphGroup
	Root             bool
}

// Edge says that To requires From, both by their place among the nodes. Blocking means that To is stuck because of
// From.
type Edge struct {
	From, To int
	Count    int // how many edges between resources it stands for
	Blocking bool
}

// Graph is what is shown.
type Graph struct {
	By    Collapse // how it is collapsed
	Nodes []Node
	Edges []Edge
	// Total is how many resources the scope has; Groups how many groups. For a neighbourhood, both are 0.
	Total, Groups int
	// Cut means that there is more than the bounds allow to show.
	Cut bool
	// Counting means that the edges between groups are still being counted.
	Counting bool
}

// Store is what graphs are made of.
type Store interface {
	GraphNodes(context.Context, intent.EnvironmentID, intent.GraphScope, int) ([]intent.GraphNode, error)
	GraphCount(context.Context, intent.EnvironmentID, intent.GraphScope, int) (int, error)
	GraphNamed(context.Context, intent.EnvironmentID, []intent.ResourceID) ([]intent.GraphNode, error)
	GraphNeeds(_ context.Context, _ intent.EnvironmentID, _ intent.GraphScope, of, known []intent.ResourceID,
		blocking bool, limit int) ([]intent.GraphNode, error)
	GraphBlocking(_ context.Context, _ intent.EnvironmentID, of []intent.ResourceID, limit int) (
		[]intent.GraphBlocker, error)
	GraphDependents(_ context.Context, _ intent.EnvironmentID, _ intent.GraphScope, of, known []intent.ResourceID,
		limit int) ([]intent.GraphNode, error)
	GraphEdges(context.Context, intent.EnvironmentID, []intent.ResourceID, int) ([]intent.GraphEdge, error)
	GraphGroups(context.Context, intent.EnvironmentID, intent.GraphScope, intent.GraphGrouping, int) (
		out []intent.GraphGroup, groups, resources int, err error)
	GraphGroupEdges(context.Context, intent.EnvironmentID, intent.GraphScope, intent.GraphGrouping, int) (
		[]intent.GraphGroupEdge, error)
	GraphGroupBlocking(context.Context, intent.EnvironmentID, intent.GraphScope, intent.GraphGrouping, int) (
		[]intent.GraphGroupEdge, error)
	ActiveVersion(context.Context, intent.EnvironmentID) (*intent.Version, error)
}

// Graphs answers queries. It may be used by many at once.
type Graphs struct {
	store Store
	edges edgeCache
	// coarse remembers which scopes have too many groups by agent and type.
	coarse keySet
}

// New returns graphs of what a store holds.
func New(s Store) *Graphs { return &Graphs{store: s, edges: edgeCache{load: s.GraphGroupEdges}} }

// Of answers a query.
func (g *Graphs) Of(ctx context.Context, env intent.EnvironmentID, q Query) (Graph, error) {
	if err := q.Validate(); err != nil {
		return Graph{}, err
	}
	if q.Root != nil {
		nodes, cut, err := g.around(ctx, env, q)
		if err != nil {
			return Graph{}, err
		}
		return g.join(ctx, env, Graph{By: q.By, Cut: cut}, nodes, q)
	}
	total, err := g.store.GraphCount(ctx, env, q.Scope, MaxNodes+1)
	if err != nil {
		return Graph{}, err
	}
	one := q.Scope.Agent != "" && q.Scope.Type != "" // there is nothing to collapse by
	if total > MaxNodes && !one && q.By != Single || q.By.grouping() != (intent.GraphGrouping{}) {
		return g.groups(ctx, env, q)
	}
	if total > MaxNodes {
		if total, err = g.store.GraphCount(ctx, env, q.Scope, math.MaxInt32); err != nil {
			return Graph{}, err
		}
	}
	nodes, err := g.store.GraphNodes(ctx, env, q.Scope, MaxNodes)
	if err != nil {
		return Graph{}, err
	}
	return g.join(ctx, env, Graph{By: Single, Total: total, Cut: total > len(nodes)}, nodes, q)
}

// around returns the root, what is near it, and all that blocks the root, however far away that is.
func (g *Graphs) around(
	ctx context.Context, env intent.EnvironmentID, q Query,
) (nodes []intent.GraphNode, cut bool, err error) {
	nodes, err = g.store.GraphNamed(ctx, env, []intent.ResourceID{*q.Root})
	if err != nil {
		return nil, false, err
	}
	if len(nodes) == 0 {
		return nil, false, fault.New("graph", fault.NotFound, "the active version has no resource "+q.Root.String()).
			Hint("choose a resource from the list of resources")
	}
	known := []intent.ResourceID{*q.Root}
	take := func(more []intent.GraphNode) (ids []intent.ResourceID) {
		if room := MaxNodes - len(nodes); len(more) > room {
			more, cut = more[:room], true
		}
		for _, n := range more {
			ids = append(ids, n.ID)
		}
		nodes, known = append(nodes, more...), append(known, ids...)
		return ids
	}
	for front := known; len(front) > 0 && nodes[0].Stuck; { // the way to the cause comes before everything else
		more, err := g.store.GraphNeeds(ctx, env, intent.GraphScope{}, front, known, true, MaxNodes-len(nodes)+1)
		if err != nil {
			return nil, false, err
		}
		front = take(more)
	}
	depth := q.Depth
	if depth == 0 {
		depth = DefaultDepth
	}
	needs, dependents := known[:1], known[:1]
	seenNeeds := map[intent.ResourceID]bool{}
	for range depth {
		more, err := g.store.GraphNeeds(ctx, env, q.Scope, needs, known, false, MaxNodes-len(nodes)+1)
		if err != nil {
			return nil, false, err
		}
		before := needs
		needs = take(more)
		for _, id := range before {
			seenNeeds[id] = true
		}
		// What is on the way to the cause is known already; its needs are looked for, too.
		for _, n := range nodes[1:] {
			if (n.Stuck || n.Cause) && !seenNeeds[n.ID] && !slices.Contains(needs, n.ID) && nodes[0].Stuck {
				needs = append(needs, n.ID)
			}
		}
		more, err = g.store.GraphDependents(ctx, env, q.Scope, dependents, known, MaxNodes-len(nodes)+1)
		if err != nil {
			return nil, false, err
		}
		dependents = take(more)
	}
	return nodes, cut, nil
}

// join adds the edges between resources, and collapses them when the query wants it.
func (g *Graphs) join(
	ctx context.Context, env intent.EnvironmentID, out Graph, nodes []intent.GraphNode, q Query,
) (Graph, error) {
	slices.SortFunc(nodes, func(a, b intent.GraphNode) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	ids := make([]intent.ResourceID, len(nodes))
	index := make(map[intent.ResourceID]int, len(nodes))
	for i, n := range nodes {
		ids[i], index[n.ID] = n.ID, i
		out.Nodes = append(out.Nodes, Node{GraphNode: n, Root: q.Root != nil && n.ID == *q.Root})
	}
	edges, err := g.store.GraphEdges(ctx, env, ids, MaxEdges+1)
	if err != nil {
		return Graph{}, err
	}
	if len(edges) > MaxEdges {
		edges, out.Cut = edges[:MaxEdges], true
	}
	for _, e := range edges {
		from, to := index[e.From], index[e.To]
		out.Edges = append(out.Edges, Edge{
			From: from, To: to, Count: 1, Blocking: nodes[to].Stuck && (nodes[from].Cause || nodes[from].Stuck),
		})
	}
	if by := q.By.grouping(); by.Agent || by.Type {
		return collapse(out, by), nil
	}
	out.By = Single
	return out, nil
}

// collapse draws the resources of a group as one node, but for the root.
func collapse(g Graph, by intent.GraphGrouping) Graph {
	out := Graph{By: g.By, Total: g.Total, Cut: g.Cut}
	at := map[intent.GraphGroupKey]int{}
	place := make([]int, len(g.Nodes))
	for i, n := range g.Nodes {
		if n.Root {
			place[i] = len(out.Nodes)
			out.Nodes = append(out.Nodes, n)
			continue
		}
		var key intent.GraphGroupKey
		if by.Agent {
			key.Agent = n.ID.Agent
		}
		if by.Type {
			key.Type = n.ID.Type
		}
		if _, known := at[key]; !known {
			at[key] = len(out.Nodes)
			out.Nodes = append(out.Nodes, Node{
				Group: &intent.GraphGroup{GraphGroupKey: key, Counts: map[intent.Status]int{}},
			})
		}
		place[i] = at[key]
		group := out.Nodes[place[i]].Group
		group.Total++
		group.Counts[n.Status]++
		for count, yes := range map[*int]bool{&group.Parked: n.Parked, &group.Cause: n.Cause, &group.Stuck: n.Stuck} {
			if yes {
				*count++
			}
		}
	}
	edges := map[[2]int]int{}
	for _, e := range g.Edges {
		ends := [2]int{place[e.From], place[e.To]}
		if ends[0] == ends[1] {
			continue
		}
		if _, known := edges[ends]; !known {
			edges[ends] = len(out.Edges)
			out.Edges = append(out.Edges, Edge{From: ends[0], To: ends[1]})
		}
		one := &out.Edges[edges[ends]]
		one.Count++
		one.Blocking = one.Blocking || e.Blocking
	}
	out.Groups = len(at)
	return out
}
