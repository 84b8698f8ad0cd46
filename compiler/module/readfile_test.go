//go:build unix

package module_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/module"
)

// Reading a pipe would block until somebody writes to it.
func TestPipesAreRefused(t *testing.T) {
	dir := project(t, map[string]string{"project.yml": "name: p\n"})
	if err := syscall.Mkfifo(filepath.Join(dir, "main.cf"), 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	p, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := module.NewLoader(p).Load("main.cf", false)
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
			t.Errorf("reading a pipe returns %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("reading the pipe blocks")
	}
}
