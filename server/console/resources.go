package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
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
	Any                        bool
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

type sortLink struct {
	Text, URL, Order string
}

type resourceRow struct {
	URL     string
	State   state
	Type    string
	Agent   string
	Value   string
	ID      string
	LastRun *time.Time
	Parked  *state // set when it is left alone
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

// resourceColumns are the columns that the list sorts by.
var resourceColumns = []struct{ name, text string }{
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
	values, base := r.URL.Query(), envURL(e.ID)+"/resources"
	p := resourcesPage{frame: f}
	p.Filter = resourceFilter{
		Status: values.Get("status"),
		Type:   values.Get("type"),
		Agent:  values.Get("agent"),
		Value:  values.Get("value"),
	}
	keep, filters := url.Values{}, map[string][]string{}
	for name, column := range map[string]string{"status": "status", "type": "resource_type", "agent": "agent", "value": "resource_id_value"} {
		if v := strings.TrimSpace(values.Get(name)); v != "" {
			keep.Set(name, v)
			filters[column] = []string{v}
			p.Filter.Any = true
		}
	}
	if p.Filter.Parked = p.Filter.Status == "parked"; p.Filter.Parked { // beside the state, to the store
		delete(filters, "status")
		filters["parked"] = []string{"true"}
	}
	p.Filter.Choices = statusChoices(p.Filter.Status)
	q := intent.ListQuery{Limit: perPage, Sort: "resource_type", Filters: filters}
	column, order, _ := strings.Cut(values.Get("sort"), ".")
	if slices.ContainsFunc(resourceColumns, func(x struct{ name, text string }) bool { return x.name == column }) {
		q.Sort, q.Desc = column, order == "desc"
		keep.Set("sort", values.Get("sort"))
	}
	bounds(values, &q)
	page, err := c.store.Resources(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p.List = resourceList{Any: p.Filter.Any, EnvURL: envURL(e.ID), NoneYet: page.Total == 0 && !p.Filter.Any}
	for _, row := range page.Items {
		p.List.Rows = append(p.List.Rows, rowOf(e.ID, row))
	}
	p.List.Sorts = sortLinks(base, keep, q)
	p.List.Pager = paging(base, keep, q, page, func(x intent.ResourceRow) (string, string) {
		return sortValue(q.Sort, x.State.ID, string(x.State.Status())), x.State.ID.String()
	})
	return view{template: "resources", data: p, fragments: []fragment{{"resourcelist", "resourcelist", p.List}}}, nil
}

func sortValue(column string, id intent.ResourceID, status string) string {
	switch column {
	case "status":
		return status
	case "agent":
		return id.Agent
	case "resource_id_value":
		return id.Value
	}
	return id.Type
}

func sortLinks(base string, keep url.Values, q intent.ListQuery) []sortLink {
	var out []sortLink
	for _, column := range resourceColumns {
		values := url.Values{}
		for k, v := range keep {
			values[k] = v
		}
		l, next := sortLink{Text: column.text, Order: "none"}, "asc"
		if q.Sort == column.name {
			l.Order = "ascending"
			if q.Desc {
				l.Order = "descending"
			} else {
				next = "desc"
			}
		}
		values.Set("sort", column.name+"."+next)
		l.URL = base + "?" + values.Encode()
		out = append(out, l)
	}
	return out
}

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
