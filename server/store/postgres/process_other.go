//go:build unix && !linux

package postgres

import "syscall"

// attributes returns those of the database process: a session of its own, so that ^C at the terminal is ours to
// handle, and another user when asked for. The kernel sends no signal when this program dies: the next Start stops
// what was left.
func attributes(a account, _ syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}
