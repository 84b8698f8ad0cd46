package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// logsPage shows what actions on resources wrote. The newest page is live: each action is a fragment of its own, which
// is added at the end, and the head says which action is the first that a reload would show, so that the script takes
// away what is before it. A page of earlier lines stands still.
type logsPage struct {
	frame
	Filter logFilter
	Head   logHead
	Groups []logGroup
}

type logFilter struct {
	Resource, Agent, Type, Text, From, Until string
	Levels, Actions                          []choice
	Any                                      bool
}

// logHead is what stands above the lines.
type logHead struct {
	First          string // the id of the element of the first action; empty when there is none
	Earlier, Later string // addresses
	Newest         string // the address of the page that is live; empty on that
	Pause          string // the address of this page as it is now; empty when it stands still anyway
	Lines          int
	Any, Looked    bool
	Reached        *time.Time // how far back it looked, when it did not look at everything
	EnvURL         string
}

// logGroup is an action with the lines that it wrote.
type logGroup struct {
	ID       string
	State    *state
	Kind     string
	Resource string
	URL      string
	LogURL   string // of the log of this resource only
	Version  int
	Ended    time.Time
	Lines    []logRow
	More     int // how many lines are not shown
}

const (
	// shownLog is about how many lines a page of the log has.
	shownLog = 500
	// shownOfAction is how many lines it shows of one action. The page of the resource has the others.
	shownOfAction = 100
	// shownOfLine is how much it shows of a line.
	shownOfLine = 2 << 10
	// logPace is how many times as long as other pages the log rests between two updates: much of it moves.
	logPace = 10
)

// logActions are the kinds of actions that write lines.
var logActions = []choice{
	{"", "Any action", false}, {"deploy", "Deploy", false}, {"dryrun", "Dry run", false}, {"getfact", "Facts", false},
	{"other", "Other", false},
}

// logLevels are the levels that the filter offers: each with those that are graver.
var logLevels = []choice{
	{"", "Any level", false}, {"INFO", "Info and graver", false}, {"WARNING", "Warnings and graver", false},
	{"ERROR", "Errors and graver", false}, {"CRITICAL", "Critical", false},
}

// chosen returns choices with one selected.
func chosen(choices []choice, value string) []choice {
	out := slices.Clone(choices)
	for i := range out {
		out[i].Selected = out[i].Value == value
	}
	return out
}

func (c *console) logs(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Logs", "logs", crumb{Text: "Logs"})
	if err != nil {
		return view{}, err
	}
	q, keep, err := logQueryOf(r)
	if err != nil {
		return view{}, err
	}
	found, err := c.store.Log(r.Context(), e.ID, q)
	if err != nil {
		return view{}, err
	}
	p := logsPage{frame: f, Filter: logFilter{
		Resource: keep.Get("resource"), Agent: keep.Get("agent"), Type: keep.Get("type"), Text: keep.Get("text"),
		From: keep.Get("from"), Until: keep.Get("until"), Any: len(keep) > 0,
		Levels: chosen(logLevels, keep.Get("level")), Actions: chosen(logActions, keep.Get("action")),
	}}
	for _, a := range found.Actions {
		p.Groups = append(p.Groups, logGroupOf(e.ID, a))
	}
	p.Head = logHeadOf(e.ID, keep, q, found, p.Groups)
	live := p.Head.Newest == ""
	p.Live = live
	v := view{template: "logs", data: p, pace: logPace * c.pace}
	if live {
		v.fragments = append(v.fragments, fragment{"log-head", "log-head", p.Head})
		for _, g := range p.Groups {
			v.fragments = append(v.fragments, fragment{g.ID, "log-group", g})
		}
	}
	return v, nil
}

// logQueryOf reads which part of the log a request asks for, and the filters that the other pages have, too.
func logQueryOf(r *http.Request) (q store.LogQuery, keep url.Values, err error) {
	keep = url.Values{}
	get := func(name string) string {
		value := strings.TrimSpace(r.URL.Query().Get(name))
		if value != "" {
			keep.Set(name, value)
		}
		return value
	}
	q = store.LogQuery{
		Agent: get("agent"), Type: get("type"), Text: get("text"), Level: get("level"),
		Kind: intent.ActionKind(get("action")), Limit: shownLog,
	}
	if part := get("resource"); part != "" {
		if q.Resource, err = intent.ParseResourceID(part); err != nil {
			q.Part = part
		}
	}
	for _, bound := range []struct {
		name, words string
		into        **time.Time
	}{{"from", "From", &q.Since}, {"until", "Until", &q.Until}} {
		if text := get(bound.name); text != "" {
			t, err := store.ParseTime(text)
			if err != nil {
				return q, keep, fault.Wrap("console.logs", fault.Invalid, err).
					Say(bound.words + " is not a time").Hint("write it as 2026-11-28T09:30, in UTC")
			}
			*bound.into = &t
		}
	}
	for _, place := range []struct {
		name string
		into **store.LogPlace
	}{{"before", &q.Before}, {"after", &q.After}} {
		if text := r.URL.Query().Get(place.name); text != "" {
			at, err := store.ParseLogPlace(text)
			if err != nil {
				return q, keep, err
			}
			*place.into = &at
			break
		}
	}
	return q, keep, nil
}

func logHeadOf(env uuid.UUID, keep url.Values, q store.LogQuery, p store.LogPage, groups []logGroup) logHead {
	address := func(side string, at *store.LogPlace) string {
		values := url.Values{}
		for name := range keep {
			values.Set(name, keep.Get(name))
		}
		if at != nil {
			values.Set(side, at.String())
		}
		return strings.TrimSuffix(envURL(env)+"/logs?"+values.Encode(), "?")
	}
	h := logHead{Lines: p.Lines, Any: len(keep) > 0, Looked: p.Looked, EnvURL: envURL(env)}
	if len(groups) > 0 {
		h.First = groups[0].ID
	}
	if p.Earlier != nil {
		h.Earlier = address("before", p.Earlier)
		if p.Looked && q.After == nil {
			h.Reached = &p.Earlier.Ended
		}
	}
	if q.Before != nil || q.After != nil {
		h.Newest = address("", nil)
		if p.Later != nil {
			h.Later = address("after", p.Later)
		}
	} else if last := len(p.Actions) - 1; last >= 0 {
		// The page before the moment after the last action is this page.
		at := p.Actions[last].Finished.Add(time.Microsecond)
		h.Pause = address("before", &store.LogPlace{Ended: at})
	}
	return h
}

func logGroupOf(env uuid.UUID, a intent.Action) logGroup {
	id := a.Resource.String()
	g := logGroup{
		ID: "log-" + a.ID.String(), Kind: string(a.Kind), Resource: id, URL: resourceURL(env, a.Resource),
		LogURL: logsURL(env, "resource", id), Version: a.Version, Ended: *a.Finished,
	}
	if a.Kind == intent.ActionDeploy && a.Status != "" {
		s := stateOf(a.Status)
		g.State = &s
	}
	for i, line := range a.Messages {
		if i == shownOfAction {
			g.More = len(a.Messages) - i
			break
		}
		text := line.Message
		if len(text) > shownOfLine {
			text = strings.ToValidUTF8(text[:shownOfLine], "") + "\n[cut here; the page of the resource has more]"
		}
		row := logRow{Time: line.Time, Level: line.Level, Text: text}
		if line.Level == "ERROR" || line.Level == "CRITICAL" {
			row.Text, row.Trace = readable(text)
		}
		g.Lines = append(g.Lines, row)
	}
	return g
}

// logsURL returns the address of the log with one filter.
func logsURL(env uuid.UUID, filter, value string) string {
	return envURL(env) + "/logs?" + url.Values{filter: {value}}.Encode()
}
