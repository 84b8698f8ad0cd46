// Package scratch gives tests a folder in memory for their files. Tests of Git, servers and databases make and remove
// thousands of small files; on a disk that takes twice as long, and most of it is the work of the kernel.
package scratch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Parent returns a folder that lies in memory and in which a test may make its own, if this machine has one with
// enough room, from which programs can be started. Otherwise it returns "", which stands for the usual place.
func Parent() string {
	const folder, room, noExec = "/dev/shm", 4 << 30, 0x8
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return ""
	}
	if int64(fs.Bavail)*int64(fs.Bsize) < room || fs.Flags&noExec != 0 {
		return ""
	}
	return folder
}

// Suite is what TestMain runs: a testing.M, or something around it.
type Suite interface{ Run() int }

// InMemory returns a suite that keeps its temporary files in memory if this machine can. If TMPDIR is set already, it
// is left alone; processes that the tests start therefore share the folder of their parent. The folder is removed when
// the process ends, even if it is killed.
func InMemory(suite Suite) Suite { return inMemory{suite} }

type inMemory struct{ Suite }

func (s inMemory) Run() int {
	parent := Parent()
	if parent == "" || os.Getenv("TMPDIR") != "" {
		return s.Suite.Run()
	}
	dir, err := os.MkdirTemp(parent, "ordain-tests-")
	if err != nil { // that folder is not for everybody
		return s.Suite.Run()
	}
	defer os.RemoveAll(dir)
	stop, err := removedAfter(dir)
	if err == nil {
		defer stop()
		// Users of isolated environments pass through.
		err = os.Chmod(dir, 0o711)
	}
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no folder in memory for the files of tests:", err)
		return 1
	}
	return s.Suite.Run()
}

// removedAfter starts a process that waits for the end of its input, which comes with the end of this process, and
// then removes the folder.
func removedAfter(dir string) (stop func(), err error) {
	input, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	janitor := exec.Command("/bin/sh", "-c", `cat >/dev/null; rm -rf -- "$1"`, "sh", dir)
	janitor.Dir, janitor.Stdin = "/", input
	janitor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := janitor.Start(); err != nil {
		held.Close()
		return nil, err
	}
	return func() {
		held.Close()
		_ = janitor.Wait() // what it could not remove, RemoveAll cannot either
	}, nil
}
