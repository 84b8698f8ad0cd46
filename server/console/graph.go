package console

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/console/graphview"
	"ordain.dev/ordain/server/graph"
)

// graphPage draws what requires what. Its picture stands still: only the states in it move, so that nothing jumps under
// the reader. When the nodes or edges change, the page is loaded again.
type graphPage struct {
	frame
	Filter graphFilter
	Head   graphHead
	Causes graphCauses
	Groups graphGroups
	Marks  graphMarks
	Nodes  []graphNode
	Lines  []string // the paths of the edges
	Width  int
	Height int
}

// graphFilter is the form above the picture.
type graphFilter struct {
	Root, Agent, Type, Set string
	States, Depths, By     []choice
	Any                    bool
}

// graphHead says in words what the picture shows.
type graphHead struct {
	Shape    string // changes when nodes or edges do
	Sentence string
	Notes    []string
	Empty    bool
}

// graphNode is a node in the picture.
type graphNode struct {
	Key   string // the id of the element that shows its state
	Name  string // as much as there is room for
	Title string
	URL   string
	State state
	Note  string
	Root  bool
	X, Y  int
}

// NameX and NameY are where the name of a node stands.
func (n graphNode) NameX() int { return n.X + 28 }
func (n graphNode) NameY() int { return n.Y + 18 }

// graphMarks are the edges from what blocks to what is blocked.
type graphMarks struct{ Lines []string }

// graphCauses lists what blocks other resources.
type graphCauses struct {
	Rows []graphCause
	More int
}

type graphCause struct {
	State state
	Name  string
	URL   string
	Stuck int // how many nodes cannot be deployed because of it
	Of    string
}

// graphGroups is the table of the groups in the picture.
type graphGroups struct{ Rows []graphGroupRow }

type graphGroupRow struct {
	Name   string
	URL    string
	Total  int
	States []graphCount
}

type graphCount struct {
	State state
	N     int
}

// The measures of the picture, and how much text a node has room for.
var graphSizes = graphview.Sizes{Width: 192, Height: 44, GapX: 48, GapY: 12, Margin: 4}

const graphNameRunes, graphNoteRunes = 19, 24

// shownCauses is how many causes the page lists.
const shownCauses = 12

func (c *console) graph(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	q, filter, err := graphQuery(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Graph", "graph", crumb{Text: "Graph"})
	if err != nil {
		return view{}, err
	}
	g, err := c.graphs.Of(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p := graphPage{frame: f, Filter: filter}
	p.draw(c.layouts.of(g), g, graphLinks{base: envURL(e.ID) + "/graph", now: r.URL.Query(), env: e.ID})
	p.Head.describe(g, q, p.Filter.Any)
	fragments := []fragment{
		{"graph-head", "graph-head", p.Head}, {"graph-causes", "graph-causes", p.Causes},
		{"graph-groups", "graph-groups", p.Groups}, {"graph-marks", "graph-marks", p.Marks},
	}
	for _, n := range p.Nodes {
		fragments = append(fragments, fragment{n.Key, "graph-state", n})
	}
	return view{template: "graph", data: p, fragments: fragments, again: countedBy(g)}, nil
}

// graphQuery reads from the address what to show.
func graphQuery(r *http.Request) (graph.Query, graphFilter, error) {
	get := func(name string) string { return strings.TrimSpace(r.URL.Query().Get(name)) }
	f := graphFilter{Root: get("root"), Agent: get("agent"), Type: get("type"), Set: get("set")}
	q := graph.Query{Scope: intent.GraphScope{Agent: f.Agent, Type: f.Type, Set: f.Set}, By: graph.Collapse(get("by"))}
	if f.Root != "" {
		id, err := intent.ParseResourceID(f.Root)
		if err != nil {
			return q, f, fault.Wrap("console.graph", fault.NotFound, err)
		}
		q.Root = &id
	}
	if text := get("depth"); text != "" {
		depth, err := strconv.Atoi(text)
		if err != nil {
			depth = -1
		}
		q.Depth = depth
	}
	status := get("state")
	q.Scope.Statuses = graph.Statuses(status)
	f.States = statusChoices(status)
	for i := 1; i <= 6; i++ {
		f.Depths = append(f.Depths, choice{
			Value: strconv.Itoa(i), Text: plural(i, "step"), Selected: i == cmp.Or(q.Depth, graph.DefaultDepth),
		})
	}
	for _, by := range []choice{
		{Value: string(graph.Auto), Text: "As needed"}, {Value: string(graph.Single), Text: "Not at all"},
		{Value: string(graph.ByAgent), Text: "By agent"}, {Value: string(graph.ByType), Text: "By type"},
		{Value: string(graph.ByAgentType), Text: "By agent and type"},
	} {
		by.Selected = by.Value == string(q.By)
		f.By = append(f.By, by)
	}
	f.Any = f.Root+f.Agent+f.Type+f.Set+status+string(q.By) != ""
	return q, f, q.Validate()
}

// countedBy returns when a page should be loaded again, since its picture lacks what is being counted. The picture
// stands still otherwise, so that no event would draw it.
func countedBy(g graph.Graph) time.Duration {
	if g.Counting {
		return 2 * time.Second
	}
	return 0
}

// describe says what the picture shows, and what it leaves out.
func (h *graphHead) describe(g graph.Graph, q graph.Query, filtered bool) {
	resources := "resources"
	if g.Total == 1 {
		resources = "resource"
	}
	switch {
	case len(g.Nodes) == 0:
		h.Empty = true
		h.Sentence = "No resource matches."
		if !filtered {
			h.Sentence = "Nothing is deployed yet, so there is nothing to draw."
		}
	case q.Root != nil:
		h.Sentence = fmt.Sprintf("%s and what is within %s of it.", q.Root,
			plural(cmp.Or(q.Depth, graph.DefaultDepth), "step"))
	case g.Groups > 0:
		h.Sentence = fmt.Sprintf("%s %s in %s.", count(g.Total), resources, plural(g.Groups, "group"))
	default:
		h.Sentence = fmt.Sprintf("%s %s.", count(g.Total), resources)
	}
	if g.Cut {
		h.Notes = append(h.Notes, fmt.Sprintf("There is more than one picture can show: these are %s, those first "+
			"that are not as intended. Filter, collapse, or choose a resource.", count(len(g.Nodes))))
	}
	if g.Counting {
		h.Notes = append(h.Notes, "What the groups require of each other is still being counted. The page is loaded "+
			"again in two seconds to show it.")
	}
}

// graphLinks makes the addresses of a graph's nodes.
type graphLinks struct {
	base string
	now  url.Values
	env  intent.EnvironmentID
}

func (l graphLinks) with(change map[string]string) string {
	values := url.Values{}
	for _, name := range []string{"root", "depth", "agent", "type", "set", "state", "by"} {
		value := l.now.Get(name)
		if changed, ok := change[name]; ok {
			value = changed
		}
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return l.base
	}
	return l.base + "?" + values.Encode()
}

func (l graphLinks) of(n graph.Node) string {
	switch {
	case n.Root:
		return resourceURL(l.env, n.ID)
	case n.Group == nil:
		return l.with(map[string]string{
			"root": n.ID.String(), "agent": "", "type": "", "set": "", "state": "", "by": "",
		})
	}
	change := map[string]string{"by": ""}
	if n.Group.Agent != "" {
		change["agent"] = n.Group.Agent
	}
	if n.Group.Type != "" {
		change["type"] = n.Group.Type
	}
	if l.now.Get("root") != "" {
		change["by"] = string(graph.Single)
	}
	return l.with(change)
}

// draw puts a graph into the picture.
func (p *graphPage) draw(l graphLayout, g graph.Graph, links graphLinks) {
	p.Head.Shape, p.Width, p.Height = l.shape, l.Width, l.Height
	nodes := make([]graphNode, len(g.Nodes))
	for i, n := range g.Nodes {
		one := graphNode{
			Key: "g" + l.shape + "-" + strconv.Itoa(i), Title: graphTitle(n), URL: links.of(n), Root: n.Root,
			X: l.Nodes[i].X, Y: l.Nodes[i].Y,
		}
		one.State, one.Note = graphState(n)
		one.Name, one.Note = cutRunes(graphName(n), graphNameRunes), cutRunes(one.Note, graphNoteRunes)
		nodes[i] = one
		if n.Group != nil {
			p.Groups.Rows = append(p.Groups.Rows, graphGroupRow{
				Name: one.Title, URL: one.URL, Total: n.Group.Total, States: graphCounts(n.Group.Counts),
			})
		}
	}
	for _, i := range l.Order {
		p.Nodes = append(p.Nodes, nodes[i])
	}
	for i, e := range g.Edges {
		path := svgPath(l.Edges[i])
		if path != "" && e.Blocking {
			p.Marks.Lines = append(p.Marks.Lines, path)
		}
		if path != "" && !l.implied[i] {
			p.Lines = append(p.Lines, path)
		}
	}
	p.Causes = causesOf(g, nodes)
}

// graphName is the name of a node in the picture: of a path, the end tells more than the beginning.
func graphName(n graph.Node) string {
	if n.Group == nil {
		runes := []rune(n.ID.Value)
		if len(runes) > graphNameRunes {
			return "…" + string(runes[len(runes)-graphNameRunes+1:])
		}
		return n.ID.Value
	}
	_, short, found := strings.Cut(n.Group.Type, "::")
	if !found {
		short = n.Group.Type
	}
	if n.Group.Agent == "" || short == "" {
		return n.Group.Agent + short
	}
	return short + " · " + n.Group.Agent
}

func graphTitle(n graph.Node) string {
	switch {
	case n.Group == nil:
		return n.ID.String()
	case n.Group.Agent == "":
		return n.Group.Type
	case n.Group.Type == "":
		return "agent " + n.Group.Agent
	}
	return n.Group.Type + " on " + n.Group.Agent
}

// graphState is the look of a node, and what it says. A group looks like the worst of its resources.
func graphState(n graph.Node) (state, string) {
	if n.Group == nil {
		look := stateOf(n.Status)
		if n.Parked {
			look = parked
		}
		return look, look.Word + " · " + n.ID.Agent
	}
	counts := graphCounts(n.Group.Counts)
	worst := counts[0]
	if worst.State == intended {
		return intended, count(n.Group.Total) + " as intended"
	}
	return worst.State, fmt.Sprintf("%s of %s %s", count(worst.N), count(n.Group.Total), worst.State.Word)
}

// graphCounts counts looks, the worst first.
func graphCounts(counts map[intent.Status]int) (out []graphCount) {
	for _, status := range allStatuses {
		n := counts[status]
		if n == 0 {
			continue
		}
		look := stateOf(status)
		if i := slices.IndexFunc(out, func(c graphCount) bool { return c.State == look }); i >= 0 {
			out[i].N += n
			continue
		}
		out = append(out, graphCount{look, n})
	}
	if len(out) == 0 {
		out = []graphCount{{State: notYet}}
	}
	return out
}

// causesOf lists the nodes that block others, with how many they block through all the others, the most first.
func causesOf(g graph.Graph, nodes []graphNode) (out graphCauses) {
	after := make([][]int, len(nodes))
	behind := make([]bool, len(nodes)) // it is itself blocked
	for _, e := range g.Edges {
		if e.Blocking {
			after[e.From] = append(after[e.From], e.To)
			behind[e.To] = true
		}
	}
	for i := range nodes {
		n := g.Nodes[i]
		cause := n.Group == nil && n.Cause || !behind[i]
		if len(after[i]) == 0 || !cause {
			continue
		}
		seen := make([]bool, len(nodes))
		seen[i] = true
		stack, stuck := []int{i}, 0
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, w := range after[v] {
				if !seen[w] {
					seen[w] = true
					stuck++
					stack = append(stack, w)
				}
			}
		}
		row := graphCause{State: nodes[i].State, Name: nodes[i].Title, URL: nodes[i].URL, Stuck: stuck, Of: "resource"}
		if n.Group != nil {
			row.Of = "group"
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortStableFunc(out.Rows, func(a, b graphCause) int { return b.Stuck - a.Stuck })
	if len(out.Rows) > shownCauses {
		out.More = len(out.Rows) - shownCauses
		out.Rows = out.Rows[:shownCauses]
	}
	return out
}

// svgPath writes a path: curves between layers, and lines along the bends.
func svgPath(points []graphview.Point) string {
	if len(points) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", points[0].X, points[0].Y)
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		switch {
		case i%2 == 0:
			fmt.Fprintf(&b, "H%d", to.X)
		default:
			middle := (from.X + to.X) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", middle, from.Y, middle, to.Y, to.X, to.Y)
		}
	}
	return b.String()
}

// shapeOf is a short text that changes when the nodes or edges of a graph do, and not when states do.
func shapeOf(g graph.Graph) string {
	h := fnv.New64a()
	for _, n := range g.Nodes {
		fmt.Fprintf(h, "%s\x00%t\x01", graphTitle(n), n.Group == nil)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(h, "%d-%d,", e.From, e.To)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// statusChoices are the states that the filter offers, one of each look.
func statusChoices(selected string) []choice {
	out := []choice{
		{"", "Any state", selected == ""},
		{"!deployed", "Not as intended", selected == "!deployed"},
	}
	words := map[string]bool{}
	for _, status := range allStatuses {
		word := stateOf(status).Word
		if words[word] && selected != string(status) {
			continue
		}
		words[word] = true
		out = append(out, choice{string(status), strings.ToUpper(word[:1]) + word[1:], selected == string(status)})
	}
	return out
}
