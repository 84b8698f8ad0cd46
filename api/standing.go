package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// standingCalls say what is deployed and why it is not the tip of the branch, and cancel compiles. Inmanta has no such
// calls.
func (s *server) standingCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v2/standing",
		"Tell what is deployed, what the newest commit is, and why they differ: the most important reason first, and "+
			"in one word in kind. Dry runs never count.", access.SeeEnvironment, s.getStanding)
	v2(c, http.MethodPost, "/api/v2/compilereport/{id}/cancel",
		"Cancel a compile that waits or runs. Its processes end, and what is deployed stays. It answers 409 when the "+
			"compile has ended.", access.CancelCompile, s.cancelCompile)
}

// standing is what is deployed, what the tip of the branch is, and why they differ.
type standing struct {
	Kind     intent.DifferenceKind `json:"kind"`
	Text     string                `json:"text"`
	Deployed *standingDeployed     `json:"deployed"`
	Tip      *standingTip          `json:"tip"`
	Halted   *standingActor        `json:"halted"`
	Why      []difference          `json:"why"`
}

type standingDeployed struct {
	Version    int           `json:"version"`
	Commit     *string       `json:"commit"`
	Subject    string        `json:"subject"`
	Author     string        `json:"author"`
	Released   timestamp     `json:"released"`
	Pushed     bool          `json:"pushed"`
	RolledBack *standingBack `json:"rolled_back"`
}

type standingBack struct {
	From    int     `json:"from"`
	To      int     `json:"to"`
	Blocked *string `json:"blocked"`
	decision
}

type standingTip struct {
	Commit  string     `json:"commit"`
	Subject string     `json:"subject"`
	Author  string     `json:"author"`
	Seen    timestamp  `json:"seen"`
	Compile *uuid.UUID `json:"compile"`
}

type standingActor struct {
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	At     *timestamp `json:"at"`
}

type difference struct {
	Kind    intent.DifferenceKind `json:"kind"`
	Text    string                `json:"text"`
	Advice  string                `json:"advice"`
	Commit  *string               `json:"commit"`
	Compile *uuid.UUID            `json:"compile"`
	Stage   *string               `json:"stage"`
	Version *int                  `json:"version"`
	By      *standingActor        `json:"by"`
	Until   *timestamp            `json:"until"`
}

// cancelCompile are the arguments of a call that cancels a compile.
type cancelCompile struct {
	oneCompileIn
	byPerson
}

func (s *server) getStanding(ctx context.Context, a inEnvironment) (standing, error) {
	now, err := s.control.Standing(ctx, a.Env)
	if err != nil {
		return standing{}, err
	}
	out := standing{
		Kind: now.Kind(), Text: now.Text, Halted: standingActorOf(now.Halted), Why: listed(now.Why, differenceOf),
	}
	if d := now.Deployed; d != nil {
		out.Deployed = &standingDeployed{
			Version: d.Version, Commit: orNull(d.Commit), Subject: d.Subject, Author: d.Author,
			Released: stamp(d.Released), Pushed: d.Pushed,
		}
		if b := d.RolledBack; b != nil {
			out.Deployed.RolledBack = &standingBack{
				From: b.From, To: b.To, Blocked: orNull(b.Blocked),
				decision: decision{By: b.By, Reason: b.Reason, At: stamp(b.At)},
			}
		}
	}
	if t := now.Tip; t != nil {
		out.Tip = &standingTip{Commit: t.Commit, Subject: t.Subject, Author: t.Author, Seen: stamp(t.Seen)}
		if t.Compile != uuid.Nil {
			out.Tip.Compile = &t.Compile
		}
	}
	return out, nil
}

func differenceOf(d intent.Difference) difference {
	out := difference{
		Kind: d.Kind, Text: d.Text, Advice: d.Advice, Commit: orNull(d.Commit), Compile: d.Run, Stage: orNull(d.Stage),
		By: standingActorOf(d.By),
	}
	if d.Version > 0 {
		out.Version = &d.Version
	}
	if !d.Until.IsZero() {
		out.Until = maybe(&d.Until)
	}
	return out
}

func standingActorOf(a *intent.Actor) *standingActor {
	if a == nil {
		return nil
	}
	out := &standingActor{By: a.By, Reason: a.Reason}
	if !a.At.IsZero() {
		out.At = maybe(&a.At)
	}
	return out
}

// cancelCompile cancels a compile, and returns it.
func (s *server) cancelCompile(ctx context.Context, a cancelCompile) (compile, error) {
	if err := s.control.CancelCompile(a.as(ctx), a.Env, a.ID); err != nil {
		return compile{}, err
	}
	c, _, err := s.store.Compile(ctx, a.ID)
	return compileOf(c), err
}
