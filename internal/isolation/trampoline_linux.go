package isolation

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// The trampoline runs here, on the main thread, before the rest of the program begins.
func init() {
	if len(os.Args) != 2 || os.Args[0] != trampolineName {
		return
	}
	fmt.Fprintln(os.Stderr, "ordain: a process cannot be confined:", bounce(os.Args[1]))
	os.Exit(126)
}

// bounce confines this process and replaces it by the program that it was started for. It returns
// only when that fails.
func bounce(descriptor string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "policy")
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	_ = f.Close()
	closeInherited(fd)
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	if err := o.confine(); err != nil {
		return err
	}
	if o.Path == "" {
		os.Exit(0)
	}
	if o.Dir != "" {
		if err := unix.Chdir(o.Dir); err != nil {
			return fmt.Errorf("change to the folder %s: %w", o.Dir, err)
		}
	}
	return fmt.Errorf("start %s: %w", o.Path, unix.Exec(o.Path, o.Args, o.Env))
}

// closeInherited keeps files from the program that nobody gave it: those that the server's own parent left open for the
// server. The last of the files that it is given is the one before the policy.
func closeInherited(policy int) {
	if unix.CloseRange(uint(policy), ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := policy; fd < 1<<16; fd++ { // Linux before 5.11
		unix.CloseOnExec(fd)
	}
}

func (o *order) confine() error {
	unix.Umask(0o022)
	// Without the keys that the server's session has, such as those of Kerberos. Where the kernel has none, or a
	// container forbids them, the program gets at no keys either.
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if err != nil && err != unix.ENOSYS && err != unix.EPERM {
		return fmt.Errorf("leave the server's key ring: %w", err)
	}
	if o.Support.Namespaces {
		if err := noFurtherNamespaces(); err != nil {
			return err
		}
		if o.Network.None {
			loopbackUp()
		}
	}
	if o.OwnRoot {
		if err := o.buildRoot(); err != nil {
			return err
		}
	}
	if err := o.Limits.apply(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := o.dropPrivileges(); err != nil {
		return err
	}
	if err := o.landlock(); err != nil {
		return err
	}
	if o.Death != 0 { // a change of the user has cleared it
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(o.Death), 0, 0, 0); err != nil {
			return fmt.Errorf("set the signal of the parent's end: %w", err)
		}
	}
	return nil
}

// noFurtherNamespaces forbids the confined program to make namespaces of its own, in which it would
// have capabilities again, and so that all of its processes can be found by their mount namespace.
func noFurtherNamespaces() error {
	const name = "/proc/sys/user/max_user_namespaces"
	if err := os.WriteFile(name, []byte("0"), 0); err != nil {
		return fmt.Errorf("forbid further user namespaces: %w", err)
	}
	return nil
}

func (l Limits) apply() error {
	for _, each := range []struct {
		kind  int
		name  string
		value uint64
	}{
		{unix.RLIMIT_NPROC, "processes", l.Processes},
		{unix.RLIMIT_FSIZE, "the size of files", l.FileSize},
		{unix.RLIMIT_NOFILE, "open files", l.OpenFiles},
	} {
		var now unix.Rlimit
		if each.value == 0 || unix.Getrlimit(each.kind, &now) != nil {
			continue
		}
		value := min(each.value, now.Max)
		if err := unix.Setrlimit(each.kind, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limit %s to %d: %w", each.name, value, err)
		}
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // core files contain secrets
}

// dropPrivileges becomes the environment's user, without supplementary groups, and gives up all
// capabilities, also those that a program with user id 0 would get when it starts.
func (o *order) dropPrivileges() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && err != unix.EINVAL && err != unix.EPERM { // EPERM: there is nothing to give up
			return fmt.Errorf("give up a capability: %w", err)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if o.UID != 0 {
		id := int(o.UID)
		if err := raw(unix.SYS_SETGROUPS, 0, 0, 0); err != nil {
			return fmt.Errorf("leave the server's groups: %w", err)
		}
		if err := raw(unix.SYS_SETRESGID, uintptr(id), uintptr(id), uintptr(id)); err != nil {
			return fmt.Errorf("become group %d: %w", id, err)
		}
		if err := raw(unix.SYS_SETRESUID, uintptr(id), uintptr(id), uintptr(id)); err != nil {
			return fmt.Errorf("become user %d: %w", id, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up the capabilities: %w", err)
	}
	return nil
}

// raw makes a system call for this thread alone, which is the one that starts the program. The
// functions of package syscall would first change all the other threads.
func raw(number, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// landlock gives up every file that the policy does not name, and what else Landlock restricts.
func (o *order) landlock() error {
	if o.Support.Landlock == 0 {
		return nil
	}
	config := landlock.V9
	if len(o.Network.Ports) == 0 {
		config.HandledAccessNet = 0
	} else {
		config.HandledAccessNet = landlock.AccessNetSet(2) // connecting by TCP; listening stays allowed
	}
	var rules []landlock.Rule
	for _, port := range o.Network.Ports {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	read, write := o.reachable()
	for _, path := range read {
		rules = appendRule(rules, path, false, false)
	}
	for _, path := range write {
		rules = appendRule(rules, path, true, o.Support.Landlock >= landlockRefer)
	}
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restrict the process with Landlock: %w", err)
	}
	return nil
}

func appendRule(rules []landlock.Rule, path string, write, refer bool) []landlock.Rule {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return rules
	case write && info.IsDir():
		rule := landlock.RWDirs(path).IgnoreIfMissing()
		if refer {
			rule = rule.WithRefer()
		}
		return append(rules, rule)
	case write:
		return append(rules, landlock.RWFiles(path).WithIoctlDev().IgnoreIfMissing())
	case info.IsDir():
		return append(rules, landlock.RODirs(path).IgnoreIfMissing())
	}
	return append(rules, landlock.ROFiles(path).IgnoreIfMissing())
}

// loopbackUp switches on the loopback of a network namespace.
func loopbackUp() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return
	}
	if unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request) == nil {
		request.SetUint16(request.Uint16() | unix.IFF_UP)
		_ = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	}
}
