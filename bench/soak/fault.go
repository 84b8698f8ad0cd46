package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/bench/peer"
)

// fault is a process to kill, and when.
type fault struct {
	victim string
	lines  int           // it strikes when the journal has grown by so many lines since the round began,
	after  time.Duration // and so much later
}

func (f fault) String() string { return fmt.Sprintf("%s at %d", f.victim, f.lines) }

// victims lists what may be killed; the server is most likely.
var victims = []string{"server", "server", "executor", "database", "a connection's process"}

// plan draws the faults of a round and sorts them by when they strike.
func (o *ordeal) plan(lines int) []fault {
	faults := make([]fault, 1+o.random.IntN(3))
	for i := range faults {
		faults[i] = fault{
			victim: victims[o.random.IntN(len(victims))],
			after:  time.Duration(o.random.IntN(20)) * time.Millisecond,
		}
		if o.random.IntN(5) > 0 { // otherwise right after the push
			faults[i].lines = o.random.IntN(lines)
		} else {
			faults[i].after *= 20 // somewhere during the compile
		}
	}
	slices.SortFunc(faults, func(a, b fault) int { return a.lines - b.lines })
	return faults
}

// strike waits for the moment of a fault and kills the victim. It starts the
// server again; what else is killed, the server starts.
func (o *ordeal) strike(ctx context.Context, f fault) error {
	limit := time.Now().Add(o.patience)
	for o.grown() < f.lines {
		if time.Now().After(limit) {
			return fmt.Errorf("the journal did not grow by %d lines, it has %d", f.lines, o.grown())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	time.Sleep(f.after)
	if f.victim == "server" {
		o.report.faults[f.victim]++
		o.server.Kill()
		return o.start(ctx)
	}
	var pids []int
	switch f.victim {
	case "executor":
		pids = o.executors()
	default:
		postmaster, _, err := o.database()
		if err != nil {
			return nil // it is down already
		}
		pids = []int{postmaster}
		if f.victim != "database" {
			pids = peer.Children(postmaster)
		}
	}
	if len(pids) == 0 {
		return nil // none runs yet
	}
	if syscall.Kill(pids[o.random.IntN(len(pids))], syscall.SIGKILL) == nil {
		o.report.faults[f.victim]++
	}
	return nil
}

// grown returns how many lines the journal has grown by since the last check.
func (o *ordeal) grown() int {
	text, err := o.fresh()
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte{'\n'})
}

// fresh returns the part of the journal that was not checked yet.
func (o *ordeal) fresh() ([]byte, error) {
	f, err := os.Open(o.journal())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, info.Size()-o.seen)
	_, err = f.ReadAt(text, o.seen)
	return text, err
}

// executors lists the processes that run handlers.
func (o *ordeal) executors() (pids []int) {
	for _, pid := range peer.Descendants(o.server.PID()) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
			bytes.Contains(line, []byte("\x00handler")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// database returns the process of the private database, and how to connect to it,
// from the file that PostgreSQL itself writes.
func (o *ordeal) database() (pid int, connection string, err error) {
	text, err := os.ReadFile(filepath.Join(o.state, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return 0, "", err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 8 || strings.TrimSpace(lines[7]) != "ready" {
		return 0, "", fmt.Errorf("the database is not ready")
	}
	pid, err = strconv.Atoi(lines[0])
	passfile := filepath.Join(o.state, "postgres", "data.password")
	return pid, fmt.Sprintf("host=%s port=%s user=ordain dbname=ordain passfile=%s", lines[4], lines[3], passfile), err
}
