package isolation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// trampolineName is the first argument by which a program knows that it is the trampoline.
const trampolineName = "ordain-confine"

// order is what the trampoline reads: a policy, and what it starts under it.
type order struct {
	Policy
	Support Support
	OwnRoot bool
	Path    string // of the program; empty: end at once with success
	Args    []string
	Env     []string
	Dir     string
	Death   int // the signal that the process gets when its parent ends
}

// Command makes cmd start confined. It is called when cmd is complete, directly before its start. The
// process waits until started is called, which has to happen in any case, also when the start failed.
func (s Support) Command(cmd *exec.Cmd, p Policy) (started func() (*Space, error), err error) {
	return s.prepare(cmd, p, false)
}

func (s Support) prepare(cmd *exec.Cmd, p Policy, probe bool) (started func() (*Space, error), err error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	o := order{
		Policy: p, Support: s, OwnRoot: s.ownRoot(p), Path: cmd.Path, Args: cmd.Args, Env: cmd.Environ(), Dir: cmd.Dir,
	}
	if probe {
		o.Path = ""
	}
	attr := &syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		clone := *cmd.SysProcAttr
		attr = &clone
	}
	o.Death = int(attr.Pdeathsig)
	// A session of its own, with a process group of its own: else /dev/tty would be the terminal that the server was
	// started from.
	attr.Setsid, attr.Setpgid = true, false
	if s.Namespaces {
		attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
		if p.Network.None {
			attr.Cloneflags |= syscall.CLONE_NEWNET
		}
		attr.UidMappings, attr.GidMappings = mappings(os.Geteuid(), p.UID), mappings(os.Getegid(), p.UID)
		attr.GidMappingsEnableSetgroups = p.UID != 0
		if os.Geteuid() != 0 { // for root the trampoline has all capabilities of its namespace anyway
			attr.AmbientCaps = []uintptr{
				unix.CAP_SETPCAP,
				unix.CAP_NET_ADMIN,
				unix.CAP_SYS_ADMIN,
				unix.CAP_SYS_RESOURCE,
			}
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("confine %s: %w", o.Path, err)
	}
	cmd.ExtraFiles = append(slices.Clip(cmd.ExtraFiles), theirs)
	cmd.Path, cmd.Args = "/proc/self/exe", []string{trampolineName, strconv.Itoa(2 + len(cmd.ExtraFiles))}
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"ORDAIN=confine"}, "/", attr
	return func() (*Space, error) {
		_ = theirs.Close()
		defer ours.Close()
		if cmd.Process == nil {
			return nil, nil
		}
		space := spaceOf(cmd.Process.Pid)
		if _, err := ours.Write(text); err != nil {
			return space, fmt.Errorf("confine %s: %w", o.Path, err)
		}
		return space, nil
	}, nil
}

// mappings returns the ids that exist in the user namespace: the server's own, which the trampoline
// needs while it builds the file system, and that of the environment.
func mappings(own int, other uint32) []syscall.SysProcIDMap {
	out := []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	if other != 0 && int(other) != own {
		out = append(out, syscall.SysProcIDMap{ContainerID: int(other), HostID: int(other), Size: 1})
	}
	return out
}
