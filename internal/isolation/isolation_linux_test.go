package isolation

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// These tests confine real processes on this kernel. Those of other kernels are imitated by leaving
// parts out; cmd/ordain/e2e/faults has the attacks on a whole server.

const user = 2_000_000_000

// support returns what this kernel offers, or skips the test.
func support(t testing.TB) Support {
	t.Helper()
	s := Detect()
	if !s.Namespaces || s.Landlock < landlockScoped {
		t.Skipf("this kernel or container does not offer everything: %s", strings.Join(s.Missing(), "; "))
	}
	return s
}

func cellOf(s Support, change func(*Config)) *Cell {
	c := Config{Support: s}
	if os.Geteuid() == 0 {
		c.FirstUser = user
	}
	if change != nil {
		change(&c)
	}
	return c.Cell(7)
}

// shell runs a script in a cell and returns what it prints.
func shell(t testing.TB, c *Cell, a Access, script string, env ...string) string {
	t.Helper()
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // without namespaces every folder on the way has to be open
			t.Fatal(err)
		}
	}
	private, err := c.Open(filepath.Join(top, "runs"), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(private.Close)
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, append(private.Environ, env...)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	started, err := private.Confine(cmd, a)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	space, startErr := started()
	defer func() { space.Close() }() // there may be a space in spite of an error
	if err != nil || startErr != nil {
		t.Fatal(err, startErr)
	}
	_ = cmd.Wait()
	return out.String()
}

// A process finds what its policy allows, at the same paths, also behind symbolic links, and nothing else.
// This holds with a file system of its own and with Landlock alone.
func TestAProcessReachesWhatItMay(t *testing.T) {
	full := support(t)
	for name, s := range map[string]Support{
		"everything": full, "Landlock alone": {Landlock: full.Landlock, Users: full.Users},
		"namespaces alone": {Namespaces: true, Users: full.Users},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/var/tmp", "isolation-") // /tmp is another folder inside
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			for _, each := range []string{"", "/real", "/closed", "/open"} {
				if err := os.MkdirAll(dir+each, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(dir+each, 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(dir+each+"/file", []byte("content of "+each+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("real", dir+"/link"); err != nil {
				t.Fatal(err)
			}
			script := "cd " + dir + "; cat link/file real/file; cat closed/file || echo CLOSED; " +
				"echo x > real/new || echo READONLY; echo new > open/new && cat open/new; " +
				"echo t > /tmp/of-" + filepath.Base(dir) + " && echo PRIVATE; echo h > $HOME/x && echo HOME; " +
				"echo t > $TMPDIR/x && echo TMPDIR; grep NoNewPrivs /proc/self/status"
			access := Access{Read: []string{dir + "/link"}, Write: []string{dir + "/open"}}
			got := shell(t, cellOf(s, nil), access, script)
			for _, want := range []string{
				"content of /real\ncontent of /real\n", "CLOSED", "READONLY", "\nnew\n", "HOME", "TMPDIR",
				"NoNewPrivs:\t1",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
			if strings.Contains(got, "PRIVATE") != s.Namespaces {
				t.Errorf("a folder /tmp of its own: want %v:\n%s", s.Namespaces, got)
			}
			if _, err := os.Stat("/tmp/of-" + filepath.Base(dir)); err == nil {
				t.Error("it wrote to /tmp of the machine")
			}
		})
	}
}

// An operator who allows the whole machine gets no file system for the process, and no error.
func TestAllOfTheMachineCanBeAllowed(t *testing.T) {
	c := cellOf(support(t), func(c *Config) { c.Read = []string{"/"} })
	got := shell(t, c, Access{},
		"head -c 4 /etc/passwd; echo x > /usr/planted || echo REFUSED; echo x > $HOME/x && echo HOME")
	if !strings.Contains(got, "root") || !strings.Contains(got, "REFUSED") || !strings.Contains(got, "HOME") {
		t.Error(got)
	}
}

// The user of an environment has a name, as programs expect, and the machine's own list stays as it is.
func TestTheUserHasAName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives environments users")
	}
	before, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.TrimSpace(shell(t, cellOf(support(t), nil), Access{}, "id -un; id -G"))
	if got != "ordain-2000000007\n2000000007" {
		t.Errorf("the user is %q", got)
	}
	c := cellOf(support(t), func(c *Config) { c.Write = []string{"/etc"} })
	shell(t, c, Access{}, "true")
	if after, err := os.ReadFile("/etc/passwd"); err != nil || string(after) != string(before) {
		t.Error("/etc/passwd of the machine was changed")
	}
}

// A network can be forbidden, or all but a few ports.
func TestTheNetworkCanBeRestricted(t *testing.T) {
	s := support(t)
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("there is no /usr/bin/python3")
	}
	var ports []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	script := python + ` -c '
import socket, sys
for port in sys.argv[1:]:
    try: socket.create_connection(("127.0.0.1", int(port)), 5); print("open", end=" ")
    except OSError: print("shut", end=" ")
' ` + strings.Join(ports, " ")
	first, _ := strconv.ParseUint(ports[0], 10, 16)
	for want, network := range map[string]Network{
		"open open": {}, "open shut": {Ports: []uint16{uint16(first)}}, "shut shut": {None: true},
	} {
		got := shell(t, cellOf(s, func(c *Config) { c.Network = network }), Access{}, script)
		if strings.TrimSpace(got) != want {
			t.Errorf("%+v: %q, want %q", network, got, want)
		}
	}
}

// Variables of the confined program, such as LD_PRELOAD, do not reach the trampoline, which still has
// the rights of the server.
func TestVariablesDoNotReachTheTrampoline(t *testing.T) {
	got := shell(t, cellOf(support(t), nil), Access{}, "echo $LD_PRELOAD $GODEBUG", "LD_PRELOAD=/nowhere/evil.so",
		"GODEBUG=inittrace=1")
	if strings.Contains(got, "init internal") ||
		strings.Count(got, "cannot be preloaded") != 1 || // by the shell itself
		!strings.Contains(got, "/nowhere/evil.so inittrace=1") {
		t.Errorf("%q", got)
	}
}

// Files that the server's own parent left open for it do not reach the confined program.
func TestInheritedFilesAreClosed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the server"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const leaked = 200
	if err := unix.Dup3(int(f.Fd()), leaked, 0); err != nil { // without close-on-exec, as parents leave them
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	got := shell(t, cellOf(support(t), nil), Access{}, "cat /proc/self/fd/200; ls /proc/self/fd")
	if strings.Contains(got, "of the server") || slices.Contains(strings.Fields(got), "200") {
		t.Errorf("%q", got)
	}
}

// Configuration of the machine that may have passwords, such as those of an index or a forge, is out of reach.
func TestConfigurationWithPasswordsIsOutOfReach(t *testing.T) {
	c := cellOf(support(t), nil)
	for _, name := range []string{
		"/etc/pip.conf", "/etc/gitconfig", "/etc/shadow", "/etc/netrc", "/etc/ssh/sshd_config", "/root/.netrc",
		"/etc/ssl/private", "/etc/pki/tls/private",
	} {
		if got := shell(t, c, Access{}, "test -e "+name+" && echo THERE"); strings.Contains(got, "THERE") {
			t.Errorf("%s is there", name)
		}
		if slices.Contains(systemFiles, strings.TrimPrefix(name, "/etc/")) {
			t.Errorf("%s would be there if the machine had it", name)
		}
	}
}

// Processes that left everything behind end with their space, and no others do.
func TestASpaceEndsWhateverHides(t *testing.T) {
	c := cellOf(support(t), nil)
	run := func() (*exec.Cmd, *Space) {
		private, err := c.Open(filepath.Join(t.TempDir(), "runs"), "test")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "env -i setsid sh -c 'sleep 3600 & sleep 3600; exit' & exec sleep 3600")
		started, err := private.Confine(cmd, Access{})
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Start()
		space, startErr := started()
		if err != nil || startErr != nil {
			t.Fatal(err, startErr)
		}
		for began := time.Now(); len(space.processes()) < 4; time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > 20*time.Second {
				t.Fatalf("there are only %d processes", len(space.processes()))
			}
		}
		return cmd, space
	}
	first, space := run()
	second, other := run()
	space.End(first.Process.Pid)
	if left := space.processes(); len(left) != 1 || left[0] != first.Process.Pid {
		t.Errorf("%v are left, and %d was to be spared", left, first.Process.Pid)
	}
	space.End()
	if err := first.Wait(); err == nil || first.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Error("the first process ended by itself:", err)
	}
	if n := len(other.processes()); n != 4 {
		t.Errorf("the other space has %d processes", n)
	}
	space.Close()
	if space.End() != 0 {
		t.Error("a space that was closed ended something")
	}
	other.End()
	_ = second.Wait()
	other.Close()
}

// What a start costs beside that of the program itself.
func BenchmarkStart(b *testing.B) {
	b.Run("free", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("confined", func(b *testing.B) {
		c := cellOf(support(b), nil)
		for b.Loop() {
			shell(b, c, Access{}, "exec /bin/true")
		}
	})
}

// A confined program has a session of its own, so it neither writes to the terminal from which the server was started
// nor gets its signals.
func TestTheTerminalOfTheServerIsOutOfReach(t *testing.T) {
	got := shell(
		t,
		cellOf(support(t), nil),
		Access{},
		`read -r pid name state parent group session terminal rest </proc/$$/stat
test "$group $session" = "$$ $$" && echo OWN; test "$terminal" = 0 && echo NONE; echo x >/dev/tty || echo REFUSED`,
	)
	for _, want := range []string{"OWN", "NONE", "REFUSED"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// Keys in the key ring of the server's session, such as tickets of Kerberos, are out of reach.
func TestTheKeyRingOfTheServerIsOutOfReach(t *testing.T) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("there is no /usr/bin/python3")
	}
	runtime.LockOSThread() // key rings belong to threads, and this one, with another ring, ends with the test
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
		t.Skip("this kernel has no key rings:", err)
	}
	key, err := unix.AddKey("user", "ordain-test", []byte("of the server"), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		t.Skip("this container has no key rings:", err)
	}
	script := python + ` -c '
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
out = ctypes.create_string_buffer(100)
n = libc.syscall(number, 11, ` + strconv.Itoa(key) + `, out, 100)
print("READ", out.value, n) if n >= 0 else print("REFUSED", ctypes.get_errno())
'`
	if got := shell(t, cellOf(support(t), func(c *Config) { c.FirstUser = 0 }), Access{}, script); !strings.Contains(
		got, "REFUSED") || strings.Contains(got, "of the server") {
		t.Errorf("%q", got)
	}
}
