package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// clusterAdminProvisionersPage shows how much there is to do for clusters, and who does it.
type clusterAdminProvisionersPage struct {
	frame
	Nav    catalogueNav
	Action string
	Shared bool
	Manage bool // the reader may let provisioners join
	Tokens []provisionerTokenRow
	Work   provisionerWork
}

// provisionerTokenRow is a token with which a provisioner joins, or joined.
type provisionerTokenRow struct {
	ID       uuid.UUID
	Name, By string
	State    string
	Expires  time.Time
	Waits    bool
}

// clusterAdminTokenPage shows a join token, once.
type clusterAdminTokenPage struct {
	frame
	Nav         catalogueNav
	Name, Token string
	Expires     time.Time
	Back        string
}

// provisionerWork is what of the page moves.
type provisionerWork struct {
	Shared   bool
	May      bool // revoke
	Sentence string
	Queues   []queueRow
	Rows     []provisionerRow
}

// queueRow is the queue of a project.
type queueRow struct {
	Project, URL            string
	Workers                 int
	Waiting, Ready, Running int
	Oldest                  *time.Time
}

// provisionerRow is a provisioner that runs elsewhere.
type provisionerRow struct {
	ID            uuid.UUID
	Project       string
	ProjectURL    string
	Name, Program string
	State         state
	Seen          *time.Time
	Joined        time.Time
	Room, Running int
	Expires       time.Time
	Problem       string
	Revocable     bool
	Action        string
}

// silentAfter is how long a provisioner may say nothing before it counts as gone.
const silentAfter = 2 * time.Minute

func (c *console) provisioners(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	f, nav, err := c.adminFrame(r, s, "Provisioners", "provisioners", crumb{Text: "Provisioners"})
	if err != nil {
		return view{}, err
	}
	f.Live = true
	p := clusterAdminProvisionersPage{frame: f, Nav: nav, Shared: s.Shared, Action: s.base + "/provisioners"}
	if !s.Shared {
		p.Manage = c.joins != nil && s.may(r, access.ManageProvisioners, access.ManageProvisioners)
	}
	if p.Manage {
		tokens, err := c.joins.Tokens(r.Context(), s.Project.ID)
		if err != nil {
			return view{}, err
		}
		for _, t := range tokens {
			state := intent.JoinToken{Used: t.Used, Revoked: t.Revoked, Expires: t.Expires}.State(c.now())
			p.Tokens = append(p.Tokens, provisionerTokenRow{
				ID: t.ID, Name: t.Name, By: t.MadeBy, State: state, Expires: t.Expires, Waits: state == "waiting",
			})
		}
	}
	if p.Work, err = c.provisionerWork(r, s); err != nil {
		return view{}, err
	}
	return view{template: "cluster_admin_provisioners", data: p, fragments: []fragment{
		{"provisioner-work", "provisioner-work", p.Work},
	}}, nil
}

func (c *console) provisionerWork(r *http.Request, s catalogueScope) (out provisionerWork, err error) {
	ctx := r.Context()
	out.Shared = s.Shared
	var only *uuid.UUID
	names := map[uuid.UUID]*queueRow{}
	add := func(id uuid.UUID, name string, workers int) {
		out.Queues = append(out.Queues, queueRow{
			Project: name, URL: projectURL(id) + "/provisioners", Workers: workers,
		})
	}
	if s.Shared {
		tenants, err := c.catalogue.Tenants(ctx)
		if err != nil {
			return out, err
		}
		for _, t := range tenants {
			add(t.Project, t.Name, t.Workers)
		}
		for i, t := range tenants {
			names[t.Project] = &out.Queues[i]
		}
	} else {
		only = &s.Project.ID
		t, err := c.catalogue.Tenant(ctx, s.Project.ID)
		if err != nil {
			return out, err
		}
		add(s.Project.ID, s.Project.Name, t.Workers)
		names[s.Project.ID] = &out.Queues[0]
	}
	queues, err := c.store.ClusterQueues(ctx, only)
	if err != nil {
		return out, err
	}
	total := map[string]int{}
	for _, q := range queues {
		total[q.State] += q.Tasks
		row := names[q.Project]
		if row == nil {
			continue // the project was made just now
		}
		switch q.State {
		case "waiting":
			row.Waiting = q.Tasks
		case "ready":
			row.Ready, row.Oldest = q.Tasks, q.Oldest
		case "running":
			row.Running = q.Tasks
		}
	}
	all, err := c.store.Provisioners(ctx, only)
	if err != nil {
		return out, err
	}
	now, here := c.now(), 0
	for _, one := range all {
		row := provisionerRow{
			ID: one.ID, Name: one.Name, Program: one.Program, Seen: one.Seen, Joined: one.Joined, Room: one.Room,
			Running: one.Running, Expires: one.Expires, Problem: one.Problem,
			State: provisionerState(one, now), ProjectURL: projectURL(one.Project) + "/provisioners",
			Action: projectURL(one.Project) + "/provisioners/revoke",
		}
		if q := names[one.Project]; q != nil {
			row.Project = q.Project
		}
		row.Revocable = one.Revoked == nil && access.Of(ctx).Decide(access.ManageProvisioners,
			access.Target{Project: one.Project}).Allowed
		out.May = out.May || row.Revocable
		if row.State.Key == "intended" {
			here++
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortStableFunc(out.Rows, func(a, b provisionerRow) int { return provisionerRank(a) - provisionerRank(b) })
	out.Sentence = provisionerSentence(total, here)
	return out, nil
}

func provisionerState(p intent.Provisioner, now time.Time) state {
	switch {
	case p.Revoked != nil:
		return state{"orphan", "revoked"}
	case p.Expires.Before(now):
		return state{"failed", "certificate ended"}
	case p.Seen == nil:
		return state{"waiting", "never seen"}
	case p.Problem != "":
		return state{"differs", "has a problem"}
	case now.Sub(*p.Seen) > silentAfter:
		return state{"failed", "silent"}
	}
	return state{"intended", "works"}
}

// provisionerRank sorts what needs somebody first.
func provisionerRank(p provisionerRow) int {
	return slices.Index([]string{"failed", "differs", "waiting", "intended", "orphan"}, p.State.Key)
}

func provisionerSentence(total map[string]int, here int) string {
	var parts []string
	if n := total["running"]; n > 0 {
		parts = append(parts, plural(n, "task")+" running")
	}
	if n := total["ready"]; n > 0 {
		parts = append(parts, plural(n, "task")+" ready for a worker")
	}
	if n := total["waiting"]; n > 0 {
		parts = append(parts, plural(n, "task")+" waiting for others")
	}
	if len(parts) == 0 {
		parts = []string{"Nothing to do for clusters"}
	}
	return strings.Join(parts, ", ") + "; " + plural(here, "provisioner") + " at work elsewhere."
}

func (c *console) doRevokeProvisioner(r *http.Request) (string, error) {
	const op = "console.revokeProvisioner"
	s, err := c.catalogueScope(r)
	if err != nil {
		return "", err
	}
	none := fault.New(op, fault.NotFound, "the project has no such provisioner")
	id, err := uuid.Parse(field(r, "id"))
	if err != nil {
		return "", none
	}
	p, err := c.store.Provisioner(r.Context(), id)
	if fault.Is(err, fault.NotFound) || err == nil && p.Project != s.Project.ID {
		return "", none
	}
	switch {
	case err != nil:
	case c.joins != nil: // it also ends what the provisioner is waiting for
		err = c.joins.Revoke(r.Context(), s.Project.ID, p.Name)
	default:
		audit.Subject(r.Context(), "the provisioner "+p.Name)
		err = c.store.RevokeProvisioner(r.Context(), id)
	}
	return s.base + "/provisioners?done=provisionerrevoked", err
}

// needJoins fails when no provisioner can join this server.
func (c *console) needJoins() error {
	if c.joins == nil {
		return fault.New("console.provisioners", fault.Unavailable,
			"this server has no part for provisioners elsewhere").Hint("start a server process with the role agent")
	}
	return nil
}

// doProvisionerToken makes a join token and shows it, once.
func (c *console) doProvisionerToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	s, err := c.catalogueScope(r)
	if err == nil {
		err = c.needJoins()
	}
	hours, wrong := strconv.Atoi(field(r, "hours"))
	if err == nil && (wrong != nil || hours < 1 || hours > 168) {
		err = fault.New("console.token", fault.Invalid, "say in how many hours the token expires, at most 168")
	}
	p := clusterAdminTokenPage{Back: s.base + "/provisioners"}
	if err == nil {
		var t intent.ProvisionerToken
		lifetime := time.Duration(hours) * time.Hour
		t, p.Token, err = c.joins.CreateToken(r.Context(), s.Project.ID, field(r, "name"), lifetime)
		p.Name, p.Expires = t.Name, t.Expires
	}
	if err == nil {
		p.frame, p.Nav, err = c.adminFrame(r, s, "A join token", "provisioners",
			crumb{Text: "Provisioners", URL: p.Back}, crumb{Text: "Join token"})
	}
	if err != nil {
		audit.Failed(r.Context(), err)
		c.fail(w, r, err)
		return
	}
	c.render(w, r, http.StatusOK, view{template: "cluster_admin_token", data: p})
}

func (c *console) doRevokeProvisionerToken(r *http.Request) (string, error) {
	s, err := c.catalogueScope(r)
	if err == nil {
		err = c.needJoins()
	}
	if err != nil {
		return "", err
	}
	id, err := uuid.Parse(field(r, "id"))
	if err != nil {
		return "", fault.New("console.token", fault.NotFound, "there is no such join token")
	}
	return s.base + "/provisioners?done=joinrevoked", c.joins.RevokeToken(r.Context(), s.Project.ID, id)
}
