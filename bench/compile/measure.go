package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cost is the time that one run of a command took.
type cost struct {
	wall time.Duration
	cpu  time.Duration // user and system, children included
}

// command is a program with its arguments and folder.
type command struct {
	dir  string
	args []string
	env  []string
}

func (c command) make(ctx context.Context) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &said, &said
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, &said
}

// time runs the command to its end.
func (c command) time(ctx context.Context) (cost, error) {
	cmd, said := c.make(ctx)
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, said)
	}
	return cost{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// memory runs the command and returns the peak of its resident memory: the sum
// of the peaks of all its processes, which need not have been at the same time.
func (c command) memory(ctx context.Context) (int64, error) {
	cmd, said := c.make(ctx)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	peaks := map[int]int64{}
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return 0, fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, said)
			}
			var sum int64
			for _, peak := range peaks {
				sum += peak
			}
			return sum, nil
		case <-tick.C:
			notePeaks(cmd.Process.Pid, peaks)
		}
	}
}

// notePeaks records the highest resident memory so far of a process and of its
// descendants.
func notePeaks(pid int, peaks map[int]int64) {
	if peak := highWater(pid); peak > peaks[pid] {
		peaks[pid] = peak
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil && !oneMemory(pid, n) {
				notePeaks(n, peaks)
			}
		}
	}
}

// oneMemory reports whether two processes share their memory: for a moment, a
// process that is being started shares that of its parent.
func oneMemory(one, other int) bool {
	const memory = 1 // KCMP_VM
	different, _, err := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), memory, 0, 0, 0)
	return err == 0 && different == 0
}

// highWater returns the peak of the resident memory of a process in bytes.
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// figures are the runs of one command on one model.
type figures struct {
	runs []cost
	peak int64
}

func (f figures) wall() (median, best time.Duration) {
	return spread(f.runs, func(c cost) time.Duration { return c.wall })
}

func (f figures) cpu() (median, best time.Duration) {
	return spread(f.runs, func(c cost) time.Duration { return c.cpu })
}

func spread(runs []cost, of func(cost) time.Duration) (median, best time.Duration) {
	all := make([]time.Duration, len(runs))
	for i, r := range runs {
		all[i] = of(r)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0, 0
	}
	return all[len(all)/2], all[0]
}
