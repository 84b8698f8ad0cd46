package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// A client follows the pages forward to the end and back to the beginning; it sees every row once each way, in order,
// and the counts agree with what it saw.
func TestPagesLeadThroughTheWholeList(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	const rows, limit = 23, 5
	release(t, s, env, resources(rows))
	for _, sort := range []string{"resource_type", "agent", "resource_id_value", "resource_id", "STATUS"} {
		for _, desc := range []bool{false, true} {
			t.Run(fmt.Sprint(sort, desc), func(t *testing.T) {
				value := func(r intent.ResourceRow) *string {
					v := map[string]string{
						"resource_type": r.State.ID.Type, "agent": r.State.ID.Agent,
						"resource_id_value": r.State.ID.Value,
						"resource_id":       r.State.ID.String(), "STATUS": string(r.State.Status()),
					}[sort]
					return &v
				}
				bound := func(r intent.ResourceRow) *intent.Bound {
					return &intent.Bound{Value: value(r), ID: r.State.ID.String()}
				}
				var forward, backward []string
				q := intent.ListQuery{Limit: limit, Sort: sort, Desc: desc}
				var last intent.Page[intent.ResourceRow]
				for {
					page := get(s.Resources(ctx, env, q))(t)
					if page.Total != rows || page.Before != len(forward) ||
						page.After != rows-len(forward)-len(page.Items) {
						t.Fatalf("after %d rows: total %d, before %d, after %d, here %d", len(forward), page.Total,
							page.Before, page.After, len(page.Items))
					}
					for _, r := range page.Items {
						forward = append(forward, r.State.ID.String())
					}
					last = page
					if page.After == 0 {
						break
					}
					q.After, q.Before = bound(page.Items[len(page.Items)-1]), nil
					if desc {
						q.After, q.Before = nil, q.After
					}
				}
				for page := last; ; {
					for i := len(page.Items) - 1; i >= 0; i-- {
						backward = append([]string{page.Items[i].State.ID.String()}, backward...)
					}
					if page.Before == 0 {
						break
					}
					q.Before, q.After = bound(page.Items[0]), nil
					if desc {
						q.Before, q.After = nil, q.Before
					}
					page = get(s.Resources(ctx, env, q))(t)
				}
				if len(forward) != rows || !cmp.Equal(forward, backward) {
					t.Errorf("forward and backward differ: %s", cmp.Diff(forward, backward))
				}
			})
		}
	}
}

func TestFiltersOfLists(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(8)
	n := release(t, s, env, rs)
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{deployed(states(t, s, env)[rs[0].ID], n, 3)}))
	release(t, s, env, rs[:7])
	type filters = map[string][]string
	for name, test := range map[string]struct {
		filters filters
		total   int
	}{
		"none":                     {nil, 7},
		"part ignores case":        {filters{"resource_type": {"FILE"}}, 7},
		"several keys are and":     {filters{"agent": {"host0"}, "resource_id_value": {"f00004"}}, 1},
		"several values are or":    {filters{"agent": {"host0", "host1"}}, 4},
		"percent is no wildcard":   {filters{"agent": {"%"}}, 0},
		"nor is an underscore":     {filters{"agent": {"_"}}, 0},
		"nor a quote the end":      {filters{"agent": {"' OR true --"}}, 0},
		"status":                   {filters{"status": {"deployed"}}, 1},
		"status not":               {filters{"status": {"!deployed"}}, 6},
		"orphans when asked for":   {filters{"status": {"orphaned"}}, 1},
		"orphans beside the rest":  {filters{"status": {"orphaned", "available"}}, 7},
		"orphans explicitly not":   {filters{"status": {"!orphaned"}}, 7},
		"a key without any values": {filters{"agent": {}}, 7},
	} {
		if page := get(s.Resources(ctx, env, intent.ListQuery{Filters: test.filters}))(t); page.Total != test.total ||
			len(page.Items) != test.total {
			t.Errorf("%s: %d rows, want %d", name, page.Total, test.total)
		}
	}
	versions := func(f filters) int { return get(s.Versions(ctx, env, intent.ListQuery{Filters: f}))(t).Total }
	if versions(filters{"version": {"ge:1", "lt:2"}}) != 1 || versions(filters{"released": {"false"}}) != 0 ||
		versions(
			filters{"status": {"active", "retired"}},
		) != 2 || versions(filters{"date": {"ge:2026-11-21 12:00:00+00:00"}}) != 2 {
		t.Error("filters of versions")
	}
	enqueue(t, s, env, 1, nil)
	if p := get(s.Compiles(ctx, env, intent.ListQuery{Filters: filters{"started": {"false"},
		"completed": {"false"}}}))(t); p.Total != 1 {
		t.Errorf("waiting compiles: %d", p.Total)
	}
	if p := get(s.VersionResourcePage(ctx, env, 1, intent.ListQuery{Limit: 3, Sort: "agent",
		Filters: filters{"resource_id_value": {"/etc"}}}))(t); p.Total != 8 ||
		p.After != 5 ||
		p.Items[0].ID.Agent != "host0" ||
		p.Items[0].Version != 1 {
		t.Errorf("resources of a version: %+v", p)
	}
}

func TestListsRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	text := "x"
	type filters = map[string][]string
	for name, q := range map[string]intent.ListQuery{
		"sort":            {Sort: "id; DROP TABLE compile"},
		"filter":          {Filters: filters{"color": {"red"}}},
		"limit":           {Limit: 1001},
		"negative limit":  {Limit: -1},
		"both bounds":     {After: &intent.Bound{}, Before: &intent.Bound{}},
		"no time":         {After: &intent.Bound{Value: &text}},
		"no id":           {Before: &intent.Bound{ID: "x"}},
		"no bool":         {Filters: filters{"success": {"maybe"}}},
		"two bools":       {Filters: filters{"success": {"true", "false"}}},
		"no comparison":   {Filters: filters{"requested": {"around:2026-11-21"}}},
		"no time either":  {Filters: filters{"requested": {"ge:tomorrow"}}},
		"half comparison": {Filters: filters{"requested": {"ge"}}},
	} {
		if _, err := s.Compiles(ctx, env, q); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A caller that has counted already passes the total, and the first page is not counted again. An impossible total is
// ignored.
func TestTheFirstPageTakesAKnownTotal(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	release(t, s, env, resources(23))
	for _, c := range []struct{ limit, known, total, after int }{
		{5, 0, 23, 18}, {5, 24, 24, 19}, {5, 4, 23, 18}, {23, 23, 23, 0}, {30, 40, 23, 0},
	} {
		page := get(s.Resources(ctx, env, intent.ListQuery{Limit: c.limit, Total: c.known}))(t)
		if page.Total != c.total || page.After != c.after || page.Before != 0 {
			t.Errorf("%+v: total %d, after %d, before %d", c, page.Total, page.After, page.Before)
		}
	}
}

// A normalized query has every default filled in and one form for each value, so that links made of it are stable.
func TestNormalizeBringsValuesToOneForm(t *testing.T) {
	t.Parallel()
	value := func(s string) *string { return &s }
	got, err := store.CompileList.Normalize(intent.ListQuery{
		After: &intent.Bound{Value: value("2026-11-21 14:27:56,5+01:00"), ID: "A0000001-0000-4000-8000-000000000001"},
		Filters: map[string][]string{
			"success": {"Yes"}, "started": {"0"}, "requested": {"GE:20261120", "lt:2026-11-22"}, "completed": {},
		},
	})
	want := intent.ListQuery{
		Limit: store.MaxPage, Sort: "requested", Desc: true,
		After: &intent.Bound{Value: value("2026-11-21T13:27:56.5Z"), ID: "a0000001-0000-4000-8000-000000000001"},
		Filters: map[string][]string{
			"success": {"true"}, "started": {"false"},
			"requested": {"ge:2026-11-20T00:00:00Z", "lt:2026-11-22T00:00:00Z"},
		},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
	again, err := store.CompileList.Normalize(got)
	if err != nil || !cmp.Equal(again, got) {
		t.Errorf("normalizing twice: %v: %s", err, cmp.Diff(got, again))
	}
	logs := intent.ListQuery{Filters: map[string][]string{"minimal_log_level": {"info"}}}
	if got, err := store.ResourceLogList.Normalize(logs); err != nil || got.Filters["minimal_log_level"][0] != "INFO" {
		t.Errorf("level: %v, %v", got.Filters, err)
	}
	logs.Before = &intent.Bound{ID: "7"}
	if _, err := store.ResourceLogList.Normalize(logs); !fault.Is(err, fault.Invalid) {
		t.Errorf("the id of a bound in a list without ids: %v", err)
	}
}
