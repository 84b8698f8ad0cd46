package apitest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// Following gives what a test put there.
func (c *Control) Following(_ context.Context, id uuid.UUID) (out control.Following, err error) {
	err = c.see(id, func(e *Env) { out = e.Follow })
	return out, err
}

// Promote is a verb.
func (c *Control) Promote(ctx context.Context, id uuid.UUID, commit string) (p intent.Promotion, err error) {
	return p, c.change(id, "promote "+commit, func(e *Env) error {
		waiting := e.Follow.Waiting()
		if waiting == nil || waiting.Commit != commit {
			return fault.New("apitest", fault.Conflict, "no such commit waits to be promoted")
		}
		now := time.Now().UTC()
		waiting.State, waiting.Ended, waiting.Overridden = intent.PromotionPromoted, &now, &intent.Actor{
			By:     "somebody",
			Reason: "it cannot wait",
			At:     now,
		}
		p = *waiting
		return nil
	})
}

// ApprovePromotion is a verb.
func (c *Control) ApprovePromotion(_ context.Context, id uuid.UUID, commit string) error {
	return c.change(id, "approve promotion "+commit, func(e *Env) error {
		waiting := e.Follow.Waiting()
		if waiting == nil || waiting.Commit != commit {
			return fault.New("apitest", fault.Conflict, "no such commit waits to be promoted")
		}
		waiting.Approved = &intent.Actor{By: "somebody", Reason: "well", At: time.Now().UTC()}
		return nil
	})
}

// PausePromotions is a verb.
func (c *Control) PausePromotions(_ context.Context, id uuid.UUID, pause bool) error {
	verb := "resume promotions"
	if pause {
		verb = "pause promotions"
	}
	return c.change(id, verb, func(e *Env) error {
		e.Follow.Paused = nil
		if pause {
			e.Follow.Paused = &intent.Actor{By: "somebody", Reason: "the fair", At: time.Now().UTC()}
		}
		return nil
	})
}

// promotions lets production follow staging: one commit waits, one is promoted.
func (r *Rich) promotions(at time.Time) {
	source := r.Staging.Environment
	since, ended := at.Add(-5*time.Minute), at.Add(-time.Hour)
	yes := true
	commit := func(of string) intent.Promotion {
		p := intent.Promotion{
			ID: uuid.NewSHA1(
				uuid.Nil,
				[]byte(of),
			), Environment: r.Production.ID, Source: source.ID, SourceName: source.Name, Version: 12,
			Branch: "main", Follows: "main", Subject: "<script>alert(1)</script> " + of, Author: "<img src=x> Ada", Since: since, Created: since, Checked: since,
			State: intent.PromotionWaiting,
		}
		for len(p.Commit) < 40 {
			p.Commit += of
		}
		return p
	}
	waiting, promoted := commit("d"), commit("b")
	waiting.Gates = []intent.PromotionGate{
		{Gate: intent.GateSoak, Text: "soak until 16:05 UTC", Until: at.Add(5 * time.Minute)},
		{Gate: intent.GateCompliant, Text: "3 resources are not compliant: <b>fs::File</b>"},
		{Gate: intent.GateNoDrift, Open: true, Text: "no drift is open"},
		{Gate: intent.GateApproval, Text: "approval of this commit"},
	}
	promoted.State, promoted.Ended, promoted.Compile, promoted.Made, promoted.Success = intent.PromotionPromoted, &ended, &r.Good, 7, &yes
	promoted.Gates = []intent.PromotionGate{
		{Gate: intent.GateCompliant, Open: true, Text: "all resources are compliant"},
	}
	promoted.Approved = &intent.Actor{By: "ida", Reason: "it looked well", At: ended}
	r.Production.Follow = control.Following{
		Follows: source.Name, Source: &source, Policy: intent.FollowPolicy{Soak: 10 * time.Minute, Compliant: true, NoDrift: true, Approval: true},
		Promotions: []intent.Promotion{waiting, promoted},
	}
	r.Staging.Follow = control.Following{Followers: []string{r.Production.Name}}
}
