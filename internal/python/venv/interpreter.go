package venv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// Interpreter is a Python installation with which environments can be made.
type Interpreter struct {
	Path    string `json:"path"`    // of the program itself, not of a wrapper or a virtual environment
	Version string `json:"version"` // such as 3.12.1
	Minor   string `json:"minor"`   // such as 3.12
	Libc    string `json:"libc"`    // such as glibc-2.36; empty if unknown
	HasVenv bool   `json:"venv"`    // it has the modules venv and ensurepip
}

// oldest is the oldest version that can run our Python code.
var oldest = [2]int{3, 10}

const describe = `
import importlib.util, json, platform, sys
libc = "-".join(filter(None, platform.libc_ver(sys.executable)))
print(json.dumps({
    "path": getattr(sys, "_base_executable", None) or sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "minor": "%d.%d" % sys.version_info[:2],
    "libc": libc,
    "venv": all(importlib.util.find_spec(m) for m in ("venv", "ensurepip")),
}))
`

// Find returns the interpreter named by python, a path or a name on PATH. If the
// name is empty, it returns the first of python3 and several python3.x on PATH
// that can make virtual environments.
func Find(ctx context.Context, python string) (Interpreter, error) {
	names := []string{python}
	if python == "" {
		names = []string{"python3", "python3.13", "python3.12", "python3.11", "python3.14"}
	}
	var found *Interpreter
	var failed []error
	for _, name := range names {
		i, err := inspect(ctx, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if i.HasVenv {
			return i, nil
		}
		if found == nil {
			found = &i
		}
	}
	if found != nil {
		return *found, nil
	}
	advice := "install Python 3.11 or newer with its venv module (Debian, Ubuntu: apt install python3-venv)"
	if python != "" {
		advice += ", or correct the configured interpreter: [config] python"
	}
	return Interpreter{}, fault.Wrap("venv.Find", fault.Unavailable, failed[0]).
		Say("no usable Python on this machine").
		Hint(advice)
}

// FindMinor returns an interpreter of a version such as 3.12: the first on PATH
// that works, or else the newest that pyenv has installed. The wrappers of pyenv
// come last, because they are slow and often fail to run the version they name.
func FindMinor(ctx context.Context, minor string) (Interpreter, error) {
	name := "python" + minor
	var failed error
	direct, wrappers := onPath(name), []string(nil)
	if root := pyenvRoot(); root != "" {
		shims := filepath.Join(root, "shims")
		direct = slices.DeleteFunc(direct, func(path string) bool { return filepath.Dir(path) == shims })
		wrappers = []string{filepath.Join(shims, name)}
	}
	for _, path := range slices.Concat(direct, ofPyenv(name, minor), wrappers) {
		i, err := inspect(ctx, path)
		if err == nil && i.Minor == minor {
			return i, nil
		}
		if failed == nil {
			failed = err
		}
	}
	if failed == nil {
		failed = exec.ErrNotFound
	}
	return Interpreter{}, fmt.Errorf("%s: %w", name, failed)
}

// onPath returns the paths that a program of this name may have on PATH.
func onPath(name string) []string {
	var found []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) {
			found = append(found, path)
		}
	}
	return found
}

// pyenvRoot returns the folder of pyenv, or an empty string if it is unknown.
func pyenvRoot() string {
	if root := os.Getenv("PYENV_ROOT"); root != "" {
		return root
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".pyenv")
}

// ofPyenv returns the interpreters of a version that pyenv installed, newest first.
func ofPyenv(name, minor string) []string {
	root := pyenvRoot()
	if root == "" {
		return nil
	}
	found, _ := filepath.Glob(filepath.Join(root, "versions", minor+".*", "bin", name))
	patch := func(path string) int {
		version := filepath.Base(filepath.Dir(filepath.Dir(path)))
		n, _ := strconv.Atoi(version[strings.LastIndexByte(version, '.')+1:])
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return patch(b) - patch(a) })
	return found
}

// inspect asks an interpreter what it is.
func inspect(ctx context.Context, python string) (Interpreter, error) {
	var i Interpreter
	path, err := exec.LookPath(python)
	if err != nil {
		return i, err
	}
	cmd := exec.CommandContext(ctx, path, "-I", "-c", describe)
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return i, fmt.Errorf("%s: %w", python, err)
	}
	if err := json.Unmarshal(out, &i); err != nil {
		return i, fmt.Errorf("%s does not answer as Python does: %w", python, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(i.Minor, "%d.%d", &major, &minor); err != nil || major != oldest[0] || minor < oldest[1] {
		return i, fmt.Errorf("%s is Python %s, older than %d.%d", python, i.Version, oldest[0], oldest[1])
	}
	if i.Path, err = filepath.EvalSymlinks(i.Path); err != nil {
		return i, fmt.Errorf("%s: %w", python, err)
	}
	return i, nil
}
