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
// started. Workers of Ansible and the connections that they share leave the process group, so they are found by the
// mark: a worker has it in its environment, and a shared connection, which overwrites that, in its title.
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

// endMarked kills the processes whose environment or command line has a mark, and those that they start meanwhile.
func endMarked(mark string) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		folders, _ := filepath.Glob("/proc/[0-9]*")
		found := false
		for _, folder := range folders {
			pid, err := strconv.Atoi(filepath.Base(folder))
			if err != nil || pid == os.Getpid() {
				continue
			}
			process, err := os.FindProcess(pid) // from here on it is this process, or an error
			if err != nil {
				continue
			}
			if has(folder+"/environ", mark) || has(folder+"/cmdline", mark) {
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

func has(file, mark string) bool {
	text, err := os.ReadFile(file)
	return err == nil && bytes.Contains(text, []byte(mark))
}
