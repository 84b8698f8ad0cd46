package program

import (
	"os/exec"
	"runtime"
	"syscall"

	"ordain.dev/ordain/internal/isolation"
)

// ownGroup puts a program into a process group of its own, and ends it with the provisioner.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onOneThread calls f on a thread that does nothing else meanwhile: the kernel sends the signal of ownGroup when the
// thread ends that started the program.
func onOneThread(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}

// wait waits for the end of the program, and kills what is left of it while its id is still its own.
func (p *process) wait(cmd *exec.Cmd) error {
	isolation.AwaitEnd(p.pid)
	p.leave()
	return cmd.Wait()
}
