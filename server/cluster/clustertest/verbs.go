package clustertest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
)

// Stop switches the machine off: its processes end, its connections break, its port refuses. It may be stopped already.
func (m *Machine) Stop() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop()
}

func (m *Machine) stop() {
	if m.hang != nil {
		_ = m.hang.Close()
		m.hang = nil
	}
	if m.run == nil {
		return
	}
	if m.root == nil {
		killBelow(m.run.cmd.Process.Pid)
	}
	m.run.end()
	m.run = nil
}

// Restart switches the machine off, and on again with the files it has.
func (m *Machine) Restart() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop()
	m.boot()
}

// Break makes the machine hang: its processes end, and it takes connections that it never answers. Restart mends it.
func (m *Machine) Break() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop()
	l, err := net.Listen("tcp", net.JoinHostPort(m.Address, strconv.Itoa(m.Port)))
	if err != nil {
		m.t.Fatal(err)
	}
	m.hang = l
	go func() {
		var held []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range held {
					_ = c.Close()
				}
				return
			}
			held = append(held, conn)
		}
	}()
}

// Refuse makes the machine let no key in, until Admit.
func (m *Machine) Refuse() { m.t.Helper(); m.authorize(nil) }

// Admit lets the machine's key in again.
func (m *Machine) Admit() { m.t.Helper(); m.authorize(m.public(m.KeyFile)) }

func (m *Machine) authorize(keys []byte) {
	m.t.Helper()
	if err := os.WriteFile(m.path("authorized_keys"), keys, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// ChangeHostKey gives the machine another host key, as if it had been installed anew, and restarts it.
func (m *Machine) ChangeHostKey() {
	m.t.Helper()
	m.keyPair(m.path("host_key"))
	m.Restart()
}

// Command returns a command that runs on the machine without SSH, as root or who runs the test.
func (m *Machine) Command(name string, args ...string) *exec.Cmd {
	if m.root == nil {
		cmd := exec.Command(name, args...)
		cmd.Dir = m.path("home")
		return cmd
	}
	return exec.Command("nsenter", append(m.root.enter(), append([]string{name}, args...)...)...)
}

// Exists reports whether the machine has a file or folder. Paths that do not begin with / are below the home folder of
// the user.
func (m *Machine) Exists(path string) bool {
	m.t.Helper()
	return m.Command("test", "-e", m.at(path)).Run() == nil
}

// Read returns the content of a file of the machine.
func (m *Machine) Read(path string) string {
	m.t.Helper()
	out, err := m.Command("cat", m.at(path)).Output()
	if err != nil {
		m.t.Fatalf("machine %s has no readable file %s", m.Address, path)
	}
	return string(out)
}

func (m *Machine) at(path string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case m.root == nil:
		return filepath.Join(m.path("home"), path)
	}
	return filepath.Join("/root", path)
}

// Log is what the SSH server has logged since the machine was started.
func (m *Machine) Log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == nil {
		return ""
	}
	return m.run.log.String()
}

// Processes returns the command lines of the processes whose command line contains text.
func (m *Machine) Processes(text string) []string {
	m.t.Helper()
	m.mu.Lock()
	run := m.run
	m.mu.Unlock()
	if run == nil {
		return nil
	}
	var found []string
	for _, pid := range below(run.cmd.Process.Pid) {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if command := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")); err == nil &&
			strings.Contains(command, text) {
			found = append(found, command)
		}
	}
	return found
}

// end removes the machine.
func (m *Machine) end() {
	if m.t.Failed() {
		if text := m.Log(); text != "" {
			m.t.Logf("log of the SSH server of machine %s:\n%s", m.Address, text)
		}
	}
	m.Stop()
	if m.root != nil {
		m.root.holder.end()
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := os.RemoveAll(m.dir)
		if err == nil {
			m.janitor.end()
			return
		}
		if time.Now().After(deadline) {
			m.t.Errorf("the folder of machine %s stays: %v", m.Address, err)
			return
		}
	}
}

// AddHostKey gives the machine one more host key, of a type as ssh-keygen names it, restarts it, and returns the key.
func (m *Machine) AddHostKey(kind string) string {
	m.t.Helper()
	name := "host_key_" + kind
	out, err := exec.Command(tool.Need(m.t, "ssh-keygen"), "-q", "-t", kind, "-N", "", "-C", "", "-f", m.path(name)).
		CombinedOutput()
	if err != nil {
		m.t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	at := m.dir
	if m.root != nil {
		at = inside
	}
	config, err := os.ReadFile(m.path("sshd_config"))
	if err == nil {
		err = os.WriteFile(m.path("sshd_config"), append(config, "HostKey "+at+"/"+name+"\n"...), 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.Restart()
	return strings.TrimSpace(string(m.public(m.path(name))))
}
