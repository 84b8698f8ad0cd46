package deployer

import (
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Where handlers are quicker than commits, an agent that waits for a commit
// before each task would mostly wait. So what comes next on a busy agent is
// recorded together with what is recorded anyway: such a task is *prepared*, and
// starts without a wait when its turn comes.
//
//	commit n   ─ a ends, b begins, c d e prepared ─▶  b ▸ c ▸ d ▸ e run one by one
//	commit n+1 ─ b c d end, f g h prepared         ─▶  f ▸ …
//
// The order of things stays: that a resource is being deployed is durable before
// its task runs, and an end before what depends on it begins. The record has it as
// one list of resources and of the actions that they will be (Store.SetAhead), written
// whole each time; a list keeps a task until its end is durable. The log gets the
// entry of such a task when it ends, or when it turns out to take its time: then the
// resource shows as deploying too. After a kill, what is in the list and has no entry was cut
// off, or about to begin. How
// many are prepared follows from how long commits and handlers take, so that a
// task is prepared several commits before it runs; with handlers that are
// slower than a commit nothing is. What was prepared and does not come to run (a
// pause, a new version) is taken off the list.
//
// A commit costs much the same for one end as for fifty. So while ends come fast,
// and none of them is waited for, they gather for a moment before they are
// committed. Nobody waits as long as what comes next is prepared: what is not, or
// depends on an end, asks for its own commit and takes the gathered ends along.

const (
	mostPrepared = 256 // per agent
	// reach is for how many usual commits what is prepared lasts: now and then one
	// takes several times as long, and then every agent would wait for it.
	reach = 6
	// gatherTime is how long ends may wait for others. A kill in it repeats them.
	gatherTime = 20 * time.Millisecond
	// quickSuccession: ends that follow each other like this are worth gathering.
	quickSuccession = 2 * time.Millisecond
	mostGathered    = 512
	// slowTask: where handlers take this long, the record is not what they wait for.
	slowTask = 50 * time.Millisecond
	// shownAfter: a prepared task that runs longer is worth an entry in the log while it runs.
	shownAfter = time.Second
)

// average smooths durations: an eighth of each new one.
type average time.Duration

func (a *average) add(d time.Duration) {
	if *a == 0 {
		*a = average(max(d, 1))
		return
	}
	*a += (average(d) - *a) / 8
	*a = max(*a, 1)
}

// endsComeFast tells that ends come faster than they should be committed one by one.
func (d *Deployer) endsComeFast() bool {
	return d.endGap > 0 && time.Duration(d.endGap) < quickSuccession && time.Duration(d.taskTime) < slowTask
}

// prepareDepth is how many tasks to prepare for each busy agent.
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

// noteEndGap takes note of when a task ended, for the pace of the commits.
func (d *Deployer) noteEndGap(at time.Time) {
	if !d.lastEnd.IsZero() {
		d.endGap.add(min(at.Sub(d.lastEnd), slowTask))
	}
	d.lastEnd = at
}

// gathering tells that the batch should wait for more ends, and until when.
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

// prepare adds to a batch what comes next.
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

// begin puts a start into the next batch, or lets it run at once when it was prepared.
func (d *Deployer) start(c scheduler.Start) {
	r := d.prepared[c.Resource.ID]
	if r != nil && (r.task.Action == executor.DryRun) != c.Report { // it was to be another thing
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
		if d.unsaved[need.ID] > 0 { // what it needs must be durable first
			d.pending.starts = append(d.pending.starts, r)
			return
		}
	}
	if !r.durable { // the batch that it is in is being committed
		d.pending.starts = append(d.pending.starts, r)
		return
	}
	d.running[r.task.ID] = r
	d.logAction(r.action, r.action.Messages)
	d.show(r)
	d.queueForExecutor(r)
}

// recallPrepared takes back what was prepared and is not going to run as prepared, also
// what was sent behind another task; an empty agent means all.
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

// show makes an entry in the log for a prepared task that takes its time.
func (d *Deployer) show(r *deployment) {
	r.shown = time.AfterFunc(shownAfter, func() {
		d.post(func() { d.pending.shown = append(d.pending.shown, r) })
	})
}

// dropPrepared drops a task that was prepared.
func (d *Deployer) dropPrepared(r *deployment) {
	delete(d.prepared, r.task.Resource.ID)
	delete(d.ahead, r.task.ID)
	d.pending.rewriteAhead = true
}

// save puts an end into the next batch.
func (d *Deployer) queueEnd(f intent.FinishedAction) {
	d.pending.finishes = append(d.pending.finishes, f)
	d.unsaved[f.State.ID]++
}
