package executor

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// reportEvery limits how often the folders are measured, which means looking at
// thousands of files. Earlier callers get the previous figures.
const reportEvery = 5 * time.Second

// Report returns what runs and what lies on disk.
func (m *Manager) Report() intent.Executors {
	used, folders, total := m.foldersNow()
	out := intent.Executors{Here: true, Processes: m.Processes(), Disk: total, DiskMax: int64(m.c.DiskMax)}
	for _, f := range folders {
		f.InUse = used[m.dir(f)]
		out.Folders = append(out.Folders, f)
	}
	slices.SortFunc(out.Folders, func(a, b intent.ExecutorFolder) int { return b.LastUsed.Compare(a.LastUsed) })
	return out
}

// Processes returns the processes that have not ended, oldest first.
func (m *Manager) Processes() []intent.ExecutorProcess {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []intent.ExecutorProcess
	for w := range m.workers {
		e := w.executor
		p := intent.ExecutorProcess{
			Blueprint: e.hash, Venv: e.blueprint.VenvHash(), Modules: modules(e.blueprint),
			PID: w.session.PID(), RSS: w.session.RSS(),
			Running: w.running, Started: w.started, Ending: w.retired,
		}
		if w == e.current {
			p.Agents = e.seatsHeld()
		}
		if w.running == 0 {
			p.IdleSince = w.idleSince
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b intent.ExecutorProcess) int { return a.Started.Compare(b.Started) })
	return out
}

// modules returns the names of the modules whose sources a blueprint has.
func modules(b intent.Blueprint) []string {
	var out []string
	for _, s := range b.Sources {
		name, _, _ := strings.Cut(strings.TrimPrefix(s.Module, "inmanta_plugins."), ".")
		out = append(out, name)
	}
	for _, module := range b.Modules {
		out = append(out, strings.TrimPrefix(module, "inmanta_plugins."))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// foldersNow returns the folders in use, and all folders as they were when last measured.
func (m *Manager) foldersNow() (used map[string]bool, folders []intent.ExecutorFolder, total int64) {
	m.mu.Lock()
	used = m.foldersInUse()
	m.mu.Unlock()
	m.report.Lock()
	defer m.report.Unlock()
	if time.Since(m.report.at) >= reportEvery {
		s := m.survey()
		m.report.folders, m.report.total = nil, s.total
		for _, f := range s.folders {
			one := intent.ExecutorFolder{Kind: "code", Hash: filepath.Base(f.dir), LastUsed: f.used}
			if f.venv {
				one.Kind = "venv"
			}
			for file := range f.files {
				one.Size += s.sizes[file]
				if s.holders[file] == 1 {
					one.Alone += s.sizes[file]
				}
			}
			m.report.folders = append(m.report.folders, one)
		}
		m.report.at = time.Now()
	}
	return used, m.report.folders, m.report.total
}

// dir returns the path of a folder.
func (m *Manager) dir(f intent.ExecutorFolder) string {
	paths := m.c.Layout.Environment(m.c.Environment)
	if f.Kind == "venv" {
		return paths.Venv(f.Hash)
	}
	return paths.Code(f.Hash)
}
