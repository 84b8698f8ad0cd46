package venv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// build makes the environment in a temporary folder beside its place and moves it there.
func (m *Maker) build(ctx context.Context, s Spec, i Interpreter, want string) (Result, error) {
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

	r, err := m.install(ctx, s, i, venv, temp)
	if err != nil {
		return r, err
	}
	site := sitePackages(venv, i)
	mark := marker{Spec: want, Python: i.Path, Version: i.Version, Installed: installed(site), Top: top(site)}
	text, err := json.MarshalIndent(mark, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(venv, markerName), text, 0o644)
	}
	if err == nil {
		err = relocate(venv, s.Dir)
	}
	if err == nil {
		err = replace(s.Dir, venv, filepath.Join(temp, "old"))
	}
	if err != nil {
		return r, fault.Disk("venv.Ensure", s.Dir, err)
	}
	r.Python, r.SitePackages, r.Interpreter = pythonOf(s.Dir), sitePackages(s.Dir, i), i
	r.Installed, r.Built = mark.Installed, true
	return r, nil
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

// relocate rewrites the scripts, which name the folder in which they were made, to
// name the final one.
func relocate(venv, final string) error {
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
		if err != nil || !bytes.Contains(text, []byte(venv)) || bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		// Write a new file, because this one may be a hard link into uv's cache.
		if err := os.Remove(path); err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte(venv), []byte(final))
		if err := os.WriteFile(path, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// install makes the environment at venv, with uv or, if that fails, with pip.
func (m *Maker) install(ctx context.Context, s Spec, i Interpreter, venv, temp string) (Result, error) {
	conf := readMachine(os.Environ(), filepath.Dir(filepath.Dir(i.Path)))
	from := conf.choose(s.Pip)
	requirements := filepath.Join(temp, "requirements.txt")
	constraints := filepath.Join(temp, "constraints.txt")
	limits := s.Constraints
	if !ownsCore(s.Requirements) && !hasCore(sitePackages(venv, i)) {
		wheels := filepath.Join(m.c.CacheDir, "wheels")
		if err := writeCoreWheel(wheels); err != nil {
			return Result{}, fault.Disk("venv.Ensure", wheels, err)
		}
		from.findLinks = append(from.findLinks, wheels)
		limits = []string{"inmanta-core==" + CoreVersion}
		for _, c := range s.Constraints {
			if distribution(c) != "inmanta-core" {
				limits = append(limits, c)
			}
		}
	}
	for path, lines := range map[string][]string{requirements: s.Requirements, constraints: limits} {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return Result{}, fault.Disk("venv.Ensure", path, err)
		}
	}
	args := []string{"-r", requirements, "-c", constraints}
	for _, c := range from.constraint {
		args = append(args, "-c", c)
	}
	for _, p := range from.noBinary {
		args = append(args, "--no-binary", p)
	}
	for _, p := range from.onlyBinary {
		args = append(args, "--only-binary", p)
	}

	j := &installing{Maker: m, spec: s, python: i, venv: venv, args: args}
	uv, steps := m.findUV(ctx, i, conf)
	j.result.Steps = append(j.result.Steps, steps...)
	if uv != "" {
		env := conf.uvEnv(os.Environ(), from, filepath.Join(m.c.CacheDir, "uv"), s.Pip.UseSystemConfig)
		done, err := j.withUV(ctx, uv, env, m.resolutionFile(s, i, from))
		if done || err != nil {
			return j.result, err
		}
		if diskFull(filepath.Dir(venv), j.result) ||
			strings.Contains(j.result.lastOutput(), "was not found in the package registry") {
			return j.result, m.explain(s, j.result) // pip would need as much space and find no other packages
		}
		m.c.Logger.Warn("uv could not install the packages; trying pip", "dir", s.Dir, "output", j.result.lastOutput())
	}
	if !s.InPlace {
		_ = os.RemoveAll(venv)
	}
	err := j.withPip(ctx, conf.pipEnv(os.Environ(), from))
	return j.result, err
}

// installing is an environment into which packages are being installed.
type installing struct {
	*Maker
	spec   Spec
	python Interpreter
	venv   string
	args   []string // requirements and constraints, for uv and pip alike
	result Result
}

// run runs a command of the installation and records it in the result.
func (j *installing) run(ctx context.Context, env []string, name string, args ...string) error {
	step, err := run(ctx, filepath.Dir(j.venv), env, name, args...)
	j.result.Steps = append(j.result.Steps, step)
	return err
}

// withUV reports whether uv made the environment. If so, or if it returns an
// error, pip need not be tried.
func (j *installing) withUV(ctx context.Context, uv string, env []string, resolution string) (bool, error) {
	uvRun := func(args ...string) bool { return j.run(ctx, env, uv, args...) == nil }
	s := j.spec
	made := s.InPlace || uvRun("venv", "--quiet", "--no-project", "--relocatable", "--python", j.python.Path, j.venv)
	if !made || len(s.Requirements) == 0 {
		return made, ctx.Err()
	}
	install := []string{"pip", "install", "--python", pythonOf(j.venv)}
	if !s.Update && !s.InPlace && freshResolution(resolution) &&
		uvRun(append(install, "--offline", "--no-deps", "-r", resolution)...) {
		return true, ctx.Err()
	}
	if s.Update {
		install = append(install, "--upgrade", "--refresh")
	}
	done := uvRun(append(install, j.args...)...)
	if done {
		recordResolution(resolution, installed(sitePackages(j.venv, j.python)))
	}
	return done, ctx.Err()
}

func (j *installing) withPip(ctx context.Context, env []string) error {
	if j.spec.InPlace {
		return j.pipInstall(ctx, env)
	}
	if !j.python.HasVenv {
		message := fmt.Sprintf("%s (Python %s) has no venv module with pip", j.python.Path, j.python.Version)
		return fault.New("venv.Ensure", fault.Unavailable, message).
			Hint("install it (Debian, Ubuntu: apt install python3-venv), or install uv")
	}
	if err := j.pip(ctx, env, j.python.Path, "-m", "venv", j.venv); err != nil {
		return err
	}
	return j.pipInstall(ctx, env)
}

func (j *installing) pipInstall(ctx context.Context, env []string) error {
	if len(j.spec.Requirements) == 0 {
		return nil
	}
	install := []string{"-m", "pip", "install", "--no-compile"}
	if j.spec.Update {
		install = append(install, "--upgrade")
	}
	return j.pip(ctx, env, pythonOf(j.venv), append(install, j.args...)...)
}

// pip runs a command of the last installer: when it fails, the installation has failed.
func (j *installing) pip(ctx context.Context, env []string, name string, args ...string) error {
	err := j.run(ctx, env, name, args...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return j.explain(j.spec, j.result)
	}
	return nil
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
