package venv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
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
	Python string // the interpreter for a Spec that names none; if empty, one is searched for
	// CacheDir holds the wheels that all environments are made from, our own wheel,
	// bytecode and lock files. The code of environments must not be able to write there,
	// except where Confine allows it.
	CacheDir string
	ToolsDir string // where uv is installed when the machine has none
	// Records is the folder of what is known of finished environments. Only this program
	// may write there. If it is empty, it is a folder in CacheDir.
	Records string
	NoUV    bool // use pip only
	// SSHAgent lets installers use the SSH agent of this program, for packages from Git.
	SSHAgent bool
	// Confine restricts a command that may run code of packages, directly before it
	// starts. The Maker calls started once after that, even if the start failed, and end,
	// unless it is nil, when the command has ended: it ends everything that the command
	// started. If Confine is nil, such commands may do what this program may.
	Confine func(cmd *exec.Cmd, s Sandbox) (started func() (end func(), err error), err error)
	// Mask hides secrets in what commands print, for an owner of environments. It may be nil.
	Mask func(owner, text string) string
	// Logger gets what a person should know of, such as damage. It may be nil.
	Logger *slog.Logger
}

// Sandbox is what a command may reach that installs packages from source, and so runs
// their code. It also needs the network, the programs and libraries of the machine, and
// the installation of the interpreter.
type Sandbox struct {
	Owner  string   // of the environment
	Python string   // the interpreter
	Read   []string // files and folders
	// Write are folders that this program made, with all that is in them. Confine makes
	// them writable for the command; nothing else may be.
	Write []string
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
	if c.Records == "" {
		c.Records = filepath.Join(c.CacheDir, "records")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
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
	Dir string // its parent is made if need be
	// Owner is the environment of the server that the packages are for. What is built
	// from source for one owner is used for no other one.
	Owner        string
	Python       string // interpreter, or empty for the Maker's
	Requirements []string
	Constraints  []string
	Pip          intent.PipConfig
	// Update builds the environment again, with the newest versions that the requirements allow.
	Update bool
	// InPlace installs into an existing environment, which belongs to a person, and
	// keeps what else is in it. If there is none, it is made.
	InPlace bool
	// Local allows requirements that lead to files of this machine.
	Local bool
	// Wheels, unless it is nil, are all packages of the environment. It is made of these files alone, without
	// an index and the network; there are no requirements then.
	Wheels []Wheel
}

// Result is what Ensure did.
type Result struct {
	Python       string // interpreter of the environment
	SitePackages string
	Interpreter  Interpreter
	Built        bool              // false if a complete environment existed already
	Damage       string            // what was damaged in the existing environment, and is mended
	Installed    map[string]string // distribution to version
	Steps        []Step            // the commands that were run, also after a failure
}

// markerName is a file that exists only in complete environments. Its
// modification time is the time of the last use. Its content is for people: what
// counts is the record.
const markerName = ".ordain-venv.json"

type marker struct {
	Python    string            `json:"python"`
	Version   string            `json:"version"`
	Installed map[string]string `json:"installed"`
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
	if err := s.check(); err != nil {
		return Result{}, err
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
	if !s.Update {
		if r, _, ok := m.ready(s, i, want); ok {
			return r, nil
		}
	}
	unlock, err := m.locks.lock(ctx, s.Dir)
	if err != nil {
		return Result{}, fault.Disk("venv.Ensure", m.c.CacheDir, err)
	}
	defer unlock()
	var damaged damage
	if !s.Update {
		var r Result
		var ok bool
		if r, damaged, ok = m.ready(s, i, want); ok { // somebody else has built it meanwhile
			return r, nil
		}
		if damaged.onlyAdded() && m.removeAdded(s.Dir, damaged) {
			if r, _, ok = m.ready(s, i, want); ok {
				r.Damage = m.reportDamage(s, damaged)
				return r, nil
			}
		}
	}
	var pins []string
	if known, ok := m.readRecord(s.Dir); ok && known.Spec == want && !damaged.none() {
		pins = known.Pins
	}
	r, err := m.build(ctx, s, i, want, pins)
	if err == nil && !damaged.none() {
		r.Damage = m.reportDamage(s, damaged)
	}
	return r, err
}

// reportDamage logs what was damaged and returns it as text.
func (m *Maker) reportDamage(s Spec, d damage) string {
	m.c.Logger.Warn("a virtual environment was damaged and has been mended", "dir", s.Dir, "damage", d.String())
	return d.String()
}

// removeAdded deletes what something else put into an environment, and nothing outside of
// it, even if a folder is replaced by a link meanwhile. It reports whether that worked.
func (m *Maker) removeAdded(dir string, d damage) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	for _, path := range d.added {
		if err := root.Remove(path); err != nil {
			return false
		}
	}
	return true
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

// Expire makes an environment count as unused for long.
func Expire(dir string) {
	_ = os.Chtimes(filepath.Join(dir, markerName), time.Unix(1, 0), time.Unix(1, 0))
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
	m.forgetRecord(dir)
	if removeErr := os.RemoveAll(doomed); err == nil {
		err = removeErr
	}
	if err != nil {
		return false, fault.Disk("venv.RemoveUnused", dir, err)
	}
	return true, nil
}

// edition is part of every hash. It changes when environments must be made in another
// way, so that all existing ones are made again.
const edition = 2

func (s Spec) hash(i Interpreter) string {
	text, err := json.Marshal(struct {
		Requirements, Constraints []string
		Pip                       intent.PipConfig
		Python, Version, Core     string
		Edition                   int
		Wheels                    []string `json:",omitempty"`
	}{
		slices.Sorted(slices.Values(s.Requirements)), slices.Sorted(slices.Values(s.Constraints)),
		s.Pip, i.Path, i.Version, CoreVersion, edition, wheelHashes(s.Wheels),
	})
	if err != nil {
		panic("venv: a spec cannot be marshalled: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ready returns the environment if it exists, is as wanted, and no file of it is
// damaged. Otherwise it returns the damage, if it was as wanted once.
func (m *Maker) ready(s Spec, i Interpreter, want string) (Result, damage, bool) {
	known, ok := m.readRecord(s.Dir)
	if !ok || known.Spec != want {
		return Result{}, damage{}, false
	}
	if _, err := os.Lstat(s.Dir); err != nil {
		return Result{}, damage{}, false
	}
	if LastUsed(s.Dir).IsZero() {
		return Result{}, damage{missing: []string{markerName}}, false
	}
	if d := m.verify(s.Dir, known); !d.none() {
		return Result{}, d, false
	}
	if !isPython(s.Dir, i) {
		return Result{}, damage{changed: []string{"bin/python"}}, false
	}
	Touch(s.Dir)
	return Result{
		Python:       pythonOf(s.Dir),
		SitePackages: sitePackages(s.Dir, i),
		Interpreter:  i,
		Installed:    known.Installed,
	}, damage{}, true
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
