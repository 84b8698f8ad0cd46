//go:build !linux

package program

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program into a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func onOneThread(f func()) { f() }

// wait waits for the end of the program, and kills what is left of its group.
func (p *process) wait(cmd *exec.Cmd) error {
	defer p.leave()
	return cmd.Wait()
}
