package console

import (
	"net/http"
	"net/url"

	"ordain.dev/ordain/internal/intent"
)

// runsPage lists the compile reports.
type runsPage struct {
	frame
	List   runList
	Filter string
}

type runList struct {
	Table runTable
	Pager pager
}

// runFilters are the choices above the list.
var runFilters = map[string]map[string][]string{
	"":          nil,
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
	values := r.URL.Query()
	filter := values.Get("show")
	if _, known := runFilters[filter]; !known {
		filter = ""
	}
	q := intent.ListQuery{Limit: perPage, Sort: "requested", Desc: true, Filters: runFilters[filter]}
	bounds(values, &q)
	page, err := c.store.Compiles(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p := runsPage{frame: f, Filter: filter}
	p.List.Table.EnvURL = envURL(e.ID)
	if filter != "" {
		p.List.Table.Empty = "No run is in this state."
	}
	for _, run := range page.Items {
		p.List.Table.Rows = append(p.List.Table.Rows, c.runRow(run))
	}
	keep := url.Values{}
	if filter != "" {
		keep.Set("show", filter)
	}
	p.List.Pager = paging(
		envURL(e.ID)+"/runs",
		keep,
		q,
		page,
		func(x intent.Compile) (string, string) { return stamp(x.Requested), x.ID.String() },
	)
	return view{template: "runs", data: p, fragments: []fragment{{"runlist", "runlist", p.List}}}, nil
}
