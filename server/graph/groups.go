package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// groups answers with groups: the finest grouping that people can read, unless the query chooses one.
func (g *Graphs) groups(ctx context.Context, env intent.EnvironmentID, q Query) (Graph, error) {
	choices := []Collapse{q.By}
	if q.By == Auto {
		switch {
		case q.Scope.Agent != "":
			choices = []Collapse{ByType}
		case q.Scope.Type != "":
			choices = []Collapse{ByAgent}
		case g.coarse.has(g.versionOf(ctx, env, q.Scope)): // tried before
			choices = []Collapse{ByType}
		default:
			choices = []Collapse{ByAgentType, ByType}
		}
	}
	var out Graph
	var found []intent.GraphGroup
	for i, by := range choices {
		limit := MaxNodes
		last := i == len(choices)-1
		if !last {
			limit = readable
		}
		var err error
		found, out.Groups, out.Total, err = g.store.GraphGroups(ctx, env, q.Scope, by.grouping(), limit)
		if err != nil {
			return Graph{}, err
		}
		if out.By = by; last || out.Groups <= readable {
			break
		}
		g.coarse.add(g.versionOf(ctx, env, q.Scope))
	}
	out.Cut = out.Groups > len(found)
	slices.SortFunc(found, func(a, b intent.GraphGroup) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Type, b.Type))
	})
	index := make(map[intent.GraphGroupKey]int, len(found))
	for i := range found {
		index[found[i].GraphGroupKey] = i
		out.Nodes = append(out.Nodes, Node{Group: &found[i]})
	}
	edges, ready, err := g.groupEdges(ctx, env, q.Scope, out.By)
	if err != nil {
		return Graph{}, err
	}
	out.Counting = !ready
	blocking, err := g.store.GraphGroupBlocking(ctx, env, q.Scope, out.By.grouping(), MaxEdges)
	if err != nil {
		return Graph{}, err
	}
	blocked := map[[2]intent.GraphGroupKey]bool{}
	for _, e := range blocking {
		blocked[[2]intent.GraphGroupKey{e.From, e.To}] = true
	}
	for _, e := range edges {
		from, known := index[e.From]
		to, both := index[e.To]
		if known && both {
			out.Edges = append(out.Edges, Edge{
				From: from, To: to, Count: e.Edges, Blocking: blocked[[2]intent.GraphGroupKey{e.From, e.To}],
			})
		}
	}
	return out, nil
}

// groupEdges returns the edges between groups. They depend on the version only, so that they are counted once for each.
func (g *Graphs) groupEdges(
	ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope, by Collapse,
) ([]intent.GraphGroupEdge, bool, error) {
	v, err := g.store.ActiveVersion(ctx, env)
	if err != nil || v == nil {
		return nil, true, err
	}
	scope.Statuses = nil
	return g.edges.get(ctx, edgeKey{env, v.Number, scope.Agent, scope.Type, scope.Set, by})
}

// versionOf names the active version within a scope; its groups by agent and type stay as many as long as it is active.
func (g *Graphs) versionOf(ctx context.Context, env intent.EnvironmentID, scope intent.GraphScope) edgeKey {
	v, err := g.store.ActiveVersion(ctx, env)
	if err != nil || v == nil || len(scope.Statuses) > 0 {
		return edgeKey{}
	}
	return edgeKey{env, v.Number, scope.Agent, scope.Type, scope.Set, ByAgentType}
}

// keySet remembers some keys, but not too many of them.
type keySet struct {
	mu   sync.Mutex
	keys map[edgeKey]bool
}

func (s *keySet) has(key edgeKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

func (s *keySet) add(key edgeKey) {
	if key == (edgeKey{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil || len(s.keys) >= cached {
		s.keys = map[edgeKey]bool{}
	}
	s.keys[key] = true
}

// edgeKey names edges in the cache.
type edgeKey struct {
	env              intent.EnvironmentID
	version          int
	agent, kind, set string
	by               Collapse
}

// edgeCache keeps the edges between groups, which take the database long to count in a large environment. A reader
// waits a short while; when the count takes longer, it goes on, and a later reader gets it.
type edgeCache struct {
	load func(context.Context, intent.EnvironmentID, intent.GraphScope, intent.GraphGrouping, int) (
		[]intent.GraphGroupEdge, error)

	mu      sync.Mutex
	entries map[edgeKey]*edgeEntry
	order   []edgeKey // oldest first
}

type edgeEntry struct {
	done  chan struct{}
	edges []intent.GraphGroupEdge
	err   error
}

// cached is how many graphs the cache keeps; counted is how long a count may take; patience is how long a reader waits.
const (
	cached   = 32
	counted  = time.Minute
	patience = 100 * time.Millisecond
)

// get returns edges, and whether they are counted.
func (c *edgeCache) get(ctx context.Context, key edgeKey) ([]intent.GraphGroupEdge, bool, error) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		e = &edgeEntry{done: make(chan struct{})}
		if c.entries == nil {
			c.entries = map[edgeKey]*edgeEntry{}
		}
		c.entries[key], c.order = e, append(c.order, key)
		if len(c.order) > cached {
			delete(c.entries, c.order[0])
			c.order = c.order[1:]
		}
		go c.count(key, e)
	}
	c.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.edges, true, e.err
	case <-timer.C:
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, fmt.Errorf("graph: %w", ctx.Err())
	}
}

// count counts edges for all who wait, so that the end of one reader's request does not end it.
func (c *edgeCache) count(key edgeKey, e *edgeEntry) {
	ctx, cancel := context.WithTimeout(context.Background(), counted)
	defer cancel()
	scope := intent.GraphScope{Agent: key.agent, Type: key.kind, Set: key.set}
	e.edges, e.err = c.load(ctx, key.env, scope, key.by.grouping(), MaxEdges)
	if e.err != nil { // the next reader tries again
		c.mu.Lock()
		if c.entries[key] == e {
			delete(c.entries, key)
			c.order = slices.DeleteFunc(c.order, func(k edgeKey) bool { return k == key })
		}
		c.mu.Unlock()
	}
	close(e.done)
}
