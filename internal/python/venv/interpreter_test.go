package venv

import (
	"os"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// pyenv puts a wrapper for every installed version on PATH, but the wrapper runs
// only the versions that are switched on. FindMinor finds the interpreter where
// pyenv keeps it.
func TestWrapperThatDoesNotRun(t *testing.T) {
	real, err := Find(t.Context(), "")
	if err != nil {
		tool.Missing(t, "there is no usable Python on this machine: %v", err)
	}
	name := "python" + real.Minor
	shims, root := t.TempDir(), t.TempDir()
	program := filepath.Join(shims, name)
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", shims)
	t.Setenv("PYENV_ROOT", root)
	if i, err := FindMinor(t.Context(), real.Minor); err == nil {
		t.Fatalf("found %v, though there is only a broken wrapper", i)
	}
	for _, patch := range []string{"2", "10"} {
		bin := filepath.Join(root, "versions", real.Minor+"."+patch, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real.Path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	i, err := FindMinor(t.Context(), real.Minor)
	if err != nil {
		t.Fatal(err)
	}
	if i.Path != real.Path {
		t.Errorf("found %s, want %s", i.Path, real.Path)
	}
	if order := ofPyenv(name, real.Minor); len(order) != 2 ||
		filepath.Base(filepath.Dir(filepath.Dir(order[0]))) != real.Minor+".10" {
		t.Errorf("the newest is not first: %v", order)
	}
	if _, err := FindMinor(t.Context(), "3.1"); err == nil {
		t.Error("found Python 3.1")
	}
}
