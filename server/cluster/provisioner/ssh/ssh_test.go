package ssh_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
)

func config(m *clustertest.Machine) ssh.Config {
	return ssh.Config{
		Host: m.Address, Port: m.Port, User: m.User, Key: m.Key(), HostKeys: m.HostKeys(), Timeout: 10 * time.Second,
		Beat: 200 * time.Millisecond,
	}
}

func dial(t *testing.T, config ssh.Config) *ssh.Client {
	t.Helper()
	c, err := ssh.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits until ok, which what describes, and fails the test if it takes too long.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

// A command's two streams arrive in order and while it runs; its exit status is known, with the last lines.
func TestACommandRuns(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c := dial(t, config(m))
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(t.Context(), ssh.Command{
			Text: "echo 'it''s one'; echo two >&2; while [ ! -e go-on ]; do sleep 0.05; done; echo three; exit 7",
			Out:  write,
		})
		_ = write.Close()
	}()
	first := make([]byte, len("its one\ntwo\n"))
	if _, err := io.ReadFull(read, first); err != nil || string(first) != "its one\ntwo\n" {
		t.Fatalf("the output begins %q, %v", first, err)
	}
	if err := c.Run(t.Context(), ssh.Command{Text: ": >go-on"}); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(read); err != nil || string(rest) != "three\n" {
		t.Errorf("the output goes on with %q, %v", rest, err)
	}
	var exit *ssh.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Status != 7 || exit.Last != "its one\ntwo\nthree" {
		t.Errorf("the command ended with %#v", err)
	}
}

// A service that a command starts in the background, and that keeps its output open, goes on; the command does not
// wait.
func TestAServiceOutlivesItsCommand(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c := dial(t, config(m))
	var out bytes.Buffer
	if err := c.Run(t.Context(), ssh.Command{Text: "sleep 3131 & echo started", Out: &out}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "started\n" {
		t.Errorf("it printed %q", out.String())
	}
	if m.Hostname != hostname(t) && len(m.Processes("sleep 3131")) != 1 {
		t.Error("the service does not run")
	}
	_ = c.Run(t.Context(), ssh.Command{Text: "pkill -f '[s]leep 3131'"})
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// family runs a child in its process group, and one in a group of its own.
const family = `sleep 5151 & timeout 6161 sleep 6162 & echo running; while :; do sleep 7171; done`

func running(m *clustertest.Machine) int {
	return len(m.Processes("sleep 5151")) + len(m.Processes("timeout 6161")) + len(m.Processes("sleep 7171"))
}

// The story of a provisioner that stops, of one that dies, and of one whose network fails: in each case, what it had
// started on the machine ends, so that the next one does not work beside it.
func TestACommandEndsWithWhoStartedIt(t *testing.T) {
	t.Parallel()
	clustertest.NeedRoot(t)
	for name, stop := range map[string]func(cancel func(), c *ssh.Client, wire *wire){
		"its context is cancelled":   func(cancel func(), _ *ssh.Client, _ *wire) { cancel() },
		"its client is closed":       func(_ func(), c *ssh.Client, _ *wire) { _ = c.Close() },
		"the connection is cut":      func(_ func(), _ *ssh.Client, w *wire) { w.cut() },
		"the network passes nothing": func(_ func(), _ *ssh.Client, w *wire) { w.freeze() },
	} {
		for _, user := range []string{"root", clustertest.Operator} {
			text := family
			if strings.Contains(name, "context") { // it takes five seconds more, so once is enough
				text = "trap '' TERM; " + family
			}
			t.Run(name+", as "+user, func(t *testing.T) {
				t.Parallel()
				m := clustertest.Machines(t, 1)[0]
				wire := newWire(t, m)
				to := config(m)
				to.Host, to.Port, to.User = "127.0.0.1", wire.port(), user
				if user != "root" {
					tool.Need(t, "sudo")
				}
				c := dial(t, to)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				read, write := io.Pipe()
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx, ssh.Command{Text: text, Out: write, Sudo: user != "root"}) }()
				if _, err := io.ReadFull(read, make([]byte, len("running\n"))); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.Copy(io.Discard, read) }()
				eventually(t, "all processes run", func() bool { return running(m) >= 3 })
				stop(cancel, c, wire)
				if err := <-ended; err == nil || fault.KindOf(err) != fault.Unavailable {
					t.Errorf("the command ended with %v", err)
				}
				eventually(t, "nothing of it runs", func() bool {
					return running(m) == 0 && len(m.Processes("sleep 6162")) == 0
				})
				eventually(t, "no watchdog is left", func() bool { return len(m.Processes("dd bs=1")) == 0 })
			})
		}
	}
}

// What is ended gets SIGTERM first, and time to put things in order; Run waits for that.
func TestWhatIsEndedMayCleanUp(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c := dial(t, config(m))
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, ssh.Command{Text: `trap 'sleep 0.5; echo clean >state; exit' TERM; ` +
			`echo dirty >state; echo running; while :; do sleep 0.1; done`, Out: write})
	}()
	if _, err := io.ReadFull(read, make([]byte, len("running\n"))); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if got := m.Read("state"); got != "clean\n" {
		t.Errorf("the state is %q", got)
	}
}

// wire is the network between the test and a machine.
type wire struct {
	listener net.Listener
	mu       sync.Mutex
	frozen   chan struct{}
	conns    []net.Conn
}

func newWire(t *testing.T, m *clustertest.Machine) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, frozen: make(chan struct{})}
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		_ = l.Close()
		w.cut()
	})
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			select {
			case <-w.frozen: // no end, no data
				<-ended
				return
			default:
			}
			if err != nil {
				_ = to.Close()
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", net.JoinHostPort(m.Address, strconv.Itoa(m.Port)))
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			go pass(near, far)
			go pass(far, near)
		}
	}()
	return w
}

func (w *wire) port() int { return w.listener.Addr().(*net.TCPAddr).Port }
func (w *wire) freeze()   { close(w.frozen) }
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// A command that does not end is ended at its limit; the error has the last that it printed.
func TestTheTimeLimit(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c := dial(t, config(m))
	err := c.Run(t.Context(), ssh.Command{Text: "echo waiting for Godot; sleep 8181", Limit: 300 * time.Millisecond})
	if err == nil || fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "time limit of 300ms") ||
		!strings.Contains(err.Error(), "waiting for Godot") {
		t.Errorf("got %v", err)
	}
	if left := m.Processes("sleep 8181"); len(left) > 0 {
		t.Errorf("still runs: %q", left)
	}
}

// Each thing that can be wrong with a machine or its definition has an error of its own, which says what to do.
func TestErrorsForPeople(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	fails := func(config ssh.Config, kind fault.Kind, refused bool, says ...string) {
		t.Helper()
		c, err := ssh.Dial(t.Context(), config)
		if err == nil {
			_ = c.Close()
			t.Errorf("no error, want one that says %q", says)
			return
		}
		for _, text := range append(says, "; ") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v\ndoes not say %q", err, text)
			}
		}
		if fault.KindOf(err) != kind || plugin.IsRefused(err) != refused {
			t.Errorf("%v: kind %s, refused %v", err, fault.KindOf(err), plugin.IsRefused(err))
		}
		if strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("the error has the key: %v", err)
		}
	}
	good := config(m)

	c := good
	c.Key = []byte(m.HostKeys()[0])
	fails(c, fault.Invalid, true, "no private key", "not the public one")
	c.Key = lockedKey(t)
	fails(c, fault.Invalid, true, "passphrase")

	c = good
	c.HostKeys = []string{"ssh-ed25519 nonsense"}
	fails(c, fault.Invalid, true, "is no host key")
	c.HostKeys = nil
	fails(c, fault.Forbidden, true, "not known")

	before := dial(t, good).HostKey()
	m.ChangeHostKey()
	fails(good, fault.Forbidden, true, "has changed", "SHA256:", "nothing was sent", "installed anew")
	if good.HostKeys[0] != before || config(m).HostKeys[0] == before {
		t.Error("the machine did not show its key")
	}
	good = config(m)

	m.Refuse()
	fails(good, fault.Unauthorized, false, "does not let "+m.User+" in with the key SHA256:")
	m.Admit()

	m.Stop()
	fails(good, fault.Unavailable, false, "refuses the connection")
	m.Break()
	c = good
	c.Timeout = 200 * time.Millisecond
	fails(c, fault.Unavailable, false, "takes connections", "200ms")

	c = good
	c.Host = "no-such-machine.invalid"
	fails(c, fault.Unavailable, false, "has no address")

	m.Restart()
	dial(t, good)
}

func lockedKey(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	run(t, tool.Need(t, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "secret", "-f", file)
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A machine with several host keys shows one that is pinned, also if the client prefers another type.
func TestThePinnedKeyOfSeveral(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	ecdsa := m.AddHostKey("ecdsa")
	to := config(m)
	if key := dial(t, to).HostKey(); !strings.HasPrefix(key, "ssh-ed25519 ") {
		t.Errorf("by itself the machine shows %s", key)
	}
	to.HostKeys = []string{fmt.Sprintf("[%s]:%d %s", m.Address, m.Port, ecdsa)} // as ssh-keyscan prints it
	if key := dial(t, to).HostKey(); key != ecdsa {
		t.Errorf("the machine shows %s", key)
	}
	to.HostKeys, to.Learn = nil, true
	if key := dial(t, to).HostKey(); key != m.HostKeys()[0] {
		t.Errorf("learnt %s", key)
	}
}

func TestHostKeysOfAConsole(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGfU7qOMrTGw0rwfAqPqpd3fDOPPIrCzhJXZ0sBQ1NBp"
	console := "[  OK  ] Started.\r\n-----BEGIN SSH HOST KEY KEYS-----\r\n" + key + " root@web\r\nnoise\r\n"
	if got := ssh.HostKeysOfConsole(console); got != nil {
		t.Errorf("of half a console: %q", got)
	}
	got := ssh.HostKeysOfConsole(console + "-----END SSH HOST KEY KEYS-----\r\nlogin: ")
	if len(got) != 1 || got[0] != key {
		t.Errorf("got %q", got)
	}
}

// Files, folders and links arrive with their modes; by sudo they belong to root. A folder of the machine that is not
// there is an error that says so.
func TestUpload(t *testing.T) {
	t.Parallel()
	clustertest.NeedRoot(t)
	tool.Need(t, "sudo")
	m := clustertest.Machines(t, 1)[0]
	local := t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef"), 256<<10) // more than the window of a channel
	for name, content := range map[string][]byte{"a b/run.sh": []byte("#!/bin/sh\n"), "big": big} {
		file := filepath.Join(local, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a b/run.sh", filepath.Join(local, "link")); err != nil {
		t.Fatal(err)
	}
	to := config(m)
	to.User = clustertest.Operator
	c := dial(t, to)
	f, err := c.Folder(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Upload(t.Context(), f.Path, true, func(w *tar.Writer) error {
		if err := ssh.AddFile(w, "secret", 0o600, []byte("hush")); err != nil {
			return err
		}
		return ssh.AddPath(w, "tree", local)
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Command("stat", "-c", "%U %a %s %F", f.Path, f.Path+"/secret", f.Path+"/tree/a b/run.sh",
		f.Path+"/tree/big", f.Path+"/tree/link").CombinedOutput()
	want := "root 700 [0-9]+ directory\nroot 600 4 regular file\nroot 750 10 regular file\n" +
		"root 750 4194304 regular file\nroot 777 10 symbolic link\n"
	if err != nil || !match(want, string(out)) {
		t.Errorf("on the machine are\n%s(%v), want\n%s", out, err, want)
	}
	if m.Read(f.Path+"/tree/link") != "#!/bin/sh\n" {
		t.Error("the link leads elsewhere")
	}
	err = c.Upload(t.Context(), "/no/such folder", true, func(w *tar.Writer) error {
		return ssh.AddPath(w, "tree", local)
	})
	if err == nil || !strings.Contains(err.Error(), "/no/such folder") {
		t.Errorf("got %v", err)
	}
	if err := f.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if m.Exists(f.Path) {
		t.Error("the folder is still there")
	}
}

// The working folder goes also when its client dies, but not before its commands have had time to end.
func TestTheFolderGoesWithTheConnection(t *testing.T) {
	tool.Heavy(t, "waits until a machine gives a connection up")
	t.Parallel()
	clustertest.NeedRoot(t)
	m := clustertest.Machines(t, 1)[0]
	c := dial(t, config(m))
	f, err := c.Folder(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // several beats: the folder is still held
	if !m.Exists(f.Path) {
		t.Fatal("there is no folder")
	}
	_ = c.Close()
	eventually(t, "the folder is gone", func() bool { return !m.Exists(f.Path) })
}

func TestSudoThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	clustertest.NeedRoot(t)
	tool.Need(t, "sudo")
	m := clustertest.Machines(t, 1)[0]
	to := config(m)
	to.User = clustertest.Guest
	c := dial(t, to)
	if _, err := c.Folder(t.Context(), true); err == nil || fault.KindOf(err) != fault.Forbidden ||
		!strings.Contains(err.Error(), "may not become root") {
		t.Errorf("got %v", err)
	}
	f, err := c.Folder(t.Context(), false)
	if err != nil || !strings.HasPrefix(f.Path, "/home/guest/") {
		t.Fatalf("without sudo: %v, %v", f, err)
	}
	if err := f.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
