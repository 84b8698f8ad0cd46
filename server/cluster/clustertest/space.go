package clustertest

import (
	"os"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
)

// inside is where a machine's own folder (keys, configuration) lies in its file system.
const inside = "/etc/ordain-machine"

// space is the file system and the host name of a machine. It outlives the machine's processes.
type space struct {
	m      *Machine
	holder *process // its namespaces and its root are the machine's
}

// makeSpace says that it is ready when the holder's root is the machine's: who enters sooner is outside.
const makeSpace = `set -e
mount --make-rprivate /
mkdir "$1/view"
mount -t tmpfs -o mode=755 machine "$1/view"
cd "$1/view"
mkdir up work root
mount -t overlay machine -o lowerdir=/,upperdir=up,workdir=work root
cd root
mkdir -p dev proc run tmp root home/operator home/guest etc/sudoers.d var/tmp .` + inside + `
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mkdir run/sshd
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=700 root root
mount --bind "$1" .` + inside + `
hostname "$2"
echo "$3 $2" >>etc/hosts
printf 'operator:x:2001:2001::/home/operator:/bin/sh\nguest:x:2002:2002::/home/guest:/bin/sh\n' >>etc/passwd
printf 'operator:x:2001:\nguest:x:2002:\n' >>etc/group
printf 'operator:*:19000:0:99999:7:::\nguest:*:19000:0:99999:7:::\n' >>etc/shadow
sed -i 's/^root:!/root:*/' etc/shadow
chown 2001:2001 home/operator
chown 2002:2002 home/guest
printf 'operator ALL=(ALL) NOPASSWD: ALL\n' >etc/sudoers.d/operator
chmod 440 etc/sudoers.d/operator
exec chroot . /bin/sh -c 'echo ready; exec cat'
`

func (m *Machine) newSpace() *space {
	m.t.Helper()
	// Users of the machine read their authorized keys there.
	if err := os.Chmod(m.dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	p := m.start("unshare", "--mount", "--uts", "/bin/sh", "-c", makeSpace, "sh", m.dir, m.Hostname, m.Address)
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(p.log.String(), "ready"); {
		select {
		case <-p.ended:
			tool.Missing(m.t, "no file system for a machine, which needs mount namespaces and overlays: %s", p.log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.end()
			m.t.Fatalf("making the file system of a machine takes too long: %s", p.log)
		}
	}
	return &space{m: m, holder: p}
}

// enter returns the arguments for nsenter.
func (s *space) enter() []string {
	pid := strconv.Itoa(s.holder.cmd.Process.Pid)
	return []string{"--target", pid, "--mount", "--uts", "--root", "--wd"}
}

// boot starts the first process of the machine: a script. All others end with it.
func (s *space) boot(script string, args ...string) *process {
	s.m.t.Helper()
	command := append(s.enter(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", script, "sh")
	return s.m.start("nsenter", append(command, args...)...)
}
