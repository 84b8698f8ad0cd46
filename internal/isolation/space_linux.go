package isolation

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Space is all processes that descend from one start of a confined program. They share a mount
// namespace, which they cannot leave. A nil Space has no processes.
type Space struct {
	id string

	mu     sync.Mutex
	handle *os.File // of the namespace, so that no other one gets its number; nil after Close
}

// spaceOf returns the space of a process, or nil if that shares the namespace of the server.
func spaceOf(pid int) *Space {
	file := "/proc/" + strconv.Itoa(pid) + "/ns/mnt"
	handle, err := os.Open(file)
	if err != nil {
		return nil
	}
	id, err := os.Readlink(file)
	ours, ourErr := os.Readlink("/proc/self/ns/mnt")
	if err != nil || ourErr != nil || id == ours {
		_ = handle.Close()
		return nil
	}
	return &Space{id: id, handle: handle}
}

// Close forgets the space, so that End does nothing any more.
func (s *Space) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle != nil {
		_ = s.handle.Close()
		s.handle = nil
	}
}

// endPatience is how long End goes on against processes that make new ones.
const endPatience = 10 * time.Second

// End kills every process of the space but those that are spared, even if it left the process group or
// the session of its parent, and waits until they are gone. It returns their number.
func (s *Space) End(spared ...int) int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return 0
	}
	killed := map[int]bool{}
	for began := time.Now(); time.Since(began) < endPatience; {
		left := slices.DeleteFunc(s.processes(), func(pid int) bool { return slices.Contains(spared, pid) })
		if len(left) == 0 {
			break
		}
		again := true
		for _, pid := range left {
			if s.kill(pid) == nil && !killed[pid] {
				killed[pid], again = true, false
			}
		}
		if again { // all of these are about to end
			time.Sleep(time.Millisecond)
		}
	}
	return len(killed)
}

func (s *Space) processes() []int {
	var out []int
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		if text, err := os.Readlink(dir + "/ns/mnt"); err == nil && text == s.id {
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// kill kills a process through a handle, because its id may belong to another one by now.
func (s *Space) kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer p.Release()
	if text, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/mnt"); err != nil || text != s.id {
		return os.ErrProcessDone
	}
	return p.Signal(syscall.SIGKILL)
}

// AwaitEnd waits until a child process has ended, and leaves it to be waited for. So what it left
// behind can be ended while its output is still read, which goes on as long as anybody can write.
func AwaitEnd(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
