package worker

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ownGroup gives the worker its own process group. A compile worker or a template
// may be busy when we end, so the kernel kills it. A handler worker always reads,
// so it notices the end of its pipe and then kills its whole group, which the
// kernel would not do.
func ownGroup(role string) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if role != "handler" {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

// starter runs functions on a thread that lives as long as the program, because the
// kernel sends Pdeathsig when the thread that forked ends, not the process.
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
