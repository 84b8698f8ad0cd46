package venv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// uvPause is how long pip is used after an installation of uv failed.
const uvPause = 10 * time.Minute

// findUV returns the path of the machine's uv, or of our own, which it installs
// once with pip. If the path is empty, pip must be used.
func (m *Maker) findUV(ctx context.Context, i Interpreter, conf machine) (string, []Step) {
	if m.c.NoUV {
		return "", nil
	}
	m.mu.Lock()
	known, failed := m.uv, m.uvFailed
	m.mu.Unlock()
	if known != "" {
		if _, err := os.Stat(known); err == nil {
			return known, nil
		}
	}
	if time.Since(failed) < uvPause {
		return "", nil
	}
	path, err := exec.LookPath("uv")
	var steps []Step
	if err != nil || !works(ctx, path) {
		path, steps, err = m.installUV(ctx, i, conf)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			m.uvFailed = time.Now()
			m.c.Logger.Warn("cannot install uv; using pip, which is slower", "error", err)
		}
		return "", steps
	}
	m.uv = path
	return path, steps
}

// works reports whether a program is uv, and not a wrapper that fails to find it.
func works(ctx context.Context, path string) bool {
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = installerEnv(os.Environ())
	return cmd.Run() == nil
}

func (m *Maker) installUV(ctx context.Context, i Interpreter, conf machine) (string, []Step, error) {
	home := filepath.Join(m.c.ToolsDir, "uv")
	path := filepath.Join(home, "bin", "uv")
	if works(ctx, path) {
		return path, nil, nil
	}
	unlock, err := m.locks.lock(ctx, home)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	if works(ctx, path) {
		return path, nil, nil
	}
	if err := os.MkdirAll(m.c.ToolsDir, 0o755); err != nil {
		return "", nil, err
	}
	sweep(home)
	temp, err := os.MkdirTemp(m.c.ToolsDir, "uv.new-*")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(temp)
	venv := filepath.Join(temp, "venv")
	env := conf.pipEnv(m.environ(), conf.choose(intent.PipConfig{UseSystemConfig: true}))
	var steps []Step
	for _, args := range [][]string{
		{i.Path, "-I", "-m", "venv", venv},
		{pythonOf(venv), "-I", "-m", "pip", "install", "--no-compile", "--only-binary", "uv", "uv"},
	} {
		step, err := m.run(ctx, "", nil, temp, env, args[0], args[1:]...)
		steps = append(steps, step)
		if err != nil {
			return "", steps, err
		}
	}
	if err := relocate(venv, venv, home); err != nil {
		return "", steps, err
	}
	if err := replace(home, venv, filepath.Join(temp, "old")); err != nil {
		return "", steps, err
	}
	return path, steps, nil
}
