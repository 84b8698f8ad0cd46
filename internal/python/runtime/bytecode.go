package runtime

import (
	"os"
	"path/filepath"
	"time"
)

// How long bytecode is kept that no worker used, and how often it is looked
// for. A worker marks what it uses by the time of the file, once a day
// (ordain_worker/bytecode.py).
const (
	bytecodeAge   = 30 * 24 * time.Hour
	bytecodeSweep = 24 * time.Hour
)

// pruneBytecode removes from the folder of bytecode what was not used for long.
// It looks once a day; of several processes the first one does.
func pruneBytecode(dir string, now time.Time) {
	stamp := filepath.Join(dir, ".pruned")
	if info, err := os.Lstat(stamp); err == nil && now.Sub(info.ModTime()) < bytecodeSweep {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nothing was ever kept
	}
	if os.WriteFile(stamp, nil, 0o600) != nil || os.Chtimes(stamp, now, now) != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > bytecodeAge {
			_ = os.Remove(filepath.Join(dir, e.Name())) // a worker that just wanted it compiles it again
		}
	}
}
