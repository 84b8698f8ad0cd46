package ordeal

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

// fault is one kill.
type fault struct {
	victim string
	lines  int           // strikes when the journal has grown by these since the round began
	after  time.Duration // and a moment later
}

func (f fault) String() string { return fmt.Sprintf("%s at %d", f.victim, f.lines) }

// victims, the server most often.
var victims = []string{"server", "server", "executor", "database", "a connection's process"}

// plan draws the faults of a round, in their order.
func (o *ordeal) plan(lines int) []fault {
	faults := make([]fault, 1+o.random.IntN(3))
	for i := range faults {
		faults[i] = fault{
			victim: victims[o.random.IntN(len(victims))],
			after:  time.Duration(o.random.IntN(20)) * time.Millisecond,
		}
		if o.random.IntN(5) > 0 { // else at the push, or with the one before
			faults[i].lines = o.random.IntN(lines)
		} else {
			faults[i].after *= 20 // somewhere in the compile
		}
	}
	slices.SortFunc(faults, func(a, b fault) int { return a.lines - b.lines })
	return faults
}

// strike waits for the moment of a fault, kills, and starts again what has to be.
func (o *ordeal) strike(ctx context.Context, f fault) error {
	limit := time.Now().Add(o.Patience)
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
		o.report.Faults[f.victim]++
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
		o.report.Faults[f.victim]++
	}
	return nil
}

// grown is how many lines the journal has got since the last check.
func (o *ordeal) grown() int {
	text, err := o.fresh()
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte{'\n'})
}

// fresh is the part of the journal that was not checked yet.
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

// executors lists the processes of handlers.
func (o *ordeal) executors() (pids []int) {
	for _, pid := range peer.Below(o.server.PID()) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
			bytes.Contains(line, []byte("\x00handler")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// database gives the process of the private database and how to connect, as it says itself.
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
	return pid, fmt.Sprintf("host=%s port=%s user=ordain dbname=ordain", lines[4], lines[3]), err
}
