package executor

import (
	"encoding/json"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/worker"
)

// Recall takes back tasks with Behind: those that have not begun end as
// withdrawn. It does not wait for that.
func (m *Manager) Recall(tasks []intent.ActionID) {
	m.mu.Lock()
	var runs []*taskRun
	for _, id := range tasks {
		if r := m.behind[id]; r != nil {
			runs = append(runs, r)
		}
	}
	m.mu.Unlock()
	retract(runs)
}

// notBegunIn returns the tasks that were sent to a process and have not begun.
// The caller holds mu.
func (m *Manager) notBegunIn(w *process) []*taskRun {
	var out []*taskRun
	for _, r := range m.behind {
		if r.process == w && !r.begun {
			out = append(out, r)
		}
	}
	return out
}

// retract asks the processes of these tasks to give them back. The process
// decides: it knows which tasks have begun.
func retract(runs []*taskRun) {
	requests := make(map[*process][]int64)
	byRequest := make(map[int64]*taskRun)
	for _, r := range runs {
		if id := r.request.Load(); id > 0 { // otherwise it is about to be sent, or never will be
			requests[r.process] = append(requests[r.process], id)
			byRequest[id] = r
		}
	}
	for w, asked := range requests {
		_, _ = w.session.Post( // an error means that the process is gone, which each task learns by itself
			worker.Errand{
				Op:   "retract",
				Args: map[string]any{"requests": asked},
				Done: func(raw json.RawMessage, err error) {
					var answer struct {
						Back []int64 `json:"back"`
					}
					if err != nil || json.Unmarshal(raw, &answer) != nil {
						return
					}
					for _, id := range answer.Back {
						if r := byRequest[id]; r != nil && slices.Contains(asked, id) && r.settle() {
							w.session.Forget(id)
							r.endWithdrawn(true)
						}
					}
				},
			},
		)
	}
}
