package venv

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// add installs into an environment that is there. Nothing is removed but what
// other versions take the place of, and what a person installed otherwise, an
// editable module for one, stays.
func (m *Maker) add(ctx context.Context, s Spec) (Result, error) {
	const op = "venv.Ensure"
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		return Result{}, fault.Disk(op, s.Dir, err)
	}
	s.Dir = dir
	i, err := inspect(ctx, pythonOf(dir))
	if err != nil {
		return Result{}, fault.Wrap(op, fault.Invalid, err).
			Say(dir + " is no virtual environment that can be installed into").
			Hint("move it away to have one made, or make one with python3 -m venv " + dir)
	}
	site := sitePackages(dir, i)
	unlock, err := m.locks.lock(ctx, dir)
	if err != nil {
		return Result{}, fault.Disk(op, m.c.CacheDir, err)
	}
	defer unlock()
	temp, err := os.MkdirTemp("", "ordain-install-*")
	if err != nil {
		return Result{}, fault.Disk(op, os.TempDir(), err)
	}
	defer os.RemoveAll(temp)
	before := installed(site)
	if info, err := os.Stat(site); err == nil && info.Mode().Perm()&0o200 == 0 {
		return Result{}, fault.Disk(op, site, os.ErrPermission)
	}
	r, err := m.install(ctx, s.fitting(i), i, dir, temp)
	r.Python, r.SitePackages, r.Interpreter, r.Installed = pythonOf(dir), site, i, installed(site)
	for name, version := range r.Installed {
		r.Built = r.Built || before[name] != version
	}
	return r, err
}

// hasCore tells whether the real inmanta-core is installed. Then it answers
// for itself, and ours must not take its place.
func hasCore(site string) bool {
	version, ok := installed(site)["inmanta-core"]
	return ok && !strings.HasSuffix(version, "+ordain")
}
