package faults

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
	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/store/storetest"
)

// Somebody starts a second server on the same state directory. It fails at once and
// names the process that uses the directory; the first server is not affected.
func TestSecondServerOnTheSameState(t *testing.T) {
	tool.Heavy(t, "runs servers")
	t.Parallel()
	w := lab.SharedWorld(t)
	o, err := lab.Options(w.Dir)
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
	lab.Mentions(t, err.Error(), "in use", strconv.Itoa(os.Getpid()), "--state-dir")
	if err := w.Store.Ping(t.Context()); err != nil {
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
	_, err = lab.StartWorld(dir, func(c *config.Config) { c.BindPort = port })
	if err == nil {
		t.Fatal("the server runs on a port that is taken")
	}
	lab.Mentions(t, err.Error(), strconv.Itoa(port), "in use", "--port")
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"up", "--state-dir", filepath.Join(dir, "state"), "--port", strconv.Itoa(port)},
		strings.NewReader(""), &out, &errs); code != 1 {
		t.Errorf("ordain up ends with %d", code)
	}
	lab.Mentions(t, errs.String(), "in use", "--port")
}

// There is no Python where the configuration says. The server does not start, and
// says why.
func TestPythonMissing(t *testing.T) {
	t.Parallel()
	tool.Long(t, "starts a server twice")
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w, err := lab.StartWorld(dir, func(c *config.Config) { c.Python = "/no/such/python" })
	if err == nil {
		w.Server.Stop()
		t.Fatal("the server runs without Python")
	}
	lab.Mentions(t, err.Error(), "/no/such/python")
}

// PostgreSQL is killed while everything runs. The server restarts it, and a push that
// arrived meanwhile is deployed.
func TestPostgresStopsAndStarts(t *testing.T) {
	t.Parallel()
	w := lab.OwnWorld(t, nil)
	p := lab.NewDeployedPlace(t, w)
	pid := lab.Postmaster(t, w)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Push("while the database is away", p.Model([3]string{"a", "two", "calm"}))
	lab.WaitFor(t, func() bool { return p.Note("a") == "two" }, p.Story)
	if lab.Postmaster(t, w) == pid {
		t.Error("the database is the same process as before")
	}
}

// The disk of the state directory is full. The compile fails and says so, and the
// deployed note stays. When there is space again, the push is deployed.
func TestDiskFull(t *testing.T) {
	tool.Long(t, "fills disks")
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	url := storetest.URL(t)
	dir, err := lab.WorldDir()
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
	w, err := lab.StartWorld(dir, func(c *config.Config) { c.DatabaseURL = url })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Server.Stop)
	p := lab.NewDeployedPlace(t, w)
	ballast := filepath.Join(state, "ballast")
	fill(t, ballast)
	p.Push(
		"no space for this",
		lab.MergeFiles(p.Model([3]string{"a", "two", "calm"}),
			map[string]string{"big.bin": strings.Repeat("0123456789abcdef", 1<<16)}),
	)
	c, stages := p.Compiled()
	if *c.Success {
		t.Fatal("the compile succeeded on a full disk:\n" + lab.Report(stages))
	}
	lab.Mentions(t, lab.Report(stages), "no space left", "make room")
	if p.Note("a") != "one" {
		t.Errorf("a is %q", p.Note("a"))
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p.Recompile()
	p.CompiledWell()
	p.Settled()
	if p.Note("a") != "two" {
		t.Errorf("with space again a is %q", p.Note("a"))
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
	tool.Long(t, "a new start of the server for each moment")
	t.Parallel()
	if testing.Short() {
		t.Skip("starts and kills servers")
	}
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	u := lab.StartChild(t, dir)
	r := (&lab.World{Dir: dir}).NewPlace(t)
	r.Push("the first", lab.MergeFiles(lab.Module, r.Model([3]string{"a", "0", "calm"}, [3]string{"b", "0", "calm"})))
	env := u.Bind(r.Bare)
	u.WaitDeployed(env, 2)
	for round, delay := range []time.Duration{5, 40, 120, 250, 500, 900} {
		text := fmt.Sprint(round + 1)
		r.Push("round "+text, r.Model([3]string{"a", text, "calm"}, [3]string{"b", "0", "calm"}))
		<-time.After(delay * time.Millisecond) // the moments are spread over the push on purpose
		u.Kill()
		u = lab.StartChild(t, dir)
		lab.WaitFor(t, func() bool { return r.Note("a") == text },
			func() string { return "a is " + r.Note("a") + ", want " + text + "\n" + u.Log() })
		u.WaitDeployed(env, 2)
	}
	left, err := filepath.Glob(filepath.Join(dir, "state", "server", ".scratch", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("killed servers left %v, %v", left, err)
	}
	u.Kill()
}
