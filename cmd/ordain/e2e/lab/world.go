// Package lab is the shared world of the end-to-end tests: servers in this process
// (World) and in processes of their own (Child), environments with their
// repositories (Place), and a Git host with a forge's API (Host). Everything is real:
// PostgreSQL, repositories, virtual environments, compilers, executors.
//
// The stories lie in the packages beside it, by subject: deploys, forges, faults. The
// first comment of each test says which failure it is about. Each package has one
// server that most of its stories share (SharedWorld). The mass of kills is in
// bench/soak.
package lab

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/testing/parallel"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/scratch"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// Main runs the tests of a package; its TestMain calls it. The test binary is also
// the program: the server starts it as the compiler, hooks start it to notify the
// server, and StartChild starts it as a server of its own.
func Main(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"compile", "deploy", "hook", "up", "provisioner"}, os.Args[1]) {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	os.Exit(racedetector.Main(scratch.InMemory(suite{m})))
}

// suite runs all tests and then stops the server that they share.
type suite struct{ *testing.M }

func (s suite) Run() int {
	defer stopShared()
	return parallel.Wide(s.M, 3).Run() // they mostly wait for servers, handlers and timers
}

// Patience is how long a scenario waits for anything before it fails.
const Patience = 4 * time.Minute

// World is a running server.
type World struct {
	Dir     string
	Server  *server.Server
	Control *control.Control
	Store   *store.Store
}

// Options returns the options of a server with all its files below dir. All tests
// share the cache of tools and wheels.
func Options(dir string) (config.Config, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return config.Load("", nil, map[string]string{
		"config.state-dir": filepath.Join(dir, "state"), "config.log-dir": filepath.Join(dir, "log"),
		"config.cache-dir": filepath.Join(cache, "ordain-tests"), "server.bind-port": "0", "server.log-level": "debug",
		"agent.handler-timeout": "20", "isolation.allow-write": writable(dir),
		// Handlers and tests write to the same files. TestEnvironmentsCannotTouchEachOther has users.
		"isolation.first-user": "0",
	})
}

// sitesIn returns the folder to which handlers of a world may write.
func sitesIn(dir string) string { return filepath.Join(dir, "sites") }

// siteIn makes a folder for handlers, which run as another user if this is root.
func siteIn(dir string) (string, error) {
	if err := os.MkdirAll(sitesIn(dir), 0o755); err != nil {
		return "", err
	}
	site, err := os.MkdirTemp(sitesIn(dir), "site-")
	if err != nil {
		return "", err
	}
	return site, os.Chmod(site, 0o777)
}

// StartWorld starts a server with its files below dir. Unless change is nil, it
// may change the server's options.
func StartWorld(dir string, change func(*config.Config)) (*World, error) {
	o, err := Options(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(sitesIn(dir), 0o755); err != nil {
		return nil, err
	}
	if change != nil {
		change(&o)
	}
	s, err := server.New(server.Config{Options: o, Version: cli.Version})
	if err != nil {
		return nil, err
	}
	if err := s.Start(context.Background()); err != nil {
		return nil, err
	}
	return &World{Dir: dir, Server: s, Control: s.Control(), Store: s.Store()}, nil
}

var shared struct {
	once  sync.Once
	world *World
	err   error
}

// SharedWorld returns the server that most scenarios share: each has an
// environment of its own, and leaves the server as it was.
func SharedWorld(t *testing.T) *World {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	shared.once.Do(func() {
		dir, err := WorldDir()
		if err == nil {
			shared.world, err = StartWorld(dir, nil)
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal("the server does not start: ", shared.err)
	}
	return shared.world
}

// writable are the folders that the processes of a world may write to beside their own.
func writable(dir string) string {
	if races := racedetector.Folder(); races != "" {
		return sitesIn(dir) + "," + races
	}
	return sitesIn(dir)
}

func stopShared() {
	if shared.world != nil {
		shared.world.Server.Stop()
		if err := os.RemoveAll(shared.world.Dir); err != nil {
			log.Print(err)
		}
	}
}

// OwnWorld starts a server for one test. Unless change is nil, it may change the
// server's options.
func OwnWorld(t *testing.T, change func(*config.Config)) *World {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	dir, err := WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(func() { racedetector.Check(t) })
	w, err := StartWorld(dir, change)
	if err != nil {
		t.Fatal("the server does not start: ", err)
	}
	t.Cleanup(func() { w.Server.Stop() }) // w.server may be another one by then: a scenario can start it again
	return w
}

// WorldDir makes a temporary directory that the database's user can pass through.
func WorldDir() (string, error) {
	dir, err := os.MkdirTemp("", "ordain-e2e-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// WaitFor waits until done reports true, for what no event announces; state
// describes for a failure what there is instead.
func WaitFor(t *testing.T, done func() bool, state func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("waited in vain: ", state())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Mentions fails the test unless the text contains all words, in any case.
func Mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			t.Errorf("this does not mention %q:\n%s", w, text)
		}
	}
}

// Postmaster returns the process id of the server's private database.
func Postmaster(t *testing.T, w *World) int {
	t.Helper()
	file := filepath.Join(w.Server.Layout().Postgres(), "data", "postmaster.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
