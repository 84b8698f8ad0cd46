package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
	"ordain.dev/ordain/server/store/queue"
)

// A process is scheduled, taken and ended under a lock on its resource, so that its state and that of the resource
// always agree:
//
//	Schedule: lock ─▶ is the state a legal start? ─▶ transitional state, row, job ─▶ commit
//	Take:     lock ─▶ first of its resource, still legal? ─▶ running, fence + 1, lease
//	End:      lock ─▶ is the fence still ours? ─▶ done state, row, job of the next one ─▶ commit

// resourceStates says how the state of the resources of a type is read and set, by statements with the id, and the id
// and the state. A type that is not listed has its states in the table process_resource.
type resourceStates struct {
	// lock returns the state and locks its row; no row: there is no such resource.
	lock *string
	set  *string
}

// statesOf are the types whose states are columns of their own tables.
var statesOf = map[string]resourceStates{}

// lockProcesses takes the lock on a resource.
func lockProcesses(ctx context.Context, tx pgx.Tx, r intent.ProcessResource) error {
	_, err := tx.Exec(ctx, statements.ProcessLockResource, locks.Processes, r.Type+"\x1f"+r.ID)
	return err
}

// resourceState returns the state of a resource and locks it.
func resourceState(ctx context.Context, tx pgx.Tx, r intent.ProcessResource) (state string, err error) {
	if own, has := statesOf[r.Type]; has {
		err = tx.QueryRow(ctx, *own.lock, r.ID).Scan(&state)
	} else {
		err = tx.QueryRow(ctx, statements.ProcessState, r.Type, r.ID).Scan(&state)
	}
	return state, err
}

func setResourceState(ctx context.Context, tx pgx.Tx, r intent.ProcessResource, state string) error {
	var err error
	if own, has := statesOf[r.Type]; has {
		_, err = tx.Exec(ctx, *own.set, r.ID, state)
	} else {
		_, err = tx.Exec(ctx, statements.ProcessSetState, r.Type, r.ID, state)
	}
	return err
}

// ResourceState returns the state of a resource that processes work on.
func (s *Store) ResourceState(ctx context.Context, r intent.ProcessResource) (state string, err error) {
	err = s.write(ctx, "store.ResourceState", func(tx pgx.Tx) error {
		state, err = resourceState(ctx, tx, r)
		return err
	})
	return state, err
}

// Scheduling returns a store whose next change also schedules a process, in the same transaction: either both are
// recorded or neither. The change fails with Conflict when the state of the resource allows no such process.
func (s *Store) Scheduling(p intent.NewProcess) *Store {
	scheduling := *s
	scheduling.schedules = append(slices.Clip(s.schedules), p)
	return &scheduling
}

// Schedule records a process and returns its id.
func (s *Store) Schedule(ctx context.Context, p intent.NewProcess) (id int64, err error) {
	err = s.write(ctx, "store.Schedule", func(tx pgx.Tx) error {
		id, err = s.schedule(ctx, tx, p)
		return err
	})
	return id, err
}

// scheduleAll records the processes of Scheduling.
func (s *Store) scheduleAll(ctx context.Context, tx pgx.Tx) error {
	for _, p := range s.schedules {
		if _, err := s.schedule(ctx, tx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) schedule(ctx context.Context, tx pgx.Tx, p intent.NewProcess) (id int64, err error) {
	var path intent.ProcessPath
	if len(p.Paths) > 0 || len(p.Cancels) > 0 {
		if err := lockProcesses(ctx, tx, p.Resource); err != nil {
			return 0, err
		}
	}
	if len(p.Paths) > 0 {
		state, err := resourceState(ctx, tx, p.Resource)
		if err != nil {
			return 0, err
		}
		at := slices.IndexFunc(p.Paths, func(w intent.ProcessPath) bool { return w.From == state })
		if at < 0 {
			return 0, fault.New("store.Schedule", fault.Conflict, fmt.Sprintf("%s is %s; %s begins when it is %s",
				p.Resource, stateName(state), p.Name, startStates(p.Paths)))
		}
		path = p.Paths[at]
		if err := setResourceState(ctx, tx, p.Resource, path.During); err != nil {
			return 0, err
		}
	}
	if len(p.Data) == 0 {
		p.Data = json.RawMessage("{}")
	}
	var seconds *float64
	if p.Deadline > 0 {
		seconds = new(p.Deadline.Seconds())
	}
	data, err := cleanJSON(p.Data)
	if err != nil {
		return 0, err
	}
	p.Queue, p.Priority = orDefault(p.Queue, queue.Default), orDefault(p.Priority, 2)
	var due bool
	if err := tx.QueryRow(ctx, statements.ProcessAdd, p.Name, p.Resource.Type, p.Resource.ID, known(p.Environment),
		known(p.Project), path.From, path.During, path.Done, p.Failed, p.Cancelled, max(p.Most, 1), p.Priority, p.Queue,
		p.Single, string(data), cleanText(p.MadeBy), p.After.Seconds(), seconds).Scan(&id, &due); err != nil {
		return 0, err
	}
	if len(p.Paths) > 0 || len(p.Cancels) > 0 {
		if err := s.endOvertaken(ctx, tx, id, p, path.During); err != nil {
			return 0, err
		}
	}
	if due {
		err = s.wake(ctx, tx, wakeRow{ID: id, Name: p.Name, Priority: p.Priority, Queue: p.Queue})
	}
	return id, err
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func stateName(state string) string {
	if state == "" {
		return "new"
	}
	return state
}

// startStates lists the states in which a process may begin, for people.
func startStates(paths []intent.ProcessPath) string {
	var names []string
	for _, p := range paths {
		names = append(names, stateName(p.From))
	}
	return strings.Join(names, " or ")
}

// endOvertaken cancels the open processes of the resource that a new one ends: those that it names, and those whose
// transitional state is no longer that of the resource.
func (s *Store) endOvertaken(
	ctx context.Context, tx pgx.Tx, id int64, p intent.NewProcess, during string,
) error {
	type openRow struct {
		ID          int64
		Name        string
		State       string
		DuringState string
	}
	open, err := many[openRow](ctx, tx, statements.ProcessOpenOf, p.Resource.Type, p.Resource.ID, id)
	if err != nil {
		return err
	}
	for _, o := range open {
		illegal := during != "" && o.DuringState != "" && o.DuringState != during
		if !illegal && !slices.Contains(p.Cancels, o.Name) {
			continue
		}
		why := "process " + fmt.Sprint(id) + " (" + p.Name + ") took its place"
		if o.State == string(intent.ProcessRunning) {
			_, err = tx.Exec(ctx, statements.ProcessAskCancel, o.ID, why)
		} else {
			_, err = tx.Exec(ctx, statements.ProcessEnd, o.ID, string(intent.ProcessCancelled), why, "", nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wakeRow is a process that can run.
type wakeRow struct {
	ID       int64
	Name     string
	Priority int
	Queue    string
}

// wake inserts a job that makes a worker look at a process.
func (s *Store) wake(ctx context.Context, tx pgx.Tx, w wakeRow) error {
	job, err := s.queue.Add(ctx, tx, queue.Wake{Name: w.Name, ID: w.ID, Priority: w.Priority, Queue: w.Queue})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, statements.ProcessQueued, w.ID, job)
	return err
}

// wakeNext inserts a job for the next process of a resource.
func (s *Store) wakeNext(ctx context.Context, tx pgx.Tx, r intent.ProcessResource) error {
	next, err := many[wakeRow](ctx, tx, statements.ProcessNextOf, r.Type, r.ID)
	if err != nil || len(next) == 0 {
		return err
	}
	return s.wake(ctx, tx, next[0])
}

type processRow struct {
	ID              int64
	Name            string
	ResourceType    string
	ResourceID      string
	Environment     *uuid.UUID
	EnvironmentName string
	Project         *uuid.UUID
	State           string
	FromState       string
	DuringState     string
	DoneState       string
	Phase           string
	Attempts        int
	Most            int
	Priority        int
	Problem         string
	Reason          string
	Data            json.RawMessage
	MadeBy          string
	Made            time.Time
	Begun           *time.Time
	Next            time.Time
	Deadline        *time.Time
	Ended           *time.Time
	Worker          string
	Lease           *time.Time
	Fence           int64
	Cancel          string
	WaitsFor        int64
	Due             bool
}

func (r processRow) value() (intent.Process, error) {
	p := intent.Process{
		ID: r.ID, Name: r.Name, Resource: intent.ProcessResource{Type: r.ResourceType, ID: r.ResourceID},
		EnvironmentName: r.EnvironmentName, State: intent.ProcessState(r.State),
		Path:  intent.ProcessPath{From: r.FromState, During: r.DuringState, Done: r.DoneState},
		Phase: r.Phase, Attempts: r.Attempts, Most: r.Most, Priority: r.Priority, Problem: r.Problem, Reason: r.Reason,
		Data: r.Data, MadeBy: r.MadeBy, Made: r.Made.UTC(), Begun: utc(r.Begun), Next: r.Next.UTC(),
		Deadline: utc(r.Deadline), Ended: utc(r.Ended), Worker: r.Worker, Lease: utc(r.Lease), Fence: r.Fence,
		Cancel: r.Cancel, WaitsFor: r.WaitsFor, Due: r.Due,
	}
	if r.Environment != nil {
		p.Environment = *r.Environment
	}
	if r.Project != nil {
		p.Project = *r.Project
	}
	return p, nil
}

// lockedProcess is a process with what its end needs.
type lockedProcess struct {
	processRow
	FailedState    string
	CancelledState string
	Single         bool
	Queue          string
	Late           bool
}

func (l lockedProcess) resource() intent.ProcessResource {
	return intent.ProcessResource{Type: l.ResourceType, ID: l.ResourceID}
}

// belongsTo reports whether a process belongs to an environment; zero stands for the whole server.
func (l lockedProcess) belongsTo(env intent.EnvironmentID) bool {
	return env == uuid.Nil || l.Environment != nil && *l.Environment == env
}

// lockProcess locks a process and its resource. It fails with pgx.ErrNoRows when there is no such process.
func lockProcess(ctx context.Context, tx pgx.Tx, id int64) (l lockedProcess, err error) {
	var r intent.ProcessResource
	if err := tx.QueryRow(ctx, statements.ProcessResourceOf, id).Scan(&r.Type, &r.ID); err != nil {
		return l, err
	}
	if err := lockProcesses(ctx, tx, r); err != nil {
		return l, err
	}
	return one[lockedProcess](ctx, tx, statements.ProcessLock, id)
}

// Process returns a process of an environment, or any when env is zero.
func (s *Store) Process(ctx context.Context, env intent.EnvironmentID, id int64) (p intent.Process, err error) {
	found, err := page(ctx, s, "store.Process", ProcessList, intent.ListQuery{
		Limit: 1, Sort: "id", Desc: true,
		Before: &intent.Bound{Value: new(fmt.Sprint(id + 1)), ID: "0"},
	}, processRow.value, known(env))
	if err != nil {
		return p, err
	}
	if len(found.Items) == 0 || found.Items[0].ID != id {
		return p, fault.New("store.Process", fault.NotFound, "there is no such process")
	}
	return found.Items[0], nil
}

// Processes lists the processes of an environment, or of the whole server.
func (s *Store) Processes(
	ctx context.Context, env intent.EnvironmentID, q intent.ListQuery,
) (intent.Page[intent.Process], error) {
	return page(ctx, s, "store.Processes", ProcessList, q, processRow.value, known(env))
}

// CountProcesses counts the processes of an environment, or of the whole server.
func (s *Store) CountProcesses(ctx context.Context, env intent.EnvironmentID) (n intent.ProcessCounts, err error) {
	err = s.read(ctx, "store.CountProcesses", func(q querier) error {
		n, err = one[intent.ProcessCounts](ctx, q, statements.ProcessCounts, known(env))
		return err
	})
	return n, err
}

// DeleteProcesses deletes processes that ended well or were cancelled, and dead ones, once they are older than this.
func (s *Store) DeleteProcesses(ctx context.Context, ended, dead time.Duration) error {
	return s.state(ctx, "store.DeleteProcesses", func(q querier) error {
		_, err := q.Exec(ctx, statements.ProcessClean, ended.Seconds(), dead.Seconds())
		return err
	})
}
