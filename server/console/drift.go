package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// driftPage lists what was found to be other than the intent.
type driftPage struct {
	frame
	Filter driftFilter
	List   driftTable
}

type driftFilter struct {
	Resource string
	Choices  []choice
	Any      bool
}

// driftTable is a list of records, of an environment or of one resource.
type driftTable struct {
	ID    string
	Rows  []driftRow
	Pager pager
	Any   bool // a filter is set
	// Of is set on the page of a resource, which it need not name in each row.
	Of bool
}

type driftRow struct {
	State          state
	Resource, URL  string
	Attribute      string
	Desired, Found string
	Long           bool
	Since          time.Time
	Ended          *time.Time
	Version        int
	VersionURL     string
}

var driftStates = map[intent.DriftEnding]state{
	intent.DriftOpen:       differs,
	intent.DriftHealed:     {"intended", "healed"},
	intent.DriftGone:       {"intended", "gone by itself"},
	intent.DriftSuperseded: {"none", "superseded"},
}

func (c *console) drift(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Drift", "drift", crumb{Text: "Drift"})
	if err != nil {
		return view{}, err
	}
	values, keep, filters := r.URL.Query(), url.Values{}, map[string][]string{}
	ending, resource := values.Get("ending"), strings.TrimSpace(values.Get("resource"))
	p := driftPage{frame: f, Filter: driftFilter{Resource: resource, Any: ending != "" || resource != ""}}
	p.Filter.Choices = []choice{
		{
			"",
			"Open and ended",
			ending == "",
		}, {"open", "Open", ending == "open"}, {"healed", "Healed", ending == "healed"},
		{"gone", "Gone by itself", ending == "gone"}, {"superseded", "Superseded", ending == "superseded"},
	}
	switch {
	case ending == "open":
		filters["open"] = []string{"true"}
	case ending != "":
		filters["ending"] = []string{ending}
	}
	if resource != "" {
		filters["resource_id"] = []string{resource}
	}
	for name, v := range map[string]string{"ending": ending, "resource": resource} {
		if v != "" {
			keep.Set(name, v)
		}
	}
	q := intent.ListQuery{Limit: perPage, Sort: "since", Desc: true, Filters: filters}
	bounds(values, &q)
	page, err := c.store.Drift(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p.List = driftTable{ID: "driftlist", Any: p.Filter.Any, Rows: driftRows(e.ID, page.Items)}
	p.List.Pager = paging(
		envURL(e.ID)+"/drift",
		keep,
		q,
		page,
		func(d intent.Drift) (string, string) { return stamp(d.Since), d.ID.String() },
	)
	return view{template: "drift", data: p, fragments: []fragment{{"driftlist", "driftlist", p.List}}}, nil
}

func driftRows(env uuid.UUID, list []intent.Drift) (out []driftRow) {
	for _, d := range list {
		row := driftRow{
			State: driftStates[d.Ending], Resource: d.Resource.String(), URL: resourceURL(env, d.Resource), Attribute: d.Attribute,
			Desired: jsonText(
				d.Desired,
			), Found: jsonText(d.Found), Since: d.Since, Ended: d.Ended, Version: d.Version, VersionURL: versionURL(env, d.Version),
		}
		row.Long = isLong(row.Desired) || isLong(row.Found)
		out = append(out, row)
	}
	return out
}

func jsonText(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return valueText(v)
}

// shownDrift is how many records the page of a resource shows.
const shownDrift = 10

// doUnpark frees one resource, or all that are parked.
func (c *console) doUnpark(r *http.Request, e intent.Environment) (string, error) {
	if r.PostFormValue("all") == "yes" {
		_, err := c.control.Unpark(r.Context(), e.ID, nil)
		return back(r, envURL(e.ID)+"/resources", "freed"), err
	}
	id, err := intent.ParseResourceID(r.PostFormValue("id"))
	if err != nil {
		return "", fault.Wrap("console.unpark", fault.Invalid, err)
	}
	_, err = c.control.Unpark(r.Context(), e.ID, []intent.ResourceID{id})
	return resourceURL(e.ID, id) + "&done=freed", err
}

// parkingSentence says why a resource is left alone; empty when it is not.
func parkingSentence(st intent.ResourceState) string {
	switch st.Parked {
	case intent.ParkedAttempts:
		return "It is parked: it failed too often for the same intent, and is left alone until you free it or the model wants something else."
	case intent.ParkedContested:
		return "It is parked: something else keeps changing it back, so healing stopped until you free it or the model wants something else."
	}
	return ""
}
