package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// spoolPrefix begins the names of files that are being written.
const spoolPrefix = ".put-"

// spool seals what r returns into a new file of the folder, which is on the disk when spool returns. The caller removes
// it, unless it fails.
func spool(
	ctx context.Context, key *secret.Key, dir string, r io.Reader,
) (f *os.File, hash string, size int64, err error) {
	const op = "blob.Put"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", 0, fault.Disk(op, dir, err)
	}
	if f, err = os.CreateTemp(dir, spoolPrefix+"*"); err != nil { // mode 0600
		return nil, "", 0, fault.Disk(op, dir, err)
	}
	hash, size, err = seal(ctx, key, f, r)
	if err == nil {
		err = fault.Disk(op, f.Name(), f.Sync())
	}
	if err != nil {
		discard(f)
		return nil, "", 0, err
	}
	return f, hash, size, nil
}

// discard closes and removes a spooled file.
func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// sweep removes spooled files that nobody has written to since before. The process that made them has crashed: a Put
// that waits this long for its reader fails.
func sweep(dir string, before time.Time) error {
	const op = "blob.Sweep"
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Disk(op, dir, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(e.Name(), spoolPrefix) ||
			!info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Disk(op, dir, err)
		}
	}
	return nil
}
