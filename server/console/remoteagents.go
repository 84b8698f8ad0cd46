package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// remoteList are the remote agents of an environment, and the tokens with which they join.
type remoteList struct {
	EnvURL string
	Rows   []remoteRow
	Tokens []joinTokenRow // for those who may see them
}

type remoteRow struct {
	Name    string
	State   state
	Joined  bool // it is not revoked
	Since   *time.Time
	Program string
	Machine string
	Expires *time.Time // of its certificate
	Waiting int
	Problem string
	// ProblemAt is when the problem was.
	ProblemAt *time.Time
}

type joinTokenRow struct {
	ID      uuid.UUID
	Agent   string
	State   string
	From    string
	By      string
	Expires time.Time
	Waits   bool
}

// joinTokenPage shows a new join token, this once.
type joinTokenPage struct {
	frame
	Agent   string
	Token   string
	Expires time.Time
	Back    string
}

// The states of remote agents.
var (
	connected    = state{"intended", "connected"}
	disconnected = state{"failed", "not connected"}
	revoked      = state{"paused", "revoked"}
)

// remoteList reads the remote agents of an environment.
func (c *console) remoteList(r *http.Request, e intent.Environment) (out remoteList, err error) {
	out.EnvURL = envURL(e.ID)
	all, err := c.store.RemoteAgents(r.Context(), e.ID)
	if err != nil {
		return out, err
	}
	for _, a := range all {
		row := remoteRow{
			Name: a.Name, State: disconnected, Joined: a.State == intent.RemoteJoined, Since: a.Since,
			Program: a.Program,
			Expires: a.Expires, Waiting: a.Waiting, Problem: a.Problem, ProblemAt: a.ProblemAt,
			Machine: strings.Join(strings.Fields(a.Machine.OS+" "+a.Machine.Arch+" "+a.Machine.Libc), " "),
		}
		switch {
		case !row.Joined:
			row.State, row.Since = revoked, a.Ended
		case a.Connected:
			row.State = connected
		}
		out.Rows = append(out.Rows, row)
	}
	if !access.Of(r.Context()).Decide(access.SeeJoinTokens, access.TargetOf(e)).Allowed {
		return out, nil
	}
	tokens, err := c.store.JoinTokens(r.Context(), e.ID)
	for _, t := range tokens {
		state := t.State(c.now())
		out.Tokens = append(out.Tokens, joinTokenRow{
			ID: t.ID, Agent: t.Agent, State: state, From: t.UsedFrom, By: t.MadeBy, Expires: t.Expires,
			Waits: state == "waiting",
		})
	}
	return out, err
}

// needRemotes fails when this server has no part for remote agents.
func (c *console) needRemotes() error {
	if c.remotes == nil {
		return fault.New("console.agents", fault.Unavailable, "this server has no part for remote agents")
	}
	return nil
}

func (c *console) doRevokeAgent(r *http.Request, e intent.Environment) (string, error) {
	if err := c.needRemotes(); err != nil {
		return "", err
	}
	return envURL(e.ID) + "/agents?done=agentrevoked", c.remotes.Revoke(r.Context(), e.ID, r.PostFormValue("agent"))
}

func (c *console) doRemoveAgent(r *http.Request, e intent.Environment) (string, error) {
	if err := c.needRemotes(); err != nil {
		return "", err
	}
	return envURL(e.ID) + "/agents?done=agentremoved", c.remotes.Remove(r.Context(), e.ID, r.PostFormValue("agent"))
}

func (c *console) doRevokeJoinToken(r *http.Request, e intent.Environment) (string, error) {
	if err := c.needRemotes(); err != nil {
		return "", err
	}
	id, err := uuid.Parse(field(r, "id"))
	if err != nil {
		return "", fault.New("console.token", fault.NotFound, "there is no such join token")
	}
	return envURL(e.ID) + "/agents?done=joinrevoked", c.remotes.RevokeToken(r.Context(), e.ID, id)
}

func (c *console) doCreateJoinToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	e, err := c.environment(r)
	if err == nil {
		err = c.needRemotes()
	}
	hours, wrong := strconv.Atoi(field(r, "hours"))
	if err == nil && (wrong != nil || hours < 1 || hours > 168) {
		err = fault.New("console.token", fault.Invalid, "say in how many hours the token expires, at most 168")
	}
	p := joinTokenPage{Back: envURL(e.ID) + "/agents"}
	if err == nil {
		var t intent.JoinToken
		t, p.Token, err = c.remotes.CreateToken(r.Context(), e.ID, field(r, "agent"), time.Duration(hours)*time.Hour)
		p.Agent, p.Expires = t.Agent, t.Expires
	}
	if err == nil {
		p.frame, err = c.frame(
			r,
			"A join token",
			"agents",
			crumb{Text: "Agents", URL: p.Back},
			crumb{Text: "Join token"},
		)
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	p.frame.Live = false
	c.render(w, r, http.StatusOK, view{template: "jointoken", data: p})
}
