// Package runtime holds the Python code that every worker runs, and unpacks it
// from the binary.
//
//	ordain_worker/  the Python end of the protocol (../worker/PROTOCOL.md): its
//	                roles, and how a worker calls plug-ins and handlers
//	inmanta/        our own light version of the packages that modules import:
//	                inmanta.plugins, inmanta.resources, inmanta.agent.handler, …
//	ordain_modules/ modules of the model that every project may import
//	tests/          unit tests of both, which are not part of the binary
//
// A worker finds this `inmanta` before an installed inmanta-core, so it starts
// in tens of milliseconds; modules that ours lacks are taken from the installed one.
package runtime

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

//go:embed all:inmanta all:ordain_worker all:ordain_modules
var tree embed.FS

// sources returns the embedded Python files by their path, and a hash of them
// all. Bytecode that an interpreter left in the source tree is not part of it.
var sources = sync.OnceValues(func() (map[string][]byte, string) {
	files := map[string][]byte{}
	sum := sha256.New()
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		content, err := tree.ReadFile(path)
		if err != nil {
			return err
		}
		files[path] = content
		fmt.Fprintf(sum, "%s\x00%d\x00", path, len(content))
		sum.Write(content)
		return nil
	})
	if err != nil {
		panic("the embedded Python runtime cannot be read: " + err.Error())
	}
	return files, hex.EncodeToString(sum.Sum(nil)[:10])
})

// Unpack writes the Python runtime below cacheDir, into a folder that is named
// after its content, and returns that folder. Any number of processes may do so
// at once: the folder appears complete or not at all.
func Unpack(cacheDir string) (dir string, err error) {
	pruneBytecode(filepath.Join(cacheDir, "__pycache__"), time.Now())
	dir, err = unpack(cacheDir)
	if err != nil {
		return "", fmt.Errorf("unpack the Python runtime: %w", err)
	}
	return dir, nil
}

// modules is the folder of the modules that every project may import.
const modules = "ordain_modules"

// HasModule reports whether a module of the model comes with this program.
func HasModule(name string) bool {
	files, _ := sources()
	return files[path.Join(modules, name, "model", "_init.cf")] != nil
}

// Module returns the folder of a module that comes with this program, below a folder that Unpack returned.
func Module(runtimeDir, name string) string { return filepath.Join(runtimeDir, modules, name) }

func unpack(cacheDir string) (string, error) {
	files, hash := sources()
	return unpackFiles(cacheDir, files, hash)
}

// unpackFiles writes files into a folder that is named after their hash.
func unpackFiles(cacheDir string, files map[string][]byte, hash string) (string, error) {
	dir := filepath.Join(cacheDir, "runtime-"+hash)
	if complete(dir, files) {
		return dir, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(cacheDir, ".runtime-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	for name, content := range files {
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", err
	}
	for range 3 {
		err = os.Rename(temp, dir)
		if err == nil || complete(dir, files) {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return "", err
		}
		// A damaged copy is in the way. Move it aside rather than removing it in
		// place, because other processes may be reading it.
		aside, asideErr := os.MkdirTemp(cacheDir, ".damaged-*")
		if asideErr != nil {
			return "", asideErr
		}
		_ = os.Rename(dir, filepath.Join(aside, "runtime"))
		_ = os.RemoveAll(aside)
	}
	return "", err
}

// complete compares only names and sizes, because the name of the folder holds the hash.
func complete(dir string, files map[string][]byte) bool {
	for name, content := range files {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || info.Size() != int64(len(content)) {
			return false
		}
	}
	return true
}
