package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// resourcesPage lists the resources of the active version.
type resourcesPage struct {
	frame
	Filter resourceFilter
	List   resourceList
}

// resourceFilter is the form above the list.
type resourceFilter struct {
	Status, Type, Agent, Value string
	Parked                     bool
	Choices                    []choice
	Any                        bool // a filter is set
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
	Parked  *state // set when the resource is parked
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
	get := func(name string) string { return strings.TrimSpace(r.URL.Query().Get(name)) }
	p := resourcesPage{frame: f, Filter: resourceFilter{
		Status: get("status"), Type: get("type"), Agent: get("agent"), Value: get("value"),
	}}
	switch p.Filter.Status {
	case "":
	case "parked": // people choose it beside the states
		p.Filter.Parked = true
		l.filter("parked", "true", "status", "parked")
	default:
		l.filter("status", p.Filter.Status, "status", p.Filter.Status)
	}
	if p.Filter.Type != "" {
		l.filter("resource_type", p.Filter.Type, "type", p.Filter.Type)
	}
	if p.Filter.Agent != "" {
		l.filter("agent", p.Filter.Agent, "agent", p.Filter.Agent)
	}
	if p.Filter.Value != "" {
		l.filter("resource_id_value", p.Filter.Value, "value", p.Filter.Value)
	}
	p.Filter.Any, p.Filter.Choices = l.filtered(), statusChoices(p.Filter.Status)
	l.sort(r.URL.Query().Get("sort"))
	page, err := c.store.Resources(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p.List = resourceList{
		Any: p.Filter.Any, EnvURL: envURL(e.ID), NoneYet: page.Total == 0 && !p.Filter.Any,
		Sorts: l.sortLinks(resourceColumns),
	}
	for _, row := range page.Items {
		p.List.Rows = append(p.List.Rows, rowOf(e.ID, row))
	}
	p.List.Pager = pagerOf(l, page, func(x intent.ResourceRow) (string, string) {
		return resourcePlace(l.query.Sort, x.State.ID, x.State.Status())
	})
	return view{template: "resources", data: p, fragments: []fragment{{"resourcelist", "resourcelist", p.List}}}, nil
}

// statusChoices are the states that the filter offers, one of each look.
func statusChoices(selected string) []choice {
	out := []choice{
		{"", "Any state", selected == ""},
		{"!deployed", "Not as intended", selected == "!deployed"},
		{"parked", "Parked", selected == "parked"},
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
