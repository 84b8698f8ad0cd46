package console

import (
	"sync"

	"ordain.dev/ordain/server/console/graphview"
	"ordain.dev/ordain/server/graph"
)

// graphLayout is where the nodes and edges of a graph stand.
type graphLayout struct {
	graphview.Layout
	shape   string
	implied []bool // the edges that follow from others, and are not drawn
}

// graphLayouts keeps the layouts of the graphs that are looked at, since states move often and layouts do not.
type graphLayouts struct {
	mu   sync.Mutex
	kept map[string]graphLayout
}

// keptLayouts is how many layouts are kept; when there are more, all are forgotten.
const keptLayouts = 64

// of returns the layout of a graph.
func (l *graphLayouts) of(g graph.Graph) graphLayout {
	shape := shapeOf(g)
	l.mu.Lock()
	known, ok := l.kept[shape]
	l.mu.Unlock()
	if ok {
		return known
	}
	edges := make([]graphview.Edge, len(g.Edges))
	for i, e := range g.Edges {
		edges[i] = graphview.Edge{From: e.From, To: e.To}
	}
	out := graphLayout{
		Layout: graphview.Lay(len(g.Nodes), edges, graphSizes), shape: shape, implied: make([]bool, len(edges)),
	}
	if g.Groups == 0 { // between groups, each edge says something of its own
		out.implied = graphview.Implied(len(g.Nodes), edges)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil || len(l.kept) >= keptLayouts {
		l.kept = map[string]graphLayout{}
	}
	l.kept[shape] = out
	return out
}
