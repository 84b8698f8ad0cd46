//go:build unix && !linux

package worker

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the worker its own process group. The kernel has no death signal,
// so the worker ends when file descriptor 3 closes.
func ownGroup(string) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func startOnLastingThread(cmd *exec.Cmd) error { return cmd.Start() }
