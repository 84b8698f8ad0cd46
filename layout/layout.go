package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const (
	markerName = ".inmanta_use_new_disk_layout"
	dirMode    = 0o755 // the database may run as another user and must get through
	ownMode    = 0o750 // for folders that only the server and its group read
)

// Config names the directories. Empty ones take their defaults.
type Config struct {
	StateDir string
	LogDir   string
	CacheDir string
}

// Layout has the paths of a server. It is safe for concurrent use.
type Layout struct {
	state, log, cache string
}

// New fills in defaults, makes the directories and the marker file of the layout,
// and checks that all directories are writable.
func New(c Config) (*Layout, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Layout{}
	for _, d := range []struct {
		name string
		in   string
		out  *string
	}{{"state", c.StateDir, &l.state}, {"log", c.LogDir, &l.log}} {
		if *d.out, err = filepath.Abs(d.in); err != nil {
			return nil, fault.Disk("layout.New", d.in, err)
		}
		if err := writable(*d.out, dirMode); err != nil {
			return nil, err
		}
	}
	if err := writable(l.Server(), ownMode); err != nil {
		return nil, err
	}
	if c.CacheDir == "" {
		c.CacheDir = defaultCache(l.state)
	}
	if l.cache, err = filepath.Abs(c.CacheDir); err != nil {
		return nil, fault.Disk("layout.New", c.CacheDir, err)
	}
	if err := writable(l.cache, dirMode); err != nil {
		return nil, err
	}
	marker := filepath.Join(l.Server(), markerName)
	if _, err := os.Stat(marker); err != nil {
		if err := os.WriteFile(marker, nil, 0o640); err != nil {
			return nil, fault.Disk("layout.New", marker, err)
		}
	}
	return l, nil
}

func (c Config) withDefaults() (Config, error) {
	root := os.Geteuid() == 0
	if c.StateDir == "" {
		if root {
			c.StateDir = "/var/lib/inmanta"
		} else {
			base, err := xdg("XDG_STATE_HOME", ".local", "state")
			if err != nil {
				return c, fmt.Errorf("no state directory: set [config] state-dir: %w", err)
			}
			c.StateDir = filepath.Join(base, "ordain")
		}
		if c.LogDir == "" && root {
			c.LogDir = "/var/log/inmanta"
		}
	}
	if c.LogDir == "" {
		c.LogDir = filepath.Join(c.StateDir, "log")
	}
	return c, nil
}

// defaultCache returns the cache directory of the machine or the user if it is this user's and can be written, or else
// a folder in state.
func defaultCache(state string) string {
	outside := commonCache()
	if outside == "" || writable(outside, dirMode) != nil || !isOurs(os.Stat(outside)) {
		return filepath.Join(state, "cache")
	}
	return outside
}

// commonCache returns the cache directory of the machine for root, and of the user
// for others. It returns an empty string if there is none.
func commonCache() string {
	if os.Geteuid() == 0 {
		return "/var/cache/ordain"
	}
	base, err := xdg("XDG_CACHE_HOME", ".cache")
	if err != nil {
		return ""
	}
	return filepath.Join(base, "ordain")
}

// DefaultCacheDir returns the cache directory for commands without a state
// directory. Programs are run from it, so it is never a folder that another user
// could have filled.
func DefaultCacheDir() (string, error) {
	if dir := commonCache(); dir != "" && writable(dir, dirMode) == nil && isOurs(os.Stat(dir)) {
		return dir, nil
	}
	temporary := filepath.Join(os.TempDir(), fmt.Sprintf("ordain-cache-%d", os.Geteuid()))
	if err := writable(temporary, 0o700); err != nil {
		return "", err
	}
	if !isOurs(os.Lstat(temporary)) {
		return "", fault.New("layout.DefaultCacheDir", fault.Forbidden, temporary+" belongs to somebody else").
			Hint("name a folder of yours with --cache-dir")
	}
	return temporary, nil
}

func xdg(variable string, below ...string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{home}, below...)...), nil
}

// writable makes a directory if need be, and checks that a file can be made in it.
func writable(dir string, mode os.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return fault.Disk("layout.New", dir, err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fault.Disk("layout.New", dir, err)
	}
	_ = probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return fault.Disk("layout.New", dir, err)
	}
	return nil
}

// StateDir is the folder of all data.
func (l *Layout) StateDir() string { return l.state }

// LogDir is the folder of all logs.
func (l *Layout) LogDir() string { return l.log }

// CacheDir is the folder of files that are shared and can be fetched or made
// again, such as wheels and the Python runtime. By default it is on the file
// system of the state directory.
func (l *Layout) CacheDir() string { return l.cache }

// Postgres is the folder of the embedded database.
func (l *Layout) Postgres() string { return filepath.Join(l.state, "postgres") }

// Server is the folder of the environments.
func (l *Layout) Server() string { return filepath.Join(l.state, "server") }

// Certificates is the folder of the certificates that the server gets by itself, and their keys.
func (l *Layout) Certificates() string { return filepath.Join(l.Server(), ".certificates") }

// Mirrors is the folder of the mirrors of repositories.
func (l *Layout) Mirrors() string { return filepath.Join(l.Server(), ".mirrors") }

// Resources is the folder of the contents of plug-in resources. Unlike most of what lies beside it, it cannot be made
// again.
func (l *Layout) Resources() string { return filepath.Join(l.Server(), ".resources") }

// VenvRecords is the folder of what the server knows of the files of virtual
// environments. Only the server may write there.
func (l *Layout) VenvRecords() string { return filepath.Join(l.Server(), ".venvs") }

// ServerLog is the log of the server.
func (l *Layout) ServerLog() string { return filepath.Join(l.log, "server.log") }

// CallbackLog is the log of outgoing HTTP callbacks.
func (l *Layout) CallbackLog() string { return filepath.Join(l.log, "callback.log") }

// ResourceActionsLog is the audit log of an environment's deployments.
func (l *Layout) ResourceActionsLog(env intent.EnvironmentID) string {
	return filepath.Join(l.log, "resource-actions-"+env.String()+".log")
}

// AgentLog is the log of an environment's scheduler and executors.
func (l *Layout) AgentLog(env intent.EnvironmentID) string { return l.agent(env, ".log") }

// AgentOut is the log of what an environment's processes print to standard output.
func (l *Layout) AgentOut(env intent.EnvironmentID) string { return l.agent(env, ".out") }

// AgentErr is the log of what an environment's processes print to standard error.
func (l *Layout) AgentErr(env intent.EnvironmentID) string { return l.agent(env, ".err") }

func (l *Layout) agent(env intent.EnvironmentID, ending string) string {
	return filepath.Join(l.log, "agent-"+env.String()+ending)
}

// Logs returns the paths of the log files of one environment.
func (l *Layout) Logs(env intent.EnvironmentID) []string {
	return []string{l.ResourceActionsLog(env), l.AgentLog(env), l.AgentOut(env), l.AgentErr(env)}
}

// Environments returns the environments that have a folder.
func (l *Layout) Environments() ([]intent.EnvironmentID, error) {
	entries, err := os.ReadDir(l.Server())
	if err != nil {
		return nil, fault.Disk("layout.Environments", l.Server(), err)
	}
	var out []intent.EnvironmentID
	for _, e := range entries {
		if id, err := uuid.Parse(e.Name()); err == nil && e.IsDir() && id.String() == strings.ToLower(e.Name()) {
			out = append(out, id)
		}
	}
	return out, nil
}
