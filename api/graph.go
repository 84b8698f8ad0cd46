package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/graph"
)

// graphCalls answer what the page of the graph shows. Inmanta has no such call.
func (s *server) graphCalls(c *calls) {
	s.graphs = graph.New(s.store)
	v2(c, http.MethodGet, "/api/v2/graph",
		"Show which resources of the active version require which, and which block which: around a root, or of all "+
			"that match. At most 300 nodes; a larger graph is collapsed into groups.",
		access.SeeResources, s.getGraph)
}

// graphQuery asks for a graph.
type graphQuery struct {
	inEnvironment
	Root  *intent.ResourceID `arg:"root"`
	Depth int                `arg:"depth"`
	Agent string             `arg:"agent"`
	Type  string             `arg:"type"`
	Set   string             `arg:"resource_set"`
	State string             `arg:"state"`
	By    string             `arg:"collapse"`
}

// resourceGraph is a graph. Edges name nodes by their place in the list.
type resourceGraph struct {
	Collapse  string      `json:"collapse"`
	Nodes     []graphNode `json:"nodes"`
	Edges     []graphEdge `json:"edges"`
	Total     int         `json:"total"`     // resources that match
	Truncated bool        `json:"truncated"` // there is more than the bounds allow
	Counting  bool        `json:"counting"`  // edges between groups are still being counted
}

// graphNode is a resource, or a group when it has no id.
type graphNode struct {
	ResourceID  *string               `json:"resource_id"`
	Agent       string                `json:"agent"`
	Type        string                `json:"resource_type"`
	ResourceSet *string               `json:"resource_set"`
	Total       int                   `json:"total"`
	ByState     map[intent.Status]int `json:"by_state"`
	Parked      int                   `json:"parked"`
	Causes      int                   `json:"causes"`  // resources that block what requires them
	Blocked     int                   `json:"blocked"` // resources that something blocks that they require
}

// graphEdge says that to requires from.
type graphEdge struct {
	From     int  `json:"from"`
	To       int  `json:"to"`
	Count    int  `json:"count"`
	Blocking bool `json:"blocking"`
}

func (s *server) getGraph(ctx context.Context, a graphQuery) (resourceGraph, error) {
	g, err := s.graphs.Of(ctx, a.Env, graph.Query{
		Root: a.Root, Depth: a.Depth, By: graph.Collapse(a.By),
		Scope: intent.GraphScope{Agent: a.Agent, Type: a.Type, Set: a.Set, Statuses: graph.Statuses(a.State)},
	})
	out := resourceGraph{
		Collapse: string(g.By), Nodes: []graphNode{}, Edges: []graphEdge{}, Total: g.Total, Truncated: g.Cut,
		Counting: g.Counting,
	}
	number := map[bool]int{true: 1}
	for _, n := range g.Nodes {
		one := graphNode{Total: 1}
		if n.Group != nil {
			one.Agent, one.Type, one.Total, one.ByState = n.Group.Agent, n.Group.Type, n.Group.Total, n.Group.Counts
			one.Parked, one.Causes, one.Blocked = n.Group.Parked, n.Group.Cause, n.Group.Stuck
		} else {
			id := n.ID.String()
			one.ResourceID, one.Agent, one.Type, one.ResourceSet = &id, n.ID.Agent, n.ID.Type, orNull(n.Set)
			one.ByState = map[intent.Status]int{n.Status: 1}
			one.Parked, one.Causes, one.Blocked = number[n.Parked], number[n.Cause], number[n.Stuck]
		}
		out.Nodes = append(out.Nodes, one)
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, graphEdge(e))
	}
	return out, err
}
