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

// Memo remembers interpreters in a folder, because asking one what it is takes as
// long as a small compile, and longer through a wrapper of a version manager. An
// entry is valid as long as the program that was asked, the interpreter that
// answered and the choice of the version manager are unchanged.
type Memo struct {
	Dir string // if empty, nothing is remembered
}

// remembered is an entry: an interpreter, and the files on which its choice depends.
type remembered struct {
	Interpreter Interpreter                `json:"interpreter"`
	Files       map[string]filestamp.Stamp `json:"files"`
}

// Find is like the function Find, but remembers the result.
func (m Memo) Find(ctx context.Context, python string) (Interpreter, error) {
	return m.lookUp("find\x00"+python, programOf(python), func() (Interpreter, error) { return Find(ctx, python) })
}

// FindMinor is like the function FindMinor, but remembers the result.
func (m Memo) FindMinor(ctx context.Context, minor string) (Interpreter, error) {
	find := func() (Interpreter, error) { return FindMinor(ctx, minor) }
	return m.lookUp("minor\x00"+minor, programOf("python"+minor), find)
}

// programOf returns the path of the program that a name stands for, or an empty string.
func programOf(python string) string {
	if python == "" {
		python = "python3"
	}
	path, err := exec.LookPath(python)
	if err != nil {
		return ""
	}
	return path
}

// lookUp returns the remembered interpreter of a question, or finds and remembers it.
func (m Memo) lookUp(question, program string, find func() (Interpreter, error)) (Interpreter, error) {
	if m.Dir == "" {
		return find()
	}
	root := pyenvRoot()
	sum := sha256.Sum256(
		[]byte(strings.Join([]string{question, program, root, os.Getenv("PATH"), os.Getenv("PYENV_VERSION")}, "\x00")),
	)
	path := filepath.Join(m.Dir, hex.EncodeToString(sum[:16])+".json")
	var known remembered
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &known) == nil && known.valid() {
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
			return found, nil // it cannot be checked later, so it is not remembered
		}
	}
	known.write(path)
	return found, nil
}

// valid reports whether all files are unchanged.
func (r remembered) valid() bool {
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

// write stores the entry. If that fails, the interpreter is asked again the next time.
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
