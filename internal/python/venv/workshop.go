package venv

import (
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// workshop is where packages of one owner are built from source: code of strangers runs
// there. Nothing that it leaves there is used for another owner, and what it installed is
// copied before it counts.
//
//	<cache>/builds/<owner>/uv, pip    caches that the next build of this owner finds
//	                      /work-*     of one build: requirements, home, tmp, venv
type workshop struct {
	caches, work              string
	requirements, constraints string
}

// openWorkshop makes the folders of a build.
func (m *Maker) openWorkshop(s Spec) (*workshop, error) {
	owner := s.Owner
	if owner == "" {
		owner = "local"
	}
	w := &workshop{caches: m.buildsOf(owner)}
	for _, dir := range []string{filepath.Join(w.caches, "uv"), filepath.Join(w.caches, "pip")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fault.Disk("venv.Ensure", dir, err)
		}
	}
	var err error
	if w.work, err = os.MkdirTemp(w.caches, "work-*"); err != nil {
		return nil, fault.Disk("venv.Ensure", w.caches, err)
	}
	w.requirements = filepath.Join(w.work, "requirements.txt")
	w.constraints = filepath.Join(w.work, "constraints.txt")
	for _, dir := range []string{w.home(), w.tmp()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			w.close()
			return nil, fault.Disk("venv.Ensure", dir, err)
		}
	}
	return w, nil
}

func (m *Maker) buildsOf(owner string) string { return filepath.Join(m.c.CacheDir, "builds", owner) }

func (w *workshop) home() string { return filepath.Join(w.work, "home") }
func (w *workshop) tmp() string  { return filepath.Join(w.work, "tmp") }
func (w *workshop) venv() string { return filepath.Join(w.work, "venv") }

// write writes the files that installers read.
func (w *workshop) write(requirements, constraints []string) error {
	for path, lines := range map[string][]string{w.requirements: requirements, w.constraints: constraints} {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return fault.Disk("venv.Ensure", path, err)
		}
	}
	return nil
}

func (w *workshop) close() { _ = os.RemoveAll(w.work) }

// Forget deletes what was built from source for an owner that is gone, and the records of
// environments that are.
func (m *Maker) Forget(owner string) error {
	if owner == "" || !filepath.IsLocal(owner) || strings.ContainsRune(owner, filepath.Separator) {
		return nil
	}
	m.pruneRecords()
	return os.RemoveAll(m.buildsOf(owner))
}
