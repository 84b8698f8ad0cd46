package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// gateCard shows the windows and freezes of an environment, and the overrides that let changes through.
type gateCard struct {
	EnvURL    string
	Windows   []windowRow
	Overrides []overrideRow
}

type windowRow struct {
	State state
	Name  string
	Text  string
}

type overrideRow struct {
	ID, By, Reason, Agents, Until string
}

// gatesOf returns the windows and overrides of an environment.
func (c *console) gatesOf(e intent.Environment) gateCard {
	card := gateCard{EnvURL: envURL(e.ID)}
	windows, err := e.Windows()
	if err != nil { // it was checked when it was set
		return card
	}
	for i := range windows {
		card.Windows = append(card.Windows, windowRowOf(&windows[i], c.now()))
	}
	for _, o := range e.Overrides {
		if o.Lasts(c.now()) {
			card.Overrides = append(card.Overrides, overrideRow{
				ID: o.ID.String(), By: o.By, Reason: o.Reason, Agents: strings.Join(o.Agents, ", "),
				Until: minute(o.Until, "UTC"),
			})
		}
	}
	return card
}

func windowRowOf(w *intent.Window, now time.Time) windowRow {
	open, until := w.At(now)
	row := windowRow{Name: w.Name}
	verb := "opens"
	switch {
	case w.Kind == intent.WindowFreeze && open:
		row.State, verb = state{"paused", "frozen"}, "until"
	case w.Kind == intent.WindowFreeze:
		row.State, verb = state{"none", "freeze"}, "begins"
	case open:
		row.State, verb = state{"intended", "open"}, "closes"
	default:
		row.State = state{"waiting", "closed"}
	}
	if !until.IsZero() {
		row.Text = verb + " " + minute(until, w.Zone)
	}
	if len(w.Agents) > 0 {
		row.Text += ", agents " + strings.Join(w.Agents, ", ")
	}
	if len(w.Resources) > 0 {
		row.Text += ", resources " + strings.Join(w.Resources, ", ")
	}
	return row
}

// minute writes a time in a zone, to the minute.
func minute(t time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc, zone = time.UTC, "UTC"
	}
	return t.In(loc).Format("2006-01-02 15:04") + " " + zone
}

// notesOf says what limits an agent, who paused it, and what holds its changes back.
func (c *console) notesOf(e intent.Environment, a intent.Agent) (out []string) {
	if a.Paused && a.PausedAt != nil {
		out = append(out, "Paused by "+a.PausedBy+" at "+minute(*a.PausedAt, "UTC")+".")
	}
	if o := intent.Overridden(e.Overrides, a.Name, c.now()); o != nil {
		out = append(out, o.By+" lets its changes through until "+minute(o.Until, "UTC")+".")
	} else if windows, err := e.Windows(); err == nil {
		if g := agentWide(windows).Gate(intent.ResourceID{Agent: a.Name}, c.now()); g.Held() {
			out = append(out, "Changes: "+g.String()+".")
		}
	}
	limits, err := e.AgentLimits()
	if err != nil {
		return out
	}
	l := limits.Of(a.Name)
	var words []string
	if l.Concurrency > 1 {
		words = append(words, fmt.Sprintf("%d resources at once", l.Concurrency))
	}
	if l.MinGap > 0 {
		words = append(words, l.MinGap.String()+" between starts")
	}
	if l.HasDeploy {
		words = append(words, "deploy interval "+l.DeployInterval)
	}
	if l.HasRepair {
		words = append(words, "repair interval "+l.RepairInterval)
	}
	if len(words) > 0 {
		out = append(out, "Limits: "+strings.Join(words, ", ")+".")
	}
	return out
}

// agentWide leaves out the windows of single resources.
func agentWide(ws intent.Windows) (out intent.Windows) {
	for _, w := range ws {
		if len(w.Resources) == 0 {
			out = append(out, w)
		}
	}
	return out
}

// doOverride lets changes through for some minutes.
func (c *console) doOverride(r *http.Request, e intent.Environment) (string, error) {
	get := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	minutes, err := strconv.Atoi(get("minutes"))
	if err != nil || minutes < 1 || minutes > 24*60 {
		return "", fault.New("console.override", fault.Invalid, "an override lasts 1 to 1440 minutes")
	}
	o := intent.Override{By: get("by"), Reason: get("reason"), Until: c.now().Add(time.Duration(minutes) * time.Minute)}
	for agent := range strings.SplitSeq(get("agents"), ",") {
		if agent = strings.TrimSpace(agent); agent != "" {
			o.Agents = append(o.Agents, agent)
		}
	}
	_, err = c.control.Override(r.Context(), e.ID, o)
	return back(r, envURL(e.ID), "overridden"), err
}

// doEndOverride ends an override before its time.
func (c *console) doEndOverride(r *http.Request, e intent.Environment) (string, error) {
	id, err := uuid.Parse(r.PostFormValue("id"))
	if err != nil {
		return "", fault.New("console.override", fault.Invalid, "this is not the id of an override")
	}
	return back(r, envURL(e.ID), "endoverride"), c.control.EndOverride(asConsole(r), e.ID, id)
}
