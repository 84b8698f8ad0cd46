//go:build !linux

package ansible

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// findsAll says that run ends all that a command has started: here only what stays in its process group.
const findsAll = false

// run runs a command until it ends, or until ctx does and before has been called. Then it ends its process group.
func run(ctx context.Context, cmd *exec.Cmd, _ string, before func()) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return fault.Wrap("ansible.Run", fault.Unavailable, err).Say("Ansible cannot be started")
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stop := context.AfterFunc(ctx, func() {
		before()
		kill()
	})
	defer stop()
	err := cmd.Wait()
	kill()
	return err
}
