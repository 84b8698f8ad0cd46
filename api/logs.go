package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// logCalls read the log of an environment. Inmanta has the log of a resource only.
func (s *server) logCalls(c *calls) {
	whole(c, http.MethodGet, "/api/v2/logs",
		"List log lines of all resources in the order in which their actions ended, oldest first: the newest ones, or "+
			"those before or after a place. The metadata of a page names the places beside it; after its newest, what "+
			"is recorded later is found.",
		access.SeeResources, s.listLogs)
}

// logSearch are the arguments of reading the log.
type logSearch struct {
	inEnvironment
	Limit    int     `arg:"limit"`
	Before   *string `arg:"before"`
	After    *string `arg:"after"`
	Since    *string `arg:"since"`
	Until    *string `arg:"until"`
	Resource string  `arg:"resource_id"`
	Part     string  `arg:"resource"`
	Agent    string  `arg:"agent"`
	Type     string  `arg:"resource_type"`
	Action   string  `arg:"action"`
	Level    string  `arg:"minimal_log_level"`
	Text     string  `arg:"message"`
}

// environmentLogLine is a line of the log of an environment.
type environmentLogLine struct {
	actionLogLine
	ResourceID string     `json:"resource_id"`
	Version    int        `json:"version"`
	Finished   *timestamp `json:"finished"` // when its action ended
}

type logPage struct {
	Data     []environmentLogLine `json:"data"`
	Links    logLinks             `json:"links"`
	Metadata logPlaces            `json:"metadata"`
}

// logLinks lead to what is earlier and what is later.
type logLinks struct {
	Self string `json:"self"`
	Prev string `json:"prev,omitempty"`
	Next string `json:"next,omitempty"`
}

// logPlaces are the places beside a page, for before and after. A page that is not full although there is an earlier
// place ended because it looked at many actions that do not match.
type logPlaces struct {
	Earlier *string `json:"earlier"`
	Later   *string `json:"later"`
	Newest  *string `json:"newest"`
	Full    bool    `json:"full"`
}

// shownLogLines is how many lines a page of the log has when the client does not say.
const shownLogLines = 500

// listLogs returns a page of the log.
func (s *server) listLogs(ctx context.Context, a logSearch) (logPage, error) {
	out := logPage{Data: []environmentLogLine{}}
	q, err := a.query()
	if err != nil {
		return out, err
	}
	p, err := s.store.Log(ctx, a.Env, q)
	if err != nil {
		return out, err
	}
	for _, action := range p.Actions {
		for _, line := range action.Messages {
			out.Data = append(out.Data, environmentLogLine{
				actionLogLine: actionLogLine{logLineOf(line), action.ID, action.Kind},
				ResourceID:    action.Resource.String(), Version: action.Version, Finished: maybe(action.Finished),
			})
		}
	}
	out.Links.Self = a.link(q.Limit, "", nil)
	switch {
	case q.Before != nil:
		out.Links.Self = a.link(q.Limit, "before", q.Before)
	case q.After != nil:
		out.Links.Self = a.link(q.Limit, "after", q.After)
	}
	if p.Earlier != nil {
		out.Links.Prev = a.link(q.Limit, "before", p.Earlier)
	}
	if p.Later != nil {
		out.Links.Next = a.link(q.Limit, "after", p.Later)
	}
	out.Metadata = logPlaces{
		Earlier: placeText(p.Earlier), Later: placeText(p.Later), Newest: placeText(p.Newest), Full: p.Lines >= q.Limit,
	}
	return out, nil
}

func placeText(p *store.LogPlace) *string {
	if p == nil {
		return nil
	}
	text := p.String()
	return &text
}

// query reads the arguments.
func (a logSearch) query() (q store.LogQuery, err error) {
	q = store.LogQuery{
		Part: a.Part, Agent: a.Agent, Type: a.Type, Kind: intent.ActionKind(a.Action), Level: a.Level, Text: a.Text,
		Limit: a.Limit,
	}
	if q.Limit == 0 {
		q.Limit = shownLogLines
	}
	if q.Resource, err = optionalID(a.Resource); err != nil {
		return q, err
	}
	for _, bound := range []struct {
		given *string
		into  **time.Time
	}{{a.Since, &q.Since}, {a.Until, &q.Until}} {
		if bound.given == nil {
			continue
		}
		t, err := store.ParseTime(*bound.given)
		if err != nil {
			return q, invalid("%v", err)
		}
		*bound.into = &t
	}
	for _, place := range []struct {
		given *string
		into  **store.LogPlace
	}{{a.Before, &q.Before}, {a.After, &q.After}} {
		if place.given == nil {
			continue
		}
		p, err := store.ParseLogPlace(*place.given)
		if err != nil {
			return q, err
		}
		*place.into = &p
	}
	return q, nil
}

// link is the address of the page at a place, with the same filters.
func (a logSearch) link(limit int, side string, at *store.LogPlace) string {
	out := "/api/v2/logs?limit=" + strconv.Itoa(limit)
	add := func(name, value string) {
		if value != "" {
			out += "&" + name + "=" + escape(value)
		}
	}
	text := func(given *string) string {
		if given == nil {
			return ""
		}
		return *given
	}
	add("resource_id", a.Resource)
	add("resource", a.Part)
	add("agent", a.Agent)
	add("resource_type", a.Type)
	add("action", a.Action)
	add("minimal_log_level", a.Level)
	add("message", a.Text)
	add("since", text(a.Since))
	add("until", text(a.Until))
	if at != nil {
		add(side, at.String())
	}
	return out
}
