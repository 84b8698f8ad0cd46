package clustertest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"ordain.dev/ordain/internal/testing/tool"
)

// Machine is a machine that tests may log in to, and break.
type Machine struct {
	Address  string // 127.x.y.z
	Port     int
	User     string // root, or who runs the test
	KeyFile  string // the private key that it lets in
	Hostname string // as root; else this machine's

	t    testing.TB
	dir  string
	sshd string
	root *space // nil for an ordinary user
	// janitor removes the machine's folder if the test is killed and cannot.
	janitor *process

	mu   sync.Mutex
	run  *process
	hang net.Listener
}

// Operator is a user of machines with a file system of their own; without a password it may do everything by sudo.
// Guest is a user that may not.
const (
	Operator = "operator"
	Guest    = "guest"
)

// NeedRoot skips a test that needs machines with a file system of their own.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("machines with a file system of their own need root")
	}
	tool.Need(t, "unshare")
	tool.Need(t, "nsenter")
}

// Machines starts n machines that let the same key in. They end with the test.
func Machines(t testing.TB, n int) []*Machine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("machines on loopback addresses need Linux")
	}
	sshd := tool.Need(t, "sshd", "/usr/sbin/sshd")
	tool.Need(t, "ssh-keygen")
	var out []*Machine
	for i := range n {
		var first *Machine
		if i > 0 {
			first = out[0]
		}
		address, port := freeAddress(t)
		out = append(out, start(t, sshd, fmt.Sprintf("machine%d", i+1), address, port, first))
	}
	return out
}

// At starts a machine at an address of the loopback network and a port that somebody else has chosen, as a cloud does.
// It lets in the key that another machine lets in. It ends with the test.
func At(t testing.TB, hostname, address string, port int, like *Machine) *Machine {
	t.Helper()
	return start(t, like.sshd, hostname, address, port, like)
}

func start(t testing.TB, sshd, hostname, address string, port int, first *Machine) *Machine {
	t.Helper()
	// A short path: sshd and overlay options have limits, and t.TempDir has the name of the test.
	dir, err := os.MkdirTemp("", "ordain-machine-")
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{t: t, dir: dir, sshd: sshd, KeyFile: filepath.Join(dir, "key"), User: "root"}
	t.Cleanup(m.end)
	m.janitor = m.start("/bin/sh", "-c", `cat >/dev/null; rm -rf -- "$1"`, "sh", dir)
	m.Address, m.Port = address, port
	if first != nil {
		m.KeyFile = first.KeyFile
	} else {
		m.keyPair(m.KeyFile)
	}
	m.keyPair(m.path("host_key"))
	if err := os.WriteFile(m.path("authorized_keys"), m.public(m.KeyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		NeedRoot(t)
		m.Hostname = hostname
		m.root = m.newSpace()
	} else {
		me, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		m.User = me.Username
		m.Hostname, _ = os.Hostname()
		if err := os.Mkdir(m.path("home"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(m.path("sshd_config"), []byte(m.sshdConfig()), 0o644); err != nil {
		t.Fatal(err)
	}
	m.boot()
	return m
}

func (m *Machine) path(name string) string { return filepath.Join(m.dir, name) }

// freeAddress returns an address of the loopback network, random so that tests of several packages stay apart, and a
// port that is free there.
func freeAddress(t testing.TB) (string, int) {
	t.Helper()
	address := fmt.Sprintf("127.%d.%d.%d", 1+mrand.IntN(254), mrand.IntN(256), 2+mrand.IntN(250))
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatalf("no loopback network 127.0.0.0/8: %v", err)
	}
	defer l.Close()
	return address, l.Addr().(*net.TCPAddr).Port
}

func (m *Machine) keyPair(file string) {
	m.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		m.t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(key), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *Machine) public(file string) []byte {
	m.t.Helper()
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		m.t.Fatal(err)
	}
	return text
}

// Key returns the private key that the machine lets in.
func (m *Machine) Key() []byte {
	m.t.Helper()
	key, err := os.ReadFile(m.KeyFile)
	if err != nil {
		m.t.Fatal(err)
	}
	return key
}

// HostKeys returns the lines of the machine's host keys.
func (m *Machine) HostKeys() []string {
	m.t.Helper()
	return []string{strings.TrimSpace(string(m.public(m.path("host_key"))))}
}

func (m *Machine) sshdConfig() string {
	at := m.dir
	if m.root != nil {
		at = inside
	}
	lines := []string{
		"ListenAddress " + m.Address + ":" + strconv.Itoa(m.Port),
		"HostKey " + at + "/host_key",
		"AuthorizedKeysFile " + at + "/authorized_keys",
		"PidFile none", "StrictModes no", "UseDNS no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin prohibit-password", "MaxStartups 200", "MaxSessions 200", "LogLevel VERBOSE",
	}
	if m.root == nil {
		lines = append(lines,
			`ForceCommand cd `+m.path("home")+` && HOME=`+m.path("home")+` exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"`)
	}
	text := strings.Join(lines, "\n") + "\n"
	// Newer servers lock out addresses that fail often, as tests do on purpose.
	probe := exec.Command(m.sshd, "-t", "-f", "/dev/null", "-h", m.path("host_key"), "-o", "PerSourcePenalties=no")
	if out, _ := probe.CombinedOutput(); !bytes.Contains(out, []byte("PerSourcePenalties")) {
		text += "PerSourcePenalties no\n"
	}
	return text
}

// process is something that runs until its standard input ends.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   *log
	ended chan struct{}
}

type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (m *Machine) start(name string, args ...string) *process {
	m.t.Helper()
	p := &process{cmd: exec.Command(name, args...), log: &log{}, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = p.log, p.log, "/"
	p.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	p.cmd.WaitDelay = 5 * time.Second
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		m.t.Fatalf("machine %s: %v", m.Address, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

// end ends a process.
func (p *process) end() {
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// boot starts the SSH server and waits until it takes connections.
func (m *Machine) boot() {
	m.t.Helper()
	const script = `"$1" -D -e -f "$2" </dev/null & cat >/dev/null; kill $! 2>/dev/null`
	if m.root != nil {
		m.run = m.root.boot("mount -t proc proc /proc && "+script, m.sshd, inside+"/sshd_config")
	} else {
		m.run = m.start("/bin/sh", "-c", script, "sh", m.sshd, m.path("sshd_config"))
	}
	address := net.JoinHostPort(m.Address, strconv.Itoa(m.Port))
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-m.run.ended:
			m.t.Fatalf("machine %s ended: %s", m.Address, m.run.log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("machine %s does not start: %v\n%s", m.Address, err, m.run.log)
		}
	}
}
