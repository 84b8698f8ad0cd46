package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// A page of resources holds what a simple look at all of them finds: the rows after or before a place, how many lie
// around it, and the counts by property, whatever is filtered.
func TestFilteredResourcesAreWhatASimpleLookFinds(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := get(store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	t.Cleanup(s.Close)
	ctx := t.Context()
	env, _, _ := versionsOf(t, s, url, []string{"a", "B", "b_c", "x10", "x9"})
	other, _, _ := versionsOf(t, s, url, []string{"a"}) // whose resources are never among them
	conn := get(pgx.Connect(ctx, url))(t)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	get(conn.Exec(ctx, `UPDATE resource_state SET parked = 'attempts', parked_at = now()
		WHERE resource % 7 = 0 AND orphaned = 0`))(t)

	list := func(q intent.ListQuery, f intent.ResourceFilter) store.FacetedPage {
		return get(s.FilteredResources(ctx, env, f, q, 100))(t)
	}
	matches := func(f intent.ResourceFilter, r intent.ResourceState, but intent.FacetOf) bool {
		text := func(f intent.TextFilter, x string) bool {
			for _, pattern := range f.Like {
				if !strings.Contains(strings.ToLower(x), strings.ToLower(strings.Trim(pattern, "%"))) {
					return false
				}
			}
			return true
		}
		in := func(of intent.FacetOf, wanted []string, x string) bool {
			return of == but || wanted == nil || slices.Contains(wanted, x)
		}
		return text(f.Type, r.ID.Type) && text(f.Agent, r.ID.Agent) && text(f.Value, r.ID.Value) &&
			in(intent.FacetType, f.Type.In, r.ID.Type) && in(intent.FacetAgent, f.Agent.In, r.ID.Agent) &&
			(but == intent.FacetStatus || f.Status.In == nil || slices.Contains(f.Status.In, r.Status())) &&
			(but == intent.FacetStatus || !slices.Contains(f.Status.NotIn, r.Status())) &&
			(but == intent.FacetParked || f.Parked == nil || *f.Parked == (r.Parked != intent.NotParked))
	}
	all := get(s.States(ctx, env))(t)
	if len(get(s.States(ctx, other))(t)) == 0 {
		t.Fatal("there is no other environment")
	}
	rapid.Check(t, func(rt *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 8, func(r intent.ResourceState) string {
			return r.ID.String()
		}).Draw(rt, "some")
		var f intent.ResourceFilter
		for _, r := range some {
			switch rapid.IntRange(0, 8).Draw(rt, "about") {
			case 0:
				f.Type.In = append(f.Type.In, r.ID.Type)
			case 1:
				f.Agent.In = append(f.Agent.In, r.ID.Agent)
			case 2:
				f.Status.In = append(f.Status.In, r.Status())
			case 3:
				f.Status.NotIn = append(f.Status.NotIn, r.Status())
			case 4:
				f.Parked = new(r.Parked != intent.NotParked)
			case 5:
				f.Value.Like = []string{store.LikeContains(strings.ToUpper(r.ID.Value[:1]))}
			}
		}
		q := intent.ListQuery{
			Sort: rapid.SampledFrom(store.ResourceList.SortFields()).Draw(rt, "sort"),
			Desc: rapid.Bool().Draw(rt, "desc"),
		}
		whole := list(q, f)
		var want []string
		for _, r := range all {
			if matches(f, r, "") {
				want = append(want, r.ID.String())
			}
		}
		ids := func(p store.FacetedPage) (out []string) {
			for _, x := range p.Items {
				out = append(out, x.State.ID.String())
			}
			return out
		}
		sorted := ids(whole)
		slices.Sort(sorted)
		slices.Sort(want)
		if !slices.Equal(sorted, want) || whole.Total != len(want) {
			rt.Fatalf("%d rows of %d, want %d", len(sorted), whole.Total, len(want))
		}
		for of, value := range map[intent.FacetOf]func(intent.ResourceState) string{
			intent.FacetType:   func(r intent.ResourceState) string { return r.ID.Type },
			intent.FacetAgent:  func(r intent.ResourceState) string { return r.ID.Agent },
			intent.FacetStatus: func(r intent.ResourceState) string { return string(r.Status()) },
			intent.FacetParked: func(r intent.ResourceState) string { return fmt.Sprint(r.Parked != intent.NotParked) },
		} {
			counts := map[string]int{}
			for _, r := range all {
				if matches(f, r, of) {
					counts[value(r)]++
				}
			}
			got := whole.Facets[of]
			for _, v := range got.Values {
				if counts[v.Value] != v.Count {
					rt.Errorf("%s %s is counted %d, want %d", of, v.Value, v.Count, counts[v.Value])
				}
				delete(counts, v.Value)
			}
			if len(counts) > 0 {
				rt.Errorf("%s: %v are not counted", of, counts)
			}
		}
		if len(whole.Items) == 0 {
			return
		}
		// A page beside a row of the whole list.
		at := rapid.IntRange(0, len(whole.Items)-1).Draw(rt, "at")
		q.Limit = rapid.IntRange(1, 20).Draw(rt, "limit")
		row := whole.Items[at].State
		bound := &intent.Bound{ID: row.ID.String(), Value: new(map[string]string{
			"resource_type": row.ID.Type, "agent": row.ID.Agent, "resource_id_value": row.ID.Value,
			"resource_id": row.ID.String(), "status": string(row.Status()),
		}[q.Sort])}
		from, to := at+1, min(at+1+q.Limit, len(whole.Items))
		if rapid.Bool().Draw(rt, "back") {
			from, to = max(0, at-q.Limit), at
		}
		if later := from > at; later != q.Desc {
			q.After = bound
		} else {
			q.Before = bound
		}
		part := list(q, f)
		if !slices.Equal(ids(part), ids(whole)[from:to]) {
			rt.Errorf("beside row %d: %v, want %v", at, ids(part), ids(whole)[from:to])
		}
		if part.Total != len(want) || part.Before != from || part.After != len(want)-to {
			rt.Errorf("%d before and %d after rows %d to %d of %d", part.Before, part.After, from, to, part.Total)
		}
	})
}
