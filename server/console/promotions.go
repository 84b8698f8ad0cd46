package console

import (
	"net/http"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/promote"
)

// followView is the part of the Git page about the environment that is followed.
type followView struct {
	Follows, SourceURL string // the followed environment; empty when there is none
	Followers          string
	Paused             *actorRow
	Waiting            waitingRow
	Form               *promoteForm // nil when there is nothing that a person can do
	Done               []promotionRow
}

// waitingRow is the promotion that waits.
type waitingRow struct {
	Idle                       string // why none waits
	Commit, Full, Subject      string
	Author, Source, VersionURL string
	Version                    int
	Gates                      []gateRow
	Approved                   *actorRow
}

type gateRow struct {
	State state
	Text  string
}

type actorRow struct {
	By, Reason string
	At         time.Time
}

// promoteForm says what a person can do: approve or promote the commit, if there is one, and pause or resume
// promotions.
type promoteForm struct {
	EnvURL, Back string
	Commit, Full string
	Approve      bool
	Paused       bool
}

type promotionRow struct {
	State                         state
	Commit, Full, Subject, Source string
	SourceURL, RunURL, VersionURL string
	From, Version                 int
	Text                          string
	At                            time.Time
}

var gateStates = map[bool]state{true: {"intended", "open"}, false: {"waiting", "holds"}}

func followViewOf(f frame, env intent.Environment, g control.Following) *followView {
	if g.Follows == "" && len(g.Followers) == 0 && len(g.Promotions) == 0 {
		return nil
	}
	v := &followView{
		Follows: g.Follows, Followers: strings.Join(g.Followers, ", "), Paused: actorRowOf(g.Paused),
		Waiting: waitingRow{Idle: g.Idle},
	}
	if g.Source != nil {
		v.SourceURL = envURL(g.Source.ID)
	}
	if g.Follows != "" {
		v.Form = &promoteForm{EnvURL: envURL(env.ID), Back: f.Back, Paused: g.Paused != nil}
	}
	for _, p := range g.Promotions {
		if p.State != intent.PromotionWaiting {
			v.Done = append(v.Done, promotionRowOf(p))
			continue
		}
		v.Waiting = waitingRow{
			Commit: p.Short(), Full: p.Commit, Subject: p.Subject, Author: p.Author, Source: p.SourceName,
			VersionURL: versionURL(p.Source, p.Version), Version: p.Version, Approved: actorRowOf(p.Approved),
		}
		for _, gate := range p.Gates {
			v.Waiting.Gates = append(v.Waiting.Gates, gateRow{gateStates[gate.Open], gate.Text})
		}
		if v.Form != nil {
			v.Form.Commit, v.Form.Full, v.Form.Approve = p.Short(), p.Commit, g.Policy.Approval && p.Approved == nil
		}
	}
	return v
}

func promotionRowOf(p intent.Promotion) promotionRow {
	row := promotionRow{
		State: state{"none", "superseded"}, Commit: p.Short(), Full: p.Commit, Subject: p.Subject, Source: p.SourceName,
		SourceURL: versionURL(p.Source, p.Version), From: p.Version, Version: p.Made, Text: promote.Text(p),
	}
	if p.Ended != nil {
		row.At = *p.Ended
	}
	if p.Compile != nil {
		row.RunURL = runURL(p.Environment, *p.Compile)
	}
	if p.Made > 0 {
		row.VersionURL = versionURL(p.Environment, p.Made)
	}
	if p.State != intent.PromotionPromoted {
		return row
	}
	switch {
	case p.Made > 0:
		row.State = state{"intended", "promoted"}
	case p.Success == nil:
		row.State = state{"deploying", "promoted, compiling"}
	default:
		row.State = state{"failed", "promoted, not compiled"}
	}
	return row
}

func actorRowOf(a *intent.Actor) *actorRow {
	if a == nil {
		return nil
	}
	return &actorRow{By: a.By, Reason: a.Reason, At: a.At}
}

// doPromote promotes the commit that waits, whatever its gates say.
func (c *console) doPromote(r *http.Request, e intent.Environment) (string, error) {
	_, err := c.control.Promote(asPerson(r), e.ID, strings.TrimSpace(r.PostFormValue("commit")))
	return back(r, envURL(e.ID)+"/git", "promoted"), err
}

// doApprovePromotion approves the commit that waits.
func (c *console) doApprovePromotion(r *http.Request, e intent.Environment) (string, error) {
	err := c.control.ApprovePromotion(asPerson(r), e.ID, strings.TrimSpace(r.PostFormValue("commit")))
	return back(r, envURL(e.ID)+"/git", "approvedcommit"), err
}

// doPausePromotions stops promotions until somebody resumes them.
func (c *console) doPausePromotions(r *http.Request, e intent.Environment) (string, error) {
	return back(r, envURL(e.ID)+"/git", "promotionspaused"), c.control.PausePromotions(asPerson(r), e.ID, true)
}

func (c *console) doResumePromotions(r *http.Request, e intent.Environment) (string, error) {
	return back(r, envURL(e.ID)+"/git", "promotionsresumed"), c.control.PausePromotions(asPerson(r), e.ID, false)
}
