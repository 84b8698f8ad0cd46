package isolation

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Detect finds out what the kernel offers to this process. Namespaces are tried out, because whether
// they work depends on sysctls, security modules and the container around the server.
var Detect = sync.OnceValue(func() Support {
	var s Support
	if version, err := llsys.LandlockGetABIVersion(); err == nil {
		s.Landlock = version
	}
	s.Users = os.Geteuid() == 0 && hasCapabilities()
	if err := tryNamespaces(s); err != nil {
		s.Why = err.Error()
	} else {
		s.Namespaces = true
	}
	return s
})

// tryNamespaces confines a process that ends at once.
func tryNamespaces(s Support) error {
	private, err := os.MkdirTemp("", "ordain-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(private)
	for _, name := range privateFolders {
		if err := os.Mkdir(private+"/"+name, 0o700); err != nil {
			return err
		}
	}
	cmd := exec.Command("/proc/self/exe")
	s.Namespaces = true
	started, err := s.prepare(cmd, Policy{Private: private}, true)
	if err != nil {
		return err
	}
	var said strings.Builder
	cmd.Stderr = &said
	err = cmd.Start()
	space, startErr := started()
	defer func() { space.Close() }() // there may be a space in spite of an error
	if err != nil {
		return err
	}
	err = errors.Join(startErr, cmd.Wait())
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		return errors.New(text)
	}
	return err
}

// hasCapabilities reports whether this process may become another user and give files away.
func hasCapabilities() bool {
	const chown, setgid, setuid = 1 << 0, 1 << 6, 1 << 7
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			has, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && has&(chown|setgid|setuid) == chown|setgid|setuid
		}
	}
	return false
}

// Mapped reports whether this process may use all user ids of a range: a container may have few.
func Mapped(first, count uint32) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, length uint64
		if n, _ := fmt.Sscan(line, &inside, &outside, &length); n == 3 &&
			uint64(first) >= inside && uint64(first)+uint64(count) <= inside+length {
			return true
		}
	}
	return false
}
