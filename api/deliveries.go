package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// deliveryCalls are about webhooks that were received. Inmanta has no such calls.
func (s *server) deliveryCalls(c *calls) {
	const path = "/api/v2/deliveries"
	whole(c, http.MethodGet, path, "List the webhooks that the environment received.",
		access.SeeDeliveries, s.listDeliveries,
		pagesOf(store.DeliveryList))
	v2(c, http.MethodGet, path+"/{id}", "Show a webhook, with all that it said.", access.SeeDeliveries, s.getDelivery)
	v2(c, http.MethodPost, path+"/{id}/redeliver", "Act on a webhook again.", access.Redeliver, s.redeliver)
}

// delivery is a webhook in a list.
type delivery struct {
	ID         uuid.UUID           `json:"id"`
	Forge      string              `json:"forge"`
	ForgeID    string              `json:"forge_id"`
	Received   timestamp           `json:"received"`
	Size       int64               `json:"size"`
	Verified   bool                `json:"verified"`
	ReplayOf   *uuid.UUID          `json:"replay_of"`
	Event      intent.HookKind     `json:"event"`
	Name       string              `json:"name"`
	Repository string              `json:"repository"`
	Ref        string              `json:"ref"`
	Commit     string              `json:"commit"`
	Sender     string              `json:"sender"`
	Subject    string              `json:"subject"`
	State      intent.OutcomeState `json:"state"`
	Reason     string              `json:"reason"`
	Compile    *uuid.UUID          `json:"compile"`
	Handled    *timestamp          `json:"handled"`
	Module     string              `json:"module"`
}

// wholeDelivery also has the rest of what the payload said.
type wholeDelivery struct {
	delivery
	Told intent.HookEvent `json:"told"`
}

type oneDelivery struct {
	inEnvironment
	ID uuid.UUID `arg:"id,required"`
}

func (s *server) listDeliveries(ctx context.Context, a pageIn) (page[delivery], error) {
	q, err := a.query(store.DeliveryList)
	if err != nil {
		return page[delivery]{}, err
	}
	found, err := s.store.Deliveries(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/deliveries", list: store.DeliveryList}, q, found, deliveryOf,
		func(d intent.Delivery) place { return atTime(d.Received, d.ID.String()) }), err
}

func (s *server) getDelivery(ctx context.Context, a oneDelivery) (wholeDelivery, error) {
	d, err := s.store.Delivery(ctx, a.Env, a.ID)
	if err != nil {
		return wholeDelivery{}, err
	}
	return wholeDelivery{deliveryOf(d), d.Event}, nil
}

func (s *server) redeliver(ctx context.Context, a oneDelivery) (wholeDelivery, error) {
	d, err := s.control.Redeliver(ctx, a.Env, a.ID)
	if err != nil {
		return wholeDelivery{}, err
	}
	return wholeDelivery{deliveryOf(d), d.Event}, nil
}

func deliveryOf(d intent.Delivery) delivery {
	e, o := d.Event, d.Outcomes[0]
	return delivery{
		ID: d.ID, Forge: d.Forge, ForgeID: d.Key, Received: stamp(d.Received), Size: d.Size, Verified: d.Verified,
		ReplayOf: d.ReplayOf, Event: e.Kind, Name: e.Name, Repository: e.Repository, Ref: e.Ref, Commit: e.Commit,
		Sender: e.Sender, Subject: e.Subject, State: o.State, Reason: o.Reason, Compile: o.Compile,
		Handled: maybe(o.Handled), Module: o.Module,
	}
}
