package venv

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// addInPlace installs into an existing environment. It replaces packages by other
// versions but removes none, so that what a person installed, such as an editable
// module, stays.
func (m *Maker) addInPlace(ctx context.Context, s Spec) (Result, error) {
	const op = "venv.Ensure"
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		return Result{}, fault.Disk(op, s.Dir, err)
	}
	s.Dir = dir
	i, err := inspect(ctx, pythonOf(dir))
	if err != nil {
		return Result{}, fault.Wrap(op, fault.Invalid, err).
			Say(dir + " is not a virtual environment into which packages can be installed").
			Hint("move it away to have one made, or make one with python3 -m venv " + dir)
	}
	site := sitePackages(dir, i)
	unlock, err := m.locks.lock(ctx, dir)
	if err != nil {
		return Result{}, fault.Disk(op, m.c.CacheDir, err)
	}
	defer unlock()
	before := installed(site)
	if info, err := os.Stat(site); err == nil && info.Mode().Perm()&0o200 == 0 {
		return Result{}, fault.Disk(op, site, os.ErrPermission)
	}
	j, err := m.install(ctx, s.fitting(i), i, dir, nil)
	r := j.result
	r.Python, r.SitePackages, r.Interpreter, r.Installed = pythonOf(dir), site, i, installed(site)
	for name, version := range r.Installed {
		r.Built = r.Built || before[name] != version
	}
	return r, err
}

// hasCore reports whether the real inmanta-core is installed, which ours must not replace.
func hasCore(site string) bool {
	version, ok := installed(site)["inmanta-core"]
	return ok && !strings.HasSuffix(version, "+ordain")
}
