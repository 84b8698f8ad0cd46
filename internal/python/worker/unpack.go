package worker

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed all:runtime
var runtimeTree embed.FS

// runtimeFiles lists the embedded files with their sizes, without what an
// interpreter may have left in the source tree, and the hash of them all. Their
// text is read piece by piece: every compile does this.
var runtimeFiles = sync.OnceValues(func() (map[string]int64, string) {
	files := map[string]int64{}
	sum := sha256.New()
	piece := make([]byte, 8<<10)
	err := fs.WalkDir(runtimeTree, "runtime", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		file, err := runtimeTree.Open(path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "runtime/")
		files[name] = info.Size()
		fmt.Fprintf(sum, "%s\x00%d\x00", name, info.Size())
		_, err = io.CopyBuffer(sum, file, piece)
		return err
	})
	if err != nil {
		panic("pyworker: the embedded runtime cannot be read: " + err.Error())
	}
	return files, hex.EncodeToString(sum.Sum(nil)[:10])
})

// Prepare does the first part of UnpackRuntime, half a millisecond, for who has
// something else to do meanwhile.
func Prepare() { runtimeFiles() }

// UnpackRuntime writes the Python runtime below cacheDir, once per content,
// and gives its folder. Any number of processes may do so at once: the folder
// appears complete or not at all.
func UnpackRuntime(cacheDir string) (dir string, err error) {
	files, hash := runtimeFiles()
	dir = filepath.Join(cacheDir, "runtime-"+hash)
	pruneBytecode(filepath.Join(cacheDir, "__pycache__"), time.Now())
	if complete(dir, files) {
		return dir, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", fmt.Errorf("unpack the Python runtime: %w", err)
	}
	temp, err := os.MkdirTemp(cacheDir, ".runtime-*")
	if err != nil {
		return "", fmt.Errorf("unpack the Python runtime: %w", err)
	}
	defer os.RemoveAll(temp)
	for name := range files {
		content, err := runtimeTree.ReadFile("runtime/" + name)
		if err != nil {
			return "", fmt.Errorf("unpack the Python runtime: %w", err)
		}
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", fmt.Errorf("unpack the Python runtime: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return "", fmt.Errorf("unpack the Python runtime: %w", err)
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", fmt.Errorf("unpack the Python runtime: %w", err)
	}
	for range 3 {
		if err = os.Rename(temp, dir); err == nil || complete(dir, files) {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			break
		}
		// A damaged copy is in the way: move it aside, for others may be reading it.
		aside, asideErr := os.MkdirTemp(cacheDir, ".damaged-*")
		if asideErr != nil {
			return "", fmt.Errorf("unpack the Python runtime: %w", asideErr)
		}
		_ = os.Rename(dir, filepath.Join(aside, "runtime"))
		_ = os.RemoveAll(aside)
	}
	return "", fmt.Errorf("unpack the Python runtime: %w", err)
}

// complete compares names and sizes; the folder's name already holds the hash.
func complete(dir string, files map[string]int64) bool {
	for name, size := range files {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || info.Size() != size {
			return false
		}
	}
	return true
}
