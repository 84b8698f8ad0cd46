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

// Config says where a Maker works.
type Config struct {
	Python   string // interpreter to use where a Spec names none; empty finds one
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
		return nil, errors.New("pyenv: Config needs CacheDir and ToolsDir")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Maker{c: c, locks: lockset{dir: filepath.Join(c.CacheDir, "locks")}, found: map[string]Interpreter{}}, nil
}

// Interpreter finds the Python that python names, or the configured one. What
// it found it remembers as long as the program is still there.
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

// Spec is the environment that is wanted.
type Spec struct {
	Dir          string // where it lies; its parent is made
	Python       string // interpreter, or empty for the Maker's
	Requirements []string
	Constraints  []string
	Pip          intent.PipConfig
	// Update builds it again with the newest versions that the requirements allow.
	Update bool
	// InPlace adds to an environment that is there, keeping what else is in it:
	// it is somebody's. One that is not there is made.
	InPlace bool
}

// Result tells how Ensure went.
type Result struct {
	Python       string // interpreter of the environment
	SitePackages string
	Interpreter  Interpreter
	Built        bool              // false: it was there, complete and as wanted
	Installed    map[string]string // distribution to version
	Steps        []Step            // what was run, also when it failed
}

// markerName is the file that says that an environment is complete. Its time
// is when the environment was last asked for.
const markerName = ".ordain-venv.json"

type marker struct {
	Spec      string            `json:"spec"`
	Python    string            `json:"python"`
	Version   string            `json:"version"`
	Installed map[string]string `json:"installed"`
	Top       []string          `json:"top"` // what lies in site-packages
}

// Ensure gives the environment that s describes, building it when it is not
// there, differs, or is damaged. When it fails what was there stays as it was,
// and Result.Steps has what the installer said.
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
			return m.add(ctx, s)
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
	if r, ok := ready(s, i, want); ok && !s.Update { // another built it meanwhile
		return r, nil
	}
	return m.build(ctx, s, i, want)
}

// LastUsed tells when an environment was last asked for; the zero time when it
// is none, or not complete.
func LastUsed(dir string) time.Time {
	info, err := os.Stat(filepath.Join(dir, markerName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Touch notes that an environment is in use.
func Touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(dir, markerName), now, now)
}

// RemoveUnused deletes an environment that nobody asked for since before, or
// that never became complete. It says whether it did.
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
		panic("pyenv: a spec is plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ready looks whether the environment is there, as wanted, and usable.
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

// isPython says whether the environment in dir still leads to its interpreter.
// One that holds a copy, as pip may make, is taken as it is.
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

// contains says whether a folder has all these entries.
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

// top lists what lies in a folder of packages.
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

// installed reads names and versions from the metadata folders.
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
