package venv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/filestamp"
)

// Memo remembers interpreters in a folder: to ask one what it is takes as long
// as a small compile, and longer where a version manager's wrapper runs first.
// What was remembered counts as long as the program that was asked, the one
// that answered and what chooses between them are the same.
type Memo struct {
	Dir string // empty: nothing is remembered
}

// remembered is an interpreter, and what it was found by.
type remembered struct {
	Interpreter Interpreter                `json:"interpreter"`
	Files       map[string]filestamp.Stamp `json:"files"`
}

// Find is Find, remembered.
func (m Memo) Find(ctx context.Context, python string) (Interpreter, error) {
	return m.through("find\x00"+python, asked(python), func() (Interpreter, error) { return Find(ctx, python) })
}

// FindMinor is FindMinor, remembered.
func (m Memo) FindMinor(ctx context.Context, minor string) (Interpreter, error) {
	return m.through(
		"minor\x00"+minor,
		asked("python"+minor),
		func() (Interpreter, error) { return FindMinor(ctx, minor) },
	)
}

// asked is the program that a name leads to.
func asked(python string) string {
	if python == "" {
		python = "python3"
	}
	path, err := exec.LookPath(python)
	if err != nil {
		return ""
	}
	return path
}

func (m Memo) through(what, program string, find func() (Interpreter, error)) (Interpreter, error) {
	if m.Dir == "" {
		return find()
	}
	root := pyenvRoot()
	sum := sha256.Sum256(
		[]byte(strings.Join([]string{what, program, root, os.Getenv("PATH"), os.Getenv("PYENV_VERSION")}, "\x00")),
	)
	path := filepath.Join(m.Dir, hex.EncodeToString(sum[:16])+".json")
	var known remembered
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &known) == nil && known.holds() {
		return known.Interpreter, nil
	}
	found, err := find()
	if err != nil {
		return found, err
	}
	known = remembered{Interpreter: found, Files: map[string]filestamp.Stamp{}}
	for _, file := range []string{program, found.Path, filepath.Join(root, "version")} {
		if !filepath.IsAbs(file) {
			continue
		}
		if known.Files[file], err = filestamp.Of(file); err != nil {
			return found, nil // what cannot be looked at is looked for again
		}
	}
	known.write(path)
	return found, nil
}

func (r remembered) holds() bool {
	if r.Interpreter.Path == "" || r.Files[r.Interpreter.Path] == (filestamp.Stamp{}) {
		return false
	}
	for path, was := range r.Files {
		if is, err := filestamp.Of(path); err != nil || is != was {
			return false
		}
	}
	return true
}

// write keeps it; what cannot be written is looked for again the next time.
func (r remembered) write(path string) {
	text, err := json.Marshal(r)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	if closeErr := temp.Close(); err == nil && closeErr == nil {
		_ = os.Rename(temp.Name(), path)
	}
}
