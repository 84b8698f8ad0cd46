package deployer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// run is one deployment between its Start and its record.
type run struct {
	action  intent.Action
	task    executor.Task
	durable bool      // its begin is recorded
	began   time.Time // when it was sent to the executor, or was about to be
}

// batch is what one commit carries.
type batch struct {
	starts   []*run                  // begin when all of the batch is durable
	prepared []*run                  // recorded ahead, see ahead.go
	finishes []intent.FinishedAction // ended, or skipped without having begun
}

func (b *batch) empty() bool { return len(b.starts)+len(b.finishes) == 0 }

// carry puts the scheduler's commands into the batch. The state after an
// outcome is put there by ended, which has the action that it belongs to.
func (d *Deployer) carry(commands []scheduler.Command) {
	for _, c := range commands {
		switch c := c.(type) {
		case scheduler.Start:
			d.begin(c)
		case scheduler.SetState:
			if c.Skipped {
				d.save(d.newSkip(c))
			}
		}
	}
}

func (d *Deployer) newRun(c scheduler.Start) *run {
	at := now()
	r := &run{
		task: executor.Task{
			ID: uuid.New(), Action: executor.Deploy, Resource: c.Resource, Blueprint: d.version.of(c.Resource.ID), Timeout: d.cfg.Timeout,
		},
		action: intent.Action{
			Environment: d.env, Kind: intent.ActionDeploy, Resource: c.Resource.ID, Version: c.Resource.Version,
			Started: at, Status: intent.StatusDeploying, Change: intent.NoChange,
		},
	}
	r.action.ID = r.task.ID
	r.describe(c, at)
	return r
}

// describe takes over what a start says beside the resource.
func (r *run) describe(c scheduler.Start, at time.Time) {
	r.began = at
	r.task.Reason, r.task.DependencyChanged = c.Reason, c.DependencyChanged
	r.task.Requires = nil
	if len(c.Requires) > 0 {
		r.task.Requires = make(map[intent.ResourceID]intent.Status, len(c.Requires))
		for _, dep := range c.Requires {
			r.task.Requires[dep.ID] = dep.Status
		}
	}
	r.action.Messages = []intent.LogLine{line(at, "INFO", "Deployment starts: "+c.Reason, map[string]any{"reason": c.Reason, "deploy_id": r.task.ID})}
}

func (d *Deployer) newSkip(c scheduler.SetState) intent.FinishedAction {
	at := now()
	id := uuid.New()
	if r := d.prepared[c.State.ID]; r != nil { // its begin is recorded already
		id = r.action.ID
		delete(d.prepared, c.State.ID)
	}
	return intent.FinishedAction{State: c.State, Action: intent.Action{
		ID: id, Environment: d.env, Kind: intent.ActionDeploy, Resource: c.State.ID, Version: c.Version,
		Started: at, Finished: &at, Status: intent.StatusSkippedForDependency, Change: intent.NoChange,
		Messages: []intent.LogLine{line(at, "INFO", "Skipped ("+c.Reason+"): it requires "+c.Cause.String()+
			", which is not deployed well. It is deployed as soon as that recovers.",
			map[string]any{"reason": c.Reason, "requires": c.Cause.String()})},
	}}
}

// flush commits the batch when the one before is durable.
func (d *Deployer) flush() {
	if d.committing || d.pending.empty() {
		return
	}
	b := d.pending
	d.pending = batch{}
	// A resource that ends and begins again in one batch begins in the next: the two
	// halves of a batch are committed side by side.
	if len(b.starts) > 0 && len(b.finishes) > 0 {
		ends := make(map[intent.ResourceID]bool, len(b.finishes))
		for i := range b.finishes {
			ends[b.finishes[i].State.ID] = true
		}
		starts := b.starts
		b.starts = nil
		for _, r := range starts {
			if ends[r.task.Resource.ID] {
				d.pending.starts = append(d.pending.starts, r)
			} else {
				b.starts = append(b.starts, r)
			}
		}
	}
	for _, r := range b.starts {
		d.running[r.task.ID] = r
	}
	d.prepare(&b)
	var begins []intent.Action
	for _, list := range [][]*run{b.starts, b.prepared} {
		for _, r := range list {
			if !r.durable {
				begins = append(begins, r.action)
			}
		}
	}
	d.committing = true
	d.commits.Go(func() { d.commit(b, begins) })
}

// commit makes a batch durable, then lets it act.
func (d *Deployer) commit(b batch, begins []intent.Action) {
	began := time.Now()
	var refused map[intent.ActionID]error
	var lost error
	var wg sync.WaitGroup
	wg.Go(func() {
		refused, lost = record(d, "record what begins", begins, d.cfg.Store.StartActions, func(a intent.Action) intent.ActionID { return a.ID })
	})
	if len(b.finishes) > 0 {
		d.finish(b.finishes)
	}
	wg.Wait()
	took := time.Since(began)
	d.post(func() { d.committed(b, refused, lost, took) })
	d.tell(b)
}

// committed lets a durable batch act.
func (d *Deployer) committed(b batch, refused map[intent.ActionID]error, lost error, took time.Duration) {
	d.committing = false
	d.commitTime.add(took)
	for i := range b.finishes {
		id := b.finishes[i].State.ID
		if d.unsaved[id]--; d.unsaved[id] == 0 {
			delete(d.unsaved, id)
		}
	}
	for _, r := range b.prepared {
		if refused[r.task.ID] == nil && lost == nil {
			r.durable = true
		} else if d.prepared[r.task.Resource.ID] == r {
			delete(d.prepared, r.task.Resource.ID) // when its turn comes it begins like any other
		}
	}
	for _, r := range b.starts {
		switch err := refused[r.task.ID]; {
		case err != nil:
			d.unrecorded(r, err)
		case lost != nil, d.stopping:
			delete(d.running, r.task.ID)
		default:
			r.durable = true
			d.logAction(r.action, r.action.Messages)
			go d.execute(r)
		}
	}
}

// finish records ends; what the record refuses is logged and let go.
func (d *Deployer) finish(done []intent.FinishedAction) {
	refused, _ := record(d, "record what ended", done, d.cfg.Store.FinishActions,
		func(f intent.FinishedAction) intent.ActionID { return f.Action.ID })
	for i := range done {
		if err := refused[done[i].Action.ID]; err != nil {
			d.log.Error("the end of a deployment could not be recorded", "resource", done[i].State.ID.String(),
				"version", done[i].Action.Version, "status", done[i].Action.Status, "error", err)
		}
	}
}

// record stores a list in one transaction. When the record refuses the list,
// each entry is tried alone: refused has those that it will not take. lost is
// set when the deployer stopped before all was durable.
func record[T any](d *Deployer, what string, list []T, store func(context.Context, intent.EnvironmentID, []T) error,
	id func(T) intent.ActionID) (refused map[intent.ActionID]error, lost error) {
	if len(list) == 0 {
		return nil, nil
	}
	try := func(part []T) error {
		orPermanent := hopeless()
		return d.persist(d.records, what, func(ctx context.Context) error {
			return orPermanent(store(ctx, d.env, part))
		})
	}
	err := try(list)
	if err == nil {
		return nil, nil
	}
	if !errors.As(err, new(permanent)) {
		return nil, err
	}
	if len(list) == 1 {
		return map[intent.ActionID]error{id(list[0]): err}, nil
	}
	refused = make(map[intent.ActionID]error)
	for i := range list {
		switch err := try(list[i : i+1]); {
		case err == nil:
		case errors.As(err, new(permanent)):
			refused[id(list[i])] = err
		default:
			return refused, err
		}
	}
	return refused, nil
}

// hopeless tells which errors another try will not mend: those that say so at
// once, and those of our own making when they come three times in a row.
func hopeless() func(error) error {
	unclear := 0
	return func(err error) error {
		switch fault.KindOf(err) {
		case fault.Invalid, fault.Conflict, fault.NotFound:
			return permanent{err}
		case fault.Internal:
			if unclear++; err != nil && unclear >= 3 {
				return permanent{err}
			}
		}
		return err
	}
}

// unrecorded ends a deployment that the record refused to begin: it does not run.
func (d *Deployer) unrecorded(r *run, err error) {
	d.log.Error("a deployment is not run, since its begin could not be recorded", "resource", r.task.Resource.ID.String(),
		"version", r.task.Resource.Version, "error", err)
	d.finished(r, executor.Result{Status: intent.StatusUnavailable, Change: intent.NoChange, Messages: []intent.LogLine{
		line(now(), "ERROR", "Not deployed: its begin could not be recorded: "+err.Error(), nil),
	}}, d.stopping)
}

// tell says what moved: each of a few, or once for many.
func (d *Deployer) tell(b batch) {
	const few = 20
	if len(b.starts)+len(b.finishes) > few {
		d.cfg.OnChange(Event{})
		return
	}
	for _, r := range b.starts {
		d.cfg.OnChange(Event{Resource: r.task.Resource.ID})
	}
	for i := range b.finishes {
		d.cfg.OnChange(Event{Resource: b.finishes[i].State.ID})
	}
}
