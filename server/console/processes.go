package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// processesPage lists recorded work of an environment, or of the whole server: what needs a person first.
type processesPage struct {
	frame
	Sentence string
	Filter   processFilter
	Lists    processLists
}

type processFilter struct {
	Action string
	States []choice
	Name   string
	Any    bool
}

type processLists struct {
	Action string // the address of the forms
	Server bool   // the rows name their environment
	Change bool   // the reader may retry and cancel
	Any    bool   // a filter is set
	Dead   []recordedRow
	Rows   []recordedRow
	Pager  pager
}

type recordedRow struct {
	ID          int64
	Name        string
	Resource    string
	Environment string
	EnvURL      string
	State       state
	What        string // what it waits for, or why it ended
	Problem     string
	Attempts    int
	Most        int
	Worker      string
	By          string
	At          time.Time
	AtWord      string
	CanRetry    bool
	CanCancel   bool
}

// shownDead is how many dead processes are shown above the list.
const shownDead = 20

var processStates = map[intent.ProcessState]state{
	intent.ProcessWaiting: waiting, intent.ProcessRunning: running, intent.ProcessDone: finished,
	intent.ProcessCancelled: {"none", "cancelled"}, intent.ProcessDead: {"failed", "dead"},
}

func (c *console) environmentProcesses(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	may := access.Of(r.Context()).Decide(access.ManageProcesses, access.TargetOf(e)).Allowed
	return c.processView(r, e.ID, envURL(e.ID)+"/processes", may)
}

func (c *console) serverProcesses(r *http.Request) (view, error) {
	may := access.Of(r.Context()).Decide(access.ManageAllProcesses, access.Target{}).Allowed
	return c.processView(r, uuid.Nil, "/processes", may)
}

func (c *console) processView(r *http.Request, env uuid.UUID, path string, may bool) (view, error) {
	f, err := c.frame(r, "Processes", "processes", crumb{Text: "Processes"})
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	l := listingOf(r, store.ProcessList, path)
	picked, name := query.Get("state"), query.Get("name")
	if picked != "" {
		l.filter("state", picked, "state", picked)
	}
	if name != "" {
		l.filter("name", name, "name", name)
	}
	page, err := c.store.Processes(r.Context(), env, l.query)
	if err != nil {
		return view{}, err
	}
	p := processesPage{frame: f, Filter: processFilter{Action: path, Name: name, Any: l.filtered(), States: []choice{
		{"", "Any state", picked == ""}, {"waiting", "Waiting", picked == "waiting"},
		{"running", "Running", picked == "running"}, {"done", "Done", picked == "done"},
		{"cancelled", "Cancelled", picked == "cancelled"}, {"dead", "Dead", picked == "dead"},
	}}}
	p.Lists = processLists{Action: path, Server: env == uuid.Nil, Change: may, Any: l.filtered()}
	for _, one := range page.Items {
		p.Lists.Rows = append(p.Lists.Rows, recordedRowOf(one))
	}
	p.Lists.Pager = pagerOf(l, page, func(p intent.Process) (string, string) {
		return stamp(p.Made), strconv.FormatInt(p.ID, 10)
	})
	if p.Sentence, err = c.processSentence(r.Context(), env); err != nil {
		return view{}, err
	}
	if !l.filtered() {
		dead, err := c.store.Processes(r.Context(), env, intent.ListQuery{
			Limit: shownDead, Filters: map[string][]string{"state": {string(intent.ProcessDead)}},
		})
		if err != nil {
			return view{}, err
		}
		for _, one := range dead.Items {
			p.Lists.Dead = append(p.Lists.Dead, recordedRowOf(one))
		}
	}
	return view{template: "processes", data: p, fragments: []fragment{
		{"process-sentence", "process-sentence", p.Sentence}, {"processlists", "processlists", p.Lists},
	}}, nil
}

// processSentence says in one sentence how recorded work is getting on.
func (c *console) processSentence(ctx context.Context, env uuid.UUID) (string, error) {
	n, err := c.store.CountProcesses(ctx, env)
	if err != nil {
		return "", err
	}
	text := strconv.Itoa(n.Running) + " running, " + strconv.Itoa(n.Waiting) + " waiting"
	switch n.Dead {
	case 0:
		return text + ". None is dead.", nil
	case 1:
		return text + ". One is dead: look at why, then retry or cancel it.", nil
	}
	return text + ". " + strconv.Itoa(n.Dead) + " are dead: look at why, then retry or cancel them.", nil
}

func recordedRowOf(p intent.Process) recordedRow {
	row := recordedRow{
		ID: p.ID, Name: p.Name, Resource: p.Resource.String(), Environment: p.EnvironmentName,
		State: processStates[p.State], What: p.Reason, Problem: p.Problem, Attempts: p.Attempts, Most: p.Most,
		Worker: p.Worker, By: p.MadeBy, At: p.Made, AtWord: "made", CanCancel: p.State.Open() && p.Cancel == "",
	}
	if p.Environment != uuid.Nil {
		row.EnvURL = envURL(p.Environment)
	}
	switch p.State {
	case intent.ProcessWaiting:
		row.What, row.AtWord, row.At = "waits for "+p.Waits(), "next", p.Next
		if p.WaitsFor != 0 {
			row.What = "waits for process " + strconv.FormatInt(p.WaitsFor, 10) + " of the same resource"
		}
		row.CanRetry = p.Attempts > 0
	case intent.ProcessRunning:
		row.What, row.AtWord, row.At = "after "+p.Phase, "begun", *p.Begun
		if p.Phase == "" {
			row.What = ""
		}
		if p.Cancel != "" {
			row.What = "is to end: " + p.Cancel
		}
	case intent.ProcessDead:
		row.CanRetry, row.CanCancel = true, true
	}
	if p.Ended != nil {
		row.At, row.AtWord = *p.Ended, "ended"
	}
	return row
}

// processNumber reads which process a form is about.
func processNumber(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PostFormValue("id"), 10, 64)
	if err != nil {
		return 0, fault.New("console", fault.NotFound, "there is no such process")
	}
	return id, nil
}

func (c *console) doRetryProcess(r *http.Request, e intent.Environment) (string, error) {
	id, err := processNumber(r)
	if err != nil {
		return "", err
	}
	return envURL(e.ID) + "/processes?done=retried", c.control.RetryProcess(r.Context(), e.ID, id)
}

func (c *console) doCancelProcess(r *http.Request, e intent.Environment) (string, error) {
	id, err := processNumber(r)
	if err != nil {
		return "", err
	}
	return envURL(e.ID) + "/processes?done=processcancelled", c.control.CancelProcess(r.Context(), e.ID, id)
}

func (c *console) doRetryAnyProcess(r *http.Request) (string, error) {
	id, err := processNumber(r)
	if err != nil {
		return "", err
	}
	return "/processes?done=retried", c.control.RetryProcess(r.Context(), uuid.Nil, id)
}

func (c *console) doCancelAnyProcess(r *http.Request) (string, error) {
	id, err := processNumber(r)
	if err != nil {
		return "", err
	}
	return "/processes?done=processcancelled", c.control.CancelProcess(r.Context(), uuid.Nil, id)
}
