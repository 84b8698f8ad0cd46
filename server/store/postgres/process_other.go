//go:build unix && !linux

package postgres

import "syscall"

// attributes of the database process: a session of its own, so that ^C at the
// terminal is ours to handle, and another user when asked. There is no signal
// at this program's death here: the next Start ends what was left.
func attributes(a account, _ syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}
