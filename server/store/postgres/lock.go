package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// lock keeps a second server off the data directory. The system drops it when this program ends, however it ends.
func lock(dataDir string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(dataDir), 0o755); err != nil {
		return nil, inWords("postgres.lock", err)
	}
	f, err := os.OpenFile(dataDir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, inWords("postgres.lock", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		if err == syscall.EWOULDBLOCK {
			return nil, fault.New("postgres.lock", fault.Conflict, "another server is using the database in "+dataDir).
				Hint("stop it, or choose another state directory")
		}
		return nil, inWords("postgres.lock", err)
	}
	return f, nil
}

// unlock releases the data directory. Closing the file alone would not do so at once: a process that another
// goroutine is just starting has the file too, until it executes its own program.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
