package control

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// recorder writes the deliveries that arrive at one time in one transaction,
// so that a storm costs one commit for many and not one for each.
type recorder struct {
	mu      sync.Mutex
	waiting []*arrival
	busy    bool
	coming  int           // were read, and will be here in a moment
	next    int           // of these, that will be recorded at once
	full    chan struct{} // closed when all wait that are waited for; nil: nobody waits for that
	enough  int           // so many; zero: until none is coming
	storm   storm

	// Of who records: how many seem to send side by side, and when some were answered last.
	crowd    int
	beside   int // those that waited when some were answered
	answered time.Time
}

// arrival is a delivery on its way into the record.
type arrival struct {
	delivery intent.Delivery
	took     []intent.EnvironmentID
	err      error
	done     chan struct{}
}

const (
	recordBatch   = 500
	recordTimeout = 20 * time.Second
	// gatherMost is how long webhooks wait for those that are sent when the answers
	// to the last ones arrive. Who would be recorded alone keeps all others waiting
	// for a commit of its own.
	gatherMost = 2 * time.Millisecond
)

// RecordDelivery makes a webhook durable, and returns once it is. It gives the
// environments that did not have it before; they look at it next.
func (c *Control) RecordDelivery(ctx context.Context, d intent.Delivery) ([]intent.EnvironmentID, error) {
	a := &arrival{delivery: d, done: make(chan struct{})}
	r := &c.arrivals
	r.storm.arrived()
	r.mu.Lock()
	r.waiting = append(r.waiting, a)
	if r.next > 0 {
		r.next--
		r.coming--
	}
	r.came()
	if !r.busy {
		r.busy = true
		go c.recordArrivals(context.WithoutCancel(ctx))
	}
	r.mu.Unlock()
	select {
	case <-a.done:
		return a.took, a.err
	case <-ctx.Done():
		return nil, fault.Wrap("control.RecordDelivery", fault.Unavailable, ctx.Err()).Say("the sender did not wait")
	}
}

// recordArrivals writes what waits until nothing does.
func (c *Control) recordArrivals(ctx context.Context) {
	r := &c.arrivals
	for r.gather() {
		r.mu.Lock()
		batch := r.waiting[:min(len(r.waiting), recordBatch)]
		r.waiting = r.waiting[len(batch):]
		r.mu.Unlock()
		c.recordBatch(ctx, batch)
		r.mu.Lock()
		r.crowd = max(len(batch)+r.beside, r.crowd-1-r.crowd/8)
		r.mu.Unlock()
		r.answered = time.Now()
	}
}

// ExpectDelivery tells that a webhook was read that may have to be recorded; the
// function that it gives is called just before it is, or when it will not be;
// after that it does nothing.
func (c *Control) ExpectDelivery() (over func(recorded bool)) {
	r := &c.arrivals
	r.mu.Lock()
	r.coming++
	r.mu.Unlock()
	var once sync.Once
	return func(recorded bool) {
		once.Do(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if recorded { // it is on its way: whoever waits for it goes on when it is here
				r.next++
				return
			}
			r.coming--
			r.came()
		})
	}
}

// came lets gather go on when all are there that it waits for.
func (r *recorder) came() {
	if r.full != nil && r.complete() {
		close(r.full)
		r.full = nil
	}
}

func (r *recorder) complete() bool {
	if r.enough > 0 {
		return len(r.waiting) >= r.enough
	}
	return r.coming == 0
}

// gather waits a moment while webhooks come in crowds, until all of the crowd
// wait; and where a crowd may begin, for those that are nearly there. False says
// that nothing waits: then whoever comes next begins anew.
func (r *recorder) gather() bool {
	crowd := r.crowd
	if crowd < 2 || time.Since(r.answered) > gatherMost {
		crowd = 0
		runtime.Gosched() // to those that came at the same time
	}
	r.mu.Lock()
	r.enough = crowd
	if len(r.waiting) == 0 {
		r.busy, r.waiting = false, nil
		r.mu.Unlock()
		return false
	}
	if r.complete() {
		r.mu.Unlock()
		return true
	}
	full := make(chan struct{})
	r.full = full
	r.mu.Unlock()
	timer := time.NewTimer(gatherMost)
	defer timer.Stop()
	select {
	case <-full:
	case <-timer.C:
		r.mu.Lock()
		r.full = nil
		r.mu.Unlock()
	}
	return true
}

func (c *Control) recordBatch(ctx context.Context, batch []*arrival) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	deliveries := make([]intent.Delivery, len(batch))
	for i, a := range batch {
		deliveries[i] = a.delivery
	}
	took, err := c.cfg.Store.RecordDeliveries(ctx, deliveries)
	if err != nil && len(batch) > 1 && !fault.Is(err, fault.Unavailable) {
		for i := range batch { // one of them is at fault; the others shall not suffer
			c.recordBatch(ctx, batch[i:i+1])
		}
		return
	}
	// Who is answered may send the next one at once, and is not to be counted twice.
	c.arrivals.mu.Lock()
	c.arrivals.beside = len(c.arrivals.waiting)
	c.arrivals.mu.Unlock()
	woken := map[intent.EnvironmentID]bool{}
	for i, a := range batch {
		if a.err = err; err == nil {
			a.took = took[i]
		}
		close(a.done)
		for _, env := range a.took {
			woken[env] = true
		}
	}
	for env := range woken {
		c.publish(env, bus.Delivery, "")
		c.wakeHooks(env)
	}
}

// Deliveries lists the webhooks of an environment.
func (c *Control) Deliveries(
	ctx context.Context,
	env intent.EnvironmentID,
	q intent.ListQuery,
) (intent.Page[intent.Delivery], error) {
	return c.cfg.Store.Deliveries(ctx, env, q)
}

// Delivery finds one.
func (c *Control) Delivery(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error) {
	return c.cfg.Store.Delivery(ctx, env, id)
}

// Redeliver records a webhook anew for one environment, as if the forge had sent it again
// and it had not come before. A refused one stays refused.
func (c *Control) Redeliver(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) (intent.Delivery, error) {
	const op = "control.Redeliver"
	d, err := c.cfg.Store.Delivery(ctx, env, id)
	if err != nil {
		return d, err
	}
	if !d.Verified {
		return d, fault.New(op, fault.Conflict, "this webhook was refused: nothing proves who sent it").
			Hint("set the same secret in the forge and in the environment, and let the forge send it again")
	}
	again := d
	again.ID, again.Key, again.Received, again.ReplayOf = uuid.New(), "", c.cfg.Now(), &d.ID
	again.Outcomes = []intent.DeliveryOutcome{
		{Environment: env, Module: d.Outcomes[0].Module, State: intent.OutcomeWaiting},
	}
	took, err := c.RecordDelivery(ctx, again)
	if err != nil {
		return d, err
	}
	if len(took) == 0 {
		return d, fault.New(op, fault.NotFound, "the environment was deleted")
	}
	return c.cfg.Store.Delivery(ctx, env, again.ID)
}

// describe tells people what a webhook was about: "ada pushed 1234567 to main: fix the doors".
func describe(e intent.HookEvent) string {
	who := e.Sender
	if who == "" {
		who = "someone"
	}
	if e.Deleted {
		return fmt.Sprintf("%s deleted %s", who, shortRef(e.Ref))
	}
	text := who + " pushed"
	if e.Commit != "" {
		text += " " + e.Commit[:7]
	}
	if e.Ref != "" {
		text += " to " + shortRef(e.Ref)
	}
	if e.Subject != "" {
		text += ": " + e.Subject
	}
	return text
}
