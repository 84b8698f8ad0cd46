package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/promote"
)

// promotionCalls are about environments that follow others. Inmanta has no such calls.
func (s *server) promotionCalls(c *calls) {
	const path = "/api/v2/git/promotions"
	v2(c, http.MethodGet, path, "Show what the environment follows, what waits to be promoted and what was.",
		access.SeePromotions, s.getPromotions)
	v2(c, http.MethodPost, path+"/approve", "Approve exactly one commit.", access.ApprovePromotion, s.approvePromotion)
	v2(c, http.MethodPost, path+"/pause", "Promote nothing until promotions are resumed.",
		access.PausePromotions, s.pausePromotions)
	v2(c, http.MethodPost, path+"/resume", "Resume promotions.", access.PausePromotions, s.resumePromotions)
	v2(c, http.MethodPost, "/api/v2/promote", "Promote a commit now, in spite of its gates.",
		access.Promote, s.promoteCommit)
}

// following is what an environment follows.
type following struct {
	Follows    *string     `json:"follows"`
	Problem    string      `json:"problem"`
	Idle       string      `json:"idle"`
	Paused     *decision   `json:"paused"`
	Gates      followGates `json:"gates"`
	Followers  []string    `json:"followers"`
	Promotions []promotion `json:"promotions"`
}

type followGates struct {
	Soak      int  `json:"soak"`
	Compliant bool `json:"compliant"`
	NoDrift   bool `json:"no_drift"`
	Approval  bool `json:"approval"`
}

// promotion is one commit on its way from an environment to one that follows it.
type promotion struct {
	ID            uuid.UUID             `json:"id"`
	State         intent.PromotionState `json:"state"`
	Text          string                `json:"text"`
	Commit        string                `json:"commit"`
	Branch        string                `json:"branch"`
	Subject       string                `json:"subject"`
	Author        string                `json:"author"`
	Source        uuid.UUID             `json:"source"`
	SourceName    string                `json:"source_name"`
	SourceVersion int                   `json:"source_version"`
	Since         timestamp             `json:"since"`
	Checked       timestamp             `json:"checked"`
	Gates         []promotionGate       `json:"gates"`
	Approved      *decision             `json:"approved"`
	Overridden    *decision             `json:"overridden"`
	Ended         *timestamp            `json:"ended"`
	Compile       *uuid.UUID            `json:"compile"`
	Version       *int                  `json:"version"`
	Success       *bool                 `json:"success"`
}

type promotionGate struct {
	Gate  string     `json:"gate"`
	Open  bool       `json:"open"`
	Text  string     `json:"text"`
	Until *timestamp `json:"until"`
}

type byPersonIn struct {
	inEnvironment
	byPerson
}

func (s *server) getPromotions(ctx context.Context, a inEnvironment) (following, error) {
	f, err := s.control.Following(ctx, a.Env)
	return followingOf(f), err
}

func (s *server) approvePromotion(ctx context.Context, a onCommit) (following, error) {
	if err := s.control.ApprovePromotion(a.as(ctx), a.Env, a.Commit); err != nil {
		return following{}, err
	}
	return s.getPromotions(ctx, a.inEnvironment)
}

func (s *server) pausePromotions(ctx context.Context, a byPersonIn) (following, error) {
	if err := s.control.PausePromotions(a.as(ctx), a.Env, true); err != nil {
		return following{}, err
	}
	return s.getPromotions(ctx, a.inEnvironment)
}

func (s *server) resumePromotions(ctx context.Context, a byPersonIn) (following, error) {
	if err := s.control.PausePromotions(a.as(ctx), a.Env, false); err != nil {
		return following{}, err
	}
	return s.getPromotions(ctx, a.inEnvironment)
}

func (s *server) promoteCommit(ctx context.Context, a onCommit) (promotion, error) {
	p, err := s.control.Promote(a.as(ctx), a.Env, a.Commit)
	return promotionOf(p), err
}

func followingOf(f control.Following) following {
	return following{
		Follows: orNull(f.Follows), Problem: f.Problem, Idle: f.Idle, Paused: decisionOf(f.Paused),
		Gates: followGates{
			Soak: int(f.Policy.Soak / time.Second), Compliant: f.Policy.Compliant, NoDrift: f.Policy.NoDrift,
			Approval: f.Policy.Approval,
		},
		Followers: notNil(f.Followers), Promotions: listed(f.Promotions, promotionOf),
	}
}

func promotionOf(p intent.Promotion) promotion {
	return promotion{
		ID: p.ID, State: p.State, Text: promote.Text(p), Commit: p.Commit, Branch: p.Branch, Subject: p.Subject,
		Author: p.Author, Source: p.Source, SourceName: p.SourceName, SourceVersion: p.Version, Since: stamp(p.Since),
		Checked: stamp(p.Checked), Gates: listed(p.Gates, gateOf), Approved: decisionOf(p.Approved),
		Overridden: decisionOf(p.Overridden), Ended: maybe(p.Ended), Compile: p.Compile, Version: orNull(p.Made),
		Success: p.Success,
	}
}

func gateOf(g intent.PromotionGate) promotionGate {
	return promotionGate{Gate: g.Gate, Open: g.Open, Text: g.Text, Until: unlessZero(g.Until)}
}

// decisionOf shows who did something; nil: nobody did.
func decisionOf(a *intent.Actor) *decision {
	if a == nil {
		return nil
	}
	return &decision{By: a.By, Reason: a.Reason, At: stamp(a.At)}
}
