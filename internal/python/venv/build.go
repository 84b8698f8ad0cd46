package venv

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// build makes the environment in a temporary folder beside its place and moves it there.
// pins, if there are any, are the packages of the damaged environment that it replaces.
func (m *Maker) build(ctx context.Context, s Spec, i Interpreter, want string, pins []string) (Result, error) {
	parent := filepath.Dir(s.Dir)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return Result{}, fault.Disk("venv.Ensure", parent, err)
	}
	sweep(s.Dir)
	temp, err := os.MkdirTemp(parent, filepath.Base(s.Dir)+".new-*")
	if err != nil {
		return Result{}, fault.Disk("venv.Ensure", parent, err)
	}
	defer os.RemoveAll(temp)
	venv := filepath.Join(temp, "venv")

	j, err := m.install(ctx, s, i, venv, pins)
	r := j.result
	if err != nil {
		return r, err
	}
	known := record{Dir: s.Dir, Spec: want, Installed: installed(sitePackages(venv, i)), Pins: j.pins}
	mark := marker{Python: i.Path, Version: i.Version, Installed: known.Installed}
	text, err := json.MarshalIndent(mark, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(venv, markerName), text, 0o644)
	}
	if err == nil {
		err = relocate(venv, venv, s.Dir)
	}
	var files []entry
	if err == nil {
		files, err = m.finish(ctx, venv, i, &known)
	}
	if err == nil {
		err = replace(s.Dir, venv, filepath.Join(temp, "old"))
	}
	if err != nil {
		return r, fault.Disk("venv.Ensure", s.Dir, err)
	}
	if err := m.writeRecord(s.Dir, known, files); err != nil {
		return r, fault.Disk("venv.Ensure", m.c.Records, err)
	}
	r.Python, r.SitePackages, r.Interpreter = pythonOf(s.Dir), sitePackages(s.Dir, i), i
	r.Installed, r.Built = known.Installed, true
	return r, nil
}

// finish adds the bytecode to an environment, completes its record and lists its files.
func (m *Maker) finish(ctx context.Context, venv string, i Interpreter, known *record) ([]entry, error) {
	files, err := survey(venv)
	if err != nil {
		return nil, err
	}
	hashAll(venv, files)
	m.compile(ctx, venv, i, files)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sums := make(map[string]string, len(files))
	// A worker does not trust the bytecode of sources that were written a moment ago, and
	// deletes it. Here all sources were written a moment ago, and the bytecode is theirs.
	earlier := time.Now().Add(-time.Hour)
	for _, f := range files {
		sums[f.path] = f.sum
		if filepath.Ext(f.path) == ".py" && f.mode.IsRegular() {
			_ = os.Chtimes(filepath.Join(venv, f.path), earlier, earlier)
		}
	}
	now := time.Now()
	if files, err = survey(venv); err != nil {
		return nil, err
	}
	var fresh []*entry
	for n := range files {
		if files[n].sum = sums[files[n].path]; files[n].sum == "" {
			fresh = append(fresh, &files[n])
		}
	}
	buffer := make([]byte, 128<<10)
	for _, f := range fresh {
		f.sum = sumOf(filepath.Join(venv, f.path), f.mode, buffer)
	}
	known.Quick, known.Settled = quickDigest(files, now)
	return files, nil
}

// sweep deletes what killed builds of dir left beside it. The caller holds the lock of dir.
func sweep(dir string) {
	left, _ := filepath.Glob(dir + ".new-*")
	for _, path := range left {
		_ = os.RemoveAll(path)
	}
}

// replace moves fresh to dir and the previous folder to old.
func replace(dir, fresh, old string) error {
	if _, err := os.Lstat(dir); err == nil {
		if err := os.Rename(dir, old); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh, dir); err != nil {
		_ = os.Rename(old, dir)
		return err
	}
	return nil
}

// relocate rewrites the scripts of an environment, which name the folder in which they
// were made, to name the final one.
func relocate(venv, made, final string) error {
	bin := filepath.Join(venv, "bin")
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(bin, e.Name())
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(made)) || bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		text = bytes.ReplaceAll(text, []byte(made), []byte(final))
		if err := os.WriteFile(path, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// install makes the environment at venv, with uv or, if that fails, with pip.
func (m *Maker) install(
	ctx context.Context,
	s Spec,
	i Interpreter,
	venv string,
	pins []string,
) (*installing, error) {
	conf := readMachine(os.Environ(), filepath.Dir(filepath.Dir(i.Path)))
	j := &installing{Maker: m, spec: s, python: i, venv: venv, conf: conf, from: conf.choose(s.Pip), pins: pins}
	if s.Wheels != nil {
		return j, j.fromFiles(ctx)
	}
	w, err := j.open(!hasCore(sitePackages(venv, i)))
	if err != nil {
		return j, err
	}
	defer w.close()

	uv, steps := m.findUV(ctx, i, conf)
	j.result.Steps = append(j.result.Steps, steps...)
	if uv != "" {
		done, err := j.withUV(ctx, uv)
		if done || err != nil {
			return j, err
		}
		if diskFull(filepath.Dir(venv), j.result) ||
			strings.Contains(j.result.lastOutput(), "was not found in the package registry") {
			return j, m.explain(s, j.result) // pip would need as much space and find no other packages
		}
		m.c.Logger.Warn("uv could not install the packages; trying pip", "dir", s.Dir, "output", j.result.lastOutput())
	}
	j.pins = nil
	return j, j.withPip(ctx)
}

// open opens the workshop with the requirements and their constraints. Unless they list inmanta-core themselves, they
// get ours, if withCore is set. The caller closes the workshop.
func (j *installing) open(withCore bool) (*workshop, error) {
	s, limits := j.spec, j.spec.Constraints
	if withCore && !ownsCore(s.Requirements) {
		wheels := filepath.Join(j.c.CacheDir, "wheels")
		if err := writeCoreWheel(wheels); err != nil {
			return nil, fault.Disk("venv.Ensure", wheels, err)
		}
		j.from.findLinks = append(j.from.findLinks, wheels)
		limits = []string{"inmanta-core==" + CoreVersion}
		for _, c := range s.Constraints {
			if distribution(c) != "inmanta-core" {
				limits = append(limits, c)
			}
		}
	}
	w, err := j.openWorkshop(s)
	if err != nil {
		return nil, err
	}
	if err := w.write(s.Requirements, limits); err != nil {
		w.close()
		return nil, err
	}
	j.shop = w
	j.args = []string{"-r", w.requirements, "-c", w.constraints}
	for _, c := range j.from.constraint {
		j.args = append(j.args, "-c", c)
	}
	for _, p := range j.from.noBinary {
		j.args = append(j.args, "--no-binary", p)
	}
	for _, p := range j.from.onlyBinary {
		j.args = append(j.args, "--only-binary", p)
	}
	return w, nil
}

// explain makes a fault of what the installer printed.
func (m *Maker) explain(s Spec, r Result) error {
	said := r.lastOutput()
	kind := fault.Invalid
	advice := "check the requirements of the project and its modules, and the pip section of project.yml"
	switch {
	case diskFull(filepath.Dir(s.Dir), r):
		kind, advice = fault.Exhausted, "the disk is full: free space where "+s.Dir+" lies, and in "+m.c.CacheDir
	case containsAny(said, "Could not fetch URL", "Connection refused", "Temporary failure in name resolution",
		"Failed to establish a new connection", "timed out"):
		kind = fault.Unavailable
		advice = "check the network, the proxy and the package index in the pip section of project.yml"
	case containsAny(said, "401", "403") && containsAny(said, "Unauthorized", "Forbidden"):
		kind, advice = fault.Unauthorized, "check the credentials of the package index"
	case strings.Contains(said, "inmanta-core"):
		advice = "a package asks for another inmanta-core than the " + CoreVersion +
			" that Ordain stands for; to install the real one list it in the requirements"
	}
	return fault.New("venv.Ensure", kind, "cannot install the Python packages: "+errorsOnly(said)).Hint(advice)
}

// errorsOnly drops pip's warnings about single attempts, unless it printed nothing else.
func errorsOnly(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "WARNING: ") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return said
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}

// diskFull reports whether the last command failed because the disk is full: it
// said so, or there is no space left.
func diskFull(dir string, r Result) bool {
	if containsAny(r.lastOutput(), "No space left on device", "os error 28", "Disk quota exceeded", "os error 122") {
		return true
	}
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && uint64(fs.Bavail)*uint64(fs.Bsize) < 64<<10
}

// lastOutput returns the end of what the last command printed.
func (r Result) lastOutput() string {
	if len(r.Steps) == 0 {
		return ""
	}
	last := r.Steps[len(r.Steps)-1]
	text := strings.TrimSpace(last.ErrOutput)
	if text == "" {
		text = strings.TrimSpace(last.Output)
	}
	if lines := strings.Split(text, "\n"); len(lines) > 12 {
		text = strings.Join(lines[len(lines)-12:], "\n")
	}
	return text
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
