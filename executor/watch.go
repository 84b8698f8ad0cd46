package executor

import (
	"fmt"
	"time"

	"ordain.dev/ordain/internal/python/worker"
)

// watchEvery is how often the number of processes is checked while tasks run.
const watchEvery = 250 * time.Millisecond

// startWatch starts watching what handlers start, unless that is going on
// already. The caller holds mu.
func (m *Manager) startWatch() {
	if m.c.ChildrenMax > 0 && !m.watching {
		m.watching = true
		m.work.Go(m.watch)
	}
}

// watch ends executors whose handlers start too many processes, as long as tasks run.
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

// leeway is how many processes more than ChildrenMax there may be when the kernel limits them too. It
// counts threads with them, so its limit is a little wider; the watch is for handlers that raise it.
const leeway = 128

// replaceFull replaces an executor before its next task, because the kernel would let its handlers start
// no more processes or threads.
func (m *Manager) replaceFull(w *process, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.executor.current == w {
		m.c.Logger.Warn("an executor is replaced because its handlers have too many processes running",
			"executor", w.executor.hash, "pid", w.session.PID(), "processes", n)
		m.retire(w)
	}
}

// countChildren ends the executors that have more processes than ChildrenMax.
//
// Counting them means reading the whole process table, so it first reads how
// many tasks the machine has, which is cheap: as long as that has not grown by
// half of the limit since the last count, no executor can be near its limit.
func (m *Manager) countChildren() {
	m.mu.Lock()
	total := worker.SystemTasks()
	m.baseline = min(m.baseline, total)
	if m.c.ChildrenMax == 0 || total-m.baseline <= m.c.ChildrenMax/2 {
		m.mu.Unlock()
		return
	}
	m.baseline = total
	var workers []*process
	for w := range m.workers {
		workers = append(workers, w)
	}
	m.mu.Unlock()
	for _, w := range workers {
		n := len(worker.Descendants(w.session.PID()))
		if n > m.c.ChildrenMax/2 {
			m.mu.Lock()
			m.baseline = min(m.baseline, total-n) // so that it is counted again at the next check
			m.mu.Unlock()
		}
		if n <= m.c.ChildrenMax {
			continue
		}
		if m.c.Cell.Exact() && n <= m.c.ChildrenMax+leeway {
			m.replaceFull(w, n)
			continue
		}
		m.mu.Lock()
		w.endedFor = fmt.Sprintf("its handlers had %d processes running, more than the %d of "+
			"[agent] executor-children-max, and it was ended", n, m.c.ChildrenMax)
		m.detach(w)
		m.mu.Unlock()
		m.c.Logger.Error("an executor was ended because its handlers started too many processes",
			"executor", w.executor.hash, "pid", w.session.PID(), "processes", n)
		w.session.Kill()
	}
}
