package executor

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
)

// Clean ends processes and seats of agents that have been idle for
// IdleRetention, deletes virtual environments and code folders that nothing
// used for VenvRetention, and keeps the rest within DiskMax. Call it on a timer.
func (m *Manager) Clean(ctx context.Context) error {
	m.countChildren()
	if err := m.endAllIdle(); err != nil {
		return err
	}
	if !m.making.TryLock() {
		return nil // folders are being made that nothing uses yet; the next call cleans up
	}
	defer m.making.Unlock()
	used, grown := m.inUse()
	failed := []error{m.removeOld(ctx, used)}
	if m.c.DiskMax > 0 && grown {
		failed = append(failed, m.keepWithin(ctx, used))
	}
	return errors.Join(failed...)
}

// endAllIdle ends processes and seats that have been idle for long, and forgets
// blueprints that nothing uses any more.
func (m *Manager) endAllIdle() error {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	m.endDoomed()
	for _, e := range m.executors {
		m.endIdle(e, now)
		if !e.inUse() && (e.failed == nil || now.Sub(e.failedAt) >= m.c.StartRetry) {
			delete(m.executors, e.hash)
		}
	}
	return nil
}

// inUse reports whether anything needs the folders of a blueprint. The caller holds mu.
func (e *executor) inUse() bool { return e.current != nil || e.starting != nil || e.tasks > 0 }

// inUse returns the folders in use. It also reports whether, since its last
// call, folders were made or the set of used folders changed.
func (m *Manager) inUse() (used map[string]bool, grown bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used = m.foldersInUse()
	grown = m.grown || !maps.Equal(used, m.lastUsed)
	m.grown, m.lastUsed = false, used
	return used, grown
}

// foldersInUse returns the folders of all blueprints that are in use. The caller holds mu.
func (m *Manager) foldersInUse() map[string]bool {
	paths := m.c.Layout.Environment(m.c.Environment)
	used := map[string]bool{}
	for _, e := range m.executors {
		if e.inUse() {
			used[paths.Venv(e.blueprint.VenvHash())] = true
			used[paths.Code(e.hash)] = true
		}
	}
	for w := range m.workers {
		if w.running > 0 { // a retired one, too, finishes its tasks
			used[m.venvOf(w.executor)] = true
		}
	}
	return used
}

// removeOld deletes folders that nothing used for VenvRetention, and unfinished
// folders of a server that was killed.
func (m *Manager) removeOld(ctx context.Context, used map[string]bool) error {
	now := time.Now()
	paths := m.c.Layout.Environment(m.c.Environment)
	before := now.Add(-m.c.VenvRetention)
	var failed []error
	for _, dir := range folders(paths.Venvs()) {
		if used[dir] {
			venv.Touch(dir)
			continue
		}
		limit := before
		if m.isDoomed(dir) {
			limit = time.Now().Add(time.Second)
		}
		gone, err := m.c.Maker.RemoveUnused(ctx, dir, limit)
		if err != nil {
			failed = append(failed, err)
		}
		if gone {
			m.removed(dir)
		}
	}
	for _, dir := range folders(paths.Codes()) {
		if used[dir] {
			_ = os.Chtimes(dir, now, now)
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.ModTime().Before(before) {
			if err := os.RemoveAll(dir); err != nil {
				failed = append(failed, fault.Disk("executor.Clean", dir, err))
			}
		}
	}
	for _, parent := range []string{paths.Venvs(), paths.Codes()} {
		left, _ := filepath.Glob(filepath.Join(parent, "*.new-*"))
		for _, dir := range left {
			if info, err := os.Stat(dir); err == nil && now.Sub(info.ModTime()) > m.c.StartTimeout {
				_ = os.RemoveAll(dir)
			}
		}
	}
	return errors.Join(failed...)
}

// endIdle ends the process of a blueprint when it has been idle for long, or
// else gives up the seats of agents that have been. The caller holds mu.
func (m *Manager) endIdle(e *executor, now time.Time) {
	w := e.current
	if w == nil {
		return
	}
	if w.running == 0 && e.tasks == 0 && now.Sub(w.idleSince) >= m.c.IdleRetention {
		m.c.Logger.Info("an idle executor ends", "executor", e.hash, "pid", w.session.PID())
		m.retire(w)
		return
	}
	for agent, s := range e.seats {
		if s.held && s.tasks == 0 && now.Sub(s.used) >= m.c.IdleRetention {
			m.giveUpSeat(e, agent)
		}
	}
}

// folders returns the folders in dir, without unfinished ones.
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
