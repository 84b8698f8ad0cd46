package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/task"
)

// finisher sends results. While a request is on its way, further results gather for the next one. A result is kept
// until the desk has answered, also beyond the time of its lease: only the desk knows whether the task went elsewhere.
// There are never more of them than tasks, for while the desk is away no tasks come either.
type finisher struct {
	client  *client.Client
	leases  *leases
	backoff client.Backoff
	log     *slog.Logger
	wake    chan struct{}

	mu    sync.Mutex
	queue []task.Result
	busy  bool          // a batch is on its way
	moved chan struct{} // closed when the queue has changed
}

func newFinisher(c *client.Client, l *leases, b client.Backoff, log *slog.Logger) *finisher {
	return &finisher{
		client:  c,
		leases:  l,
		backoff: b,
		log:     log,
		wake:    make(chan struct{}, 1),
		moved:   make(chan struct{}),
	}
}

// gather is how long the first of several results or free places waits for the others, so that short tasks share
// requests.
const gather = 5 * time.Millisecond

// add queues a result.
func (f *finisher) add(r task.Result) {
	f.mu.Lock()
	f.queue = append(f.queue, r)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run sends results until the context ends.
func (f *finisher) run(ctx context.Context) {
	for failures := 0; ; {
		batch := f.next()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
				_ = client.Sleep(ctx, gather)
			}
			continue
		}
		left := f.send(ctx, batch)
		f.answered(left)
		if ctx.Err() != nil {
			return
		}
		if len(left) == 0 {
			failures = 0
			continue
		}
		_ = client.Sleep(ctx, f.backoff.Pause(failures))
		failures++
	}
}

// next returns the results that are sent together. Those whose lease is gone are left out.
func (f *finisher) next() []task.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	var batch []task.Result
	for len(f.queue) > 0 && len(batch) < task.MaxFinish {
		r := f.queue[0]
		f.queue = f.queue[1:]
		if f.leases.holds(task.Lease{ID: r.ID, Fence: r.Fence}) {
			batch = append(batch, r)
		} else {
			f.log.Warn("the result of a task is dropped, because its lease is gone", "task", r.ID)
		}
	}
	if f.busy = len(batch) > 0; !f.busy {
		f.tell()
	}
	return batch
}

// answered puts back what has to be sent again, and wakes drain.
func (f *finisher) answered(left []task.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(left[:len(left):len(left)], f.queue...)
	f.busy = false
	f.tell()
}

// tell wakes drain. finisher.mu is held.
func (f *finisher) tell() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// send sends results, and returns those that have to be sent again. If the desk refuses a request, each of its results
// is sent alone; one that is refused alone is replaced by a failure that says so.
func (f *finisher) send(ctx context.Context, batch []task.Result) (left []task.Result) {
	dropped, err := f.client.Finish(ctx, batch)
	gone := idsOf(dropped)
	switch {
	case err == nil:
		for _, r := range batch {
			if gone[r.ID] {
				f.log.Warn("the server dropped the result of a task, because its lease went elsewhere", "task", r.ID)
			}
			f.leases.remove(task.Lease{ID: r.ID, Fence: r.Fence})
		}
		return nil
	case ctx.Err() != nil || !permanent(err):
		f.log.Warn("results of tasks cannot be sent", "results", len(batch), "error", err)
		return batch
	case len(batch) > 1:
		for _, r := range batch {
			left = append(left, f.send(ctx, []task.Result{r})...)
		}
		return left
	}
	r := batch[0]
	f.log.Error("the server refused the result of a task", "task", r.ID, "error", err)
	bare := task.Result{ID: r.ID, Fence: r.Fence, Status: task.Failed,
		Problem: cutProblem("the server refused the result of the task: " + err.Error())}
	if _, err := f.client.Finish(ctx, []task.Result{bare}); err != nil && !permanent(err) {
		return []task.Result{bare}
	}
	f.leases.remove(task.Lease{ID: r.ID, Fence: r.Fence})
	return nil
}

// permanent reports whether the same request would be refused again.
func permanent(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Invalid || kind == fault.NotFound || kind == fault.Conflict
}

// drain waits until all results are sent, for a while.
func (f *finisher) drain(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		f.mu.Lock()
		empty, moved := len(f.queue) == 0 && !f.busy, f.moved
		f.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			f.log.Warn("the provisioner stops before all results are sent; their tasks are done again")
			return
		}
	}
}
