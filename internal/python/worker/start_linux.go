package worker

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ownGroup gives the worker a process group. A compile worker, and a template
// that imports, may be busy when we end, so the kernel kills it. A handler worker always reads, and is left to
// see the end of its pipe: it takes its whole group with it, which the kernel
// would not.
func ownGroup(role string) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if role != "handler" {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
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
