package runtime

import (
	"os"
	"path/filepath"
	"time"
)

// Bytecode that no worker used for bytecodeAge is removed, every bytecodeSweep. Once
// a day a worker sets the time of the files that it uses (ordain_worker/bytecode.py).
const (
	bytecodeAge   = 30 * 24 * time.Hour
	bytecodeSweep = 24 * time.Hour
)

// pruneBytecode removes old files from the folder of bytecode. It does so once a day,
// in whichever process comes first.
func pruneBytecode(dir string, now time.Time) {
	stamp := filepath.Join(dir, ".pruned")
	if info, err := os.Lstat(stamp); err == nil && now.Sub(info.ModTime()) < bytecodeSweep {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is no bytecode yet
	}
	if os.WriteFile(stamp, nil, 0o600) != nil || os.Chtimes(stamp, now, now) != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > bytecodeAge {
			_ = os.Remove(filepath.Join(dir, e.Name())) // a worker that needs it just now compiles it again
		}
	}
}
