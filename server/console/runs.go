package console

import (
	"net/http"

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
	p.List.Pager = pagerOf(l, page, func(x intent.Compile) (string, string) {
		return stamp(x.Requested), x.ID.String()
	})
	return view{template: "runs", data: p, fragments: []fragment{{"runlist", "runlist", p.List}}}, nil
}
