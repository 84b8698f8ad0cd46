package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// Lock makes this process the only server of a state directory. The kernel
// releases it when the process ends, however that happens.
type Lock struct {
	file *os.File
}

// Lock locks the state directory for this process. If another process holds the
// lock, Lock returns a fault of kind Conflict that names that process.
func (l *Layout) Lock() (*Lock, error) {
	path := filepath.Join(l.state, "ordain.lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fault.Disk("layout.Lock", path, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder := make([]byte, 32)
		n, _ := file.ReadAt(holder, 0)
		_ = file.Close()
		who, stop := "another process", "stop it"
		if pid := strings.TrimSpace(string(holder[:n])); pid != "" {
			who, stop = "process "+pid, "stop it (kill "+pid+")"
		}
		return nil, fault.New("layout.Lock", fault.Conflict,
			fmt.Sprintf("the state directory %s is in use by %s, which is a server already", l.state, who)).
			Hint(stop + " or give this server a state directory of its own: [config] state-dir, --state-dir")
	}
	if err != nil {
		_ = file.Close()
		return nil, fault.Disk("layout.Lock", path, err)
	}
	if err = file.Truncate(0); err == nil {
		_, err = file.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	}
	if err != nil {
		_ = file.Close()
		return nil, fault.Disk("layout.Lock", path, err)
	}
	return &Lock{file: file}, nil
}

// Unlock releases the state directory. Closing the file alone might do that late:
// a process that another goroutine is just starting has the file open as well,
// until it executes its program.
func (k *Lock) Unlock() error {
	return errors.Join(syscall.Flock(int(k.file.Fd()), syscall.LOCK_UN), k.file.Close())
}
