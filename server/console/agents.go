package console

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// agentsPage lists the agents of an environment.
type agentsPage struct {
	frame
	Map    agentMap
	List   agentList
	Remote remoteList
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
	// Breaker says since when the target cannot be reached; empty when it can.
	Breaker string
	// Notes say what limits the agent, who paused it, and what holds its changes back.
	Notes []string
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
	l := listingOf(r, store.AgentList, envURL(e.ID)+"/agents")
	page, err := c.store.Agents(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p := agentsPage{frame: f, List: agentList{EnvURL: envURL(e.ID), Halted: e.Halted}}
	for _, a := range page.Items {
		p.List.Rows = append(p.List.Rows, c.agentRowOf(e, a))
	}
	p.List.Pager = pagerOf(l, page, func(a intent.Agent) (string, string) { return a.Name, a.Name })
	if p.Remote, err = c.remoteList(r, e); err != nil {
		return view{}, err
	}
	agents := 0
	if p.Map, agents, err = c.agentMap(r.Context(), e.ID); err != nil {
		return view{}, err
	}
	var pace time.Duration
	if agents > largeMap {
		pace = largeMapPace
	}
	return view{template: "agents", data: p, pace: pace, fragments: []fragment{
		{"agentmap", "agentmap", p.Map}, {"agentlist", "agentlist", p.List}, {"remotelist", "remotelist", p.Remote},
	}}, nil
}

func (c *console) agentRowOf(e intent.Environment, a intent.Agent) agentRow {
	row := agentRow{
		Name: a.Name, Notes: c.notesOf(e, a), Paused: a.Paused, Total: a.Resources, State: ready,
		URL: agentResources(a.Name, false),
	}
	switch {
	case a.Paused:
		row.State = paused
	case e.Halted:
		row.State = halted
	case a.Breaker.Open():
		row.State = unreachable
	}
	if a.Breaker.Open() {
		row.Breaker = fmt.Sprintf("Not reached since %s, %d times in a row. One deployment tries again %s; "+
			"deploying something now tries at once.",
			minute(*a.Breaker.Since, "UTC"), a.Breaker.Failures, c.whenProbed(a.Breaker))
	}
	return row
}

// agentResources returns the address of the resources of an agent, as seen from the page of agents: the addresses of
// thousands of cells should be short. Off leaves out those that are as intended.
func agentResources(agent string, off bool) string {
	values := url.Values{"is-agent": {agent}}
	if off {
		values.Set("status", "!deployed")
	}
	return "resources?" + values.Encode()
}

// whenProbed says when a target that cannot be reached is tried again.
func (c *console) whenProbed(b intent.Breaker) string {
	if left := b.ProbeAt.Sub(c.now()); left > 0 {
		return "in " + duration(left.Round(time.Second))
	}
	return "as soon as there is one"
}
