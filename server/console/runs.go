package console

import (
	"context"
	"net/http"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// runsPage lists the runs of an environment: its compiles.
type runsPage struct {
	frame
	List   runList
	Filter string
	Bound  bool // to a repository
}

type runList struct {
	Table runTable
	Pager pager
}

// runFilters are the choices above the list, as filters of store.CompileList.
var runFilters = map[string]map[string][]string{
	"failed":    {"success": {"false"}},
	"succeeded": {"success": {"true"}},
	"open":      {"completed": {"false"}},
}

// shownOpenRuns is how many runs the queue lists.
const shownOpenRuns = 20

func (c *console) runs(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Runs", "runs", crumb{Text: "Runs"})
	if err != nil {
		return view{}, err
	}
	p := runsPage{frame: f, Filter: r.URL.Query().Get("show"), Bound: e.Source.URL != ""}
	l := listingOf(r, store.CompileList, envURL(e.ID)+"/runs")
	p.List.Table.EnvURL = envURL(e.ID)
	if filters := runFilters[p.Filter]; filters != nil {
		l.query.Filters = filters
		l.keep.Set("show", p.Filter)
		p.List.Table.Empty = "No run is in this state."
	} else {
		p.Filter = ""
		if !p.Bound {
			p.List.Table.Empty = noRepository
		}
	}
	page, err := c.store.Compiles(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	for _, run := range page.Items {
		p.List.Table.Rows = append(p.List.Table.Rows, c.runRow(run))
	}
	if err := c.addRunWaits(r.Context(), e.ID, p.List.Table.Rows); err != nil {
		return view{}, err
	}
	p.List.Pager = pagerOf(l, page, func(x intent.Compile) (string, string) {
		return stamp(x.Requested), x.ID.String()
	})
	return view{template: "runs", data: p, fragments: []fragment{{"runlist", "runlist", p.List}}}, nil
}

// openRuns lists the runs that wait or are at work, the next one first.
func (c *console) openRuns(ctx context.Context, env intent.EnvironmentID) (out runTable, err error) {
	out = runTable{EnvURL: envURL(env), Empty: "No compile runs, and none waits."}
	open, err := c.store.OpenCompiles(ctx, env)
	if err != nil {
		return out, err
	}
	out.More = max(0, len(open)-shownOpenRuns)
	for _, run := range open[:len(open)-out.More] {
		out.Rows = append(out.Rows, c.runRow(run))
	}
	return out, c.addRunWaits(ctx, env, out.Rows)
}

// addRunWaits adds to runs that wait what the oldest of them waits for.
func (c *console) addRunWaits(ctx context.Context, env intent.EnvironmentID, rows []runRow) error {
	if !slices.ContainsFunc(rows, func(r runRow) bool { return r.State == waiting }) {
		return nil
	}
	now, err := c.control.Standing(ctx, env)
	if err == nil {
		sayWaits(rows, now)
	}
	return err
}
