package ansible

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
)

// findsAll says that run ends all that a command has started.
const findsAll = true

// run runs a command until it ends, or until ctx does and before has been called. Then it ends all that the command has
// started. Workers of Ansible and the connections that they share leave the process group, so they are found by their
// environment, which has the mark.
func run(ctx context.Context, cmd *exec.Cmd, mark string, before func()) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel sends Pdeathsig when the thread ends that started the command
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			ended <- fault.Wrap("ansible.Run", fault.Unavailable, err).Say("Ansible cannot be started")
			return
		}
		stop := context.AfterFunc(ctx, func() {
			before()
			endMarked(mark)
		})
		isolation.AwaitEnd(cmd.Process.Pid)
		stop()
		endMarked(mark)
		ended <- cmd.Wait()
	}()
	return <-ended
}

// endMarked kills the processes whose environment has a variable, and those that they start meanwhile.
func endMarked(mark string) {
	needle := []byte("\x00" + mark + "\x00")
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		found := false
		for _, file := range files {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				continue
			}
			process, err := os.FindProcess(pid) // from here on it is this process, or an error
			if err != nil {
				continue
			}
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(append([]byte{0}, text...), needle) {
				_ = process.Kill()
				found = true
			}
			_ = process.Release()
		}
		if !found {
			return
		}
		time.Sleep(time.Millisecond) // until those that were killed have ended
	}
}
