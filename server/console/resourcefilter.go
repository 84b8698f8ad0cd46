package console

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// resourceFilter is the filter of the list of resources. The address holds all of it, so that a bookmark or a message
// to a colleague shows the same:
//
//	type, agent, value      the text contains this
//	is-type, is-agent       exactly one of these; chosen among the counts beside the list
//	status                  one of these states; !deployed: not as intended; parked: parked, beside any state
type resourceFilter struct {
	Type, Agent, Value      string
	Types, Agents, Statuses []string
	Parked                  bool
	Any                     bool // a filter is set
	Kept                    []hiddenField
	KnownTypes, KnownAgents []string // suggestions for what one types
}

// hiddenField is a field of a form that people do not see.
type hiddenField struct{ Name, Value string }

// readResourceFilter reads a filter from an address or a form.
func readResourceFilter(v url.Values) resourceFilter {
	get := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	f := resourceFilter{Type: get("type"), Agent: get("agent"), Value: get("value")}
	some := func(name string) (out []string) {
		for _, x := range v[name] {
			if x = strings.TrimSpace(x); x != "" && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
		return out
	}
	f.Types, f.Agents = some("is-type"), some("is-agent")
	for _, s := range some("status") {
		if s == "parked" {
			f.Parked = true
		} else {
			f.Statuses = append(f.Statuses, s)
		}
	}
	for name, values := range f.chosen() {
		for _, x := range values {
			f.Kept = append(f.Kept, hiddenField{name, x})
		}
	}
	slices.SortFunc(f.Kept, func(a, b hiddenField) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	f.Any = len(f.address()) > 0
	return f
}

// chosen are the parameters of what was chosen rather than typed.
func (f resourceFilter) chosen() url.Values {
	v := url.Values{}
	for name, list := range map[string][]string{"is-type": f.Types, "is-agent": f.Agents, "status": f.Statuses} {
		if len(list) > 0 {
			v[name] = slices.Clone(list)
		}
	}
	if f.Parked {
		v.Add("status", "parked")
	}
	return v
}

// address are the parameters of the whole filter.
func (f resourceFilter) address() url.Values {
	v := f.chosen()
	for name, text := range map[string]string{"type": f.Type, "agent": f.Agent, "value": f.Value} {
		if text != "" {
			v.Set(name, text)
		}
	}
	return v
}

// value is the filter as the record knows it. Orphans are there when one asks for them.
func (f resourceFilter) value() intent.ResourceFilter {
	text := func(contains string, in []string) intent.TextFilter {
		out := intent.TextFilter{In: in}
		if contains != "" {
			out.Like = []string{store.LikeContains(strings.ToValidUTF8(strings.ReplaceAll(contains, "\x00", ""), ""))}
		}
		return out
	}
	out := intent.ResourceFilter{
		Type: text(f.Type, f.Types), Agent: text(f.Agent, f.Agents), Value: text(f.Value, nil),
	}
	for _, s := range f.Statuses {
		if rest, not := strings.CutPrefix(s, "!"); not {
			out.Status.NotIn = append(out.Status.NotIn, intent.Status(rest))
		} else {
			out.Status.In = append(out.Status.In, intent.Status(s))
		}
	}
	if !slices.Contains(out.Status.In, intent.StatusOrphaned) {
		out.Status.NotIn = append(out.Status.NotIn, intent.StatusOrphaned)
	}
	if f.Parked {
		out.Parked = new(true)
	}
	return out
}

// wire is the filter in the form that the API takes, for the record of a dry run.
func (f resourceFilter) wire(ids []intent.ResourceID) json.RawMessage {
	type texts struct {
		Eq       []string `json:"eq,omitempty"`
		Contains []string `json:"contains,omitempty"`
		Neq      []string `json:"neq,omitempty"`
	}
	out := map[string]any{"isOrphan": false}
	if ids != nil {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = id.String()
		}
		out["resourceIds"] = names
	} else {
		value := f.value()
		for name, t := range map[string]intent.TextFilter{
			"resourceType": value.Type, "agent": value.Agent, "resourceIdValue": value.Value,
		} {
			if !t.IsZero() {
				out[name] = texts{Eq: t.In, Contains: t.Like}
			}
		}
		var status texts
		for _, s := range f.Statuses {
			if rest, not := strings.CutPrefix(s, "!"); not {
				status.Neq = append(status.Neq, rest)
			} else {
				status.Eq = append(status.Eq, s)
			}
		}
		if len(f.Statuses) > 0 {
			out["status"] = status
		}
		if f.Parked {
			out["parked"] = true
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil // texts always become JSON
	}
	return b
}

// facet is a property by which the list can be narrowed, with its values and how many resources have each.
type facet struct {
	Title string
	ID    string
	Rows  []facetRow
	More  int // values that are not shown
}

type facetRow struct {
	URL    string // chooses the value, or no longer
	Text   string
	State  *state
	Count  int
	Chosen bool
}

// shownFacets is how many values of a property the page offers.
const shownFacets = 12

func resourceFacets(
	found map[intent.FacetOf]store.FacetList,
	env uuid.UUID,
	f resourceFilter,
	suggest *resourceFilter,
) []facet {
	toggle := func(name, value string) (address string, chosen bool) {
		v := f.address()
		if chosen = slices.Contains(v[name], value); chosen {
			v[name] = slices.DeleteFunc(v[name], func(x string) bool { return x == value })
		} else {
			v.Add(name, value)
		}
		return envURL(env) + "/resources?" + v.Encode(), chosen
	}
	row := func(name, value, text string, look *state, n int) facetRow {
		address, chosen := toggle(name, value)
		return facetRow{address, text, look, n, chosen}
	}
	states := facet{Title: "State", ID: "facet-state"}
	states.Rows = append(states.Rows, row("status", "!deployed", "Not as intended", nil, 0))
	other := 0
	for _, v := range found[intent.FacetStatus].Values {
		look := stateOf(intent.Status(v.Value))
		states.Rows = append(states.Rows, row("status", v.Value, "", &look, v.Count))
		if v.Value != string(intent.StatusDeployed) && v.Value != string(intent.StatusOrphaned) {
			other += v.Count
		}
	}
	states.Rows[0].Count = other
	for _, v := range found[intent.FacetParked].Values {
		if v.Value == "true" {
			states.Rows = append(states.Rows, row("status", "parked", "", &parked, v.Count))
		}
	}
	out := []facet{states}
	for _, of := range []struct {
		title, name string
		of          intent.FacetOf
		suggestions *[]string
	}{
		{"Type", "is-type", intent.FacetType, &suggest.KnownTypes},
		{"Agent", "is-agent", intent.FacetAgent, &suggest.KnownAgents},
	} {
		list := facet{Title: of.title, ID: "facet-" + string(of.of)}
		for _, v := range found[of.of].Values {
			list.Rows = append(list.Rows, row(of.name, v.Value, v.Value, nil, v.Count))
			*of.suggestions = append(*of.suggestions, v.Value)
		}
		list.More = max(0, found[of.of].Total-len(list.Rows))
		out = append(out, list)
	}
	return out
}
