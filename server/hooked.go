package server

import (
	"context"
	"sync"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/webhooks"
)

// hooked gives the webhooks what they ask for.
type hooked struct {
	keepers *keeper.Registry

	mu    sync.Mutex
	known []keeper.HookTarget
	index *webhooks.Targets // of known
}

// Targets returns the environments by their repositories.
func (h *hooked) Targets(ctx context.Context, fresh bool) (*webhooks.Targets, error) {
	known, err := h.keepers.HookTargets(ctx, fresh)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.index != nil && len(known) == len(h.known) && (len(known) == 0 || &known[0] == &h.known[0]) {
		return h.index, nil
	}
	targets := make([]webhooks.Target, 0, len(known))
	for _, t := range known {
		target := webhooks.Target{Environment: t.Environment, Name: t.Name, Source: t.Source, Secrets: t.Secrets}
		for name, url := range t.Modules {
			target.Modules = append(target.Modules, webhooks.Module{Name: name, URL: url})
		}
		targets = append(targets, target)
	}
	h.known, h.index = known, webhooks.NewTargets(targets)
	return h.index, nil
}

func (h *hooked) Expect() (over func(recorded bool)) { return func(bool) {} }

func (h *hooked) Record(ctx context.Context, d intent.Delivery) ([]intent.EnvironmentID, error) {
	return h.keepers.RecordDelivery(ctx, d)
}
