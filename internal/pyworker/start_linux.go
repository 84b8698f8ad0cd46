package pyworker

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ownGroup gives the worker a process group, and its end when we end.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// starter runs functions on one thread that lives as long as the program:
// the kernel sends Pdeathsig when the thread that forked ends, not the process.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func startOnLastingThread(cmd *exec.Cmd) error {
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}
