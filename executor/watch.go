package executor

import (
	"fmt"
	"time"

	"ordain.dev/ordain/internal/python/worker"
)

// watchEvery is how often the number of processes is looked at while tasks
// run. It costs one small read of the kernel's count of all; only when that has
// grown by a good part of the limit are the executors' own counted.
const watchEvery = 250 * time.Millisecond

// watch ends executors whose handlers start too many processes. It goes on as
// long as tasks run.
func (m *Manager) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-m.ctx.Done():
			return
		}
		m.mu.Lock()
		var running int
		for w := range m.workers {
			running += w.running
		}
		if running == 0 {
			m.watching = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		m.countChildren()
	}
}

// watched sees to it that somebody watches. The caller holds mu.
func (m *Manager) watched() {
	if m.c.ChildrenMax > 0 && !m.watching {
		m.watching = true
		m.work.Go(m.watch)
	}
}

// countChildren ends the executors that have more processes than they may.
func (m *Manager) countChildren() {
	m.mu.Lock()
	total := worker.SystemTasks()
	m.calm = min(m.calm, total)
	if m.c.ChildrenMax == 0 || total-m.calm <= m.c.ChildrenMax/2 {
		m.mu.Unlock()
		return
	}
	m.calm = total
	var workers []*process
	for w := range m.workers {
		workers = append(workers, w)
	}
	m.mu.Unlock()
	for _, w := range workers {
		n := len(worker.Descendants(w.session.PID()))
		if n > m.c.ChildrenMax/2 {
			m.mu.Lock()
			m.calm = min(m.calm, total-n) // look again soon
			m.mu.Unlock()
		}
		if n <= m.c.ChildrenMax {
			continue
		}
		m.mu.Lock()
		w.why = fmt.Sprintf(
			"its handlers had %d processes running, more than the %d of [agent] executor-children-max, and it was ended",
			n,
			m.c.ChildrenMax,
		)
		m.gone(w)
		m.mu.Unlock()
		m.c.Logger.Error(
			"an executor was ended: its handlers started too many processes",
			"executor",
			w.executor.hash,
			"pid",
			w.session.PID(),
			"processes",
			n,
		)
		w.session.Kill()
	}
}
