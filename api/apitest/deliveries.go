package apitest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// hooks are webhooks as strangers send them.
func (r *Rich) hooks() {
	e, at := r.Production, r.At
	told := func(kind intent.HookKind, name, ref, commit, subject string) intent.HookEvent {
		return intent.HookEvent{
			Kind:          kind,
			Name:          name,
			Repository:    "shop/infra",
			URLs:          []string{"https://git.example.com/shop/infra.git"},
			Ref:           ref,
			Commit:        commit,
			DefaultBranch: "main",
			Sender:        "<script>alert(1)</script>",
			Subject:       subject,
		}
	}
	add := func(n int, age time.Duration, event intent.HookEvent, o intent.DeliveryOutcome) {
		o.Environment, o.Name = e.ID, e.Name
		if o.State != intent.OutcomeWaiting {
			o.Handled = ptr(at.Add(-age + time.Second))
		}
		e.Hooks = append(e.Hooks, intent.Delivery{
			ID: id(
				900 + n,
			), Forge: "github", Key: "72d3162e-cc78-11e3-81ab-4c9367dc0958", Received: at.Add(-age), Size: 7431, Event: event,
			Verified: o.State != intent.OutcomeRefused, Outcomes: []intent.DeliveryOutcome{o},
		})
	}
	commit := r.revision("4c81d20", "", "x", 0).Commit
	add(
		1,
		9*time.Minute,
		told(intent.HookPush, "push", "refs/heads/main", commit, "Serve the new landing page"),
		intent.DeliveryOutcome{
			State:   intent.OutcomeStarted,
			Reason:  "a compile of 4c81d20 was asked for",
			Compile: &r.Good,
		},
	)
	add(
		2,
		20*time.Minute,
		told(intent.HookPush, "push", "refs/heads/<script>alert(1)</script>", commit, ""),
		intent.DeliveryOutcome{State: intent.OutcomeSkipped, Reason: "it follows main, not <script>alert(1)</script>"},
	)
	add(
		3,
		time.Hour,
		told(intent.HookPing, "ping", "", "", ""),
		intent.DeliveryOutcome{
			State:  intent.OutcomeRefused,
			Reason: "its signature does not fit the environment's webhook secret",
		},
	)
	pull := told(intent.HookPull, "pull_request opened", "", "", "")
	pull.Pull = &intent.Pull{Number: 12, Action: intent.PullOpened, Title: "<img src=x>", Author: "mallory", Fork: true}
	add(4, time.Minute, pull, intent.DeliveryOutcome{State: intent.OutcomeWaiting})
	r.Hook = id(901)
}

// Deliveries is a verb.
func (c *Control) Deliveries(
	_ context.Context,
	env uuid.UUID,
	q intent.ListQuery,
) (intent.Page[intent.Delivery], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(env)
	if err != nil {
		return intent.Page[intent.Delivery]{}, err
	}
	return paginate(e.Hooks, q, func(x intent.Delivery, _ string) (string, string) {
		return x.Received.UTC().Format(time.RFC3339Nano), x.ID.String()
	}, func(x intent.Delivery, name, v string) bool {
		switch name {
		case "state":
			return string(x.Outcomes[0].State) == v
		case "event":
			return string(x.Event.Kind) == v
		case "forge":
			return x.Forge == v
		case "ref":
			return part(x.Event.Ref, v)
		case "repository":
			return part(x.Event.Repository, v)
		case "commit":
			return part(x.Event.Commit, v)
		}
		return true
	}), nil
}

// Delivery is a verb.
func (c *Control) Delivery(_ context.Context, env, id uuid.UUID) (intent.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(env)
	if err != nil {
		return intent.Delivery{}, err
	}
	for _, d := range e.Hooks {
		if d.ID == id {
			return d, nil
		}
	}
	return intent.Delivery{}, fault.New(
		"apitest",
		fault.NotFound,
		"there is no delivery "+id.String()+" to this environment",
	)
}

// Redeliver is a verb.
func (c *Control) Redeliver(ctx context.Context, env, id uuid.UUID) (intent.Delivery, error) {
	d, err := c.Delivery(ctx, env, id)
	if err != nil {
		return d, err
	}
	if !d.Verified {
		return d, fault.New("apitest", fault.Conflict, "this webhook was refused: nothing proves who sent it")
	}
	again := d
	again.ID, again.Key, again.ReplayOf = uuid.New(), "", &id
	again.Outcomes = []intent.DeliveryOutcome{{Environment: env, State: intent.OutcomeWaiting}}
	err = c.change(env, "redeliver "+id.String(), func(e *Env) error {
		e.Hooks = append(e.Hooks, again)
		return nil
	})
	c.publish(env, bus.Delivery, "")
	return again, err
}
