package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// everything is the scope without a filter.
var everything intent.GraphScope

// The store finds what a resource requires and what requires it, within a scope, without what is known, and with what
// is not as intended first.
func TestGraphNeighbours(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env, other := newEnvironment(t, s), newEnvironment(t, s)
	rs := resources(16) // four chains: 0 ◀ 4 ◀ 8 ◀ 12 and so on
	rs[9].Requires = append(rs[9].Requires, rs[4].ID)
	rs[9].ResourceSet = "site one"
	release(t, s, other, rs)
	number := release(t, s, env, rs)
	known := states(t, s, env)
	failing := deployed(known[rs[5].ID], number, 5)
	failing.State.LastRun, failing.State.Compliance = intent.RunFailed, intent.NonCompliant
	failing.State.LastSuccess, failing.State.DeployedHash, failing.State.LastDeployed = nil, "", 0
	failing.Action.Status = intent.StatusFailed
	blocked := known[rs[9].ID]
	blocked.Blocked = intent.TemporarilyBlocked
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{failing, deployed(known[rs[4].ID], number, 5)}))
	skipped := deployed(blocked, number, 6)
	skipped.State.LastRun, skipped.State.Compliance = intent.RunSkipped, intent.NonCompliant
	skipped.State.LastSuccess, skipped.State.DeployedHash, skipped.State.LastDeployed = nil, "", 0
	skipped.Action.Status = intent.StatusSkipped
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{skipped}))

	names := func(nodes []intent.GraphNode) (out []string) {
		for _, n := range nodes {
			out = append(out, n.ID.Agent+n.ID.Value[len("/etc/f000"):])
		}
		return out
	}
	same := func(what string, got []intent.GraphNode, want ...string) {
		t.Helper()
		if !slices.Equal(names(got), want) {
			t.Errorf("%s: %v, want %v", what, names(got), want)
		}
	}
	nine := []intent.ResourceID{rs[9].ID}
	same("needs", get(s.GraphNeeds(ctx, env, everything, nine, nil, false, 10))(t), "host105", "host004")
	same("needs that block", get(s.GraphNeeds(ctx, env, everything, nine, nil, true, 10))(t), "host105")
	same("the first of the needs", get(s.GraphNeeds(ctx, env, everything, nine, nil, false, 1))(t), "host105")
	same("needs of an agent", get(s.GraphNeeds(ctx, env, intent.GraphScope{Agent: "host0"}, nine, nil, false, 9))(t),
		"host004")
	same("dependents", get(s.GraphDependents(ctx, env, everything,
		[]intent.ResourceID{rs[4].ID, rs[5].ID}, nil, 10))(t), "host008", "host109")
	same("dependents but for known ones", get(s.GraphDependents(ctx, env, everything,
		[]intent.ResourceID{rs[4].ID, rs[5].ID}, nine, 10))(t), "host008")
	same("a resource set", get(s.GraphNodes(ctx, env, intent.GraphScope{Set: "site one"}, 10))(t), "host109")
	same("failed ones", get(s.GraphNodes(ctx, env,
		intent.GraphScope{Statuses: []intent.Status{intent.StatusFailed}}, 10))(t), "host105")
	same("the worst", get(s.GraphNodes(ctx, env, intent.GraphScope{Agent: "host0"}, 2))(t), "host000", "host008")

	named := get(s.GraphNamed(ctx, env, []intent.ResourceID{rs[5].ID, rs[9].ID}))(t)
	slices.SortFunc(named, func(a, b intent.GraphNode) int { return a.Requires - b.Requires })
	if len(named) != 2 || !named[0].Cause || named[0].Stuck || named[1].Cause || !named[1].Stuck ||
		named[1].Set != "site one" || named[1].Requires != 2 {
		t.Errorf("%+v", named)
	}
	edges := get(s.GraphEdges(ctx, env, []intent.ResourceID{rs[4].ID, rs[5].ID, rs[9].ID}, 10))(t)
	wanted := []intent.GraphEdge{{From: rs[4].ID, To: rs[9].ID}, {From: rs[5].ID, To: rs[9].ID}}
	if !slices.Equal(edges, wanted) {
		t.Errorf("edges %v, want %v", edges, wanted)
	}
	if n := get(s.GraphCount(ctx, env, intent.GraphScope{Type: "fs::File", Agent: "host1"}, 9))(t); n != 4 {
		t.Errorf("%d resources of host1", n)
	}
	groups, total, all, err := s.GraphGroups(ctx, env, everything, intent.GraphGrouping{Agent: true}, 3)
	must(t, err)
	if total != 4 || all != 16 || len(groups) != 3 || groups[0].Agent != "host1" ||
		groups[0].Counts[intent.StatusFailed] != 1 ||
		groups[0].Total != 4 || groups[0].Cause != 1 || groups[0].Stuck != 1 || groups[0].Type != "" {
		t.Errorf("%d groups: %+v", total, groups)
	}
	between := get(s.GraphGroupEdges(ctx, env, everything, intent.GraphGrouping{Agent: true}, 10))(t)
	want := []intent.GraphGroupEdge{{
		From: intent.GraphGroupKey{Agent: "host0"}, To: intent.GraphGroupKey{Agent: "host1"}, Edges: 1,
	}}
	if !slices.Equal(between, want) {
		t.Errorf("edges between agents: %+v, want %+v", between, want)
	}
	// What blocks host1 is its own; host0 is only waiting.
	if got := get(s.GraphGroupBlocking(ctx, env, everything, intent.GraphGrouping{Agent: true}, 10))(t); len(got) != 0 {
		t.Errorf("blocking edges between agents: %+v", got)
	}
}

// BenchmarkGraph reads what a graph shows of 50,000 resources:
//
//	go test ./server/store -run '^$' -bench Graph -benchtime 10x
func BenchmarkGraph(b *testing.B) {
	s, ctx := storetest.Open(b), b.Context()
	env, rs := newEnvironment(b, s), resources(50_000)
	for i := range rs {
		rs[i].ID.Agent, rs[i].ID.Type = fmt.Sprintf("host%03d", i%500), fmt.Sprintf("fs::Type%d", i%7)
	}
	for i := range rs {
		rs[i].Requires = nil
		for _, back := range []int{500, 1, 1000} {
			if i >= back {
				rs[i].Requires = append(rs[i].Requires, rs[i-back].ID)
			}
		}
	}
	release(b, s, env, rs)
	root := []intent.ResourceID{rs[25_000].ID}
	for what, f := range map[string]func() error{
		"count":      func() error { _, err := s.GraphCount(ctx, env, everything, 301); return err },
		"nodes":      func() error { _, err := s.GraphNodes(ctx, env, everything, 300); return err },
		"needs":      func() error { _, err := s.GraphNeeds(ctx, env, everything, root, root, false, 300); return err },
		"dependents": func() error { _, err := s.GraphDependents(ctx, env, everything, root, root, 300); return err },
		"groups-agent-type": func() error {
			_, _, _, err := s.GraphGroups(ctx, env, everything, intent.GraphGrouping{Agent: true, Type: true}, 61)
			return err
		},
		"groups-type": func() error {
			_, _, _, err := s.GraphGroups(ctx, env, everything, intent.GraphGrouping{Type: true}, 300)
			return err
		},
		"edges-type": func() error {
			_, err := s.GraphGroupEdges(ctx, env, everything, intent.GraphGrouping{Type: true}, 2000)
			return err
		},
		"edges-agent": func() error {
			_, err := s.GraphGroupEdges(ctx, env, everything, intent.GraphGrouping{Agent: true}, 2000)
			return err
		},
	} {
		b.Run(what, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				must(b, f())
				took = append(took, time.Since(began))
			}
			reportMedian(b, took)
		})
	}
}
