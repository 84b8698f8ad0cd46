package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// pullsPage lists pull requests, and the messages for the forge.
type pullsPage struct {
	frame
	List   pullList
	Outbox outboxList
}

type pullList struct {
	EnvURL  string
	EnvName string
	Off     bool // previews are switched off
	NoToken bool // there is no token with which to ask the forge
	Rows    []pullRow
}

type pullRow struct {
	Number  int
	URL     string
	Title   string
	Author  string
	Fork    bool
	Commit  string
	Updated time.Time
	State   state
}

type outboxList struct {
	EnvURL string
	Rows   []outboxRow
}

type outboxRow struct {
	ID       int64
	What     string
	State    state
	Attempts int
	At       time.Time
	Problem  string
	Dead     bool
}

// shownOutbox is how many of the newest messages for the forge are listed.
const shownOutbox = 50

func pullURL(env intent.EnvironmentID, number int) string {
	return envURL(env) + "/pulls/" + strconv.Itoa(number)
}

var previewStates = map[intent.PreviewState]state{
	intent.PreviewNone:     {"waiting", "waits"},
	intent.PreviewApproval: {"paused", "needs approval"},
	intent.PreviewRunning:  running,
	intent.PreviewDone:     ready,
	intent.PreviewFailed:   failed,
	intent.PreviewOld:      {"none", "cancelled"},
	intent.PreviewClosed:   {"none", "closed"},
}

func pullRowOf(p intent.PullRequest) pullRow {
	row := pullRow{
		Number: p.Number, URL: pullURL(p.Environment, p.Number), Title: p.Title, Author: p.Author, Fork: p.Fork,
		Commit: p.Short(), Updated: p.Updated, State: previewStates[p.PreviewState()],
	}
	if p.PreviewState() == intent.PreviewDone && p.Preview.Unknown > 0 {
		row.State = incomplete
	}
	if p.State == intent.PullIsMerged {
		row.State = state{"none", "merged"}
	}
	return row
}

func (c *console) pulls(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Pull requests", "pulls", crumb{Text: "Pull requests"})
	if err != nil {
		return view{}, err
	}
	found, err := c.store.PullRequests(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	token, err := c.hasForgeToken(r.Context(), e)
	if err != nil {
		return view{}, err
	}
	p := pullsPage{
		frame: f,
		List: pullList{
			EnvURL: envURL(e.ID), EnvName: e.Name, Off: e.Text("pull_previews") == "off", NoToken: !token,
		},
		Outbox: outboxList{EnvURL: envURL(e.ID)},
	}
	for _, one := range found {
		p.List.Rows = append(p.List.Rows, pullRowOf(one))
	}
	work, err := c.store.Outbox(r.Context(), e.ID, shownOutbox)
	if err != nil {
		return view{}, err
	}
	for _, w := range work {
		p.Outbox.Rows = append(p.Outbox.Rows, outboxRowOf(w))
	}
	return view{template: "pulls", data: p, fragments: []fragment{
		{"pulllist", "pulllist", p.List}, {"outbox", "outbox", p.Outbox},
	}}, nil
}

// hasForgeToken reports whether an environment, or its project, has a token for the forge.
func (c *console) hasForgeToken(ctx context.Context, e intent.Environment) (bool, error) {
	own, err := c.control.SecretNames(ctx, e.ID)
	if err != nil {
		return false, err
	}
	shared, err := c.control.ProjectSecretNames(ctx, e.ProjectID)
	return slices.Contains(own, source.SecretForgeToken) || slices.Contains(shared, source.SecretForgeToken), err
}

func outboxRowOf(w intent.Outbox) outboxRow {
	row := outboxRow{
		ID: w.ID, What: messageText(w), Attempts: w.Attempts, At: w.Next, Problem: w.Problem,
		State: state{"waiting", "waits"},
	}
	if w.Done != nil {
		row.At = *w.Done
	}
	switch w.State {
	case intent.OutboxSent:
		row.State = state{"intended", "sent"}
	case intent.OutboxDead:
		row.State, row.Dead = state{"failed", "dead"}, true
	}
	return row
}

// messageText says what a message for the forge is about.
func messageText(w intent.Outbox) string {
	p := w.Payload
	switch {
	case w.Kind == intent.OutboxStatus && p.Commit != "":
		return string(p.State) + " of " + intent.Revision{Commit: p.Commit}.Short() + " as " + p.Context
	case w.Kind == intent.OutboxComment && p.Number > 0:
		return "comment on pull request " + strconv.Itoa(p.Number)
	case w.Kind == intent.OutboxPull && p.Number > 0:
		return "look at pull request " + strconv.Itoa(p.Number)
	case w.Kind == intent.OutboxPulls:
		return "look for pull requests"
	}
	return w.Topic
}

// pullNumber reads the number of a pull request in the path of a request.
func pullNumber(r *http.Request) (int, error) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n <= 0 {
		return 0, fault.New("console", fault.NotFound, "there is no pull request "+r.PathValue("number"))
	}
	return n, nil
}

func (c *console) doPreviewPull(r *http.Request, e intent.Environment) (string, error) {
	n, err := pullNumber(r)
	if err != nil {
		return "", err
	}
	return pullURL(e.ID, n) + "?done=preview", c.control.PreviewPull(r.Context(), e.ID, n)
}

func (c *console) doApprovePull(r *http.Request, e intent.Environment) (string, error) {
	n, err := pullNumber(r)
	if err != nil {
		return "", err
	}
	err = c.control.ApprovePull(r.Context(), e.ID, n, r.PostFormValue("commit"), r.PostFormValue("by"))
	return pullURL(e.ID, n) + "?done=approved", err
}

func (c *console) doRetryOutbox(r *http.Request, e intent.Environment) (string, error) {
	id, err := strconv.ParseInt(r.PostFormValue("id"), 10, 64)
	if err != nil {
		return "", fault.New("console", fault.NotFound, "there is no such message")
	}
	return envURL(e.ID) + "/pulls?done=saved", c.control.RetryOutbox(r.Context(), e.ID, id)
}
