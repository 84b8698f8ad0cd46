package deployer

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// A dry run finds out what deploying a version would change, with the same handlers stopped before they enforce. Its
// looks are jobs of the scheduler. Results are stored as they come, and the next server looks again at what has none:
//
//	record ──read──▶ resources without a result ──▶ jobs ──▶ results ──stored──▶ … ──▶ the last one: ended
//
// A result that cannot be stored yet delays nothing else.

// dryRun is a dry run that is under way.
type dryRun struct {
	id        intent.ActionID
	resources map[intent.ResourceID]intent.Resource // those without a result
	code      *versionCode
	requires  map[intent.ResourceID][]intent.ResourceID
	created   map[intent.ResourceID]bool // those that would be created
	unknown   []intent.ResourceID        // those that handlers could not look at
	found     []intent.ResourceDiff      // not stored yet
	storing   bool
	reading   bool
	dropped   bool // cancelled, or gone from the record
}

// DryRun takes up a dry run that the record has. Repeating it is harmless.
func (d *Deployer) DryRun(id intent.ActionID) { d.whenLoaded(func() { d.beginDryRun(id) }) }

// CancelDryRun drops what a dry run still has to do; the record knows already that it has ended.
func (d *Deployer) CancelDryRun(id intent.ActionID) {
	d.whenLoaded(func() {
		if run := d.dryRuns[id]; run != nil {
			d.dropDryRun(run)
		}
	})
}

func (d *Deployer) dropDryRun(run *dryRun) {
	run.dropped = true
	run.found = nil
	delete(d.dryRuns, run.id)
	d.carryOut(d.sched.CancelJobs(run.id, now()))
}

// takeUpDryRuns goes on with dry runs that another server left.
func (d *Deployer) takeUpDryRuns() {
	d.background(func() func() {
		var open []intent.DryRun
		err := d.persist(d.tasks, "read the dry runs", func(ctx context.Context) (err error) {
			open, err = d.cfg.Store.OpenDryRuns(ctx, d.env)
			return err
		})
		return func() {
			if err != nil {
				return
			}
			for _, run := range open {
				if run.Version > 0 { // else its commit is still to be compiled
					d.beginDryRun(run.ID)
				}
			}
		}
	})
}

// background runs do outside of the loop, and what that returns in the loop. Until then the deployer is not quiet.
func (d *Deployer) background(do func() func()) {
	if d.stopping {
		return
	}
	d.inBackground++
	d.commits.Go(func() {
		then := do()
		d.post(func() {
			d.inBackground--
			if !d.stopping {
				then()
			}
		})
	})
}

func (d *Deployer) beginDryRun(id intent.ActionID) {
	if d.dryRuns[id] != nil || d.stopping {
		return
	}
	run := &dryRun{id: id, reading: true, created: make(map[intent.ResourceID]bool)}
	d.dryRuns[id] = run
	d.background(func() func() {
		var resources []intent.Resource
		var record intent.DryRun
		var stored []intent.ResourceDiff
		var chosen []intent.ResourceID
		err := d.persist(d.tasks, "read a version for a dry run", func(ctx context.Context) (err error) {
			if record, stored, err = d.cfg.Store.DryRun(ctx, d.env, id); err == nil && record.Ended == nil {
				resources, run.code, err = d.readVersion(ctx, record.Version)
			}
			if err == nil && record.Ended == nil && record.ResourceFilter != nil {
				chosen, err = d.cfg.Store.DryRunChosen(ctx, d.env, id)
			}
			if fault.Is(err, fault.NotFound) {
				return permanent{err}
			}
			return err
		})
		return func() {
			run.reading = false
			switch {
			case run.dropped:
			case err != nil:
				d.log.Error("a dry run cannot be carried out", "dryrun", id, "error", err)
				d.dropDryRun(run)
			case record.Ended != nil:
				delete(d.dryRuns, id)
			default:
				d.enqueueLooks(run, chooser(record.Filter, chosen), resources, stored)
			}
		}
	})
}

// chooser returns what decides whether a dry run looks at a resource. chosen are those of its filter; nil: all.
func chooser(f intent.DryRunFilter, chosen []intent.ResourceID) func(intent.ResourceID) bool {
	named := make(map[intent.ResourceID]bool, len(chosen))
	for _, id := range chosen {
		named[id] = true
	}
	return func(id intent.ResourceID) bool { return (chosen == nil || named[id]) && f.Match(id) }
}

// enqueueLooks hands the resources without a result to the scheduler.
func (d *Deployer) enqueueLooks(
	run *dryRun,
	chooses func(intent.ResourceID) bool,
	resources []intent.Resource,
	stored []intent.ResourceDiff,
) {
	done := make(map[intent.ResourceID]bool, len(stored))
	for _, diff := range stored {
		done[diff.ID] = true
		run.note(diff)
	}
	run.requires = make(map[intent.ResourceID][]intent.ResourceID, len(resources))
	run.resources = make(map[intent.ResourceID]intent.Resource, len(resources)-len(done))
	behind := behindUndefined(resources)
	var jobs []scheduler.Job
	for _, r := range resources {
		run.requires[r.ID] = r.Requires
		switch {
		case done[r.ID] || !chooses(r.ID):
		case len(r.Undefined) > 0:
			run.add(intent.ResourceDiff{ID: r.ID, Kind: intent.DiffUndefined})
		case behind[r.ID]:
			run.add(intent.ResourceDiff{ID: r.ID, Kind: intent.DiffSkipped})
		default:
			run.resources[r.ID] = r
			jobs = append(jobs, scheduler.Job{Run: run.id, Resource: r.ID})
		}
	}
	d.carryOut(d.sched.Enqueue(jobs, now()))
	d.storeDiffs(run)
}

// behindUndefined returns everything that requires something undefined, through any number of others.
func behindUndefined(resources []intent.Resource) map[intent.ResourceID]bool {
	behind := make(map[intent.ResourceID]bool)
	provides := make(map[intent.ResourceID][]intent.ResourceID)
	var reach []intent.ResourceID
	for i := range resources {
		for _, need := range resources[i].Requires {
			provides[need] = append(provides[need], resources[i].ID)
		}
		if len(resources[i].Undefined) > 0 {
			reach = append(reach, resources[i].ID)
		}
	}
	for len(reach) > 0 {
		id := reach[len(reach)-1]
		reach = reach[:len(reach)-1]
		for _, next := range provides[id] {
			if !behind[next] {
				behind[next] = true
				reach = append(reach, next)
			}
		}
	}
	return behind
}

// add takes a result.
func (run *dryRun) add(diff intent.ResourceDiff) {
	delete(run.resources, diff.ID)
	run.note(diff)
	run.found = append(run.found, diff)
}

// note keeps what the end of the dry run needs to know about a result.
func (run *dryRun) note(diff intent.ResourceDiff) {
	switch diff.Kind {
	case intent.DiffAdded:
		run.created[diff.ID] = true
	case intent.DiffUnknown:
		run.unknown = append(run.unknown, diff.ID)
	}
}

// beginJob starts a job of the scheduler.
func (d *Deployer) beginJob(j scheduler.Job) {
	if j.Run == uuid.Nil {
		d.askOne(j)
		return
	}
	d.lookAtOne(j)
}

// lookAtOne does one job of a dry run.
func (d *Deployer) lookAtOne(j scheduler.Job) {
	run := d.dryRuns[j.Run]
	if run == nil {
		d.endJob(j, executor.Result{})
		return
	}
	r := run.resources[j.Resource]
	t := executor.Task{
		ID:        uuid.New(),
		Action:    executor.DryRun,
		Resource:  r,
		Blueprint: run.code.of(r.ID),
		Reason:    "dry run",
		Timeout:   d.cfg.Timeout,
	}
	d.inBackground++
	go func() {
		result := d.call(t)
		cutOff := d.tasks.Err() != nil
		d.post(func() {
			d.inBackground--
			if !run.dropped && !cutOff {
				run.add(diffOf(r, result))
				d.storeDiffs(run)
			}
			d.endJob(j, result)
		})
	}()
}

// endJob reports the end of a job to the scheduler.
func (d *Deployer) endJob(j scheduler.Job, result executor.Result) {
	d.carryOut(d.sched.JobDone(j, result.Unreachable, now()))
}

// refused handles a job that will not be done.
func (d *Deployer) refused(c scheduler.RefuseJob) {
	why := "its agent is paused"
	if c.Why == scheduler.RefusedUnreachable {
		why = "its target cannot be reached, as several attempts have shown"
	}
	if c.Job.Run == uuid.Nil {
		d.factsRefused(c.Job.Resource, why)
		return
	}
	if run := d.dryRuns[c.Job.Run]; run != nil {
		run.add(intent.ResourceDiff{ID: c.Job.Resource, Kind: intent.DiffAgentDown, Reason: why})
		d.storeDiffs(run)
	}
}

// diffOf converts what a handler found. A resource that it could not look at is not "no change".
func diffOf(r intent.Resource, result executor.Result) intent.ResourceDiff {
	diff := intent.ResourceDiff{ID: r.ID, Attributes: result.Changes}
	was, purging := result.Changes["purged"]
	switch {
	case result.Status == intent.StatusUnavailable:
		diff.Kind, diff.Reason = intent.DiffAgentDown, lastError(result)
	case result.Status != intent.StatusDry:
		diff.Kind, diff.Reason = intent.DiffUnknown, lastError(result)
		diff.Attributes = map[string]intent.AttributeChange{
			"handler": {Current: "FAILED", Desired: "The handler could not tell what it would change: " + diff.Reason},
		}
	case len(result.Changes) == 0:
		diff.Kind = intent.DiffUnmodified
	case purging && was.Current == true:
		diff.Kind = intent.DiffAdded
	case purging && was.Desired == true:
		diff.Kind = intent.DiffDeleted
	default:
		diff.Kind = intent.DiffModified
	}
	return diff
}

// mostReason bounds how much is kept of why a resource could not be looked at.
const mostReason = 4000

func lastError(result executor.Result) string {
	for i := len(result.Messages) - 1; i >= 0; i-- {
		if m := result.Messages[i]; m.Level == "ERROR" || m.Level == "CRITICAL" {
			return m.Message[:min(len(m.Message), mostReason)]
		}
	}
	return "it ended as " + string(result.Status)
}

// storeDiffs stores results, at a time as many as came while those before were being stored, and ends the dry run
// with the last of them.
func (d *Deployer) storeDiffs(run *dryRun) {
	if run.storing || run.reading || run.dropped {
		return
	}
	const most = 500
	list := run.found[:min(len(run.found), most)]
	last := len(list) == len(run.found) && len(run.resources) == 0
	if len(list) == 0 && !last {
		return
	}
	run.found = run.found[len(list):]
	run.storing = true
	var behind map[intent.ResourceID]intent.ResourceID
	if last {
		behind = run.behind()
	}
	d.inBackground++
	d.commits.Go(func() {
		err := d.storeFound(run.id, list, last, behind)
		d.post(func() {
			d.inBackground--
			run.storing = false
			switch {
			case run.dropped:
			case err != nil:
				if d.records.Err() == nil && !fault.Is(err, fault.Conflict) { // it was not cancelled
					d.log.Error("what a dry run found could not be recorded", "dryrun", run.id, "error", err)
				}
				d.dropDryRun(run)
			case last:
				delete(d.dryRuns, run.id)
			default:
				d.storeDiffs(run)
			}
		})
	})
}

func (d *Deployer) storeFound(
	id intent.ActionID,
	list []intent.ResourceDiff,
	last bool,
	behind map[intent.ResourceID]intent.ResourceID,
) error {
	orPermanent := permanentFailures()
	at := now()
	err := d.persist(d.records, "record a dry run", func(ctx context.Context) error {
		if len(list) > 0 {
			if err := d.cfg.Store.AddDryRunDiffs(ctx, d.env, id, list); err != nil {
				return orPermanent(err)
			}
		}
		if !last {
			return nil
		}
		return orPermanent(d.cfg.Store.EndDryRun(ctx, d.env, id, intent.DryRunDone, "", behind, at))
	})
	d.cfg.OnChange(Event{DryRun: id, Ended: last && err == nil})
	return err
}

// behind returns, for resources that handlers could not look at, the nearest resource that it requires and that would
// be created first: there was nothing to look at yet.
func (run *dryRun) behind() map[intent.ResourceID]intent.ResourceID {
	out := make(map[intent.ResourceID]intent.ResourceID)
	for _, id := range run.unknown {
		seen := map[intent.ResourceID]bool{id: true}
		for rest := run.requires[id]; len(rest) > 0; rest = rest[1:] {
			need := rest[0]
			if run.created[need] {
				out[id] = need
				break
			}
			if !seen[need] {
				seen[need] = true
				rest = append(rest[:len(rest):len(rest)], run.requires[need]...)
			}
		}
	}
	return out
}
