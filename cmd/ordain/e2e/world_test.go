package e2e

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// This test binary is also the program: the server starts it as the compiler,
// and hooks start it to notify the server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"compile", "hook", "up"}, os.Args[1]) {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	os.Exit(racedetector.Main(suite{m}))
}

// suite runs all tests and then stops the server that they share.
type suite struct{ *testing.M }

func (s suite) Run() int {
	defer stopShared()
	// The tests mostly wait for servers, handlers and timers: with one test for
	// each processor, the processors would be idle half of the time.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(3 * runtime.GOMAXPROCS(0))); err != nil {
			log.Print(err)
		}
	}
	return s.M.Run()
}

// patience is how long a scenario waits for anything before it fails.
const patience = 4 * time.Minute

// world is a running server.
type world struct {
	dir     string
	server  *server.Server
	control *control.Control
	store   *store.Store
}

// options returns the options of a server with all its files below dir. All tests
// share the cache of tools and wheels.
func options(dir string) (config.Config, error) {
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

// startWorld starts a server with its files below dir. Unless change is nil, it
// may change the server's options.
func startWorld(dir string, change func(*config.Config)) (*world, error) {
	o, err := options(dir)
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
	return &world{dir: dir, server: s, control: s.Control(), store: s.Store()}, nil
}

var shared struct {
	once  sync.Once
	world *world
	err   error
}

// sharedWorld returns the server that most scenarios share: each has an
// environment of its own, and leaves the server as it was.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	shared.once.Do(func() {
		dir, err := worldDir()
		if err == nil {
			shared.world, err = startWorld(dir, nil)
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
		shared.world.server.Stop()
		if err := os.RemoveAll(shared.world.dir); err != nil {
			log.Print(err)
		}
	}
}

// ownWorld starts a server for one test. Unless change is nil, it may change the
// server's options.
func ownWorld(t *testing.T, change func(*config.Config)) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(func() { racedetector.Check(t) })
	w, err := startWorld(dir, change)
	if err != nil {
		t.Fatal("the server does not start: ", err)
	}
	t.Cleanup(func() { w.server.Stop() }) // w.server may be another one by then: a scenario can start it again
	return w
}

// worldDir makes a temporary directory that the database's user can pass through.
func worldDir() (string, error) {
	dir, err := os.MkdirTemp("", "ordain-e2e-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// waitFor waits until done reports true, for what no event announces; state
// describes for a failure what there is instead.
func waitFor(t *testing.T, done func() bool, state func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("waited in vain: ", state())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// mentions fails the test unless the text contains all words, in any case.
func mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			t.Errorf("this does not mention %q:\n%s", w, text)
		}
	}
}
