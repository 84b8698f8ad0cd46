package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// Folder keeps contents in a folder: the content abc… in ab/abc….
type Folder struct {
	dir string
	key *secret.Key
}

var _ Store = (*Folder)(nil)

// NewFolder returns the store in a folder, which is made when something is put there.
func NewFolder(dir string, key *secret.Key) (*Folder, error) {
	if dir == "" || key == nil {
		return nil, errors.New("blob.NewFolder: the folder or the key is missing")
	}
	return &Folder{dir: dir, key: key}, nil
}

func (s *Folder) path(hash string) string { return filepath.Join(s.dir, hash[:2], hash) }

// Put seals the content into a temporary file, and renames that. A content that is there already is replaced: the new
// file is as good, and young.
func (s *Folder) Put(ctx context.Context, r io.Reader) (string, int64, error) {
	const op = "blob.Put"
	f, hash, size, err := spool(ctx, s.key, s.dir, r)
	if err != nil {
		return "", 0, err
	}
	path := s.path(hash)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		discard(f)
		return "", 0, fault.Disk(op, filepath.Dir(path), err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		discard(f)
		return "", 0, fault.Disk(op, path, err)
	}
	if err := f.Close(); err != nil {
		return "", 0, fault.Disk(op, path, err)
	}
	for _, dir := range []string{filepath.Dir(path), s.dir} {
		if err := syncFolder(dir); err != nil {
			return "", 0, fault.Disk(op, dir, err)
		}
	}
	return hash, size, nil
}

// syncFolder makes names of files survive a power failure.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Open returns a content.
func (s *Folder) Open(_ context.Context, hash string) (Content, error) {
	const op = "blob.Open"
	if err := check(op, hash); err != nil {
		return Content{}, err
	}
	f, err := os.Open(s.path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, notFound(op, hash)
	}
	if err != nil {
		return Content{}, fault.Disk(op, s.path(hash), err)
	}
	return open(s.key, hash, f)
}

// Stat describes a content.
func (s *Folder) Stat(_ context.Context, hash string) (Info, error) {
	const op = "blob.Stat"
	if err := check(op, hash); err != nil {
		return Info{}, err
	}
	info, err := os.Stat(s.path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, notFound(op, hash)
	}
	if err != nil {
		return Info{}, fault.Disk(op, s.path(hash), err)
	}
	return Info{Hash: hash, Stored: info.Size(), Modified: info.ModTime()}, nil
}

// Delete removes a content.
func (s *Folder) Delete(_ context.Context, hash string) error {
	const op = "blob.Delete"
	if err := check(op, hash); err != nil {
		return err
	}
	if err := os.Remove(s.path(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Disk(op, s.path(hash), err)
	}
	return nil
}

// List calls f for every content.
func (s *Folder) List(ctx context.Context, f func(Info) error) error {
	const op = "blob.List"
	folders, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Disk(op, s.dir, err)
	}
	for _, folder := range folders {
		if !folder.IsDir() || len(folder.Name()) != 2 {
			continue
		}
		dir := filepath.Join(s.dir, folder.Name())
		files, err := os.ReadDir(dir)
		if err != nil {
			return fault.Disk(op, dir, err)
		}
		for _, file := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := file.Info()
			if err != nil || !info.Mode().IsRegular() || !IsHash(file.Name()) || file.Name()[:2] != folder.Name() {
				continue // removed meanwhile, or not ours
			}
			if err := f(Info{Hash: file.Name(), Stored: info.Size(), Modified: info.ModTime()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep removes what broken calls of Put left.
func (s *Folder) Sweep(_ context.Context, before time.Time) error { return sweep(s.dir, before) }
