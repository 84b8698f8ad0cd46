package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/queue"
)

// ErrProcessTaken is the error for what a worker writes for a process that is no longer its own.
var ErrProcessTaken = fault.New("store", fault.Unavailable, "another worker has taken this process, or it was ended")

// Holding returns a store that makes changes for a process: a change is made only while the worker still has the
// process, and fails with ErrProcessTaken otherwise.
func (s *Store) Holding(c intent.ProcessClaim) *Store {
	holding := *s
	holding.holds = &c
	return &holding
}

// stillHolds checks the claim of Holding, and keeps it true until the transaction ends.
func (s *Store) stillHolds(ctx context.Context, tx pgx.Tx) error {
	if s.holds == nil {
		return nil
	}
	var id int64
	err := tx.QueryRow(ctx, statements.ProcessHeld, s.holds.ID, s.holds.Fence).Scan(&id)
	if isNoRows(err) {
		return ErrProcessTaken
	}
	return err
}

// WorkProcesses works the jobs of processes until ctx ends; see queue.Queue.Work.
func (s *Store) WorkProcesses(ctx context.Context, w queue.Workers) error {
	return s.queue.Work(ctx, w)
}

// TakeProcess begins an attempt at a process; until its lease ends, or is renewed, nobody else gets it. It returns nil
// when the process cannot run: it has ended, it runs, it waits for its time or for another process, or its resource is
// in a state that ends it. delegate, for the same
// resource, continues it in such a state, if it may begin there.
func (s *Store) TakeProcess(
	ctx context.Context, id int64, worker string, lease time.Duration, delegate *intent.NewProcess,
) (taken *intent.Process, err error) {
	err = s.write(ctx, "store.TakeProcess", func(tx pgx.Tx) error {
		taken = nil
		l, err := lockProcess(ctx, tx, id)
		switch {
		case isNoRows(err):
			return nil // its environment was deleted
		case err != nil:
			return err
		case l.State != string(intent.ProcessWaiting), !l.Due, l.WaitsFor != 0:
			return nil
		case l.Late:
			return s.end(ctx, tx, l, intent.ProcessEnd{State: intent.ProcessDead, Reason: tooLate, Problem: l.Problem})
		}
		ended, err := s.endIllegal(ctx, tx, l, delegate)
		if ended || err != nil {
			return err
		}
		p, err := l.value()
		if err != nil {
			return err
		}
		p.State, p.Worker, p.Attempts = intent.ProcessRunning, worker, p.Attempts+1
		var left float64
		row := tx.QueryRow(ctx, statements.ProcessTake, id, worker, lease.Seconds())
		if err := row.Scan(&p.Fence, &left); err != nil {
			return err
		}
		p.Left = time.Duration(left * float64(time.Second))
		taken = &p
		return nil
	})
	return taken, err
}

const tooLate = "its time ran out"

// endIllegal ends a process whose resource is no longer in its transitional state.
func (s *Store) endIllegal(
	ctx context.Context, tx pgx.Tx, l lockedProcess, delegate *intent.NewProcess,
) (ended bool, err error) {
	if l.DuringState == "" {
		return false, nil
	}
	state, err := resourceState(ctx, tx, l.resource())
	switch {
	case isNoRows(err):
		gone := intent.ProcessEnd{State: intent.ProcessCancelled, Reason: "its resource is gone"}
		return true, s.end(ctx, tx, l, gone)
	case err != nil || state == l.DuringState:
		return false, err
	case state == l.DoneState:
		return true, s.end(ctx, tx, l, intent.ProcessEnd{State: intent.ProcessDone, Reason: "it was done already"})
	}
	end := intent.ProcessEnd{State: intent.ProcessCancelled, Reason: "its resource is " + stateName(state)}
	if delegate != nil {
		if slices.ContainsFunc(delegate.Paths, func(p intent.ProcessPath) bool { return p.From == state }) {
			next := *delegate
			next.Resource, next.Data, next.MadeBy = l.resource(), l.Data, l.MadeBy
			if l.Environment != nil {
				next.Environment = *l.Environment
			}
			if l.Project != nil {
				next.Project = *l.Project
			}
			end.Then, end.Reason = &next, "continued as "+delegate.Name
		}
	}
	return true, s.end(ctx, tx, l, end)
}

// BeatProcesses renews the leases of attempts, and returns those that still have their process, each with who asks it
// to end.
func (s *Store) BeatProcesses(
	ctx context.Context, claims []intent.ProcessClaim, lease time.Duration,
) (kept map[intent.ProcessClaim]string, err error) {
	ids, fences := make([]int64, len(claims)), make([]int64, len(claims))
	for i, c := range claims {
		ids[i], fences[i] = c.ID, c.Fence
	}
	err = s.state(ctx, "store.BeatProcesses", func(q querier) error {
		type beatRow struct {
			ID, Fence int64
			Cancel    string
		}
		rows, err := many[beatRow](ctx, q, statements.ProcessBeat, ids, fences, lease.Seconds())
		kept = make(map[intent.ProcessClaim]string, len(rows))
		for _, r := range rows {
			kept[intent.ProcessClaim{ID: r.ID, Fence: r.Fence}] = r.Cancel
		}
		return err
	})
	return kept, err
}

// ProcessPhase records that a handler finished, with the data as they are then. It returns who asks the process to
// end; empty: nobody.
func (s *Store) ProcessPhase(
	ctx context.Context, c intent.ProcessClaim, phase string, data json.RawMessage,
) (cancel string, err error) {
	err = s.write(ctx, "store.ProcessPhase", func(tx pgx.Tx) error {
		l, err := s.mine(ctx, tx, c)
		if err != nil {
			return err
		}
		if cancel = l.Cancel; cancel == "" && l.DuringState != "" {
			state, err := resourceState(ctx, tx, l.resource())
			if err != nil && !isNoRows(err) {
				return err
			}
			if isNoRows(err) || state != l.DuringState {
				cancel = "its resource is " + stateName(state)
			}
		}
		clean, err := cleanJSON(data)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements.ProcessPhase, c.ID, phase, string(clean))
		return err
	})
	return cancel, err
}

// mine locks the process of an attempt that still has it.
func (s *Store) mine(ctx context.Context, tx pgx.Tx, c intent.ProcessClaim) (lockedProcess, error) {
	l, err := lockProcess(ctx, tx, c.ID)
	if isNoRows(err) || err == nil && (l.Fence != c.Fence || l.State != string(intent.ProcessRunning)) {
		return l, ErrProcessTaken
	}
	return l, err
}

// EndProcess records how an attempt ended.
func (s *Store) EndProcess(ctx context.Context, c intent.ProcessClaim, end intent.ProcessEnd) error {
	return s.write(ctx, "store.EndProcess", func(tx pgx.Tx) error {
		l, err := s.mine(ctx, tx, c)
		if err != nil {
			return err
		}
		if end.State == intent.ProcessDone {
			if ended, err := s.endIllegal(ctx, tx, l, nil); ended || err != nil {
				return err
			}
		}
		if l.Cancel != "" && (end.State == intent.ProcessWaiting || end.State == intent.ProcessDead) {
			end.State, end.Reason = intent.ProcessCancelled, l.Cancel
		}
		return s.end(ctx, tx, l, end)
	})
}

// end moves a locked process on, and the state of its resource with it.
func (s *Store) end(ctx context.Context, tx pgx.Tx, l lockedProcess, end intent.ProcessEnd) error {
	var data *string
	if len(end.Data) > 0 {
		clean, err := cleanJSON(end.Data)
		if err != nil {
			return err
		}
		data = new(string(clean))
	}
	end.Problem, end.Reason = cleanText(end.Problem), cleanText(end.Reason)
	if end.State == intent.ProcessWaiting {
		return s.retryProcess(ctx, tx, l, end, data)
	}
	state := string(end.State)
	if _, err := tx.Exec(ctx, statements.ProcessEnd, l.ID, state, end.Reason, end.Problem, data); err != nil {
		return err
	}
	if err := s.leaveState(ctx, tx, l, end.State); err != nil {
		return err
	}
	if end.State == intent.ProcessDead && l.Environment != nil {
		if err := addNotice(ctx, tx, *l.Environment, intent.Notice{
			Severity: intent.SeverityWarning, Title: l.Name + " died",
			Message: fmt.Sprintf("%s: %s. %s", l.resource(), end.Reason, end.Problem),
			URI:     fmt.Sprintf("/api/v2/environment/%s/process/%d", *l.Environment, l.ID),
		}, time.Now()); err != nil {
			return err
		}
	}
	if end.Then != nil {
		if _, err := s.schedule(ctx, tx, *end.Then); err != nil {
			return err
		}
	}
	return s.wakeNext(ctx, tx, l.resource())
}

// leaveState sets the state of a resource at the end of a process, unless something else has moved it on.
func (s *Store) leaveState(ctx context.Context, tx pgx.Tx, l lockedProcess, ended intent.ProcessState) error {
	if l.DuringState == "" {
		return nil
	}
	state, err := resourceState(ctx, tx, l.resource())
	if isNoRows(err) || err == nil && state != l.DuringState {
		return nil
	}
	if err != nil {
		return err
	}
	next := map[intent.ProcessState]string{
		intent.ProcessDone: l.DoneState, intent.ProcessDead: l.FailedState, intent.ProcessCancelled: l.CancelledState,
	}[ended]
	if ended == intent.ProcessCancelled && next == "" {
		next = l.FromState
	}
	return setResourceState(ctx, tx, l.resource(), next)
}

// retryProcess makes a process wait for another attempt, or ends it when newer work of its kind waits already.
func (s *Store) retryProcess(
	ctx context.Context, tx pgx.Tx, l lockedProcess, end intent.ProcessEnd, data *string,
) error {
	counting := 1
	if end.Fresh {
		counting = 0
	} else if end.Free {
		counting = 2
	}
	other, err := s.waitAgain(ctx, tx, l, end.Problem, data, end.After.Seconds(), end.Fresh, counting, end.Fresh)
	if err != nil {
		return err
	}
	if other != 0 {
		return s.end(ctx, tx, l, intent.ProcessEnd{
			State: intent.ProcessDone, Reason: fmt.Sprintf("process %d goes on", other), Problem: end.Problem,
		})
	}
	return s.wakeNext(ctx, tx, l.resource())
}

// waitAgain returns a process to those that wait, with the arguments of ProcessAgain. A single one stays as it is when
// another of its kind waits already: waitAgain returns that.
//
// Work without states is scheduled without the lock on its resource, so that what schedules it waits for no worker. So
// the other may be there only when its transaction commits, after the first look.
func (s *Store) waitAgain(ctx context.Context, tx pgx.Tx, l lockedProcess, args ...any) (other int64, err error) {
	if l.Single {
		if other, err = s.waitsToo(ctx, tx, l); other != 0 || err != nil {
			return other, err
		}
	}
	err = pgx.BeginFunc(ctx, tx, func(attempt pgx.Tx) error {
		_, err := attempt.Exec(ctx, statements.ProcessAgain, append([]any{l.ID}, args...)...)
		return err
	})
	var refused *pgconn.PgError
	if l.Single && errors.As(err, &refused) && refused.ConstraintName == "process_one_waits" {
		if other, again := s.waitsToo(ctx, tx, l); other != 0 || again != nil {
			return other, again
		}
	}
	return 0, err
}

// waitsToo returns the process of the same name and resource that waits beside a single one; 0: there is none.
func (s *Store) waitsToo(ctx context.Context, tx pgx.Tx, l lockedProcess) (int64, error) {
	type openRow struct {
		ID          int64
		Name        string
		State       string
		DuringState string
	}
	open, err := many[openRow](ctx, tx, statements.ProcessOpenOf, l.ResourceType, l.ResourceID, l.ID)
	for _, o := range open {
		if o.Name == l.Name && o.State == string(intent.ProcessWaiting) {
			return o.ID, err
		}
	}
	return 0, err
}

// RetryProcess makes a dead process wait for a worker again: it goes on after the last handler that finished, and its
// attempts and its time begin anew. One that waits for its next attempt is tried at once. Conflict when it has ended
// otherwise, or its resource has moved on; NotFound when it belongs to another environment than env, unless that is
// zero.
func (s *Store) RetryProcess(ctx context.Context, env intent.EnvironmentID, id int64) error {
	const op = "store.RetryProcess"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		l, err := lockProcess(ctx, tx, id)
		if err != nil {
			return err
		}
		if !l.belongsTo(env) {
			return pgx.ErrNoRows
		}
		switch intent.ProcessState(l.State) {
		case intent.ProcessWaiting:
		case intent.ProcessDead:
			if err := s.returnToState(ctx, tx, op, l); err != nil {
				return err
			}
		default:
			return fault.New(op, fault.Conflict,
				"the process is "+l.State+"; only a dead or waiting one can be retried")
		}
		other, err := s.waitAgain(ctx, tx, l, l.Problem, nil, 0.0, false, 0, true)
		if err != nil {
			return err
		}
		if other != 0 {
			return fault.New(op, fault.Conflict, fmt.Sprintf("process %d waits to do the same", other))
		}
		return s.wakeNext(ctx, tx, l.resource())
	})
}

// returnToState brings the resource of a dead process back into its transitional state.
func (s *Store) returnToState(ctx context.Context, tx pgx.Tx, op string, l lockedProcess) error {
	if l.DuringState == "" {
		return nil
	}
	state, err := resourceState(ctx, tx, l.resource())
	if err != nil {
		return err
	}
	if state != l.FailedState && state != l.FromState && state != l.DuringState {
		return fault.New(op, fault.Conflict,
			fmt.Sprintf("%s is %s by now; %s cannot go on", l.resource(), stateName(state), l.Name))
	}
	return setResourceState(ctx, tx, l.resource(), l.DuringState)
}

// CancelProcess ends a process that waits or died, and asks the worker of one that runs to end it. Conflict when it has
// ended; NotFound when it belongs to another environment than env, unless that is zero.
func (s *Store) CancelProcess(ctx context.Context, env intent.EnvironmentID, id int64, by string) error {
	const op = "store.CancelProcess"
	return s.write(ctx, op, func(tx pgx.Tx) error {
		l, err := lockProcess(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case !l.belongsTo(env):
			return pgx.ErrNoRows
		case l.State == string(intent.ProcessWaiting), l.State == string(intent.ProcessDead):
			return s.end(ctx, tx, l, intent.ProcessEnd{
				State: intent.ProcessCancelled, Reason: cancelledBy(by), Problem: l.Problem,
			})
		case l.State == string(intent.ProcessRunning):
			_, err := tx.Exec(ctx, statements.ProcessAskCancel, id, cancelledBy(by))
			return err
		}
		return fault.New(op, fault.Conflict, "the process is "+l.State+" already")
	})
}

func cancelledBy(by string) string { return cleanText("cancelled by " + by) }

// SweepProcesses takes processes from workers that vanished, ends those whose time is over, and inserts jobs for those
// whose time has come. It returns how many it moved.
func (s *Store) SweepProcesses(ctx context.Context) (moved int, err error) {
	var lost []int64
	err = s.read(ctx, "store.SweepProcesses", func(q querier) error {
		rows, err := q.Query(ctx, statements.ProcessLost)
		if err != nil {
			return err
		}
		lost, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	for _, id := range lost {
		if err == nil {
			err = s.takeAway(ctx, id)
		}
	}
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, "store.SweepProcesses", func(tx pgx.Tx) error {
		due, err := many[wakeRow](ctx, tx, statements.ProcessDue)
		if err != nil {
			return err
		}
		for _, w := range due {
			if err := s.wake(ctx, tx, w); err != nil {
				return err
			}
		}
		moved = len(lost) + len(due)
		return nil
	})
	return moved, err
}

// takeAway ends the attempt of a worker that vanished, and processes whose time is over.
func (s *Store) takeAway(ctx context.Context, id int64) error {
	return s.write(ctx, "store.SweepProcesses", func(tx pgx.Tx) error {
		l, err := lockProcess(ctx, tx, id)
		if isNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var over bool
		if err := tx.QueryRow(ctx, statements.ProcessIsLost, id).Scan(&over); err != nil || !over {
			return err // somebody else was quicker, or the worker renewed the lease
		}
		end := intent.ProcessEnd{State: intent.ProcessWaiting, Problem: l.Problem}
		switch running := l.State == string(intent.ProcessRunning); {
		case running && l.Cancel != "":
			end.State, end.Reason = intent.ProcessCancelled, l.Cancel
		case l.Late:
			end.State, end.Reason = intent.ProcessDead, tooLate
		case running && l.Attempts >= l.Most:
			end.State, end.Reason = intent.ProcessDead, "its attempts ran out"
			end.Problem = "the worker " + l.Worker + " vanished"
		case running:
			end.Problem = "the worker " + l.Worker + " vanished"
		}
		return s.end(ctx, tx, l, end)
	})
}
