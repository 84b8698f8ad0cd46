package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/graph"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// estate is an environment in a real store.
type estate struct {
	*testing.T
	store *store.Store
	env   intent.EnvironmentID
	ids   []intent.ResourceID // of the version that was released last
	clock time.Time
}

func newEstate(t *testing.T) *estate {
	t.Helper()
	t.Parallel()
	e := &estate{T: t, store: storetest.Open(t), env: uuid.New(), clock: time.Now().UTC().Truncate(time.Second)}
	project := uuid.New()
	e.must(e.store.CreateProject(t.Context(), intent.Project{ID: project, Name: "shop"}))
	e.must(e.store.CreateEnvironment(t.Context(), intent.Environment{
		ID: e.env, ProjectID: project, Name: "live",
		Settings: map[string]any{"prune_share": 100}, // versions differ a lot from each other
	}, nil))
	return e
}

func (e *estate) tick() time.Time {
	e.clock = e.clock.Add(time.Millisecond)
	return e.clock
}

func (e *estate) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// release releases a version: the resource i is on an agent and of a type, and requires others by their numbers.
func (e *estate) release(size int, place func(i int) (agent, kind string), needs func(i int) []int) {
	e.Helper()
	e.ids = nil
	v := intent.NewVersion{Environment: e.env}
	for i := range size {
		agent, kind := place(i)
		id := intent.ResourceID{Type: kind, Agent: agent, Attribute: "name", Value: fmt.Sprintf("r%04d", i)}
		e.ids = append(e.ids, id)
		r := intent.Resource{ID: id, Attributes: json.RawMessage(`{"purged": false}`), AttributeHash: "1"}
		for _, n := range needs(i) {
			r.Requires = append(r.Requires, intent.ResourceID{
				Type: second(place(n)), Agent: first(place(n)), Attribute: "name", Value: fmt.Sprintf("r%04d", n),
			})
		}
		v.Resources = append(v.Resources, r)
	}
	number, err := e.store.StoreVersion(e.Context(), v, e.tick())
	e.must(err)
	e.must(e.store.ReleaseVersion(e.Context(), e.env, number, e.tick()))
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

// ends records that resources were deployed, or failed, or were skipped because of what they require.
func (e *estate) ends(status intent.Status, numbers ...int) {
	e.Helper()
	var done []intent.FinishedAction
	for _, i := range numbers {
		at := e.tick()
		st := intent.ResourceState{
			ID: e.ids[i], Compliance: intent.NonCompliant, LastRun: intent.RunFailed, Blocked: intent.NotBlocked,
			LastRunAt: &at, IntentHash: "1",
		}
		switch status {
		case intent.StatusDeployed:
			st.Compliance, st.LastRun, st.LastSuccess = intent.Compliant, intent.RunSuccessful, &at
			st.LastDeployed, st.DeployedHash = 1, "1"
		case intent.StatusSkipped:
			st.LastRun, st.Blocked = intent.RunSkipped, intent.TemporarilyBlocked
		}
		done = append(done, intent.FinishedAction{State: st, Action: intent.Action{
			ID: uuid.New(), Environment: e.env, Kind: intent.ActionDeploy, Resource: e.ids[i], Version: 1, Started: at,
			Finished: &at, Status: status,
		}})
	}
	e.must(e.store.FinishActions(e.Context(), e.env, done))
}

// of asks until the edges between groups are counted.
func (e *estate) of(g *graph.Graphs, q graph.Query) graph.Graph {
	e.Helper()
	for {
		got, err := g.Of(e.Context(), e.env, q)
		e.must(err)
		if !got.Counting {
			return got
		}
	}
}

// edges returns the edges of a graph as text: web ◀ db means that web requires db, ◀◀ that it is stuck because of it.
func edges(g graph.Graph) (out []string) {
	name := func(i int) string {
		if n := g.Nodes[i]; n.Group != nil {
			return strings.Trim(n.Group.Agent+" "+n.Group.Type, " ")
		}
		return g.Nodes[i].ID.Value
	}
	for _, x := range g.Edges {
		arrow := "◀"
		if x.Blocking {
			arrow = "◀◀"
		}
		out = append(out, fmt.Sprintf("%s %s %s %d", name(x.To), arrow, name(x.From), x.Count))
	}
	slices.Sort(out)
	return out
}

func nobody(int) []int { return nil }

// How a graph is collapsed follows from its size and from what is asked: each resource while they can be drawn, then
// groups by agent and type while people can take them in, then groups by type; within one agent by type, within one
// type by agent, and within one type of one agent by nothing.
func TestAGraphIsAsFineAsPeopleCanRead(t *testing.T) {
	e := newEstate(t)
	place := func(agents int) func(int) (string, string) {
		return func(i int) (string, string) {
			return fmt.Sprintf("web%02d", i%agents), fmt.Sprintf("web::T%d", i/agents%3)
		}
	}
	for _, c := range []struct {
		what              string
		size, agents      int
		query             graph.Query
		by                graph.Collapse
		nodes, total, cut int
	}{
		{"all that can be drawn", 300, 5, graph.Query{}, graph.Single, 300, 300, 0},
		{"one more", 301, 5, graph.Query{}, graph.ByAgentType, 15, 301, 0},
		{"sixty groups", 302, 20, graph.Query{}, graph.ByAgentType, 60, 302, 0},
		{"more groups", 303, 21, graph.Query{}, graph.ByType, 3, 303, 0},
		{"more groups, asked for", 303, 21, graph.Query{By: graph.ByAgentType}, graph.ByAgentType, 63, 303, 0},
		{"few, but by type", 10, 2, graph.Query{By: graph.ByType}, graph.ByType, 3, 10, 0},
		{"one agent", 700, 2, graph.Query{Scope: intent.GraphScope{Agent: "web01"}}, graph.ByType, 3, 350, 0},
		{"one type", 1000, 2, graph.Query{Scope: intent.GraphScope{Type: "web::T1"}}, graph.ByAgent, 2, 334, 0},
		{
			"one type of one agent", 1000, 1,
			graph.Query{Scope: intent.GraphScope{Agent: "web00", Type: "web::T1"}}, graph.Single, 300, 333, 1,
		},
		{"each, asked for", 400, 5, graph.Query{By: graph.Single}, graph.Single, 300, 400, 1},
	} {
		e.release(c.size, place(c.agents), nobody)
		got := e.of(graph.New(e.store), c.query)
		if got.By != c.by || len(got.Nodes) != c.nodes || got.Total != c.total || got.Cut != (c.cut == 1) {
			t.Errorf("%s: by %q, %d nodes, %d in all, cut %v", c.what, got.By, len(got.Nodes), got.Total, got.Cut)
		}
	}
}

// When not all can be drawn, what is not as intended comes first.
func TestWhatIsCutIsAsIntended(t *testing.T) {
	e := newEstate(t)
	e.release(350, func(int) (string, string) { return "web01", "fs::File" }, nobody)
	e.ends(intent.StatusDeployed, slices.Collect(func(yield func(int) bool) {
		for i := range 349 {
			if !yield(i) {
				return
			}
		}
	})...)
	e.ends(intent.StatusFailed, 349)
	got := e.of(graph.New(e.store), graph.Query{By: graph.Single})
	if len(got.Nodes) != graph.MaxNodes || !slices.ContainsFunc(got.Nodes, func(n graph.Node) bool {
		return n.Status == intent.StatusFailed
	}) {
		t.Errorf("the failed one is not among %d nodes", len(got.Nodes))
	}
}

// The graph around a stuck resource has the whole way to what blocks it, however far that is, and marks it; of the
// others it has only what is near.
func TestTheWayToTheCauseIsComplete(t *testing.T) {
	e := newEstate(t)
	// A chain of twenty, 0 first, and at each link a leaf that requires it.
	e.release(40, func(int) (string, string) { return "web01", "fs::File" }, func(i int) []int {
		switch {
		case i == 0:
			return nil
		case i < 20:
			return []int{i - 1}
		}
		return []int{i - 20}
	})
	e.ends(intent.StatusDeployed, 0, 1)
	e.ends(intent.StatusFailed, 2)
	for i := 3; i < 20; i++ {
		e.ends(intent.StatusSkipped, i)
	}
	root := e.ids[18]
	got := e.of(graph.New(e.store), graph.Query{Root: &root, Depth: 1})
	var want []string
	for i := 3; i <= 19; i++ {
		want = append(want, fmt.Sprintf("r%04d ◀◀ r%04d 1", i, i-1))
	}
	blocking := slices.DeleteFunc(edges(got), func(x string) bool { return !strings.Contains(x, "◀◀") })
	if !slices.Equal(blocking, want) {
		t.Errorf("the way to the cause: %v", blocking)
	}
	names := map[string]bool{}
	for _, n := range got.Nodes {
		names[n.ID.Value] = true
		if n.Root != (n.ID == root) {
			t.Errorf("%s is the root: %v", n.ID, n.Root)
		}
	}
	if !names["r0038"] || names["r0000"] || names["r0025"] || got.Cut {
		t.Errorf("what is near: %v, cut %v", names, got.Cut)
	}

	e.ends(intent.StatusDeployed, 2)
	for i := 3; i < 20; i++ {
		e.ends(intent.StatusDeployed, i)
	}
	got = e.of(graph.New(e.store), graph.Query{Root: &root})
	want = []string{"r0017 ◀ r0016 1", "r0018 ◀ r0017 1", "r0019 ◀ r0018 1", "r0038 ◀ r0018 1", "r0039 ◀ r0019 1"}
	if !slices.Equal(edges(got), want) {
		t.Errorf("when nothing is stuck: %v", edges(got))
	}
}

// No answer is larger than its bounds, whatever the environment is like, and it says that something was left out.
func TestAnswersAreBounded(t *testing.T) {
	e := newEstate(t)
	one := func(int) (string, string) { return "web01", "fs::File" }
	e.release(500, one, func(i int) []int { // everything requires the first one
		if i == 0 {
			return nil
		}
		return []int{0}
	})
	root := e.ids[0]
	if got := e.of(graph.New(e.store), graph.Query{Root: &root}); len(got.Nodes) != graph.MaxNodes || !got.Cut {
		t.Errorf("%d nodes around a resource that 499 require, cut %v", len(got.Nodes), got.Cut)
	}
	e.release(120, one, func(i int) (needs []int) { // sixty that require each of sixty others
		if i < 60 {
			return nil
		}
		for n := range 60 {
			needs = append(needs, n)
		}
		return needs
	})
	got := e.of(graph.New(e.store), graph.Query{})
	if len(got.Nodes) != 120 || len(got.Edges) != graph.MaxEdges || !got.Cut {
		t.Errorf("%d nodes and %d edges of 3600, cut %v", len(got.Nodes), len(got.Edges), got.Cut)
	}
}

// Groups say how many of their resources are stuck or stop others, edges between them how many they stand for; it is
// the same whether groups are counted by the database or collapsed from the resources around a root.
func TestGroupsSayWhatBlocksWhat(t *testing.T) {
	e := newEstate(t)
	// A database, ten servers that require it, and a file on each server, which requires that server.
	e.release(21, func(i int) (string, string) {
		switch {
		case i == 0:
			return "db01", "db::Database"
		case i <= 10:
			return fmt.Sprintf("web%02d", i), "web::Server"
		}
		return fmt.Sprintf("web%02d", i-10), "fs::File"
	}, func(i int) []int {
		switch {
		case i == 0:
			return nil
		case i <= 10:
			return []int{0}
		}
		return []int{i - 10}
	})
	e.ends(intent.StatusFailed, 0)
	for i := 1; i <= 10; i++ {
		e.ends(intent.StatusSkipped, i)
	}
	root := e.ids[0]
	want := map[string][]string{
		"all":          {"fs::File ◀ web::Server 10", "web::Server ◀◀ db::Database 10"},
		"around":       {"fs::File ◀ web::Server 10", "web::Server ◀◀ r0000 10"},
		"around alone": {"web::Server ◀◀ r0000 10"},
	}
	for what, q := range map[string]graph.Query{
		"all": {By: graph.ByType}, "around": {By: graph.ByType, Root: &root},
		"around alone": {By: graph.ByType, Root: &root, Depth: 1},
	} {
		got := e.of(graph.New(e.store), q)
		if !slices.Equal(edges(got), want[what]) {
			t.Errorf("%s: %v", what, edges(got))
		}
		for _, n := range got.Nodes {
			if n.Group == nil || n.Group.Type != "web::Server" {
				continue
			}
			if g := n.Group; g.Total != 10 || g.Stuck != 10 || g.Cause != 0 || g.Counts[intent.StatusSkipped] != 10 {
				t.Errorf("%s: the servers: %+v", what, *g)
			}
		}
	}
}

// counted counts how often the edges between groups are counted.
type counted struct {
	*store.Store
	counts int
	fail   error
}

func (c *counted) GraphGroupEdges(
	ctx context.Context, env intent.EnvironmentID, s intent.GraphScope, by intent.GraphGrouping, limit int,
) ([]intent.GraphGroupEdge, error) {
	c.counts++
	if c.fail != nil {
		return nil, c.fail
	}
	return c.Store.GraphGroupEdges(ctx, env, s, by, limit)
}

// The edges between groups are counted once for each version, whatever the states of the resources become; a count that
// fails is told, and tried again.
func TestEdgesBetweenGroupsAreCountedOnce(t *testing.T) {
	e := newEstate(t)
	place := func(i int) (string, string) { return "web01", fmt.Sprintf("web::T%d", i%2) }
	chain := func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}
	e.release(10, place, chain)
	records := &counted{Store: e.store, fail: errors.New("the database is away")}
	g, q := graph.New(records), graph.Query{By: graph.ByType}
	if _, err := g.Of(t.Context(), e.env, q); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("a count that fails: %v", err)
	}
	records.fail, records.counts = nil, 0
	for range 3 {
		e.of(g, q)
		e.of(g, graph.Query{By: graph.ByType, Scope: intent.GraphScope{Statuses: []intent.Status{intent.StatusFailed}}})
		e.ends(intent.StatusFailed, 0)
	}
	if records.counts != 1 {
		t.Errorf("counted %d times for one version", records.counts)
	}
	if got := edges(e.of(g, q)); !slices.Equal(got, []string{"web::T0 ◀ web::T1 4", "web::T1 ◀ web::T0 5"}) {
		t.Errorf("the edges of the first version: %v", got)
	}
	e.release(4, place, chain)
	if got := edges(e.of(g, q)); !slices.Equal(got, []string{"web::T0 ◀ web::T1 1", "web::T1 ◀ web::T0 2"}) {
		t.Errorf("the edges of the next version: %v", got)
	}
	if records.counts != 2 {
		t.Errorf("counted %d times for two versions", records.counts)
	}
}

// A question that makes no sense is refused with what to do; so is a resource that the active version does not have.
func TestQuestionsAreChecked(t *testing.T) {
	e := newEstate(t)
	e.release(1, func(int) (string, string) { return "web01", "fs::File" }, nobody)
	gone := intent.ResourceID{Type: "fs::File", Agent: "web01", Attribute: "name", Value: "gone"}
	for what, c := range map[string]struct {
		query graph.Query
		kind  fault.Kind
	}{
		"too deep":         {graph.Query{Depth: graph.MaxDepth + 1}, fault.Invalid},
		"less than none":   {graph.Query{Depth: -1}, fault.Invalid},
		"no such collapse": {graph.Query{By: "colour"}, fault.Invalid},
		"no such resource": {graph.Query{Root: &gone}, fault.NotFound},
	} {
		if _, err := graph.New(e.store).Of(t.Context(), e.env, c.query); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
	}
	all := graph.Statuses("!" + string(intent.StatusDeployed))
	if len(all) < 5 || slices.Contains(all, intent.StatusDeployed) || !slices.Contains(all, intent.StatusFailed) {
		t.Errorf("all but deployed: %v", all)
	}
	if one := graph.Statuses("failed"); !slices.Equal(one, []intent.Status{intent.StatusFailed}) {
		t.Errorf("failed: %v", one)
	}
}
