package apitest

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// PullRequests lists them.
func (c *Control) PullRequests(_ context.Context, id uuid.UUID) (out []intent.PullRequest, err error) {
	err = c.see(id, func(e *Env) { out = slices.Clone(e.Pulls) })
	return out, err
}

// PullRequest gives one.
func (c *Control) PullRequest(ctx context.Context, id uuid.UUID, number int) (intent.PullRequest, error) {
	all, err := c.PullRequests(ctx, id)
	for _, p := range all {
		if p.Number == number {
			return p, nil
		}
	}
	if err == nil {
		err = missing("pull request")
	}
	return intent.PullRequest{}, err
}

// PullReport tells what is known.
func (c *Control) PullReport(ctx context.Context, e intent.Environment, p intent.PullRequest) (forge.Report, error) {
	r := forge.Report{
		Environment: e.Name,
		Pull:        p,
		Command:     fmt.Sprintf("ordain pull approve %s %d %s", e.Name, p.Number, p.Head),
	}
	if p.Preview == nil {
		return r, nil
	}
	var err error
	_, r.Diffs, err = c.DryRun(ctx, e.ID, p.Preview.ID)
	return r, err
}

// PullText gives the comment.
func (c *Control) PullText(ctx context.Context, id uuid.UUID, number int) (string, error) {
	e, err := c.Environment(ctx, id)
	if err != nil {
		return "", err
	}
	p, err := c.PullRequest(ctx, id, number)
	if err != nil {
		return "", err
	}
	r, err := c.PullReport(ctx, e, p)
	return r.Text(), err
}

// PreviewPull is a verb.
func (c *Control) PreviewPull(_ context.Context, id uuid.UUID, number int) error {
	return c.change(id, fmt.Sprintf("preview pull %d", number), func(e *Env) error {
		for _, p := range e.Pulls {
			if p.Number == number && !p.MayRun() {
				return fault.New("apitest", fault.Conflict, "somebody has to approve it first")
			}
		}
		return nil
	})
}

// ApprovePull is a verb.
func (c *Control) ApprovePull(_ context.Context, id uuid.UUID, number int, commit, by string) error {
	if by == "" || commit == "" {
		return fault.New("apitest", fault.Invalid, "say who approves which commit")
	}
	return c.change(id, fmt.Sprintf("approve pull %d by %s", number, by), func(e *Env) error {
		for i, p := range e.Pulls {
			if p.Number != number {
				continue
			}
			if p.Head != commit {
				return fault.New("apitest", fault.Conflict, "it was pushed to")
			}
			now := c.Now()
			e.Pulls[i].Approved, e.Pulls[i].ApprovedBy, e.Pulls[i].ApprovedAt = commit, by, &now
			return nil
		}
		return missing("pull request")
	})
}

// Outbox lists it.
func (c *Control) Outbox(_ context.Context, id uuid.UUID) (out []intent.Outbox, err error) {
	err = c.see(id, func(e *Env) { out = slices.Clone(e.Work) })
	return out, err
}

// RetryOutbox is a verb.
func (c *Control) RetryOutbox(_ context.Context, id uuid.UUID, work int64) error {
	return c.change(id, fmt.Sprintf("retry %d", work), func(e *Env) error {
		for i, w := range e.Work {
			if w.ID == work && w.State == intent.OutboxDead {
				e.Work[i].State, e.Work[i].Done = intent.OutboxWaiting, nil
				return nil
			}
		}
		return fault.New("apitest", fault.Conflict, "it is not dead")
	})
}

// pulls are a pull request that was previewed and one of a stranger, and what the forge was told.
func (r *Rich) pulls() {
	env, at := r.Production.ID, r.At
	head, strange := "1234567890123456789012345678901234567890", "feedfacefeedfacefeedfacefeedfacefeedface"
	var run *intent.DryRun
	if len(r.Production.Dries) > 0 {
		run = &r.Production.Dries[0].DryRun
	}
	r.Production.Pulls = []intent.PullRequest{
		{
			Environment: env,
			Number:      12,
			State:       intent.PullIsOpen,
			Title:       "A gift " + Evil,
			URL:         "javascript:alert(1)",
			Author:      "mallory",
			Fork:        true,
			Base:        "main",
			Head:        strange,
			Updated:     at,
		},
		{
			Environment: env,
			Number:      7,
			State:       intent.PullIsOpen,
			Title:       "Move the shop",
			URL:         "https://git.example.com/infra/model/pulls/7",
			Author:      "ida",
			Trusted:     true,
			Base:        "main",
			Head:        head,
			Updated:     at,
			DryRun:      &r.DryRunID,
			PreviewOf:   head,
			Preview:     run,
		},
	}
	done := at
	r.Production.Work = []intent.Outbox{
		{
			ID:          2,
			Environment: env,
			Kind:        intent.OutboxComment,
			Topic:       "comment/7",
			Payload:     intent.OutboxPayload{Number: 7},
			State:       intent.OutboxWaiting,
			Created:     at,
			Next:        at,
		},
		{ID: 1, Environment: env, Kind: intent.OutboxStatus, Topic: "status/ordain/production/compile/" + head,
			Payload: intent.OutboxPayload{
				Commit:  head,
				Context: "ordain/production/compile",
				State:   intent.CommitFailure,
			}, State: intent.OutboxDead, Attempts: 3, Created: at, Next: at, Done: &done,
			Problem: "the forge answered 401 " + Evil},
	}
}
