package venv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Config configures a Maker.
type Config struct {
	Python   string // the interpreter for a Spec that names none; if empty, one is searched for
	CacheDir string // for uv's cache, our wheel and the lock files
	ToolsDir string // where uv is installed when the machine has none
	NoUV     bool   // use pip only
	Logger   *slog.Logger
}

// Maker makes virtual environments. It is safe for concurrent use.
type Maker struct {
	c     Config
	locks lockset

	mu       sync.Mutex
	found    map[string]Interpreter
	uv       string
	uvFailed time.Time // when installing uv failed last
}

// New checks the configuration.
func New(c Config) (*Maker, error) {
	if c.CacheDir == "" || c.ToolsDir == "" {
		return nil, errors.New("venv: Config needs CacheDir and ToolsDir")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Maker{c: c, locks: lockset{dir: filepath.Join(c.CacheDir, "locks")}, found: map[string]Interpreter{}}, nil
}

// Interpreter returns the Python that python names, or the configured one. It
// remembers the result as long as the program exists.
func (m *Maker) Interpreter(ctx context.Context, python string) (Interpreter, error) {
	if python == "" {
		python = m.c.Python
	}
	m.mu.Lock()
	known, ok := m.found[python]
	m.mu.Unlock()
	if ok {
		if _, err := os.Stat(known.Path); err == nil {
			return known, nil
		}
	}
	i, err := Memo{Dir: filepath.Join(m.c.CacheDir, "interpreters")}.Find(ctx, python)
	if err != nil {
		return i, err
	}
	m.mu.Lock()
	m.found[python] = i
	m.mu.Unlock()
	return i, nil
}

// Spec describes the wanted environment.
type Spec struct {
	Dir          string // its parent is made if need be
	Python       string // interpreter, or empty for the Maker's
	Requirements []string
	Constraints  []string
	Pip          intent.PipConfig
	// Update builds the environment again, with the newest versions that the requirements allow.
	Update bool
	// InPlace installs into an existing environment, which belongs to a person, and
	// keeps what else is in it. If there is none, it is made.
	InPlace bool
}

// Result is what Ensure did.
type Result struct {
	Python       string // interpreter of the environment
	SitePackages string
	Interpreter  Interpreter
	Built        bool              // false if a complete environment existed already
	Installed    map[string]string // distribution to version
	Steps        []Step            // the commands that were run, also after a failure
}

// markerName is a file that exists only in complete environments. Its
// modification time is the time of the last use.
const markerName = ".ordain-venv.json"

type marker struct {
	Spec      string            `json:"spec"`
	Python    string            `json:"python"`
	Version   string            `json:"version"`
	Installed map[string]string `json:"installed"`
	Top       []string          `json:"top"` // the entries of site-packages
}

// Ensure returns the environment that s describes. It builds the environment if
// there is none, or if it differs or is damaged. If that fails, an existing
// environment stays as it was, and Result.Steps has the installer's output.
func (m *Maker) Ensure(ctx context.Context, s Spec) (Result, error) {
	if !filepath.IsAbs(s.Dir) {
		return Result{}, fault.New(
			"venv.Ensure",
			fault.Internal,
			"the folder of a virtual environment must be absolute: "+s.Dir,
		)
	}
	if s.InPlace {
		if _, err := os.Lstat(s.Dir); err == nil {
			return m.addInPlace(ctx, s)
		}
		s.InPlace = false
	}
	i, err := m.Interpreter(ctx, s.Python)
	if err != nil {
		return Result{}, err
	}
	s = s.fitting(i)
	want := s.hash(i)
	if r, ok := ready(s, i, want); ok && !s.Update {
		return r, nil
	}
	unlock, err := m.locks.lock(ctx, s.Dir)
	if err != nil {
		return Result{}, fault.Disk("venv.Ensure", m.c.CacheDir, err)
	}
	defer unlock()
	if r, ok := ready(s, i, want); ok && !s.Update { // somebody else has built it meanwhile
		return r, nil
	}
	return m.build(ctx, s, i, want)
}

// LastUsed returns when an environment was last used, or the zero time if dir
// holds no complete environment.
func LastUsed(dir string) time.Time {
	info, err := os.Stat(filepath.Join(dir, markerName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Touch records that an environment is in use.
func Touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(dir, markerName), now, now)
}

// RemoveUnused deletes an environment that nothing used since before, or that is
// not complete. It reports whether it deleted one.
func (m *Maker) RemoveUnused(ctx context.Context, dir string, before time.Time) (bool, error) {
	unlock, err := m.locks.lock(ctx, dir)
	if err != nil {
		return false, fault.Disk("venv.RemoveUnused", m.c.CacheDir, err)
	}
	defer unlock()
	if !LastUsed(dir).Before(before) {
		return false, nil
	}
	doomed, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-*")
	if err != nil {
		return false, fault.Disk("venv.RemoveUnused", dir, err)
	}
	err = os.Rename(dir, filepath.Join(doomed, "venv"))
	if removeErr := os.RemoveAll(doomed); err == nil {
		err = removeErr
	}
	if err != nil {
		return false, fault.Disk("venv.RemoveUnused", dir, err)
	}
	return true, nil
}

func (s Spec) hash(i Interpreter) string {
	text, err := json.Marshal(struct {
		Requirements, Constraints []string
		Pip                       intent.PipConfig
		Python, Version, Core     string
	}{
		slices.Sorted(slices.Values(s.Requirements)), slices.Sorted(slices.Values(s.Constraints)),
		s.Pip, i.Path, i.Version, CoreVersion,
	})
	if err != nil {
		panic("venv: a spec cannot be marshalled: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ready returns the environment if it exists, is as wanted, and is usable.
func ready(s Spec, i Interpreter, want string) (Result, bool) {
	text, err := os.ReadFile(filepath.Join(s.Dir, markerName))
	if err != nil {
		return Result{}, false
	}
	var mark marker
	if json.Unmarshal(text, &mark) != nil || mark.Spec != want {
		return Result{}, false
	}
	r := Result{
		Python:       pythonOf(s.Dir),
		SitePackages: sitePackages(s.Dir, i),
		Interpreter:  i,
		Installed:    mark.Installed,
	}
	if info, err := os.Stat(r.Python); err != nil || info.Mode()&0o111 == 0 {
		return Result{}, false
	}
	if !isPython(s.Dir, i) || !contains(r.SitePackages, mark.Top) {
		return Result{}, false
	}
	Touch(s.Dir)
	return r, true
}

// isPython reports whether the environment in dir still links to its interpreter.
// It accepts a copy of the interpreter, which venv makes on some systems.
func isPython(dir string, i Interpreter) bool {
	link, err := os.Lstat(pythonOf(dir))
	if err != nil {
		return false
	}
	if link.Mode()&os.ModeSymlink == 0 {
		return true
	}
	has, err := os.Stat(pythonOf(dir))
	if err != nil {
		return false
	}
	wanted, err := os.Stat(i.Path)
	return err == nil && os.SameFile(has, wanted)
}

// contains reports whether a folder has all these entries.
func contains(dir string, names []string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	have := make(map[string]bool, len(entries))
	for _, e := range entries {
		have[e.Name()] = true
	}
	for _, name := range names {
		if !have[name] {
			return false
		}
	}
	return true
}

// top returns the entries of a folder of packages.
func top(site string) []string {
	entries, _ := os.ReadDir(site)
	out := []string{}
	for _, e := range entries {
		if e.Name() != "__pycache__" {
			out = append(out, e.Name())
		}
	}
	return out
}

func pythonOf(dir string) string { return filepath.Join(dir, "bin", "python") }

func sitePackages(dir string, i Interpreter) string {
	return filepath.Join(dir, "lib", "python"+i.Minor, "site-packages")
}

// installed returns names and versions of the installed packages, from the names of their metadata folders.
func installed(site string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(site)
	if err != nil {
		return out
	}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".dist-info")
		if !ok {
			continue
		}
		if name, version, ok := strings.Cut(stem, "-"); ok {
			out[distribution(name)] = version
		}
	}
	return out
}
