package authority

import (
	"context"
	"sync"

	"ordain.dev/ordain/server/agent/ca"
)

// Limits of requests at a time. A provisioner has one that waits for tasks, and a few for what it works on.
const (
	joinsAtOnce    = 16
	requestsAtOnce = 2048
	requestsOfOne  = 64
)

// requests are those that are being served.
type requests struct {
	mu  sync.Mutex
	all int
	of  map[ca.Provisioner]map[*context.CancelFunc]struct{}
}

// enter makes a place for a request, whose context ends when its provisioner is revoked. It reports whether there was
// one; the caller calls leave at the end then.
func (r *requests) enter(ctx context.Context, who ca.Provisioner) (_ context.Context, leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all >= requestsAtOnce || len(r.of[who]) >= requestsOfOne {
		return ctx, nil, false
	}
	if r.of == nil {
		r.of = map[ca.Provisioner]map[*context.CancelFunc]struct{}{}
	}
	if r.of[who] == nil {
		r.of[who] = map[*context.CancelFunc]struct{}{}
	}
	ctx, cancel := context.WithCancel(ctx)
	r.all++
	r.of[who][&cancel] = struct{}{}
	return ctx, func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all--
		if delete(r.of[who], &cancel); len(r.of[who]) == 0 {
			delete(r.of, who)
		}
	}, true
}

// end ends the requests of a provisioner.
func (r *requests) end(who ca.Provisioner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for cancel := range r.of[who] {
		(*cancel)()
	}
}

// serving returns how many requests of a provisioner are being served.
func (r *requests) serving(who ca.Provisioner) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of[who])
}
