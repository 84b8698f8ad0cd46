// Package servertest gives tests of the doors a real server: a store in a database of its own, and a control over it
// with a real Git on a folder of the test's. Only what would run Python is a stand-in: the builder makes nothing and
// the deployers deploy nothing, they note what they are told.
//
//	New      an empty server
//	NewRich  a server with a history: see Rich
//
// Nothing runs in the background until a test calls Start: what a test asks for stays as it was recorded. The clock of
// a server stands still; a test moves it.
package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/resources"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/forge/client"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// Version is the version of the program that servers of tests report.
const Version = "0.0.0-test"

// Server is a store and a control over it.
type Server struct {
	Store   *store.Store
	Control *control.Control
	Keepers *keeper.Registry
	Forge   *forge.Service
	// Processes runs recorded work.
	Processes *process.Engine
	Bus       *bus.Bus
	People    *people.Service // nobody has to log in until RequireLogin
	Tokens    *tokens.Service
	Agents    *authority.Service
	Clusters  *cluster.Service
	Files     cluster.Repository // the files of clusters
	Catalogue *admin.Service
	Resources *resources.Service
	Desk      *desk.Desk
	Log       *slog.Logger
	// Executors is what every deployer reports.
	Executors intent.Executors
	// Blaming is called before Git says who wrote the lines of a file; nil: nothing is. Set it before the first page.
	Blaming func(path string)

	dir     string
	key     *secret.Key
	clock   clock
	ahead   atomic.Int64              // nanoseconds by which the clock of People is ahead of the real one
	stopped atomic.Pointer[time.Time] // when it was stopped; nil: it runs
	mu      sync.Mutex
	told    []string
}

// New returns an empty server whose clock shows at.
func New(t testing.TB, at time.Time) *Server {
	t.Helper()
	s, err := open(storetest.Open(t), t.TempDir(), storetest.Logger(t), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Control.Close)
	return s
}

// open puts a control over a store. Files go to dir.
func open(records *store.Store, dir string, log *slog.Logger, at time.Time) (*Server, error) {
	s := &Server{Store: records, Bus: &bus.Bus{}, Log: log, dir: dir, clock: clock{now: at}}
	s.Executors.Here = true
	key := filepath.Join(dir, "secret.key")
	if err := os.WriteFile(key, []byte(keyText), 0o600); err != nil {
		return nil, err
	}
	sealing, err := secret.OpenKey(key)
	if err != nil {
		return nil, err
	}
	folders, err := layout.New(layout.Config{
		StateDir: filepath.Join(dir, "state"), LogDir: filepath.Join(dir, "log"), CacheDir: filepath.Join(dir, "cache"),
	})
	if err != nil {
		return nil, err
	}
	syncer, err := gitsync.New(gitsync.Config{Mirrors: filepath.Join(dir, "mirrors"), Logger: log})
	if err != nil {
		return nil, err
	}
	sources := source.NewOpener(records, sealing)
	forges := &forge.Opener{Sources: sources, Version: Version, New: noForge}
	s.Keepers, err = keeper.New(keeper.Config{
		Store: records, Bus: s.Bus, Logger: log, Layout: folders, Git: git{syncer}, Builder: builder{},
		Sources: sources, Forges: forges, NewDeployer: s.newDeployer, NewWatcher: newWatcher, Version: Version,
		Now: s.clock.read, Clusters: clusterFiles{s},
	})
	if err != nil {
		return nil, err
	}
	s.Forge = forge.NewService(forge.Config{
		Store: records, Bus: s.Bus, Logger: log, Git: git{syncer}, Sources: sources, Forges: forges,
		Keepers: s.Keepers, Now: s.clock.read,
	})
	s.Processes, err = process.New(process.Config{
		Record: records, Bus: s.Bus, Logger: log, Definitions: []process.Definition{s.Forge.Process()},
	})
	if err != nil {
		return nil, err
	}
	if err := s.openClusters(records, sealing, folders, syncer, sources); err != nil {
		return nil, err
	}
	s.Control, err = control.New(control.Config{
		Store: records, Bus: s.Bus, Logger: log, Git: blaming{git{syncer}, s}, Sources: sources, Keepers: s.Keepers,
		Forge: s.Forge, Now: s.clock.read,
	})
	if err != nil {
		return nil, err
	}
	s.People = people.New(people.Config{Store: records, Bus: s.Bus, Logger: log})
	s.key = sealing
	s.Agents, err = authority.New(context.Background(), authority.Config{
		Store: records, Key: sealing, Bus: s.Bus, Logger: log,
		URL: func() string { return "https://agents.example.org" },
		Now: s.clock.read,
	})
	if err != nil {
		return nil, err
	}
	return s, s.makeTokens(context.Background())
}

// keyText is the key file of every server: a copy of a seeded database opens under the same key.
const keyText = "ordain-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"

// Start runs the server's loops until the test ends, and returns when every environment has its deployer. Compiles that
// wait begin, and fetch from their repository.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	for _, part := range []service.Service{s.Keepers, s.Forge, s.Processes} {
		if err := part.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(part.Stop)
	}
	environments, err := s.Store.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range environments {
		for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
			x, err := s.Control.Executors(t.Context(), e.ID)
			if err == nil && x.Here {
				break
			}
			if err != nil || time.Now().After(end) {
				t.Fatalf("the environment %s got no deployer: %v", e.Name, err)
			}
		}
	}
}

// Now returns what the server's clock shows.
func (s *Server) Now() time.Time { return s.clock.read() }

// SetClock moves the server's clock.
func (s *Server) SetClock(now time.Time) { s.clock.set(now) }

// Told returns what the deployers were told so far, such as "deploy full=true [web01]".
func (s *Server) Told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

func (s *Server) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// clock is a clock that moves only when it is set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func noForge(client.Config) (client.Forge, error) {
	return nil, fmt.Errorf("servers of tests have no forge")
}

// noWatcher watches nothing.
type noWatcher struct{}

func newWatcher(gitsync.WatcherConfig) (keeper.Watcher, error) { return noWatcher{}, nil }

func (noWatcher) Start(context.Context) error                               { return nil }
func (noWatcher) Stop()                                                     {}
func (noWatcher) Watch(intent.EnvironmentID, gitsync.Source, time.Duration) {}
func (noWatcher) Forget(intent.EnvironmentID)                               {}
func (noWatcher) Heard(intent.EnvironmentID, []string)                      {}

// builder stands in for the compiler and its virtual environment: the model exports nothing.
type builder struct{}

func (builder) Venv(context.Context, build.Job, build.Output) (string, error)    { return "", nil }
func (builder) Install(context.Context, build.Job, build.Output) (string, error) { return "", nil }
func (builder) Forget(intent.EnvironmentID)                                      {}

func (builder) Compile(context.Context, build.Job, build.Output) (*export.Document, string, error) {
	return &export.Document{Success: true}, "ordain compile", nil
}

func (s *Server) newDeployer(intent.Environment) (keeper.Deployer, error) { return deployer{s}, nil }

// deployer notes what it is told.
type deployer struct{ server *Server }

func (d deployer) Start(context.Context) error        { return nil }
func (d deployer) Stop()                              {}
func (d deployer) VersionReleased(number int)         { d.server.note("version %d released", number) }
func (d deployer) Wait(context.Context) error         { return nil }
func (d deployer) SetPaused(agent string, pause bool) { d.server.note("pause %s=%v", agent, pause) }
func (d deployer) Changed(intent.Environment)         {}
func (d deployer) DryRun(id intent.ActionID)          { d.server.note("dry run %s", id) }
func (d deployer) CancelDryRun(id intent.ActionID)    { d.server.note("cancel dry run %s", id) }
func (d deployer) Executors() intent.Executors        { return d.server.Executors }

func (d deployer) Queue(context.Context, intent.QueueQuestion) intent.Queue {
	return intent.Queue{Here: true}
}

func (d deployer) Deploy(_ intent.Request, what intent.DeployRequest) {
	d.server.note("deploy full=%v %v %v", what.Full, what.Agents, what.Resources)
}

func (d deployer) Unpark(resources []intent.ResourceID) { d.server.note("unpark %v", resources) }

func (d deployer) RemoveVenvs()                         { d.server.note("remove venvs") }
func (d deployer) RefreshFacts(ids []intent.ResourceID) { d.server.note("refresh facts %v", ids) }
