package deployer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// deployment is one deployment between its Start and its record.
type deployment struct {
	action  intent.Action
	task    executor.Task
	durable bool        // its beginning is recorded
	ahead   bool        // its beginning is recorded without an entry in the log
	shown   *time.Timer // makes that entry for one that is ahead and runs long
	began   time.Time   // when it was sent to the executor, or about to be
}

// batch is what one commit carries.
type batch struct {
	starts       []*deployment           // they begin once all of the batch is durable
	prepared     []*deployment           // to be recorded ahead, see ahead.go
	shown        []*deployment           // prepared ones that have been running for long
	finishes     []intent.FinishedAction // ended, or skipped without having begun
	rewriteAhead bool                    // the recorded list has tasks that are no longer ahead
	lines        []byte                  // for the action log
	freed        []intent.ResourceID     // no longer parked
}

func (b *batch) empty() bool {
	return len(b.starts)+len(b.shown)+len(b.finishes)+len(b.freed) == 0 && !b.rewriteAhead
}

// carryOut puts the scheduler's commands into the batch. The state after an outcome is put there by finished, which
// has the action that it belongs to.
func (d *Deployer) carryOut(commands []scheduler.Command) {
	for _, c := range commands {
		switch c := c.(type) {
		case scheduler.Start:
			d.start(c)
		case scheduler.StartJob:
			d.beginJob(c.Job)
		case scheduler.RefuseJob:
			d.refused(c)
		case scheduler.Recall:
			d.recall(c)
		case scheduler.SetState:
			switch {
			case c.Skipped:
				d.queueEnd(d.newSkip(c))
			case c.Freed:
				d.pending.freed = append(d.pending.freed, c.State.ID)
			}
		}
	}
}

func (d *Deployer) newDeployment(c scheduler.Start) *deployment {
	at := now()
	r := &deployment{
		task: executor.Task{
			ID: newID(), Action: executor.Deploy, Resource: c.Resource, Blueprint: d.version.of(c.Resource.ID),
			Timeout: d.cfg.Timeout,
			Lanes:   d.sched.Concurrency(c.Resource.ID.Agent),
		},
		action: intent.Action{
			Environment: d.env, Kind: intent.ActionDeploy, Resource: c.Resource.ID, Version: c.Resource.Version,
			Started: at, Status: intent.StatusDeploying, Change: intent.NoChange,
		},
	}
	if c.Report {
		r.task.Action, r.action.Kind, r.action.Status = executor.DryRun, intent.ActionDryRun, ""
	}
	r.action.ID = r.task.ID
	r.describe(c, at)
	return r
}

// describe takes over what a start says beside the resource.
func (r *deployment) describe(c scheduler.Start, at time.Time) {
	r.began = at
	r.task.Reason, r.task.DependencyChanged = c.Reason, c.DependencyChanged
	r.task.Requires = nil
	if len(c.Requires) > 0 {
		r.task.Requires = make(map[intent.ResourceID]intent.Status, len(c.Requires))
		for _, dep := range c.Requires {
			r.task.Requires[dep.ID] = dep.Status
		}
	}
	what := "Deployment starts: "
	if c.Report {
		what = "Looked at, since drift is only reported: "
	}
	r.action.Messages = []intent.LogLine{
		line(at, "INFO", what+c.Reason, "deploy_id", r.task.ID.String(), "reason", c.Reason),
	}
}

func (d *Deployer) newSkip(c scheduler.SetState) intent.FinishedAction {
	at := now()
	if r := d.prepared[c.State.ID]; r != nil {
		d.dropPrepared(r)
	}
	status := intent.StatusSkippedForDependency
	why := line(at, "INFO", "Skipped ("+c.Reason+"): it requires "+c.Cause.String()+
		", which is not deployed well. It is deployed as soon as that recovers.",
		"reason", c.Reason, "requires", c.Cause.String())
	if c.Protected {
		status = intent.StatusSkipped
		why = line(at, "WARNING", "Not purged ("+c.Reason+"): the setting protected_resources protects it. "+
			"Take it out of that setting to let it be purged, or keep it in the model.", "reason", c.Reason)
	}
	return intent.FinishedAction{State: c.State, Action: intent.Action{
		ID: newID(), Environment: d.env, Kind: intent.ActionDeploy, Resource: c.State.ID, Version: c.Version,
		Started: at, Finished: &at, Status: status, Change: intent.NoChange, Messages: []intent.LogLine{why},
	}}
}

// flush commits the batch, unless the one before is not durable yet.
func (d *Deployer) flush() {
	if d.committing || d.pending.empty() || d.shouldGather() {
		return
	}
	b := d.pending
	d.pending, d.gatherSince = batch{finishes: make([]intent.FinishedAction, 0, len(b.finishes))}, time.Time{}
	// A resource that ends and begins again in one batch begins in the next, because the two halves of a batch are
	// committed side by side.
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
	w := d.writes(&b)
	b.lines = d.takeLines()
	d.committing = true
	d.commits.Go(func() { d.commit(b, w) })
}

// batchWrites is what is to be recorded of a batch, beside its ends.
type batchWrites struct {
	begins       []intent.Action // with an entry in the log
	rewriteAhead bool
	ahead        []intent.Ahead // the whole list, when rewriteAhead is set
}

func (d *Deployer) writes(b *batch) batchWrites {
	var w batchWrites
	for _, r := range b.starts {
		if !r.durable {
			w.begins = append(w.begins, r.action)
		}
	}
	for _, r := range b.shown {
		if d.running[r.task.ID] == r { // otherwise its end is in this batch or a later one
			w.begins = append(w.begins, r.action)
		}
	}
	if w.rewriteAhead = b.rewriteAhead || len(b.prepared) > 0; w.rewriteAhead {
		w.ahead = make([]intent.Ahead, 0, len(d.ahead))
		for action, id := range d.ahead {
			w.ahead = append(w.ahead, intent.Ahead{Resource: id, Action: action})
		}
		d.listedAhead = len(w.ahead)
	}
	return w
}

// commit makes a batch durable, then lets it act.
func (d *Deployer) commit(b batch, w batchWrites) {
	began := time.Now()
	var unbegun refusals
	var unlisted error
	var wg sync.WaitGroup
	wg.Go(func() { d.writeLines(b.lines) })
	wg.Go(func() {
		unbegun = record(d, "record what begins", w.begins, d.cfg.Store.StartActions,
			func(a intent.Action) any { return a.ID })
	})
	wg.Go(func() {
		unlisted = d.recordAhead(w)
	})
	if len(b.freed) > 0 {
		// Before the ends, because an end may park the same resource again.
		d.unpark(b.freed)
	}
	if len(b.finishes) > 0 {
		d.finish(b.finishes)
	}
	wg.Wait()
	took := time.Since(began)
	d.post(func() { d.committed(b, unbegun, unlisted, took) })
	d.publish(b)
	if slices.ContainsFunc(b.finishes, func(f intent.FinishedAction) bool { return len(f.Facts) > 0 }) {
		d.cfg.OnFacts()
	}
	for i := range b.finishes {
		for _, n := range b.finishes[i].Notices {
			d.cfg.OnNotice(n)
		}
	}
}

// unpark records that resources are no longer parked.
func (d *Deployer) unpark(ids []intent.ResourceID) {
	orPermanent := permanentFailures()
	err := d.persist(d.records, "record unparked resources", func(ctx context.Context) error {
		_, err := d.cfg.Store.Unpark(ctx, d.env, ids)
		return orPermanent(err)
	})
	if err != nil {
		d.log.Error("it could not be recorded that resources are no longer parked", "resources", len(ids), "error", err)
	}
}

// recordAhead records what is ahead.
func (d *Deployer) recordAhead(w batchWrites) error {
	if !w.rewriteAhead {
		return nil
	}
	orPermanent := permanentFailures()
	err := d.persist(d.records, "record what is to begin", func(ctx context.Context) error {
		return orPermanent(d.cfg.Store.SetAhead(ctx, d.env, w.ahead))
	})
	if errors.As(err, new(permanent)) {
		d.log.Error("what is to begin could not be recorded ahead", "resources", len(w.ahead), "error", err)
	}
	return err
}

// committed lets a durable batch act.
func (d *Deployer) committed(b batch, unbegun refusals, unlisted error, took time.Duration) {
	d.committing = false
	d.commitTime.add(took)
	for i := range b.finishes {
		id := b.finishes[i].State.ID
		if d.unsaved[id]--; d.unsaved[id] == 0 {
			delete(d.unsaved, id)
		}
		delete(d.ahead, b.finishes[i].Action.ID)
	}
	for _, r := range b.prepared {
		if unlisted == nil {
			r.durable = true
			d.queues.touch(r.task.Resource.ID.Agent)
		} else if d.prepared[r.task.Resource.ID] == r {
			d.dropPrepared(r) // when its turn comes it starts like any other
		}
	}
	for _, r := range b.starts {
		switch err := unbegun.of(r.task.ID); {
		case err != nil:
			d.unrecorded(r, err)
		case unbegun.lost != nil, d.stopping:
			delete(d.running, r.task.ID)
		default:
			r.durable = true
			d.logAction(r.action, r.action.Messages)
			d.queueForExecutor(r)
		}
	}
	if d.listedAhead > len(d.ahead) && (len(d.ahead) == 0 || d.stopping) {
		d.pending.rewriteAhead = true // otherwise the next prepared tasks rewrite the list
	}
}

// finish records ends; an end that the record refuses is logged and dropped.
func (d *Deployer) finish(done []intent.FinishedAction) {
	refused := record(d, "record what ended", done, d.cfg.Store.FinishActions,
		func(f intent.FinishedAction) any { return f.Action.ID })
	for i := range done {
		if err := refused.of(done[i].Action.ID); err != nil {
			d.log.Error("the end of a deployment could not be recorded", "resource", done[i].State.ID.String(),
				"version", done[i].Action.Version, "status", done[i].Action.Status, "error", err)
		}
	}
}

// refusals are the entries of a list that the record refuses, and why.
type refusals struct {
	entries map[any]error // by the id of the entry
	lost    error         // the deployer stopped before all was durable
}

func (r refusals) of(name any) error { return r.entries[name] }

// record stores a list in one transaction. When the record refuses the list, each entry is tried on its own.
func record[T any](
	d *Deployer,
	what string,
	list []T,
	store func(context.Context, intent.EnvironmentID, []T) error,
	name func(T) any,
) (out refusals) {
	if len(list) == 0 {
		return out
	}
	try := func(entries []T) error {
		orPermanent := permanentFailures()
		return d.persist(d.records, what, func(ctx context.Context) error {
			return orPermanent(store(ctx, d.env, entries))
		})
	}
	err := try(list)
	switch {
	case err == nil:
		return out
	case !errors.As(err, new(permanent)):
		out.lost = err
		return out
	}
	out.entries = make(map[any]error)
	if len(list) == 1 {
		out.entries[name(list[0])] = err
		return out
	}
	for i := range list {
		switch err := try(list[i : i+1]); {
		case err == nil:
		case errors.As(err, new(permanent)):
			out.entries[name(list[i])] = err
		default:
			out.lost = err
			return out
		}
	}
	return out
}

// permanentFailures returns a function that marks errors which another attempt cannot help: those that are clear at
// once, and internal errors when they come three times in a row.
func permanentFailures() func(error) error {
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

// unrecorded ends a deployment whose beginning the record refused: it does not run.
func (d *Deployer) unrecorded(r *deployment, err error) {
	d.log.Error("a deployment is not run, because its beginning could not be recorded", "resource",
		r.task.Resource.ID.String(), "version", r.task.Resource.Version, "error", err)
	d.finished(r, executor.Result{Status: intent.StatusUnavailable, Change: intent.NoChange, Messages: []intent.LogLine{
		line(now(), "ERROR", "Not deployed: its beginning could not be recorded: "+err.Error()),
	}}, d.stopping)
}

// publish reports what changed: each of a few resources, or everything once.
func (d *Deployer) publish(b batch) {
	const few = 20
	if len(b.freed) > 0 || len(b.starts)+len(b.shown)+len(b.finishes) > few {
		d.cfg.OnChange(Event{})
		return
	}
	for _, list := range [][]*deployment{b.starts, b.shown} {
		for _, r := range list {
			d.cfg.OnChange(Event{Resource: r.task.Resource.ID})
		}
	}
	for i := range b.finishes {
		d.cfg.OnChange(Event{Resource: b.finishes[i].State.ID})
	}
}

// newID returns the id of an action. Ids that grow with time lie side by side in the record's index, where random
// ones touch a page each.
func newID() intent.ActionID {
	if id, err := uuid.NewV7(); err == nil {
		return id
	}
	return uuid.New()
}
