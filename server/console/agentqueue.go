package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// queuePage shows what the scheduler runs, what comes next and why it waits; and the same of compiles.
type queuePage struct {
	frame
	Agent    string // the only one that is shown
	All      string // the address of the page with all
	Queue    queueList
	Compiles runTable // unless an agent is chosen
}

type queueList struct {
	EnvURL   string
	Here     bool
	Sentence string
	Agents   []queueAgent
	More     int
}

type queueAgent struct {
	Name    string
	URL     string
	State   state
	Why     string
	Running []queueTask
	Next    []queueTask
	More    int // that wait and are not shown
	Jobs    int
}

type queueTask struct {
	Text   string
	URL    string
	Reason string
	Since  *time.Time
	Waits  string // what it waits for, in words
	For    string // the resource that it waits for
	ForURL string
}

func (c *console) queue(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Queue", "queue", crumb{Text: "Queue"})
	if err != nil {
		return view{}, err
	}
	p := queuePage{frame: f, Agent: r.URL.Query().Get("agent"), All: envURL(e.ID) + "/queue"}
	q := intent.QueueQuestion{Agent: p.Agent, Agents: 50, Next: 3}
	if p.Agent != "" {
		q.Next = intent.MostQueueNext
	}
	if p.Queue, err = c.queueList(r.Context(), e.ID, q); err != nil {
		return view{}, err
	}
	out := []fragment{{"queuelist", "queuelist", p.Queue}}
	if p.Agent == "" {
		if p.Compiles, err = c.openRuns(r.Context(), e.ID); err != nil {
			return view{}, err
		}
		out = append(out, fragment{"queueruns", "queueruns", p.Compiles})
	}
	return view{template: "queue", data: p, fragments: out}, nil
}

func (c *console) queueList(
	ctx context.Context, env intent.EnvironmentID, q intent.QueueQuestion,
) (queueList, error) {
	found, err := c.control.Queue(ctx, env, q)
	out := queueList{EnvURL: envURL(env), Here: found.Here, More: found.More}
	out.Sentence = plural(found.Running, "task") + " running, " + plural(found.Waiting, "resource") + " waiting"
	if found.Jobs > 0 {
		out.Sentence += ", " + plural(found.Jobs, "check") + " for dry runs and facts waiting"
	}
	switch out.Sentence += "."; {
	case found.Halted:
		out.Sentence += " The environment is halted: nothing more starts."
	case found.Full:
		out.Sentence += " The environment runs as many tasks at once as it may."
	}
	for _, a := range found.Agents {
		row := queueAgent{
			Name: a.Agent, URL: out.EnvURL + "/queue?" + url.Values{"agent": {a.Agent}}.Encode(),
			Running: queueTasks(env, a.Running), Next: queueTasks(env, a.Next), Jobs: a.Jobs,
		}
		row.State, row.Why = agentWaitText(a)
		row.More = a.Waiting - len(a.Next)
		out.Agents = append(out.Agents, row)
	}
	return out, err
}

// agentWaitText says why an agent starts nothing more.
func agentWaitText(a intent.AgentQueue) (state, string) {
	look := waiting
	if len(a.Running) > 0 {
		look = running
	}
	switch a.Why {
	case intent.AgentHalted:
		return halted, "The environment is halted."
	case intent.AgentPaused:
		return paused, "The agent is paused."
	case intent.AgentUnreachable:
		return unreachable, "The target cannot be reached; one deployment tries again after " +
			minute(a.Until, "UTC") + "."
	case intent.AgentGap:
		return look, "The least time between two starts is over at " + a.Until.UTC().Format(time.DateTime) + " UTC."
	case intent.AgentFull:
		return look, "The environment runs as many tasks at once as it may."
	case intent.AgentBusy:
		return look, "The next task waits for the one that runs."
	}
	return look, ""
}

func queueTasks(env intent.EnvironmentID, list []intent.QueuedTask) (out []queueTask) {
	address := func(id intent.ResourceID) string {
		return envURL(env) + "/resource?" + url.Values{"id": {id.String()}}.Encode()
	}
	for _, t := range list {
		row := queueTask{Text: t.Resource.String(), URL: address(t.Resource), Reason: t.Reason}
		if !t.Since.IsZero() {
			row.Since = &t.Since
		}
		switch {
		case t.Gate.Held():
			row.Waits = t.Gate.String()
		case !t.WaitsFor.IsZero() && t.WaitsFor == t.Resource:
			row.Waits = "waits for the end of its own run"
		case !t.WaitsFor.IsZero():
			row.Waits, row.For, row.ForURL = "waits for", t.WaitsFor.String(), address(t.WaitsFor)
		case t.Sent:
			row.Waits = "is in the executor, behind the one that runs"
		}
		out = append(out, row)
	}
	return out
}
