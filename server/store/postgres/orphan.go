package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// pidFile is what a running PostgreSQL writes about itself into postmaster.pid.
type pidFile struct {
	pid     int
	dataDir string
	status  string // starting, ready, stopping …
}

// readPidFile reads postmaster.pid; ok is false when there is none, or only part of one.
func readPidFile(dataDir string) (p pidFile, ok bool) {
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return p, false
	}
	return parsePidFile(string(text))
}

func parsePidFile(text string) (p pidFile, ok bool) {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 {
		return p, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return p, false
	}
	p = pidFile{pid: pid, dataDir: lines[1]}
	if len(lines) >= 8 {
		p.status = strings.TrimSpace(lines[7])
	}
	return p, true
}

// endOrphan stops a PostgreSQL that a killed server left running on our data directory. We hold the lock of the
// directory, so it serves nobody else.
func endOrphan(ctx context.Context, cfg Config) error {
	p, ok := readPidFile(cfg.DataDir)
	if !ok || !isOurs(p, cfg.DataDir) {
		return nil
	}
	cfg.Logger.Info("stopping the PostgreSQL that a killed server left running", "pid", p.pid)
	for _, step := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGINT, 20 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		if err := syscall.Kill(p.pid, step.signal); err == syscall.ESRCH {
			return nil
		} else if err != nil {
			return inWords("postgres.endOrphan", fmt.Errorf("process %d, a PostgreSQL on %s: %w", p.pid, cfg.DataDir,
				err))
		}
		gone, err := waitGone(ctx, p, cfg.DataDir, step.patience)
		if gone || err != nil {
			return err
		}
	}
	return fault.New("postgres.endOrphan", fault.Conflict,
		fmt.Sprintf("process %d, a PostgreSQL on %s, cannot be stopped", p.pid, cfg.DataDir)).
		Hint("stop it by hand, then start again")
}

func waitGone(ctx context.Context, p pidFile, dataDir string, patience time.Duration) (bool, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for isOurs(p, dataDir) {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-deadline.C:
			return false, nil
		case <-tick.C:
		}
	}
	return true, nil
}

// isOurs reports whether the process is alive and a PostgreSQL on the data directory: by now the number may belong to
// any process.
func isOurs(p pidFile, dataDir string) bool {
	if p.dataDir != dataDir || syscall.Kill(p.pid, 0) == syscall.ESRCH {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	if err != nil {
		_, statErr := os.Stat("/proc/self/cmdline")
		return statErr != nil // without /proc the file has to be believed
	}
	if len(line) == 0 {
		return false // a zombie: dead, not yet reaped
	}
	arguments := strings.Split(string(line), "\x00")
	if !strings.Contains(filepath.Base(arguments[0]), "postgres") {
		return false
	}
	for _, a := range arguments {
		if a == dataDir {
			return true
		}
	}
	return false
}
