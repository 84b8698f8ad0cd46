package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/pyenv"
	"ordain.dev/ordain/layout"
)

// Clean ends processes that have been idle for IdleRetention, and deletes
// virtual environments and code folders that nothing used for VenvRetention.
// Call it on a timer.
func (m *Manager) Clean(ctx context.Context) error {
	now := time.Now()
	used := map[string]bool{}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errClosed
	}
	paths := m.c.Layout.Environment(m.c.Environment)
	for _, e := range m.executors {
		if w := e.current; w != nil && w.running == 0 && now.Sub(w.idleSince) >= m.c.IdleRetention {
			m.gone(w)
			m.c.Logger.Info("an idle executor ends", "executor", e.hash, "pid", w.session.PID())
			m.work.Go(func() { _ = w.session.Close(closeGrace) })
		}
		if e.current != nil || e.starting != nil || e.tasks > 0 {
			used[paths.Venv(e.blueprint.VenvHash())] = true
			used[paths.Code(e.hash)] = true
		} else if e.failed == nil || now.Sub(e.failedAt) >= m.c.StartRetry {
			delete(m.executors, e.hash)
		}
	}
	m.mu.Unlock()

	before := now.Add(-m.c.VenvRetention)
	var failed []error
	for _, dir := range folders(paths.Venvs()) {
		if used[dir] {
			pyenv.Touch(dir)
			continue
		}
		if _, err := m.c.Maker.RemoveUnused(ctx, dir, before); err != nil {
			failed = append(failed, err)
		}
	}
	for _, dir := range folders(paths.Codes()) {
		if used[dir] {
			_ = os.Chtimes(dir, now, now)
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.ModTime().Before(before) {
			if err := os.RemoveAll(dir); err != nil {
				failed = append(failed, layout.Explain("executor.Clean", dir, err))
			}
		}
	}
	for _, parent := range []string{paths.Venvs(), paths.Codes()} {
		left, _ := filepath.Glob(filepath.Join(parent, "*.new-*")) // by a server that was killed
		for _, dir := range left {
			if info, err := os.Stat(dir); err == nil && now.Sub(info.ModTime()) > m.c.StartTimeout {
				_ = os.RemoveAll(dir)
			}
		}
	}
	return errors.Join(failed...)
}

// folders lists what lies in dir, without what is being made.
func folders(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.Contains(e.Name(), ".new-") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}
