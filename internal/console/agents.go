package console

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// agentsPage lists the targets.
type agentsPage struct {
	frame
	List agentList
}

type agentList struct {
	EnvURL string
	Rows   []agentRow
	Pager  pager
	Halted bool
}

type agentRow struct {
	Name   string
	State  state
	Paused bool
	Total  int
	URL    string
}

func (c *console) agents(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Agents", "agents", crumb{Text: "Agents"})
	if err != nil {
		return view{}, err
	}
	q := intent.ListQuery{Limit: perPage, Sort: "name"}
	bounds(r.URL.Query(), &q)
	page, err := c.control.Agents(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p := agentsPage{frame: f, List: agentList{EnvURL: envURL(e.ID), Halted: e.Halted}}
	for _, a := range page.Items {
		p.List.Rows = append(p.List.Rows, agentRowOf(e.ID, a, e.Halted))
	}
	p.List.Pager = paging(envURL(e.ID)+"/agents", url.Values{}, q, page, func(a intent.Agent) (string, string) { return a.Name, a.Name })
	return view{template: "agents", data: p, fragments: []fragment{{"agentlist", "agentlist", p.List}}}, nil
}

func agentRowOf(env uuid.UUID, a intent.Agent, halted bool) agentRow {
	row := agentRow{Name: a.Name, Paused: a.Paused, Total: a.Resources, State: ready,
		URL: envURL(env) + "/resources?" + url.Values{"agent": {a.Name}}.Encode()}
	switch {
	case a.Paused:
		row.State = paused
	case halted:
		row.State = state{"paused", "halted"}
	}
	return row
}
