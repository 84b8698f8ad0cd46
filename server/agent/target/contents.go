package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/server/agent/protocol"
)

const (
	// contentAge is how long a content is kept that no command used.
	contentAge = 30 * 24 * time.Hour
	// maxContent bounds one content.
	maxContent = 4 << 30
)

// contents are files by their SHA-256. It is safe for concurrent use.
type contents struct {
	dir   string
	cache string // where archives of the Python runtime are unpacked
	// damaged is called with a content that turned out damaged, after it was removed.
	damaged func(hash string)

	mu       sync.Mutex
	held     map[string]bool
	arriving map[string]*arriving
	bad      map[string]string // why a content is not held
}

// arriving is a content of which parts are missing.
type arriving struct {
	file *os.File
	sum  hash.Hash
	size int64
}

func openContents(dir, cache string) (*contents, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Disk("target.contents", dir, err)
	}
	c := &contents{
		dir: dir, cache: cache, damaged: func(string) {}, held: map[string]bool{},
		arriving: map[string]*arriving{}, bad: map[string]string{},
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.Disk("target.contents", dir, err)
	}
	for _, e := range entries {
		if protocol.IsHash(e.Name()) && e.Type().IsRegular() {
			c.held[e.Name()] = true
		} else {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // what a crash left unfinished
		}
	}
	return c, nil
}

func (c *contents) path(hash string) string { return filepath.Join(c.dir, hash) }

// builtIn reports whether a content is the Python runtime of this program.
func builtIn(hash string) bool {
	_, own := runtime.Archive()
	return hash == own
}

// holds lists the contents, the program's own Python runtime first, at most as many as a hello may have.
func (c *contents) holds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, own := runtime.Archive()
	out := []string{own}
	for hash := range c.held {
		if hash != own {
			out = append(out, hash)
		}
	}
	slices.Sort(out[1:])
	return out[:min(len(out), protocol.MaxHolds)]
}

// lacking returns an error that names the first content which is not there.
func (c *contents) lacking(hashes []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range hashes {
		if c.held[hash] || builtIn(hash) {
			continue
		}
		if why := c.bad[hash]; why != "" {
			return fmt.Errorf("the content %s is missing: %s", hash, why)
		}
		return fmt.Errorf("the content %s is missing: the server did not send it", hash)
	}
	return nil
}

// drop forgets contents of which only some parts arrived, when the connection ends.
func (c *contents) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, a := range c.arriving {
		_ = a.file.Close()
		_ = os.Remove(a.file.Name())
		delete(c.arriving, hash)
	}
}

// add takes a part of a content. It returns true when the content is complete. An error means that it is thrown away.
func (c *contents) add(m *protocol.ContentMessage) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done, err := c.take(m)
	switch {
	case err != nil:
		if a := c.arriving[m.Hash]; a != nil {
			_ = a.file.Close()
			_ = os.Remove(a.file.Name())
			delete(c.arriving, m.Hash)
		}
		c.bad[m.Hash] = err.Error()
	case done:
		c.held[m.Hash] = true
		delete(c.bad, m.Hash)
	}
	return done, err
}

func (c *contents) take(m *protocol.ContentMessage) (bool, error) {
	if m.Size > maxContent {
		return false, fmt.Errorf("it has %d bytes, and may have %d", m.Size, int64(maxContent))
	}
	a := c.arriving[m.Hash]
	if m.Offset == 0 && a == nil {
		file, err := os.CreateTemp(c.dir, "arriving-*")
		if err != nil {
			return false, fault.Disk("target.contents", c.dir, err)
		}
		a = &arriving{file: file, sum: sha256.New()}
		c.arriving[m.Hash] = a
	}
	if a == nil || m.Offset != a.size {
		return false, errors.New("its parts did not arrive in order")
	}
	_, _ = a.sum.Write(m.Data)
	a.size += int64(len(m.Data))
	if _, err := a.file.Write(m.Data); err != nil {
		return false, fault.Disk("target.contents", c.dir, err)
	}
	if !m.Last {
		return false, nil
	}
	if got := hex.EncodeToString(a.sum.Sum(nil)); a.size != m.Size || got != m.Hash {
		return false, fmt.Errorf(
			"what arrived does not match its hash: %d of %d bytes, SHA-256 %s",
			a.size,
			m.Size,
			got,
		)
	}
	err := errors.Join(a.file.Sync(), a.file.Close(), os.Rename(a.file.Name(), c.path(m.Hash)))
	if err != nil {
		return false, fault.Disk("target.contents", c.path(m.Hash), err)
	}
	delete(c.arriving, m.Hash)
	return true, nil
}

// read returns a content, whose hash it checks.
func (c *contents) read(hash string) ([]byte, error) {
	if content, own := runtime.Archive(); hash == own {
		return content, nil
	}
	c.mu.Lock()
	held := c.held[hash]
	c.mu.Unlock()
	if !held {
		return nil, fault.New("target.contents", fault.NotFound, "the content "+hash+" is missing")
	}
	content, err := os.ReadFile(c.path(hash))
	if err == nil {
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) == hash {
			now := time.Now()
			_ = os.Chtimes(c.path(hash), now, now)
			return content, nil
		}
		err = errors.New("it does not match its hash any more")
	}
	c.remove([]string{hash}, "it was damaged on the agent's disk: "+err.Error())
	c.damaged(hash)
	return nil, fault.Wrap("target.contents", fault.NotFound, err).
		Say("the content " + hash + " was damaged on the agent's disk; it has to be sent again")
}

// remove deletes contents.
func (c *contents) remove(hashes []string, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range hashes {
		if protocol.IsHash(hash) {
			_ = os.Remove(c.path(hash))
			delete(c.held, hash)
			c.bad[hash] = why
		}
	}
}

// Wheel implements executor.Contents. The user of the file checks its hash again.
func (c *contents) Wheel(_ context.Context, hash string) (string, error) {
	if _, err := c.read(hash); err != nil {
		return "", err
	}
	return c.path(hash), nil
}

// Runtime implements executor.Contents.
func (c *contents) Runtime(_ context.Context, hash string) (string, error) {
	content, err := c.read(hash)
	if err != nil {
		return "", err
	}
	return runtime.UnpackArchive(c.cache, content, hash)
}

// clean removes contents that no command used for long.
func (c *contents) clean(used map[string]bool) {
	before := time.Now().Add(-contentAge)
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash := range c.held {
		info, err := os.Stat(c.path(hash))
		switch {
		case err != nil:
			delete(c.held, hash)
		case used[hash]:
			now := time.Now()
			_ = os.Chtimes(c.path(hash), now, now)
		case info.ModTime().Before(before):
			_ = os.Remove(c.path(hash))
			delete(c.held, hash)
		}
	}
}
