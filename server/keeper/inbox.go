package keeper

import (
	"context"
	"sync"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// inbox writes webhooks to the database. Those that arrive while a transaction is
// under way are written together by the next one, so that a burst costs a few
// commits and not one for each.
type inbox struct {
	record func(ctx context.Context, batch []*arrival)

	mu      sync.Mutex
	waiting []*arrival
	writing bool
}

// arrival is a delivery on its way into the database.
type arrival struct {
	delivery intent.Delivery
	took     []intent.EnvironmentID
	err      error
	done     chan struct{} // closed when the fields above are set
}

const (
	// recordBatch bounds how many deliveries one transaction writes.
	recordBatch   = 500
	recordTimeout = 20 * time.Second
)

// RecordDelivery records a webhook durably before it returns. It returns the
// environments that did not have the webhook before; their keepers handle it next.
func (r *Registry) RecordDelivery(ctx context.Context, d intent.Delivery) ([]intent.EnvironmentID, error) {
	a := &arrival{delivery: d, done: make(chan struct{})}
	r.inbox.add(context.WithoutCancel(ctx), a)
	select {
	case <-a.done:
		return a.took, a.err
	case <-ctx.Done():
		return nil, fault.Wrap("keeper.RecordDelivery", fault.Unavailable, ctx.Err()).
			Say("the sender closed the connection")
	}
}

// add queues an arrival, and starts a writer if none is running.
func (i *inbox) add(ctx context.Context, a *arrival) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, a)
	if !i.writing {
		i.writing = true
		go i.write(ctx)
	}
}

// write records batches until the queue is empty.
func (i *inbox) write(ctx context.Context) {
	for {
		batch := i.take()
		if len(batch) == 0 {
			return
		}
		i.record(ctx, batch)
	}
}

// take removes and returns the next batch. If the queue is empty, the next arrival
// starts a new writer.
func (i *inbox) take() []*arrival {
	i.mu.Lock()
	defer i.mu.Unlock()
	batch := i.waiting[:min(len(i.waiting), recordBatch)]
	i.waiting = i.waiting[len(batch):]
	if len(batch) == 0 {
		i.writing, i.waiting = false, nil
	}
	return batch
}

// recordBatch writes arrivals in one transaction, completes them, and wakes the keepers
// of their environments.
func (r *Registry) recordBatch(ctx context.Context, batch []*arrival) {
	deliveries := make([]intent.Delivery, len(batch))
	for i, a := range batch {
		deliveries[i] = a.delivery
	}
	writing, cancel := context.WithTimeout(ctx, recordTimeout)
	took, err := r.cfg.Store.RecordDeliveries(writing, deliveries)
	cancel()
	if err != nil && len(batch) > 1 && !fault.Is(err, fault.Unavailable) {
		for i := range batch { // one of them is at fault; record the others
			r.recordBatch(ctx, batch[i:i+1])
		}
		return
	}
	concerned := map[intent.EnvironmentID]bool{}
	for i, a := range batch {
		if a.err = err; err == nil {
			a.took = took[i]
		}
		close(a.done)
		for _, env := range a.took {
			concerned[env] = true
		}
	}
	for env := range concerned {
		r.publish(env, bus.Delivery, "")
		r.wakeDeliveries(env)
	}
}

func (r *Registry) wakeDeliveries(env intent.EnvironmentID) {
	if k := r.keeper(env); k != nil {
		wake(k.deliveryWakes)
	}
}

// deliveryInterval is how often a process looks for webhooks that another one received.
const deliveryInterval = time.Second

// lookForDeliveries wakes the keepers whose webhooks were received by other
// processes, until ctx ends.
func (r *Registry) lookForDeliveries(ctx context.Context) {
	ticker := time.NewTicker(deliveryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		envs, err := r.cfg.Store.WaitingEnvironments(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Debug("cannot look for webhooks", "error", err)
		}
		for _, env := range envs {
			if r.Deployer(env) != nil { // owned here
				r.wakeDeliveries(env)
			}
		}
	}
}
