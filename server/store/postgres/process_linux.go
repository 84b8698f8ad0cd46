package postgres

import "syscall"

// attributes returns those of the database process: a session of its own, so that ^C at the terminal is ours to
// handle, another user when asked for, and a signal from the kernel when this program dies.
func attributes(a account, atDeath syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: atDeath}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}
