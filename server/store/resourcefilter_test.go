package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// A filter chooses the same resources in a list, in its counts, and for an action; orphans belong to the last version
// that had them.
func TestResourceFilter(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(12)
	for i := 8; i < 12; i++ { // two types
		rs[i].ID.Type = "net::Port"
		rs[i].Requires = nil
	}
	gone := rs[7].ID
	first := release(t, s, env, rs)
	known := states(t, s, env)
	d := []intent.FinishedAction{
		deployed(known[rs[0].ID], first, 5), deployed(known[rs[1].ID], first, 5), deployed(known[rs[8].ID], first, 5),
	}
	failed := d[1]
	failed.State.Compliance, failed.State.LastRun, failed.State.DeployedHash = intent.NonCompliant, intent.RunFailed,
		failed.State.IntentHash
	failed.Action.Status = intent.StatusFailed
	d[1] = failed
	begun := make([]intent.Action, len(d))
	for i := range d {
		begun[i] = d[i].Action
	}
	must(t, s.StartActions(ctx, env, begun))
	must(t, s.FinishActions(ctx, env, d))
	purged := slices.Clone(rs)
	purged[0].Purged = true
	purged[0].Attributes = json.RawMessage(`{"purged":true}`)
	second := release(t, s, env, slices.DeleteFunc(purged, func(r intent.Resource) bool { return r.ID == gone }))

	text := func(like ...string) intent.TextFilter { return intent.TextFilter{Like: like} }
	for _, one := range []struct {
		name     string
		f        intent.ResourceFilter
		n        int
		versions []int
	}{
		{"everything", intent.ResourceFilter{}, 12, []int{first, second}},
		{"no orphans", intent.ResourceFilter{Orphan: new(false)}, 11, []int{second}},
		{"orphans", intent.ResourceFilter{Orphan: new(true)}, 1, []int{first}},
		{"pinned", intent.ResourceFilter{Version: first}, 12, []int{first}},
		{"pinned and purged", intent.ResourceFilter{Version: second, Purged: new(true)}, 1, []int{second}},
		{"purged", intent.ResourceFilter{Purged: new(true)}, 1, []int{second}},
		{"a type", intent.ResourceFilter{Type: intent.TextFilter{In: []string{"net::Port"}}}, 4, []int{second}},
		{"not a type", intent.ResourceFilter{
			Type: intent.TextFilter{NotIn: []string{"net::Port"}}, Orphan: new(false)}, 7, []int{second}},
		{"no type", intent.ResourceFilter{Type: intent.TextFilter{In: []string{}}}, 0, nil},
		{"patterns", intent.ResourceFilter{
			Type: text("FS::%", "%file"), Agent: text("host_")}, 8, []int{first, second}},
		{"a pattern is whole", intent.ResourceFilter{Type: text("File")}, 0, nil},
		{"not a pattern", intent.ResourceFilter{
			Agent: intent.TextFilter{NotLike: []string{"host0"}}, Orphan: new(false)}, 8, []int{second}},
		{"compliance leaves orphans out", intent.ResourceFilter{Compliance: intent.ChoiceFilter[intent.Compliance]{
			NotIn: []intent.Compliance{intent.Compliant, intent.NonCompliant}}}, 8, []int{second}},
		{"last run", intent.ResourceFilter{LastRun: intent.ChoiceFilter[intent.HandlerResult]{
			In: []intent.HandlerResult{intent.RunFailed}}}, 1, []int{second}},
		{"status", intent.ResourceFilter{Status: intent.ChoiceFilter[intent.Status]{
			In: []intent.Status{intent.StatusDeployed, intent.StatusFailed}}}, 3, []int{second}},
		{"one", intent.ResourceFilter{Resources: []intent.ResourceID{rs[3].ID}}, 1, []int{second}},
		{"hostile", intent.ResourceFilter{Value: text("'; DROP TABLE resource; --")}, 0, nil},
	} {
		got := get(s.MatchResources(ctx, env, one.f))(t)
		if len(got.IDs) != one.n || !slices.Equal(got.Versions, one.versions) {
			t.Errorf("%s: %d of versions %v, want %d of %v", one.name, len(got.IDs), got.Versions, one.n, one.versions)
		}
		if one.f.Version != 0 {
			continue
		}
		page := get(s.FilteredResources(ctx, env, one.f, intent.ListQuery{Limit: 2}, 50))(t)
		if page.Total != one.n || len(page.Items) != min(one.n, 2) {
			t.Errorf("%s: the list has %d, want %d", one.name, page.Total, one.n)
		}
		sum := 0
		for _, v := range page.Facets[intent.FacetParked].Values {
			sum += v.Count
		}
		if sum != one.n {
			t.Errorf("%s: the counts sum up to %d, want %d", one.name, sum, one.n)
		}
	}
	if all := get(s.MatchResources(ctx, env, intent.ResourceFilter{Orphan: new(false)}))(t); !all.All ||
		!slices.Equal(all.Agents(), []string{"host0", "host1", "host2", "host3"}) {
		t.Errorf("not all of the version: %v on %v", all.All, all.Agents())
	}
	if some := get(s.MatchResources(ctx, env, intent.ResourceFilter{Orphan: new(true)}))(t); some.All {
		t.Error("one orphan counts as its whole version")
	}
	for name, f := range map[string]intent.ResourceFilter{
		"a version and a state": {Version: 1, Orphan: new(false)},
		"a half escape":         {Type: text(`a\`)},
		"a zero byte":           {Agent: text("a\x00")},
	} {
		if _, err := s.MatchResources(ctx, env, f); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(get(s.MatchResources(ctx, env, intent.ResourceFilter{Type: text(`%\\`)}))(t).Versions, nil) {
		t.Error("a backslash matches")
	}
	_, err := s.MatchResources(ctx, env, intent.ResourceFilter{Version: 99})
	want(t, err, fault.NotFound)
	_, err = s.MatchResources(ctx, uuid.New(), intent.ResourceFilter{})
	want(t, err, fault.NotFound)
}

// The counts of a property say what choosing another value of it would show, whatever is chosen of it already.
func TestFacets(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(20)
	for i := range rs {
		rs[i].Requires = nil
		if i%5 == 0 {
			rs[i].ID.Type = "net::Port"
		}
	}
	release(t, s, env, rs)
	counts := func(f intent.ResourceFilter, most int) (out []string) {
		t.Helper()
		found := get(s.FilteredResources(ctx, env, f, intent.ListQuery{Limit: 1}, most))(t).Facets
		for _, of := range []intent.FacetOf{intent.FacetType, intent.FacetAgent, intent.FacetStatus} {
			for _, v := range found[of].Values {
				out = append(out, fmt.Sprintf("%s %s %d/%d", of, v.Value, v.Count, found[of].Total))
			}
		}
		return out
	}
	one := intent.TextFilter{In: []string{"net::Port"}}
	if got := counts(intent.ResourceFilter{Type: one}, 50); !slices.Equal(got, []string{
		"type fs::File 16/2", "type net::Port 4/2",
		"agent host0 1/4", "agent host1 1/4", "agent host2 1/4", "agent host3 1/4", "status available 4/1",
	}) {
		t.Errorf("got %q", got)
	}
	some := intent.ResourceFilter{Type: one, Agent: intent.TextFilter{In: []string{"host3", "nobody"}}}
	if got := counts(some, 1); !slices.Equal(got, []string{
		"type fs::File 4/2", "type net::Port 1/2", "agent host0 1/4", "agent host3 1/4", "status available 1/1",
	}) {
		t.Errorf("the most and the chosen: %q", got)
	}
	like := func(text string) intent.ResourceFilter {
		return intent.ResourceFilter{Value: intent.TextFilter{Like: []string{store.LikeContains(text)}}}
	}
	if got := counts(like("F0001"), 50); !slices.Contains(got, "type fs::File 8/2") {
		t.Errorf("a text limits all: %q", got)
	}
	if got := counts(like("f_0"), 50); got != nil {
		t.Errorf("an underscore is a pattern: %q", got)
	}
}

// What a resource differs in stands in its report while the drift is open; ids that the version lacks have none.
func TestComplianceReports(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(3)
	rs[1].Attributes = json.RawMessage(`{"path":"x","report_only":true}`)
	number := release(t, s, env, rs)
	known := states(t, s, env)
	d := deployed(known[rs[1].ID], number, 5)
	d.State.Compliance, d.State.Drifted = intent.NonCompliant, true
	found := map[string]intent.AttributeChange{"mode": {Current: 600, Desired: 644}}
	d.Drift = &intent.DriftReport{Open: true, Found: found}
	must(t, s.StartActions(ctx, env, []intent.Action{d.Action}))
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{d}))
	got := get(s.ComplianceReports(ctx, env, []string{rs[1].ID.String(), rs[0].ID.String(), "nothing"}))(t)
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	slices.SortFunc(got, func(a, b intent.ComplianceReport) int { return len(b.Differs) - len(a.Differs) })
	if r := got[0]; r.ID != rs[1].ID || !r.ReportOnly || r.State.Compliance != intent.NonCompliant ||
		fmt.Sprint(r.Differs) != "map[mode:{600 644}]" {
		t.Errorf("got %+v", r)
	}
	if r := got[1]; r.ReportOnly || r.State.Compliance != intent.HasUpdate || r.State.LastRunAt != nil {
		t.Errorf("got %+v", r)
	}
}
