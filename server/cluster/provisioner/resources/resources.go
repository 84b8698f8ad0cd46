// Package resources keeps the files that plug-ins use, such as keys, scripts and cookbooks, in a folder of the
// provisioner.
//
//	task.Resources ──▶ Use ──▶ in the folder already? ── yes ─▶ pin ──▶ Set: paths for the plug-in, until Release
//	                            └─ no ─▶ fetch, verify SHA-256 and size while it streams, set permissions or unpack,
//	                                     rename into place ─▶ pin
//
// What is not pinned is removed when the folder grows beyond its size, the least recently used first. A resource is
// fetched once, however many tasks ask for it at a time. One process uses a folder at a time. After a crash, what was
// complete is used again and what was not is removed.
package resources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/archive"
	"ordain.dev/ordain/server/cluster/task"
)

// The formats of resources.
const (
	File    = "file"
	Archive = "archive"
)

// sizeMax is the size of the largest resource.
const sizeMax = archive.MaxPacked

// Config is what a Store needs.
type Config struct {
	Folder string // is made if it does not exist
	// Max is how many bytes the folder may have while nothing is pinned. 0: 4 GiB.
	Max int64
	// Fetch opens the content with a hash.
	Fetch  func(ctx context.Context, hash string) (io.ReadCloser, error)
	Logger *slog.Logger
}

// Store keeps resources. It is safe for concurrent use.
type Store struct {
	c Config

	mu      sync.Mutex
	entries map[string]*entry // by key
	size    int64             // of all entries that are complete
}

// entry is a resource in the folder. ready is closed when it is complete, or err says why it is not; the other fields
// belong to Store.mu.
type entry struct {
	ready chan struct{}
	err   error
	pins  int
	size  int64
	used  time.Time
}

// Open opens the folder, and removes what a crash left incomplete.
func Open(c Config) (*Store, error) {
	if c.Max == 0 {
		c.Max = 4 << 30
	}
	s := &Store{c: c, entries: map[string]*entry{}}
	// Plug-ins that run as other users pass through the folder, and cannot list it.
	if err := os.MkdirAll(c.Folder, 0o711); err != nil {
		return nil, fault.Disk("resources.Open", c.Folder, err)
	}
	found, err := os.ReadDir(c.Folder)
	if err != nil {
		return nil, fault.Disk("resources.Open", c.Folder, err)
	}
	for _, d := range found {
		path := filepath.Join(c.Folder, d.Name())
		info, err := d.Info()
		if err != nil || !d.IsDir() || strings.HasPrefix(d.Name(), freshPrefix) {
			if err := os.RemoveAll(path); err != nil {
				return nil, fault.Disk("resources.Open", path, err)
			}
			continue
		}
		e := &entry{ready: make(chan struct{}), size: sizeOf(path), used: info.ModTime()}
		close(e.ready)
		s.entries[d.Name()] = e
		s.size += e.size
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shrink()
	return s, nil
}

// Set is the resources of one task. It keeps them in the folder until Release.
type Set struct {
	store *Store
	keys  []string
	paths map[[2]string]string // by type and name
	once  sync.Once
}

// Use returns the resources, and fetches those that the folder does not have. The caller releases the set.
func (s *Store) Use(ctx context.Context, wanted []task.Resource) (*Set, error) {
	set := &Set{store: s, paths: map[[2]string]string{}}
	for _, r := range wanted {
		path, err := s.pin(ctx, set, r)
		if err != nil {
			set.Release()
			return nil, err
		}
		set.paths[[2]string{r.Type, r.Name}] = path
	}
	return set, nil
}

// Path implements plugin.Files.
func (set *Set) Path(resourceType, name string) (string, error) {
	if path, ok := set.paths[[2]string{resourceType, name}]; ok {
		return path, nil
	}
	var there []string
	for key := range set.paths {
		if key[0] == resourceType {
			there = append(there, key[1])
		}
	}
	return "", missing(resourceType, name, there)
}

// Release lets the store remove the resources when it needs room. It may be called more than once.
func (set *Set) Release() {
	set.once.Do(func() {
		s := set.store
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, key := range set.keys {
			e := s.entries[key]
			e.pins--
			e.used = time.Now()
		}
		s.shrink()
	})
}

// pin adds a resource to a set. A fetch that was cut off by the end of another task's context is begun again.
func (s *Store) pin(ctx context.Context, set *Set, r task.Resource) (string, error) {
	mode, err := check(r)
	if err != nil {
		return "", err
	}
	key := keyOf(r)
	for {
		s.mu.Lock()
		e, ok := s.entries[key]
		if !ok {
			e = &entry{ready: make(chan struct{})}
			s.entries[key] = e
		}
		e.pins++
		s.mu.Unlock()
		if !ok {
			e.err = s.fetch(ctx, key, e, r, mode)
			close(e.ready)
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			s.mu.Lock()
			e.pins--
			s.mu.Unlock()
			return "", context.Cause(ctx)
		}
		if e.err == nil {
			now := time.Now()
			_ = os.Chtimes(filepath.Join(s.c.Folder, key), now, now)
			set.keys = append(set.keys, key)
			return filepath.Join(s.c.Folder, key, r.Name), nil
		}
		if ok && ctx.Err() == nil &&
			(errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)) {
			continue // the task that fetched it has ended
		}
		return "", e.err
	}
}

// freshPrefix begins the names of what is not complete.
const freshPrefix = "new-"

// fetch makes an entry. If it fails, the entry is forgotten.
func (s *Store) fetch(ctx context.Context, key string, e *entry, r task.Resource, mode os.FileMode) (err error) {
	var fresh string
	defer func() {
		if fresh != "" {
			_ = os.RemoveAll(fresh)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			delete(s.entries, key)
			return
		}
		s.size += e.size
		s.shrink()
	}()
	if fresh, err = os.MkdirTemp(s.c.Folder, freshPrefix); err != nil {
		return fault.Disk("resources.Use", s.c.Folder, err)
	}
	if err := os.Chmod(fresh, 0o711); err != nil {
		return fault.Disk("resources.Use", fresh, err)
	}
	content, err := s.c.Fetch(ctx, r.Hash)
	if err != nil {
		return fmt.Errorf("the resource %s of the type %s: %w", r.Name, r.Type, err)
	}
	defer content.Close()
	download := filepath.Join(fresh, "content")
	if err := save(download, content, r); err != nil {
		return err
	}
	final := filepath.Join(fresh, r.Name)
	if r.Format == Archive {
		err = unpack(download, fresh, r, mode)
	} else {
		err = place(download, final, mode)
	}
	if err != nil {
		return err
	}
	e.size = sizeOf(fresh)
	if err := os.Rename(fresh, filepath.Join(s.c.Folder, key)); err != nil {
		return fault.Disk("resources.Use", fresh, err)
	}
	return nil
}

// save writes a content, and verifies that it is the right one.
func save(path string, content io.Reader, r task.Resource) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Disk("resources.Use", path, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(content, r.Size+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fault.Wrap("resources.Use", fault.Unavailable, err).
			Say(fmt.Sprintf("the resource %s of the type %s cannot be fetched", r.Name, r.Type))
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != r.Size || got != r.Hash {
		return fault.New("resources.Use", fault.Unavailable,
			fmt.Sprintf("the resource %s of the type %s did not arrive as it was stored: it does not have the hash %s",
				r.Name, r.Type, r.Hash)).Hint("upload the resource again if this happens again")
	}
	return nil
}

// place turns a download into the file of a resource.
func place(download, final string, mode os.FileMode) error {
	if download != final {
		if err := os.Rename(download, final); err != nil {
			return fault.Disk("resources.Use", final, err)
		}
	}
	if err := os.Chmod(final, mode); err != nil {
		return fault.Disk("resources.Use", final, err)
	}
	return nil
}

// unpack turns a download into the folder of a resource.
func unpack(download, fresh string, r task.Resource, mode os.FileMode) error {
	f, err := os.Open(download)
	if err != nil {
		return fault.Disk("resources.Use", download, err)
	}
	defer f.Close()
	if err := os.Remove(download); err != nil { // it can be read until it is closed, and the resource may have its name
		return fault.Disk("resources.Use", download, err)
	}
	if err := archive.Unpack(f, r.Name, fresh); err != nil {
		return err
	}
	if r.Permissions == "" {
		return nil
	}
	return permit(filepath.Join(fresh, r.Name), mode)
}

// permit gives the files of a folder a mode. Who may read a file may run it, if it was a program, and may enter the
// folders.
func permit(top string, mode os.FileMode) error {
	run := mode & 0o444 >> 2
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, mode|run|0o700)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&0o111 != 0 {
			return os.Chmod(path, mode|run)
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		return fault.Disk("resources.Use", top, err)
	}
	return nil
}

// check checks what a task says of a resource, and returns the mode of its files.
func check(r task.Resource) (os.FileMode, error) {
	refuse := func(text string) (os.FileMode, error) {
		return 0, fault.New(
			"resources.Use",
			fault.Invalid,
			fmt.Sprintf("the resource %q of the type %q %s", r.Name, r.Type, text),
		)
	}
	if r.Name == "" || r.Name == "." || r.Name == ".." || len(r.Name) > 255 || strings.ContainsAny(r.Name, "/\\\x00") {
		return refuse("has a name that cannot be that of a file")
	}
	if sum, err := hex.DecodeString(r.Hash); err != nil || len(sum) != sha256.Size ||
		strings.ToLower(r.Hash) != r.Hash {
		return refuse("has a hash that is not a SHA-256")
	}
	if r.Size < 0 || r.Size > sizeMax {
		return refuse("is too large")
	}
	if r.Format != File && r.Format != Archive {
		return refuse("is neither a file nor an archive")
	}
	if r.Permissions == "" {
		return 0o400, nil
	}
	mode, err := strconv.ParseUint(r.Permissions, 8, 32)
	if err != nil || mode > 0o777 || mode&0o400 == 0 {
		return refuse("has permissions that cannot be used; write them as 0400")
	}
	return os.FileMode(mode), nil
}

// keyOf returns the name of the folder of a resource: what makes its files what they are.
func keyOf(r task.Resource) string {
	look := sha256.Sum256([]byte(r.Format + "\x00" + r.Permissions + "\x00" + r.Name))
	return r.Hash + "-" + hex.EncodeToString(look[:8])
}

// shrink removes entries that nobody uses until the rest fits. Store.mu is held.
func (s *Store) shrink() {
	for s.size > s.c.Max {
		oldest := ""
		for key, e := range s.entries {
			if e.pins == 0 && e.done() && (oldest == "" || e.used.Before(s.entries[oldest].used)) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		s.size -= s.entries[oldest].size
		delete(s.entries, oldest)
		path := filepath.Join(s.c.Folder, oldest)
		gone := filepath.Join(s.c.Folder, freshPrefix+oldest) // so that half of it is never taken for the whole
		err := os.Rename(path, gone)
		if err == nil {
			err = os.RemoveAll(gone)
		}
		if err != nil && s.c.Logger != nil {
			s.c.Logger.Warn("a resource that is no longer used cannot be removed", "path", path, "error", err)
		}
	}
}

func (e *entry) done() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// sizeOf returns the size of all files below a path.
func sizeOf(path string) int64 {
	var size int64
	_ = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
