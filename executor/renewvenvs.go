package executor

import (
	"context"
	"maps"
)

// RemoveVenvs removes all virtual environments, so that the next tasks make them anew. Processes that run no task end
// first. A virtual environment in which tasks run stays until they have ended, and the next call of Clean removes it.
func (m *Manager) RemoveVenvs(ctx context.Context) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errClosed
	}
	doomed := map[string]bool{}
	for _, dir := range folders(m.c.Layout.Environment(m.c.Environment).Venvs()) {
		doomed[dir] = true
	}
	if m.doomed == nil {
		m.doomed = map[string]bool{}
	}
	maps.Copy(m.doomed, doomed)
	ending := m.endDoomed()
	m.mu.Unlock()
	for _, w := range ending {
		select {
		case <-w.session.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return m.Clean(ctx)
}

// endDoomed retires the processes whose virtual environment is to be removed and which run no task, and returns them.
// The caller holds mu.
func (m *Manager) endDoomed() (ending []*process) {
	for w := range m.workers {
		if e := w.executor; m.doomed[m.venvOf(e)] && w.running == 0 && e.tasks == 0 {
			m.retire(w)
			ending = append(ending, w)
		}
	}
	return ending
}

func (m *Manager) venvOf(e *executor) string {
	return m.c.Layout.Environment(m.c.Environment).Venv(e.blueprint.VenvHash())
}

// isDoomed reports whether a virtual environment is to be removed however recently it was used; removed forgets it.
func (m *Manager) isDoomed(dir string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doomed[dir]
}

func (m *Manager) removed(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.doomed, dir)
}
