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

// Command makes cmd start confined. It is called when cmd is complete, directly before its start;
// after the start, the caller closes cmd.ExtraFiles' last file, which Command adds.
func (s Support) Command(cmd *exec.Cmd, p Policy) error {
	return s.prepare(cmd, p, false)
}

func (s Support) prepare(cmd *exec.Cmd, p Policy, probe bool) error {
	if cmd.Err != nil {
		return cmd.Err
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
	if s.Namespaces {
		attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
		if p.Network.None {
			attr.Cloneflags |= syscall.CLONE_NEWNET
		}
		attr.UidMappings, attr.GidMappings = mappings(os.Geteuid(), p.UID), mappings(os.Getegid(), p.UID)
		attr.GidMappingsEnableSetgroups = p.UID != 0
		if os.Geteuid() != 0 { // for root the trampoline has all capabilities of its namespace anyway
			attr.AmbientCaps = []uintptr{unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE}
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	policy, err := memoryFile(text)
	if err != nil {
		return fmt.Errorf("confine %s: %w", o.Path, err)
	}
	cmd.ExtraFiles = append(slices.Clip(cmd.ExtraFiles), policy)
	cmd.Path, cmd.Args = "/proc/self/exe", []string{trampolineName, strconv.Itoa(2 + len(cmd.ExtraFiles))}
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"ORDAIN=confine"}, "/", attr
	return nil
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
