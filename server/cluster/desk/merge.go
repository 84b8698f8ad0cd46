package desk

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// maxMerged is how many ends one transaction records at most, unless one report has more.
const maxMerged = 1024

// merger lets reports share transactions. The provisioners of a project work on the same jobs, and ends of tasks of a
// job are recorded one transaction after another: while one is under way, the reports that arrive gather for the next.
type merger struct {
	record func(context.Context, []intent.ClusterTaskEnd) error

	mu     sync.Mutex
	queues map[uuid.UUID][]*report // by project; a project that has an entry has a goroutine that records
}

// report is what one caller wants to have recorded.
type report struct {
	ctx  context.Context
	ends []intent.ClusterTaskEnd
	done chan error // has room for the answer
}

// add records ends of a project's tasks, and returns when they are recorded.
func (m *merger) add(ctx context.Context, project uuid.UUID, ends []intent.ClusterTaskEnd) error {
	r := &report{ctx: ctx, ends: ends, done: make(chan error, 1)}
	m.mu.Lock()
	waiting, running := m.queues[project]
	if m.queues == nil {
		m.queues = map[uuid.UUID][]*report{}
	}
	m.queues[project] = append(waiting, r)
	m.mu.Unlock()
	if !running {
		go m.run(project)
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done(): // whether it is recorded is unknown to the caller, as when its connection breaks
		return ctx.Err()
	}
}

// run records the reports of a project until none is left.
func (m *merger) run(project uuid.UUID) {
	for {
		batch := m.next(project)
		if len(batch) == 0 {
			return
		}
		m.recordAll(batch)
	}
}

// next returns the reports that are recorded together. None: the project's entry is removed.
func (m *merger) next(project uuid.UUID) (batch []*report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := m.queues[project]
	seen := map[uuid.UUID]bool{}
	for len(waiting) > 0 && (len(batch) == 0 || len(seen)+len(waiting[0].ends) <= maxMerged) {
		r := waiting[0]
		if overlaps(seen, r.ends) { // a task that is reported twice, as after a time-out: one after the other
			break
		}
		for _, e := range r.ends {
			seen[e.ID] = true
		}
		batch, waiting = append(batch, r), waiting[1:]
	}
	if len(batch) == 0 {
		delete(m.queues, project)
	} else {
		m.queues[project] = waiting
	}
	return batch
}

func overlaps(seen map[uuid.UUID]bool, ends []intent.ClusterTaskEnd) bool {
	for _, e := range ends {
		if seen[e.ID] {
			return true
		}
	}
	return false
}

// recordAll records reports in one transaction. If that fails each has one of its own, so that a report which cannot be
// recorded harms no other.
func (m *merger) recordAll(batch []*report) {
	if len(batch) == 1 {
		batch[0].done <- m.record(batch[0].ctx, batch[0].ends)
		return
	}
	var all []intent.ClusterTaskEnd
	for _, r := range batch {
		all = append(all, r.ends...)
	}
	// A caller that gives up does not take the others with it.
	if err := m.record(context.WithoutCancel(batch[0].ctx), all); err == nil {
		for _, r := range batch {
			r.done <- nil
		}
		return
	}
	for _, r := range batch {
		r.done <- m.record(r.ctx, r.ends)
	}
}
