package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// auditPage lists who changed what, in an environment or on the whole server.
type auditPage struct {
	frame
	Action string // the address of the page without its filters
	Export string
	Filter auditFilter
	List   auditTable
}

type auditFilter struct {
	Actor, Subject string
	Verbs          []choice
	Outcomes       []choice
	Any            bool
}

type auditTable struct {
	Rows   []auditRow
	Server bool // the rows name their environment
	Any    bool // a filter is set
	Pager  pager
}

type auditRow struct {
	At             time.Time
	Actor, Kind    string
	From           string // the address and the door
	Verb, Summary  string
	Environment    string
	Subject        string
	Before, After  string
	Reason         string
	State          state
	Problem        string
	HasBefore, Has bool
}

var auditStates = map[intent.AuditOutcome]state{
	intent.AuditDone:    {"intended", "done"},
	intent.AuditRefused: {"differs", "refused"},
	intent.AuditFailed:  {"failed", "failed"},
}

// environmentAudit shows the audit trail of an environment.
func (c *console) environmentAudit(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	return c.auditView(r, e.ID, envURL(e.ID)+"/audit")
}

// serverAudit shows the audit trail of the whole server.
func (c *console) serverAudit(r *http.Request) (view, error) {
	return c.auditView(r, uuid.Nil, "/audit")
}

func (c *console) auditView(r *http.Request, env uuid.UUID, path string) (view, error) {
	f, err := c.frame(r, "Audit trail", "audit", crumb{Text: "Audit trail"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	query := r.URL.Query()
	l := listingOf(r, store.AuditList, path)
	for _, field := range []string{"actor", "verb", "outcome", "subject"} {
		if value := strings.TrimSpace(query.Get(field)); value != "" {
			l.filter(field, value, field, value)
		}
	}
	outcome, verb := query.Get("outcome"), query.Get("verb")
	p := auditPage{frame: f, Action: path, Export: path + "/export", Filter: auditFilter{
		Actor: query.Get("actor"), Subject: query.Get("subject"), Any: l.filtered(), Verbs: auditVerbs(verb),
		Outcomes: []choice{
			{"", "Any outcome", outcome == ""}, {"done", "Done", outcome == "done"},
			{"refused", "Refused", outcome == "refused"}, {"failed", "Failed", outcome == "failed"},
		},
	}}
	page, err := c.store.Audit(r.Context(), uuid.Nil, env, l.query)
	if err != nil {
		return view{}, err
	}
	p.List = auditTable{Server: env == uuid.Nil, Any: p.Filter.Any}
	for _, e := range page.Items {
		p.List.Rows = append(p.List.Rows, auditRowOf(e))
	}
	p.List.Pager = pagerOf(l, page, func(e intent.AuditEntry) (string, string) {
		return stamp(e.At), strconv.FormatInt(e.ID, 10)
	})
	return view{template: "audit", data: p}, nil
}

func auditVerbs(selected string) []choice {
	out := []choice{{"", "Any action", selected == ""}}
	for _, d := range access.Verbs {
		if d.Changes() {
			out = append(out, choice{string(d.Verb), string(d.Verb), selected == string(d.Verb)})
		}
	}
	slices.SortFunc(out[1:], func(a, b choice) int { return strings.Compare(a.Value, b.Value) })
	return out
}

func auditRowOf(e intent.AuditEntry) auditRow {
	d, _ := access.Verb(e.Verb).Define()
	row := auditRow{
		At: e.At, Actor: e.Actor, Kind: e.Kind, From: e.Address + ", " + e.Door, Verb: e.Verb, Summary: d.Summary,
		Environment: e.EnvironmentName, Subject: e.Subject, Reason: e.Reason, State: auditStates[e.Outcome],
		Problem: e.Problem, HasBefore: len(e.Before) > 0, Has: len(e.Before)+len(e.After) > 0,
	}
	if len(e.Before) > 0 {
		row.Before = jsonText(e.Before)
	}
	if len(e.After) > 0 {
		row.After = jsonText(e.After)
	}
	return row
}

// exportAudit sends the audit trail of an environment, or of the whole server, as JSON lines, oldest first.
func (c *console) exportAudit(w http.ResponseWriter, r *http.Request) {
	env, name := uuid.Nil, "audit"
	if e, err := c.environment(r); err == nil {
		env, name = e.ID, "audit-"+e.ID.String()
	}
	entries, err := c.store.AuditAfter(r.Context(), uuid.Nil, env, 0, store.MaxPage)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+".jsonl"))
	out := json.NewEncoder(w)
	for len(entries) > 0 {
		for _, e := range entries {
			if out.Encode(auditLineOf(e)) != nil {
				return // the browser went away
			}
		}
		last := entries[len(entries)-1].ID
		if entries, err = c.store.AuditAfter(r.Context(), uuid.Nil, env, last, store.MaxPage); err != nil {
			c.log.Error("an export of the audit trail broke off", "after", last, "error", err)
			panic(http.ErrAbortHandler) // an export that ends early must not look whole
		}
	}
}

// auditLine is an entry in an export; the keys are those of the API.
type auditLine struct {
	ID              int64           `json:"id"`
	At              time.Time       `json:"at"`
	Actor           string          `json:"actor"`
	Kind            string          `json:"kind"`
	Credential      string          `json:"credential"`
	Address         string          `json:"address"`
	Door            string          `json:"door"`
	Verb            string          `json:"verb"`
	Project         uuid.UUID       `json:"project"`
	ProjectName     string          `json:"project_name"`
	Environment     uuid.UUID       `json:"environment"`
	EnvironmentName string          `json:"environment_name"`
	Subject         string          `json:"subject"`
	Before          json.RawMessage `json:"before"`
	After           json.RawMessage `json:"after"`
	Reason          string          `json:"reason"`
	Outcome         string          `json:"outcome"`
	Problem         string          `json:"problem"`
}

func auditLineOf(e intent.AuditEntry) auditLine {
	return auditLine{
		ID: e.ID, At: e.At, Actor: e.Actor, Kind: e.Kind, Credential: e.Credential, Address: e.Address, Door: e.Door,
		Verb: e.Verb, Project: e.Project, ProjectName: e.ProjectName, Environment: e.Environment,
		EnvironmentName: e.EnvironmentName, Subject: e.Subject, Before: e.Before, After: e.After, Reason: e.Reason,
		Outcome: string(e.Outcome), Problem: e.Problem,
	}
}
