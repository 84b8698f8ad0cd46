package server

import (
	"context"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/webhooks"
)

// hooked fits control to what webhooks ask for.
type hooked struct {
	control *control.Control

	mu         sync.Mutex
	targets    *webhooks.Targets
	generation uint64
	read       time.Time
}

// targetsAge is how long what was read of the environments is good: another
// process may have changed them.
const (
	targetsAge = time.Second
	freshAge   = 100 * time.Millisecond // what is asked for in vain costs no more than this often
)

// Targets gives the environments by their repositories. In a storm of webhooks
// they are read once a second, and whenever they change here.
func (h *hooked) Targets(ctx context.Context, fresh bool) (*webhooks.Targets, error) {
	asked := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	generation := h.control.HookGeneration()
	age := targetsAge
	if fresh {
		age = freshAge
	}
	if h.targets != nil && generation == h.generation && asked.Sub(h.read) < age {
		return h.targets, nil
	}
	read := time.Now()
	known, err := h.control.HookTargets(ctx)
	if err != nil {
		return nil, err
	}
	targets := make([]webhooks.Target, 0, len(known))
	for _, t := range known {
		target := webhooks.Target{Environment: t.Environment, Name: t.Name, Source: t.Source, Secrets: t.Secrets}
		for name, url := range t.Modules {
			target.Modules = append(target.Modules, webhooks.Module{Name: name, URL: url})
		}
		targets = append(targets, target)
	}
	h.targets, h.generation, h.read = webhooks.NewTargets(targets), generation, read
	return h.targets, nil
}

func (h *hooked) Expect() (over func(recorded bool)) { return h.control.ExpectDelivery() }

func (h *hooked) Record(ctx context.Context, d intent.Delivery) ([]intent.EnvironmentID, error) {
	return h.control.RecordDelivery(ctx, d)
}
