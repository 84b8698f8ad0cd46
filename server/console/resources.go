package console

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// resourcesPage lists the resources of the active version.
type resourcesPage struct {
	frame
	Filter resourceFilter
	Facets []facet
	Views  savedViews
	Bulk   bulkBar
	List   resourceList
}

type choice struct {
	Value, Text string
	Selected    bool
}

type resourceList struct {
	Rows    []resourceRow
	Pager   pager
	Sorts   []sortLink
	Any     bool // a filter is set
	EnvURL  string
	NoneYet bool
}

type resourceRow struct {
	URL     string
	State   state
	Type    string
	Agent   string
	Value   string
	ID      string
	LastRun *time.Time
	Parked  *state        // set when the resource is parked
	Waits   *resourceWait // nil: it does not wait, or nobody knows for what
}

func rowOf(env uuid.UUID, r intent.ResourceRow) resourceRow {
	id := r.State.ID
	row := resourceRow{
		URL: resourceURL(env, id), State: stateOf(r.State.Status()), Type: id.Type, Agent: id.Agent, Value: id.Value,
		ID: id.String(), LastRun: r.State.LastRunAt,
	}
	if r.State.Parked != intent.NotParked {
		row.Parked = &parked
	}
	return row
}

// resourceColumns are the columns by which people can sort the list.
var resourceColumns = []column{
	{"status", "State"}, {"resource_type", "Type"}, {"resource_id_value", "Resource"}, {"agent", "Agent"},
}

func (c *console) resources(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Resources", "resources", crumb{Text: "Resources"})
	if err != nil {
		return view{}, err
	}
	l := listingOf(r, store.ResourceList, envURL(e.ID)+"/resources")
	l.query.Desc = false
	filter := readResourceFilter(r.URL.Query())
	l.keep = filter.address()
	p := resourcesPage{frame: f, Filter: filter}
	l.sort(r.URL.Query().Get("sort"))
	chosen := filter.value()
	page, err := c.store.FilteredResources(r.Context(), e.ID, chosen, l.query, shownFacets)
	if err != nil {
		return view{}, err
	}
	p.Facets = resourceFacets(page.Facets, e.ID, filter, &p.Filter)
	if p.Views, err = c.savedViews(r, e, intent.ViewsOfResources, envURL(e.ID)+"/resources", nil); err != nil {
		return view{}, err
	}
	if p.Bulk, err = c.bulkBar(r, e.ID, filter, page.Total); err != nil {
		return view{}, err
	}
	p.List = resourceList{
		Any: p.Filter.Any, EnvURL: envURL(e.ID), NoneYet: page.Total == 0 && !p.Filter.Any,
		Sorts: l.sortLinks(resourceColumns),
	}
	for _, row := range page.Items {
		p.List.Rows = append(p.List.Rows, rowOf(e.ID, row))
	}
	if err := c.addWaits(r.Context(), e.ID, p.List.Rows); err != nil {
		return view{}, err
	}
	p.List.Pager = pagerOf(l, page.Page, func(x intent.ResourceRow) (string, string) {
		return resourcePlace(l.query.Sort, x.State.ID, x.State.Status())
	})
	return view{template: "resources", data: p, fragments: []fragment{{"resourcelist", "resourcelist", p.List}}}, nil
}
