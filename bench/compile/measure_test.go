package main

import (
	"os"
	"os/exec"
	"testing"
)

// A program that was started has a memory of its own; a process shares one
// with itself, as with what it is about to start.
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
		t.Error("cat is told to have the memory of the test")
	}
}
