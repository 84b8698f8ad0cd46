package deployer

import (
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Where handlers are quicker than commits, an agent that waits for a commit before each task would mostly wait. So
// what comes next on a busy agent is recorded together with what is recorded anyway: such a task is *prepared*, and
// starts without a wait when its turn comes.
//
//	commit n   ─ a ends, b begins, c d e prepared ─▶  b ▸ c ▸ d ▸ e run one by one
//	commit n+1 ─ b c d end, f g h prepared         ─▶  f ▸ …
//
// The order stays the same: it is durable that a resource is being deployed before its task runs, and an end is
// durable before what depends on it begins. The record has the prepared tasks as one list of resources and the
// actions that they will be (Store.SetAhead), written as a whole each time; a task stays in the list until its end is
// durable. The log gets its entry when it ends, or when it has been running for long, and then the resource shows as
// deploying too. After a kill, a task that is in the list and has no entry was cut off, or about to begin. How many
// are prepared follows from how long commits and handlers take, so that a task is prepared several commits before it
// runs; with handlers slower than a commit none are. Prepared tasks that do not come to run (a pause, a new version)
// are taken off the list.
//
// A commit costs much the same for one end as for fifty. So while ends come fast, and nothing waits for one of them,
// they gather for a moment before they are committed. No agent waits for that as long as its next tasks are prepared:
// a task that is not prepared, or that depends on an end, needs a commit at once and takes the gathered ends along.

const (
	mostPrepared = 256 // per agent
	// reach is for how many typical commits the prepared tasks last: now and then a commit takes several times as
	// long, and then every agent would wait for it.
	reach = 6
	// gatherTime is how long ends may wait for others. A kill in that time repeats them.
	gatherTime = 20 * time.Millisecond
	// quickSuccession is the time between ends below which they are worth gathering.
	quickSuccession = 2 * time.Millisecond
	mostGathered    = 512
	// slowTask is how long handlers take that do not wait for the record.
	slowTask = 50 * time.Millisecond
	// shownAfter is how long a prepared task runs before it gets an entry in the log.
	shownAfter = time.Second
)

// average is a running average of durations: an eighth of each new one.
type average time.Duration

func (a *average) add(d time.Duration) {
	if *a == 0 {
		*a = average(max(d, 1))
		return
	}
	*a += (average(d) - *a) / 8
	*a = max(*a, 1)
}

// endsComeFast reports whether ends come faster than they should be committed one by one.
func (d *Deployer) endsComeFast() bool {
	return d.endGap > 0 && time.Duration(d.endGap) < quickSuccession && time.Duration(d.taskTime) < slowTask
}

// prepareDepth returns how many tasks to prepare for each busy agent.
func (d *Deployer) prepareDepth() int {
	if d.stopping || d.loading || d.taskTime == 0 || d.commitTime == 0 || time.Duration(d.taskTime) > slowTask {
		return 0
	}
	pace := d.commitTime
	if d.endsComeFast() {
		pace += average(gatherTime)
	}
	if pace < d.taskTime {
		return 0
	}
	return int(min(reach*pace/d.taskTime, mostPrepared))
}

// noteEndGap notes when a task ended, for the pace of commits.
func (d *Deployer) noteEndGap(at time.Time) {
	if !d.lastEnd.IsZero() {
		d.endGap.add(min(at.Sub(d.lastEnd), slowTask))
	}
	d.lastEnd = at
}

// shouldGather reports whether the batch should wait for more ends, and sets until when.
func (d *Deployer) shouldGather() bool {
	d.gatherUntil = time.Time{}
	b := &d.pending
	if d.stopping || len(b.starts)+len(b.freed) > 0 || len(b.finishes) >= mostGathered || len(d.running) == 0 ||
		!d.endsComeFast() {
		return false
	}
	if d.gatherSince.IsZero() {
		d.gatherSince = time.Now()
	}
	if time.Since(d.gatherSince) >= gatherTime {
		return false
	}
	d.gatherUntil = d.gatherSince.Add(gatherTime)
	return true
}

// prepare adds to a batch the tasks that come next.
func (d *Deployer) prepare(b *batch) {
	if d.sched == nil {
		return
	}
	known := func(id intent.ResourceID) bool { return d.prepared[id] != nil || d.unsaved[id] > 0 }
	for _, c := range d.sched.Ahead(d.prepareDepth(), known) {
		id := c.Resource.ID
		r := d.newDeployment(c)
		r.ahead = true
		d.prepared[id], d.ahead[r.task.ID] = r, id
		b.prepared = append(b.prepared, r)
	}
}

// start puts a start into the next batch, or lets it run at once when it was prepared.
func (d *Deployer) start(c scheduler.Start) {
	r := d.prepared[c.Resource.ID]
	if r != nil && (r.task.Action == executor.DryRun) != c.Report { // it was prepared to do something else
		d.dropPrepared(r)
		r = nil
	}
	if r == nil {
		d.pending.starts = append(d.pending.starts, d.newDeployment(c))
		return
	}
	delete(d.prepared, c.Resource.ID)
	at := now()
	r.describe(c, at)
	for _, need := range c.Requires {
		if d.unsaved[need.ID] > 0 { // the end of what it needs must be durable first
			d.pending.starts = append(d.pending.starts, r)
			return
		}
	}
	if !r.durable { // its batch is still being committed
		d.pending.starts = append(d.pending.starts, r)
		return
	}
	d.running[r.task.ID] = r
	d.logAction(r.action, r.action.Messages)
	d.show(r)
	d.queueForExecutor(r)
}

// recallPrepared drops prepared tasks, and recalls those sent behind another one; an empty agent means all.
func (d *Deployer) recallPrepared(agent string) {
	for id, r := range d.prepared {
		if agent == "" || id.Agent == agent {
			d.dropPrepared(r)
		}
	}
	if d.sched != nil {
		d.carryOut(d.sched.RecallAll(agent))
	}
}

// show lets a prepared task have an entry in the log when it runs for long.
func (d *Deployer) show(r *deployment) {
	r.shown = time.AfterFunc(shownAfter, func() {
		d.post(func() { d.pending.shown = append(d.pending.shown, r) })
	})
}

// dropPrepared drops a prepared task.
func (d *Deployer) dropPrepared(r *deployment) {
	delete(d.prepared, r.task.Resource.ID)
	delete(d.ahead, r.task.ID)
	d.pending.rewriteAhead = true
}

// queueEnd puts an end into the next batch.
func (d *Deployer) queueEnd(f intent.FinishedAction) {
	d.pending.finishes = append(d.pending.finishes, f)
	d.unsaved[f.State.ID]++
}
