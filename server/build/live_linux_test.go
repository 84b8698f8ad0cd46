package build_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// baking is a project whose plug-in prints, and then waits for a file.
const baking = `
-- project.yml --
name: test
modulepath: libs
-- libs/std/module.yml --
name: std
version: 1.0.0
license: none
-- libs/std/model/_init.cf --
-- libs/std/plugins/__init__.py --
import os
import time

from inmanta.plugins import plugin

@plugin
def bake() -> None:
    print("baker", os.getpid())
    print("dough")
    print("dough")
    for _ in range(6000):
        if os.path.exists("oven"):
            break
        time.sleep(0.1)
    print("cake")
-- main.cf --
std::bake()
`

// printing waits until the compile has printed a text.
func (s *shop) printing(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * patience); !strings.Contains(s.text(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the compile did not print %q, but:\n%s", text, s.text())
		}
	}
}

// What a plug-in prints arrives while it runs, and only once.
func TestWhatAPluginPrintsArrivesAtOnce(t *testing.T) {
	s := openShop(t, baking)
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.builder.Compile(t.Context(), s.job, s.keep)
		ended <- err
	}()
	s.printing("dough\ndough\n")
	select {
	case err := <-ended:
		t.Fatalf("the compile ended before it was let go: %v", err)
	default:
	}
	s.write("-- oven --\n")
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, s.text())
	}
	if text := s.text(); strings.Count(text, "dough") != 2 || strings.Count(text, "cake") != 1 ||
		strings.Count(text, "baker") != 1 {
		t.Errorf("it printed:\n%s", text)
	}
}

// A compile that is cancelled leaves no process behind: neither the compiler nor the worker with the plug-in.
func TestNothingIsLeftOfACancelledCompile(t *testing.T) {
	s := openShop(t, baking)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.builder.Compile(ctx, s.job, s.keep)
		ended <- err
	}()
	s.printing("dough\n")
	var pid int
	if _, err := fmt.Sscanf(s.text(), "baker %d", &pid); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	gone(t, pid)
}
