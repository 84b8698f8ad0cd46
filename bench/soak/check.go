package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/bench/peer"
)

// record is a deployment as the database has it.
type record struct {
	resource string
	finished *time.Time
	status   string
}

// entry is one run of a handler, as the handler wrote it into the journal.
type entry struct {
	action, resource, value string
	began                   time.Time
	ended                   bool
}

func (o *ordeal) query(ctx context.Context, do func(*pgx.Conn) error) error {
	_, connection, err := o.database()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, connection)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return do(c)
}

// missing lists the resources that are not deployed with their newest value, or returns nil.
func (o *ordeal) missing(ctx context.Context) ([]string, error) {
	var out []string
	have := map[string]string{}
	err := o.query(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT r.id, s.status, c.attributes->>'value' FROM resource_state s
			JOIN resource r ON r.key = s.resource JOIN resource_content c ON c.key = s.content
			WHERE s.environment = $1`, o.envID)
		if err != nil {
			return err
		}
		var id, status, value string
		_, err = pgx.ForEachRow(rows, []any{&id, &status, &value}, func() error {
			have[id] = value + " " + status
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range o.resources {
		id := o.repo.ID(i)
		value, status, _ := strings.Cut(have[id], " ")
		switch {
		case value != o.repo.Value(i):
			out = append(out, fmt.Sprintf("%s has the intent %q, not %q", id, value, o.repo.Value(i)))
		case status != "deployed":
			out = append(out, id+" is "+status)
		}
	}
	return out, nil
}

// check compares the files, the journal, the database, the processes and the
// folders with each other.
func (o *ordeal) check(ctx context.Context) error {
	for i := range o.resources {
		path := filepath.Join(o.site, "items", fmt.Sprintf("item%d", i))
		if text, err := os.ReadFile(path); err != nil || string(text) != o.repo.Value(i) {
			o.report.lost++
			o.report.trouble("lost: %s is %q, not %q (%v)", o.repo.ID(i), text, o.repo.Value(i), err)
		}
	}
	records, err := o.deployments(ctx)
	if err != nil {
		return fmt.Errorf("reading the deployments: %w", err)
	}
	if err := o.checkNothingOpen(ctx); err != nil {
		return err
	}
	if err := o.checkJournal(records); err != nil {
		return err
	}
	o.checkProcesses()
	return o.checkFolders()
}

// deployments reads what the database has of all deployments.
func (o *ordeal) deployments(ctx context.Context) (map[string]record, error) {
	records := map[string]record{}
	err := o.query(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT id::text, resource, finished, status FROM action
			WHERE environment = $1 AND kind = 'deploy'`, o.envID)
		if err != nil {
			return err
		}
		var id string
		var r record
		_, err = pgx.ForEachRow(rows, []any{&id, &r.resource, &r.finished, &r.status}, func() error {
			records[id] = r
			return nil
		})
		return err
	})
	return records, err
}

// checkNothingOpen checks that the database has nothing that is under way. The
// server clears the list of tasks that are recorded ahead in the commit after the
// one with the last ends, so this waits a little.
func (o *ordeal) checkNothingOpen(ctx context.Context) error {
	var open, deploying, ahead, drifting int
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := o.query(ctx, func(c *pgx.Conn) error {
			return c.QueryRow(ctx, `SELECT (SELECT count(*) FROM action WHERE environment = $1 AND finished IS NULL),
				(SELECT count(*) FROM resource_state WHERE environment = $1 AND is_deploying),
				(SELECT COALESCE(sum(cardinality(resources)), 0) FROM ahead WHERE environment = $1),
				(SELECT count(*) FROM drift WHERE environment = $1)`, o.envID).
				Scan(&open, &deploying, &ahead, &drifting)
		})
		switch {
		case err != nil:
			return fmt.Errorf("reading what is under way: %w", err)
		case open+deploying+ahead+drifting == 0:
			return nil
		case time.Now().After(deadline):
			o.report.trouble("everything is deployed and nothing was changed by hand, but the database has "+
				"%d open actions, %d resources marked as deploying, %d recorded ahead, and %d drifts",
				open, deploying, ahead, drifting)
			return nil
		}
	}
}

// checkJournal compares what the handlers did with what the database says that they did.
func (o *ordeal) checkJournal(records map[string]record) error {
	text, err := o.fresh()
	if err != nil {
		return err
	}
	o.seen += int64(len(text))
	runs := map[string]*entry{}
	var order []*entry
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 6 {
			return fmt.Errorf("the journal has the line %q", line)
		}
		if f[0] == "end" {
			if e := runs[f[2]]; e != nil {
				e.ended = true
			}
			continue
		}
		ns, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("the journal has the line %q", line)
		}
		e := &entry{
			action:   f[2],
			resource: fmt.Sprintf("bench::Item[%s,name=%s]", f[3], f[4]),
			value:    f[5],
			began:    time.Unix(0, ns),
		}
		if runs[e.action] != nil {
			o.report.doubled++
			o.report.trouble("doubled: %s ran twice under the same number %s", e.resource, e.action)
		}
		runs[e.action] = e
		order = append(order, e)
	}
	o.report.runs += len(order)
	for _, e := range order {
		r := records[e.action]
		if r.status != "deployed" {
			o.report.cut++
			continue
		}
		key := e.resource + " " + e.value
		if _, twice := o.done[key]; twice {
			o.report.doubled++
			o.report.trouble("doubled: %s is recorded as deployed twice for the value %s", e.resource, e.value)
		}
		o.done[key] = r
		if !e.ended || r.resource != e.resource {
			o.report.lost++
			o.report.trouble("lost: %s is recorded as deployed by %s, which did not write its end into the journal",
				e.resource, e.action)
		}
	}
	for _, e := range order {
		if r, is := o.done[e.resource+" "+e.value]; is && records[e.action].status != "deployed" && r.finished != nil &&
			e.began.After(*r.finished) {
			o.report.doubled++
			o.report.trouble("doubled: %s ran at %s, though recorded as deployed at %s", e.resource, e.began,
				r.finished)
		}
	}
	return nil
}

// checkProcesses finds processes that work in our folders and are not the server's.
func (o *ordeal) checkProcesses() {
	ours := map[int]bool{o.server.PID(): true}
	for _, pid := range peer.Descendants(o.server.PID()) {
		ours[pid] = true
	}
	for pid, what := range o.processes() {
		// It may have been born a moment ago, or be about to die.
		if !ours[pid] && !o.endsSoon(pid) {
			o.report.trouble("process %d is an orphan: %s", pid, what)
		}
	}
}

// checkNothingRuns checks that the server left no process behind when it stopped.
func (o *ordeal) checkNothingRuns() {
	for pid, what := range o.processes() {
		if !o.endsSoon(pid) {
			o.report.trouble("process %d outlived the server: %s", pid, what)
		}
	}
}

// processes lists the processes whose working directory or arguments lie in our folders.
func (o *ordeal) processes() map[int]string {
	out := map[int]string{}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || pid == os.Getpid() {
			continue
		}
		at, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if words := strings.ReplaceAll(string(line), "\x00", " "); strings.HasPrefix(at, o.dir+"/") ||
			strings.Contains(words, o.dir+"/") {
			out[pid] = words + "in " + at
		}
	}
	return out
}

// endsSoon waits a little and reports whether a process has ended, or turned out
// to be the server's after all.
func (o *ordeal) endsSoon(pid int) bool {
	for range 100 {
		above := pid
		for above > 1 && (o.server == nil || above != o.server.PID()) {
			above = peer.Parent(above)
		}
		if syscall.Kill(pid, 0) != nil || o.server != nil && above == o.server.PID() {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// checkFolders looks for half-made folders of executors.
func (o *ordeal) checkFolders() error {
	executors := filepath.Join(o.state, "server", o.envID, "executors")
	venvs, err := os.ReadDir(filepath.Join(executors, "venvs"))
	if err != nil {
		return err
	}
	var names []string
	for _, e := range venvs {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) != 1 {
		o.report.trouble("there are %d virtual environments for one set of requirements: %v", len(names), names)
	}
	codes, err := os.ReadDir(filepath.Join(executors, "code"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range append(codes, venvs...) {
		if strings.Contains(e.Name(), ".new-") {
			o.report.trouble("the half-made folder %s was left", e.Name())
		}
	}
	return nil
}
