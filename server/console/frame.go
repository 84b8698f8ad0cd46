package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// frame is what a page has around its content.
type frame struct {
	Title   string
	Page    string // which entry of the navigation is current
	Env     *envFrame
	Envs    []envLink
	Crumbs  []crumb
	Done    string // what the form before this page did
	Assets  assetPaths
	Version string
	Live    bool
	Stream  string // the address that a live page follows; empty: its own
	Search  string
	Back    string // the address of this page, for forms that return to it
	Bell    *bell  // nil outside of an environment

	Person   *personFrame // who is logged in; nil: nobody, or nobody has to
	Stranger bool         // the page is for people who are not logged in
	Process  string       // the address of the server's processes, for those who may see them
	Status   string       // the address of the page about the server, for those who are logged in
	Idle     bool         // no process carries out work
	Clusters string       // the address of what clusters of all projects can be made of, for those who may change it
	Audit    string       // the address of the audit trail, for those who may read it
}

// envFrame is the environment that a page is in.
type envFrame struct {
	ID      uuid.UUID
	Name    string
	Project string
	URL     string
	Halted  bool
	Halt    haltFrame
}

// haltFrame says who halted an environment, when and why.
type haltFrame struct {
	By, Reason string
	At         *time.Time
}

// envLink is an entry of the switcher.
type envLink struct {
	ID      uuid.UUID
	Name    string
	Project string
	URL     string
	Current bool
	Halted  bool
}

type crumb struct {
	Text string
	URL  string // empty for the page itself
	Mono bool
	Live bool // it is a fragment of its page, called crumb
}

// frame returns the frame of a page. It reads the environments for the switcher.
func (c *console) frame(r *http.Request, title, page string, trail ...crumb) (frame, error) {
	f := frame{
		Title: title, Page: page, Assets: c.assets.paths, Version: c.program,
		Live: true, Done: doneTexts[flashed(r).Done], Search: r.URL.Query().Get("q"),
	}
	f.Person = c.personOf(r, page)
	f.Idle = c.idle != nil && c.idle()
	query := r.URL.Query()
	query.Del("done")
	query.Del("live")
	f.Back = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	all, err := c.allEnvironments(r.Context())
	if err != nil {
		return f, err
	}
	current, _ := uuid.Parse(r.PathValue("env"))
	for _, e := range access.Visible(r.Context(), all) {
		l := envLink{
			ID: e.ID, Name: e.Name, Project: e.ProjectName, URL: envURL(e.ID), Current: e.ID == current,
			Halted: e.Halted,
		}
		f.Envs = append(f.Envs, l)
		if l.Current {
			f.Env = &envFrame{ID: e.ID, Name: e.Name, Project: e.ProjectName, URL: l.URL,
				Halted: e.Halted, Halt: haltFrame{By: e.HaltedBy, Reason: e.HaltedReason, At: e.HaltedAt}}
		}
	}
	if f.Env != nil {
		f.Bell = &bell{URL: f.Env.URL + "/notifications", On: page == "notifications"}
		if f.Bell.N, err = c.store.UnreadNotifications(r.Context(), f.Env.ID); err != nil {
			return f, err
		}
	}
	if f.Env == nil && access.Of(r.Context()).Decide(access.SeeAllProcesses, access.Target{}).Allowed {
		f.Process = "/processes"
	}
	if access.Of(r.Context()).Decide(access.SeeStatus, access.Target{}).Allowed {
		f.Status = "/status"
	}
	f.Clusters = c.catalogueURL(r)
	f.Audit = auditURL(r, f.Env, all)
	f.Crumbs = []crumb{{Text: "Environments", URL: "/"}}
	if f.Env != nil {
		f.Crumbs = append(f.Crumbs, crumb{Text: f.Env.Name, URL: f.Env.URL})
	}
	f.Crumbs = append(f.Crumbs, trail...)
	f.Crumbs[len(f.Crumbs)-1].URL = ""
	return f, nil
}

// everybody is the key of loads that all requests share.
type everybody struct{}

// allEnvironments returns the environments, also those that the sender of the request must not see.
func (c *console) allEnvironments(ctx context.Context) ([]intent.Environment, error) {
	return c.environments.Get(ctx, everybody{}, func(ctx context.Context, _ everybody) ([]intent.Environment, error) {
		return c.store.Environments(ctx)
	})
}

// auditURL returns the address of the audit trail that belongs to a page, or nothing when the reader may not see it.
func auditURL(r *http.Request, env *envFrame, all []intent.Environment) string {
	p := access.Of(r.Context())
	if env == nil {
		if p.Decide(access.SeeServerAudit, access.Target{}).Allowed {
			return "/audit"
		}
		return ""
	}
	for _, e := range all {
		if e.ID == env.ID && p.Decide(access.SeeAudit, access.TargetOf(e)).Allowed {
			return env.URL + "/audit"
		}
	}
	return ""
}

// pageBell returns the bell of a page, nil when it shows none.
func (f frame) pageBell() *bell { return f.Bell }

// HaltedState is the look of a halted environment.
func (f frame) HaltedState() state { return halted }
