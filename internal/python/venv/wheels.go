package venv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// Wheel is a package, as a file.
type Wheel struct {
	Name string // of the file, which says what it is for
	Path string // where the content lies, under any name
	Hash string // hex SHA-256 of the content
}

func wheelHashes(wheels []Wheel) []string {
	var out []string
	for _, w := range wheels {
		out = append(out, w.Name+" "+w.Hash)
	}
	slices.Sort(out)
	return out
}

// fromFiles makes the environment of Spec.Wheels. No code of packages runs, and nothing is fetched.
func (j *installing) fromFiles(ctx context.Context) error {
	wheels := filepath.Join(filepath.Dir(j.venv), "wheels")
	if err := os.Mkdir(wheels, 0o755); err != nil {
		return fault.Disk("venv.Ensure", wheels, err)
	}
	var files []string
	for _, w := range j.spec.Wheels {
		file, err := placeWheel(wheels, w)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	env := append(installerEnv(j.environ()), "UV_CACHE_DIR="+filepath.Join(j.c.CacheDir, "packages"),
		"UV_LINK_MODE=copy", "UV_NO_PROGRESS=1", "NO_COLOR=1", "UV_PYTHON_DOWNLOADS=never", "UV_NO_CONFIG=1",
		"UV_OFFLINE=1", "PIP_CONFIG_FILE="+os.DevNull, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1",
		"PIP_NO_COLOR=1")
	uv, err := exec.LookPath("uv")
	if err != nil || j.c.NoUV || !works(ctx, uv) {
		return j.filesWithPip(ctx, env, files)
	}
	create := []string{"venv", "--quiet", "--no-project", "--relocatable", "--python", j.python.Path, j.venv}
	if err := j.trusted(ctx, env, uv, create...); err != nil {
		return j.cannotInstall(ctx)
	}
	if len(files) == 0 {
		return ctx.Err()
	}
	install := append([]string{"pip", "install", "--python", pythonOf(j.venv), "--no-index", "--no-deps",
		"--no-build"}, files...)
	if err := j.trusted(ctx, env, uv, install...); err != nil {
		return j.cannotInstall(ctx)
	}
	return nil
}

// filesWithPip is the way of fromFiles on a machine without uv.
func (j *installing) filesWithPip(ctx context.Context, env []string, files []string) error {
	if err := j.trusted(ctx, env, j.python.Path, "-I", "-m", "venv", "--without-pip", j.venv); err != nil {
		return j.cannotInstall(ctx)
	}
	if len(files) == 0 {
		return nil
	}
	tool, err := j.pipTool(ctx, env)
	if err != nil {
		return err
	}
	install := append([]string{"-I", "-m", "pip", "--python", pythonOf(j.venv), "install", "--no-compile", "--no-index",
		"--no-deps", "--only-binary", ":all:"}, files...)
	if err := j.trusted(ctx, env, tool, install...); err != nil {
		return j.cannotInstall(ctx)
	}
	return nil
}

// pipTool returns a Python with pip, of the interpreter's version, which is made once and has nothing else.
func (j *installing) pipTool(ctx context.Context, env []string) (string, error) {
	home := filepath.Join(j.c.ToolsDir, "pip-"+j.python.Version)
	if _, err := os.Stat(pythonOf(home)); err == nil {
		return pythonOf(home), nil
	}
	if !j.python.HasVenv {
		return "", fault.New("venv.pip", fault.Unavailable,
			j.python.Path+" (Python "+j.python.Version+") has no venv module with pip").
			Hint("install it (Debian, Ubuntu: apt install python3-venv), or install uv")
	}
	unlock, err := j.locks.lock(ctx, home)
	if err != nil {
		return "", fault.Disk("venv.pip", j.c.CacheDir, err)
	}
	defer unlock()
	if _, err := os.Stat(pythonOf(home)); err == nil { // somebody else has made it meanwhile
		return pythonOf(home), nil
	}
	if err := os.MkdirAll(j.c.ToolsDir, 0o755); err != nil {
		return "", fault.Disk("venv.pip", j.c.ToolsDir, err)
	}
	sweep(home)
	temp, err := os.MkdirTemp(j.c.ToolsDir, filepath.Base(home)+".new-*")
	if err != nil {
		return "", fault.Disk("venv.pip", j.c.ToolsDir, err)
	}
	defer os.RemoveAll(temp)
	made := filepath.Join(temp, "venv")
	if err := j.trusted(ctx, env, j.python.Path, "-I", "-m", "venv", made); err != nil {
		return "", j.cannotInstall(ctx)
	}
	if err := replace(home, made, filepath.Join(temp, "old")); err != nil {
		return "", fault.Disk("venv.pip", home, err)
	}
	return pythonOf(home), nil
}

func (j *installing) cannotInstall(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return j.explain(j.spec, j.result)
}

// placeWheel copies a wheel to its name in dir, and checks its hash on the way.
func placeWheel(dir string, w Wheel) (string, error) {
	if w.Name != filepath.Base(w.Name) || filepath.Ext(w.Name) != ".whl" || strings.HasPrefix(w.Name, "-") {
		return "", refused("the wheel \""+Redact(short(w.Name))+"\" has no name of a wheel", "")
	}
	in, err := os.Open(w.Path)
	if err != nil {
		return "", fault.Disk("venv.Ensure", w.Path, err)
	}
	defer in.Close()
	path := filepath.Join(dir, w.Name)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", fault.Disk("venv.Ensure", path, err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fault.Disk("venv.Ensure", path, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != w.Hash {
		return "", fault.New("venv.Ensure", fault.Invalid, "the wheel "+w.Name+" does not have the hash "+w.Hash)
	}
	return path, nil
}

// Platform is a machine that wheels are for.
type Platform struct {
	Python string // major.minor
	Arch   string // as Go names it
	Libc   string // such as glibc-2.36; empty if unknown
}

// Fetch downloads the packages that a Spec requires, with all that they need, as wheels for a machine, and puts them
// into the folder Spec.Dir, which must not exist. For a machine like this one it builds packages that have no wheel.
// The error says what the installer printed; so do the steps.
func (m *Maker) Fetch(ctx context.Context, s Spec, p Platform) ([]Wheel, []Step, error) {
	if err := s.check(); err != nil {
		return nil, nil, err
	}
	i, err := m.forMinor(ctx, p.Python)
	if err != nil {
		return nil, nil, err
	}
	alike := i.Minor == p.Python && p.alike(i)
	s = s.fitting(Interpreter{Minor: p.Python})
	conf := readMachine(os.Environ(), filepath.Dir(filepath.Dir(i.Path)))
	j := &installing{Maker: m, spec: s, python: i, conf: conf, from: conf.choose(s.Pip)}
	w, err := j.open(true)
	if err != nil {
		return nil, nil, err
	}
	defer w.close()
	made := filepath.Join(w.work, "wheels")
	if err := os.Mkdir(made, 0o755); err != nil {
		return nil, nil, fault.Disk("venv.Fetch", made, err)
	}
	env := append(conf.pipEnv(m.environ(), j.from), "PIP_CACHE_DIR="+filepath.Join(w.caches, "pip"))
	tool, err := j.pipTool(ctx, env)
	if err != nil {
		return nil, j.result.Steps, err
	}
	fetch := []string{"-I", "-m", "pip"}
	if alike {
		fetch = append(fetch, "wheel", "--wheel-dir", made)
	} else {
		fetch = append(fetch, "download", "--dest", made, "--only-binary", ":all:", "--implementation", "cp",
			"--python-version", p.Python)
		fetch = append(fetch, p.tags()...)
	}
	if err := j.pip(ctx, env, tool, append(fetch, j.args...)...); err != nil {
		return nil, j.result.Steps, err
	}
	wheels, err := takeWheels(made, s.Dir)
	return wheels, j.result.Steps, err
}

// forMinor returns an interpreter of a version, or else the one of this Maker.
func (m *Maker) forMinor(ctx context.Context, minor string) (Interpreter, error) {
	i, err := m.Interpreter(ctx, "")
	if err == nil && i.Minor != minor {
		if other, err := FindMinor(ctx, minor); err == nil && other.HasVenv {
			return other, nil
		}
	}
	return i, err
}

// alike reports whether wheels that are built here run there.
func (p Platform) alike(i Interpreter) bool {
	return (Platform{Arch: p.Arch}).machine() == platformMachine() && (p.Libc == i.Libc || p.Libc == "")
}

func (p Platform) machine() string {
	switch p.Arch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return p.Arch
}

// tags returns pip's options for the wheels that the machine can use.
func (p Platform) tags() []string {
	digits := strings.ReplaceAll(p.Python, ".", "")
	out := []string{"--abi", "cp" + digits, "--abi", "abi3", "--abi", "none"}
	add := func(platform string) { out = append(out, "--platform", platform+"_"+p.machine()) }
	if kind, version, _ := strings.Cut(p.Libc, "-"); kind == "glibc" {
		_, minor, _ := strings.Cut(version, ".")
		newest := 0
		for _, r := range minor {
			if r < '0' || r > '9' {
				break
			}
			newest = newest*10 + int(r-'0')
		}
		for n := min(newest, 99); n >= 5; n-- {
			add("manylinux_2_" + strconv.Itoa(n))
		}
		add("manylinux2014")
		add("manylinux2010")
		add("manylinux1")
	} else if kind == "musl" {
		add("musllinux_1_2")
		add("musllinux_1_1")
	}
	add("linux")
	return out
}

// takeWheels copies the wheels of a folder where code of packages may have run, with their hashes.
func takeWheels(from, to string) ([]Wheel, error) {
	if err := copyTree(from, to); err != nil {
		return nil, fault.Disk("venv.Fetch", to, err)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return nil, fault.Disk("venv.Fetch", to, err)
	}
	var out []Wheel
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".whl" {
			continue
		}
		path := filepath.Join(to, e.Name())
		sum := sumOf(path, 0, make([]byte, 128<<10))
		if sum == "" {
			return nil, fault.Disk("venv.Fetch", path, os.ErrInvalid)
		}
		out = append(out, Wheel{Name: e.Name(), Path: path, Hash: sum})
	}
	return out, nil
}
