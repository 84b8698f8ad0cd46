package clustertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
)

// login runs a command on a machine by the ordinary client.
func login(t *testing.T, m *Machine, user, command string) (string, error) {
	t.Helper()
	cmd := exec.Command(tool.Need(t, "ssh"), "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=2",
		"-o", "IdentitiesOnly=yes",
		"-i", m.KeyFile, "-p", strconv.Itoa(m.Port), user+"@"+m.Address, command)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Two machines are two machines: what is written on one is on that one only, and neither on this machine; each has its
// own host name.
func TestMachinesAreApart(t *testing.T) {
	t.Parallel()
	NeedRoot(t)
	machines := Machines(t, 2)
	for _, m := range machines {
		out, err := login(t, m, m.User, "hostname >/etc/who-am-i; cat /etc/who-am-i; ls -A /tmp")
		if err != nil || out != m.Hostname {
			t.Fatalf("the machine %s says %q (%v), want its host name %s and an empty /tmp",
				m.Address, out, err, m.Hostname)
		}
	}
	for _, m := range machines {
		if got := strings.TrimSpace(m.Read("/etc/who-am-i")); got != m.Hostname {
			t.Errorf("the file on %s says %q", m.Hostname, got)
		}
	}
	if exec.Command("test", "-e", "/etc/who-am-i").Run() == nil {
		t.Error("a machine wrote to the file system of this one")
	}
	if machines[0].HostKeys()[0] == machines[1].HostKeys()[0] {
		t.Error("two machines have the same host key")
	}
	m := machines[0]
	if out, err := login(t, m, Operator, "sudo -n id -u"); tool.Need(t, "sudo") != "" && (err != nil || out != "0") {
		t.Errorf("the operator's sudo says %q (%v)", out, err)
	}
	if out, err := login(t, m, Guest, "sudo -n id -u"); err == nil {
		t.Errorf("the guest may use sudo: %q", out)
	}
}

// A machine can be switched off, hang, refuse, and come back with its files and nothing that ran.
func TestAMachineBreaksAndComesBack(t *testing.T) {
	t.Parallel()
	m := Machines(t, 1)[0]
	const leave = "echo here >note; setsid sleep 4242 >/dev/null 2>&1 </dev/null & echo done"
	if out, err := login(t, m, m.User, leave); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if m.root != nil && len(m.Processes("sleep 4242")) == 0 {
		t.Fatal("what was started does not run")
	}
	m.Stop()
	if out, err := login(t, m, m.User, "true"); err == nil || !strings.Contains(out, "refused") {
		t.Errorf("a machine that is off answers %q, %v", out, err)
	}
	m.Break()
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(m.Address, strconv.Itoa(m.Port)), time.Second)
	if err != nil {
		t.Fatalf("a machine that hangs takes no connections: %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a machine that hangs answers")
	}
	_ = conn.Close()
	m.Restart()
	if len(m.Processes("sleep 4242")) > 0 {
		t.Error("a process survived that the machine was off")
	}
	if !m.Exists("note") || m.Read("note") != "here\n" {
		t.Error("the machine lost its files")
	}
	m.Refuse()
	if out, err := login(t, m, m.User, "true"); err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("a machine that refuses answers %q, %v", out, err)
	}
	m.Admit()
	before := m.HostKeys()[0]
	m.ChangeHostKey()
	if before == m.HostKeys()[0] {
		t.Error("the host key is the same")
	}
	if out, err := login(t, m, m.User, "cat note"); err != nil || out != "here" {
		t.Errorf("the machine came back as %q, %v", out, err)
	}
}

// A test that is killed leaves no machine behind: no process, no port, no folder.
func TestMachinesEndWithAKilledTest(t *testing.T) {
	t.Parallel()
	if os.Getenv("ORDAIN_TEST_HOLDS_A_MACHINE") != "" {
		m := Machines(t, 1)[0]
		fmt.Printf("machine %s %d %s\n", m.Address, m.Port, m.dir)
		select {}
	}
	tool.Need(t, "sshd", "/usr/sbin/sshd")
	cmd := exec.Command(os.Args[0], "-test.run=^TestMachinesEndWithAKilledTest$")
	cmd.Env = append(os.Environ(), "ORDAIN_TEST_HOLDS_A_MACHINE=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var address, dir string
	var port int
	if _, err := fmt.Fscanf(out, "machine %s %d %s\n", &address, &port, &dir); err != nil {
		t.Errorf("the other test starts no machine: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone := func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err == nil {
			_ = conn.Close()
			return false
		}
		_, err = os.Stat(dir)
		return os.IsNotExist(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !gone(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the machine %s, port %d, folder %s is still there", address, port, dir)
		}
	}
}
