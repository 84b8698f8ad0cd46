package main

import (
	"os"
	"os/exec"
	"testing"
)

// A running child process has memory of its own; a process shares memory with
// itself.
func TestOneMemory(t *testing.T) {
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = c.Wait() }()
	if !oneMemory(os.Getpid(), os.Getpid()) {
		t.Skip("the kernel does not compare processes")
	}
	if oneMemory(os.Getpid(), c.Process.Pid) {
		t.Error("cat seems to share the memory of the test")
	}
}
