package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/store"
)

// driftPage lists what was found to differ from the intent.
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
	// Of is set on the page of a resource: its rows need not name it.
	Of bool
}

type driftRow struct {
	State          state
	Resource, URL  string
	Attribute      string
	Desired, Found string
	Long           bool
	Lines          *linediff.Diff // from what was found to the intent
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
	l := listingOf(r, store.DriftList, envURL(e.ID)+"/drift")
	ending, resource := r.URL.Query().Get("ending"), strings.TrimSpace(r.URL.Query().Get("resource"))
	switch ending {
	case "":
	case "open":
		l.filter("open", "true", "ending", ending)
	default:
		l.filter("ending", ending, "ending", ending)
	}
	if resource != "" {
		l.filter("resource_id", resource, "resource", resource)
	}
	p := driftPage{frame: f, Filter: driftFilter{Resource: resource, Any: l.filtered(), Choices: []choice{
		{"", "Open and ended", ending == ""}, {"open", "Open", ending == "open"},
		{"healed", "Healed", ending == "healed"}, {"gone", "Gone by itself", ending == "gone"},
		{"superseded", "Superseded", ending == "superseded"},
	}}}
	page, err := c.store.Drift(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p.List = driftTable{ID: "driftlist", Any: p.Filter.Any, Rows: driftRows(e.ID, page.Items)}
	if err := c.addDriftLines(r, e, p.List.Rows, page.Items); err != nil {
		return view{}, err
	}
	p.List.Pager = pagerOf(l, page, func(d intent.Drift) (string, string) { return stamp(d.Since), d.ID.String() })
	return view{template: "drift", data: p, fragments: []fragment{{"driftlist", "driftlist", p.List}}}, nil
}

func driftRows(env uuid.UUID, list []intent.Drift) (out []driftRow) {
	for _, d := range list {
		row := driftRow{
			State: driftStates[d.Ending], Resource: d.Resource.String(), URL: resourceURL(env, d.Resource),
			Attribute: d.Attribute, Desired: jsonText(d.Desired), Found: jsonText(d.Found),
			Since: d.Since, Ended: d.Ended, Version: d.Version, VersionURL: versionURL(env, d.Version),
		}
		row.Long = isLong(row.Desired) || isLong(row.Found)
		out = append(out, row)
	}
	return out
}

// jsonText writes a JSON value as a page shows it.
func jsonText(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return valueText(v)
}

// shownDrift is how many records the page of a resource shows.
const shownDrift = 10

// doUnpark unparks one resource, or all that are parked.
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
		return "It is parked: it failed too often for the same intent, and is left alone until you unpark it or the " +
			"model wants something else."
	case intent.ParkedContested:
		return "It is parked: something else keeps changing it back, so healing stopped and it does not count as " +
			"deployed until you unpark it or the model wants something else."
	}
	return ""
}
