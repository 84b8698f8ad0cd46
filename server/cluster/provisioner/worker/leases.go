package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/task"
)

// The reasons why an attempt is ended from outside.
var (
	errLeaseGone  = errors.New("the task was given to another provisioner, or is no longer wanted")
	errLeaseEnded = errors.New("the server could not be reached for as long as the lease of the task lasts")
	errStopped    = errors.New("the provisioner was stopped before the task was done")
)

// leases are the tasks that this provisioner holds: from when they are taken until their results have arrived.
type leases struct {
	client *client.Client
	log    *slog.Logger
	wake   chan struct{} // has a value when the next renewal may be due earlier

	mu      sync.Mutex
	held    map[uuid.UUID]*held
	running map[uuid.UUID]*held // the latest attempt that has not ended, with or without a lease
}

// held is one attempt with its lease. All but the constants belong to leases.mu.
type held struct {
	task.Lease
	length time.Duration
	ctx    context.Context // of the attempt
	end    context.CancelCauseFunc
	before <-chan struct{} // closed when an earlier attempt of the same task here has ended; nil if there is none
	done   chan struct{}   // closed when the attempt has ended

	renewAt time.Time
	expiry  *time.Timer // ends the attempt
}

func newLeases(c *client.Client, log *slog.Logger) *leases {
	return &leases{client: c, log: log, wake: make(chan struct{}, 1), held: map[uuid.UUID]*held{},
		running: map[uuid.UUID]*held{}}
}

// add begins an attempt. If the desk gives a task again that runs here, the lease of the earlier attempt is gone, and
// the new one waits for its end.
func (l *leases) add(ctx context.Context, t task.Task, length time.Duration) *held {
	h := &held{Lease: leaseOf(t), length: length, done: make(chan struct{})}
	h.ctx, h.end = context.WithCancelCause(ctx)
	h.renewAt = time.Now().Add(length / 3)
	h.expiry = time.AfterFunc(length, func() { h.end(errLeaseEnded) })
	l.mu.Lock()
	if earlier := l.held[t.ID]; earlier != nil {
		earlier.lose(errLeaseGone)
	}
	if earlier := l.running[t.ID]; earlier != nil {
		h.before = earlier.done
	}
	l.held[t.ID], l.running[t.ID] = h, h
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return h
}

// lose ends an attempt whose lease is gone.
func (h *held) lose(why error) {
	h.expiry.Stop()
	h.end(why)
}

// ended says that an attempt does not run any more.
func (l *leases) ended(h *held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[h.ID] == h {
		delete(l.running, h.ID)
	}
	close(h.done)
}

// remove forgets an attempt: its result has arrived, or is not wanted.
func (l *leases) remove(lease task.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[lease.ID]; h != nil && h.Fence == lease.Fence {
		h.lose(context.Canceled)
		delete(l.held, lease.ID)
	}
}

// holds reports whether an attempt is the latest one of its task here.
func (l *leases) holds(lease task.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[lease.ID]
	return h != nil && h.Fence == lease.Fence
}

func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// run renews until the context ends.
func (l *leases) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
			l.renew(ctx)
		}
		timer.Reset(l.next())
	}
}

// idle is how long there is nothing to renew if nothing is held.
const idle = time.Hour

// next returns the time until the next renewal.
func (l *leases) next() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := time.Now().Add(idle)
	for _, h := range l.held {
		if h.renewAt.Before(next) {
			next = h.renewAt
		}
	}
	return max(time.Until(next), 0)
}

// renew renews all leases by one request, as soon as one of them is due. One try takes a third of the shortest lease
// at most, so that a connection that hangs leaves time for another.
func (l *leases) renew(ctx context.Context) {
	l.mu.Lock()
	var request task.Renew
	shortest, due := idle, false
	now := time.Now()
	for _, h := range l.held {
		due = due || !h.renewAt.After(now)
		shortest = min(shortest, h.length)
		request.Leases = append(request.Leases, h.Lease)
	}
	l.mu.Unlock()
	if !due {
		return
	}
	limited, cancel := context.WithTimeout(ctx, shortest/3)
	defer cancel()
	answer, err := l.client.Renew(limited, request)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.log.Warn("the leases of tasks cannot be renewed", "tasks", len(request.Leases), "error", err)
		// The request has used up its time as a rule. If it was refused at once, the next one is not sent at once.
		l.postpone(request, now.Add(max(shortest/3, 10*time.Millisecond)))
		return
	}
	gone := idsOf(answer.Gone)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range request.Leases {
		h := l.held[lease.ID]
		switch {
		case h == nil || h.Fence != lease.Fence:
		case gone[lease.ID]:
			l.log.Warn("a task is ended, because its lease is gone", "task", lease.ID)
			h.lose(errLeaseGone)
			delete(l.held, lease.ID)
		case h.ctx.Err() == nil:
			// The lease counts from when the desk renewed it, which is not before the request was sent.
			if h.expiry.Stop() {
				h.expiry.Reset(time.Until(now.Add(h.length)))
			}
			h.renewAt = now.Add(h.length / 3)
		default: // the attempt has ended, and its result is on the way
			h.renewAt = now.Add(h.length / 3)
		}
	}
}

func (l *leases) postpone(request task.Renew, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range request.Leases {
		if h := l.held[lease.ID]; h != nil && h.Fence == lease.Fence {
			h.renewAt = until
		}
	}
}
