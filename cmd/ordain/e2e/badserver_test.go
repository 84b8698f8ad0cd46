package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/cli"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/store/storetest"
)

// Somebody starts a second server on the same state directory. It fails at once and
// names the process that uses the directory; the first server is not affected.
func TestSecondServerOnTheSameState(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	o, err := options(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := server.New(server.Config{Options: o, Version: cli.Version})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Start(t.Context())
	if err == nil {
		second.Stop()
		t.Fatal("a second server runs on the same state directory")
	}
	mentions(t, err.Error(), "in use", strconv.Itoa(os.Getpid()), "--state-dir")
	if err := w.store.Ping(t.Context()); err != nil {
		t.Error("the first server suffered: ", err)
	}
}

// The port is in use. The message says which port and how to choose another, and
// nothing is left running or locked.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	_, err = startWorld(dir, func(c *config.Config) { c.BindPort = port })
	if err == nil {
		t.Fatal("the server runs on a port that is taken")
	}
	mentions(t, err.Error(), strconv.Itoa(port), "in use", "--port")
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"up", "--state-dir", filepath.Join(dir, "state"), "--port", strconv.Itoa(port)},
		strings.NewReader(""), &out, &errs); code != 1 {
		t.Errorf("ordain up ends with %d", code)
	}
	mentions(t, errs.String(), "in use", "--port")
}

// There is no Python where the configuration says. The server does not start, and
// says why.
func TestPythonMissing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w, err := startWorld(dir, func(c *config.Config) { c.Python = "/no/such/python" })
	if err == nil {
		w.server.Stop()
		t.Fatal("the server runs without Python")
	}
	mentions(t, err.Error(), "/no/such/python")
}

// PostgreSQL is killed while everything runs. The server restarts it, and a push that
// arrived meanwhile is deployed.
func TestPostgresStopsAndStarts(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, nil)
	p := newDeployedPlace(t, w)
	pid := postmaster(t, w)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.push("while the database is away", p.model([3]string{"a", "two", "calm"}))
	waitFor(t, func() bool { return p.note("a") == "two" }, p.story)
	if postmaster(t, w) == pid {
		t.Error("the database is the same process as before")
	}
}

// postmaster returns the process id of the server's private database.
func postmaster(t *testing.T, w *world) int {
	t.Helper()
	file := filepath.Join(w.server.Layout().Postgres(), "data", "postmaster.pid")
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

// The disk of the state directory is full. The compile fails and says so, and the
// deployed note stays. When there is space again, the push is deployed.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	url := storetest.URL(t)
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", state, "tmpfs", 0, "size=256m"); err != nil {
		t.Skip("a small disk cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(state, syscall.MNT_DETACH) })
	w, err := startWorld(dir, func(c *config.Config) { c.DatabaseURL = url })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.server.Stop)
	p := newDeployedPlace(t, w)
	ballast := filepath.Join(state, "ballast")
	fill(t, ballast)
	p.push(
		"no space for this",
		mergeFiles(p.model([3]string{"a", "two", "calm"}),
			map[string]string{"big.bin": strings.Repeat("0123456789abcdef", 1<<16)}),
	)
	c, stages := p.compiled()
	if *c.Success {
		t.Fatal("the compile succeeded on a full disk:\n" + report(stages))
	}
	mentions(t, report(stages), "no space left", "make room")
	if p.note("a") != "one" {
		t.Errorf("a is %q", p.note("a"))
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p.recompile()
	p.compiledWell()
	p.settled()
	if p.note("a") != "two" {
		t.Errorf("with space again a is %q", p.note("a"))
	}
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
}

// The server is killed at different moments of a push, and started again each time. In
// the end the last commit is deployed, and the killed servers leave no files behind.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts and kills servers")
	}
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	u := startChild(t, dir)
	r := (&world{dir: dir}).newPlace(t)
	r.push("the first", mergeFiles(labModule, r.model([3]string{"a", "0", "calm"}, [3]string{"b", "0", "calm"})))
	env := u.bind(r.bare)
	u.waitDeployed(env, 2)
	for round, delay := range []time.Duration{5, 40, 120, 250, 500, 900} {
		text := fmt.Sprint(round + 1)
		r.push("round "+text, r.model([3]string{"a", text, "calm"}, [3]string{"b", "0", "calm"}))
		<-time.After(delay * time.Millisecond) // the moments are spread over the push on purpose
		u.kill()
		u = startChild(t, dir)
		waitFor(t, func() bool { return r.note("a") == text },
			func() string { return "a is " + r.note("a") + ", want " + text + "\n" + u.log() })
		u.waitDeployed(env, 2)
	}
	left, err := filepath.Glob(filepath.Join(dir, "state", "server", ".scratch", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("killed servers left %v, %v", left, err)
	}
	u.kill()
}
