package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ordain.dev/ordain/internal/intent"
)

// refusals collects requests that prove nothing, so that people see what is wrong with their webhook. Anybody can send
// such requests: for each environment, the newest of them is recorded with the number of the others, at most once in
// refusalsEvery. How often somebody sends one makes no difference to the database.
//
//	wrong signature ──add──▶ newest and count of each environment ──after a while──▶ one row for each
type refusals struct {
	record func(ctx context.Context, d intent.Delivery, more int)

	mu      sync.Mutex
	parsing *rate.Limiter // of the payloads that are read although they prove nothing
	waiting map[refusedPlace]*refused
	flushed time.Time
	timer   *time.Timer // nil: nothing waits
}

// refusedPlace is what refused requests are counted for.
type refusedPlace struct {
	environment intent.EnvironmentID
	module      string
}

type refused struct {
	newest intent.Delivery
	more   int // requests besides the newest
}

const (
	// refusalsEvery is the least time between two records of refused requests.
	refusalsEvery = 3 * time.Second
	// refusalsMax bounds for how many environments refusals wait at a time.
	refusalsMax = 500
)

func newRefusals(record func(context.Context, intent.Delivery, int)) *refusals {
	return &refusals{
		record: record, parsing: rate.NewLimiter(20, 100), waiting: map[refusedPlace]*refused{},
	}
}

// add notes that a request was refused for the environment of its only outcome.
func (r *refusals) add(d intent.Delivery) {
	at := refusedPlace{d.Outcomes[0].Environment, d.Outcomes[0].Module}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.waiting[at]
	switch {
	case one != nil:
		one.newest, one.more = d, one.more+1
	case len(r.waiting) >= refusalsMax:
		return
	default:
		r.waiting[at] = &refused{newest: d}
	}
	if r.timer == nil {
		r.timer = time.AfterFunc(max(0, refusalsEvery-time.Since(r.flushed)), r.flush)
	}
}

// flush records what waits. The records are made at the same time, so that one transaction has them all.
func (r *refusals) flush() {
	r.mu.Lock()
	waiting := r.waiting
	r.waiting, r.timer, r.flushed = map[refusedPlace]*refused{}, nil, time.Now()
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, one := range waiting {
		all.Go(func() { r.record(context.Background(), one.newest, one.more) })
	}
	all.Wait()
}

// andMore says how many requests were refused for the same reason.
func andMore(reason string, more int) string {
	if more == 0 {
		return reason
	}
	return fmt.Sprintf("%s; so it was with %d others since the last one that is shown", reason, more)
}
