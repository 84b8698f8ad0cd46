package deployer

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// Facts are asked for by jobs of the scheduler: those that a person requests, those that are about to expire, and
// those that the model waits for. The time of the next question follows from the record and from when this server
// last asked:
//
//	learnt ──fact-renew──▶ asked again, long before it expires
//	the model waits ──▶ asked with each new version, when its resource was deployed, and every fact-renew

// factState is what a deployer knows about facts.
type factState struct {
	asked     map[intent.ResourceID]time.Time
	awaited   map[intent.ResourceID]bool // the model waits for a fact of this resource
	next      time.Time                  // when to look again; zero: nothing is due
	reading   bool
	readAgain bool // something changed while the record was read
}

// RefreshFacts asks resources for their facts. The record has the requests already.
func (d *Deployer) RefreshFacts(ids []intent.ResourceID) {
	d.whenLoaded(func() { d.ask(ids) })
}

func (d *Deployer) ask(ids []intent.ResourceID) {
	jobs := make([]scheduler.Job, len(ids))
	for i, id := range ids {
		jobs[i] = scheduler.Job{Resource: id}
	}
	d.carryOut(d.sched.Enqueue(jobs, now()))
}

// lookAtFacts reads which facts are due. fresh means that the intent is new: what that waits for is asked for at
// once.
func (d *Deployer) lookAtFacts(fresh bool) {
	if fresh {
		for id := range d.facts.awaited {
			delete(d.facts.asked, id)
		}
	}
	if d.stopping || d.facts.reading {
		d.facts.readAgain = true
		return
	}
	d.facts.reading, d.facts.readAgain, d.facts.next = true, false, time.Time{}
	d.background(func() func() {
		var wanted []intent.ResourceID
		var due []intent.FactsDue
		err := d.persist(d.tasks, "read which facts are due", func(ctx context.Context) (err error) {
			if wanted, err = d.cfg.Store.FactRequests(ctx, d.env); err == nil {
				due, err = d.cfg.Store.FactsDue(ctx, d.env)
			}
			return err
		})
		return func() {
			d.facts.reading = false
			if err == nil {
				d.askDue(wanted, due)
			}
			if d.facts.readAgain {
				d.lookAtFacts(false)
			}
		}
	})
}

// askDue asks for what is due, and sets when to look next.
func (d *Deployer) askDue(wanted []intent.ResourceID, due []intent.FactsDue) {
	at := now()
	clear(d.facts.awaited)
	for _, f := range due {
		if f.Unknown {
			d.facts.awaited[f.Resource] = true
		}
		when := d.facts.asked[f.Resource]
		if f.Updated != nil && f.Updated.After(when) {
			when = *f.Updated
		}
		if !when.IsZero() {
			when = when.Add(d.cfg.FactRenew)
		}
		if when.After(at) {
			if d.facts.next.IsZero() || when.Before(d.facts.next) {
				d.facts.next = when
			}
			continue
		}
		wanted = append(wanted, f.Resource)
	}
	// What is asked for now is due again after the same time, whatever the answer is.
	if again := at.Add(d.cfg.FactRenew); len(wanted) > 0 && (d.facts.next.IsZero() || again.Before(d.facts.next)) {
		d.facts.next = again
	}
	for _, id := range wanted {
		d.facts.asked[id] = at
	}
	d.ask(wanted)
}

// askOne does one job.
func (d *Deployer) askOne(j scheduler.Job) {
	r, ok := d.sched.Resource(j.Resource)
	if !ok || len(r.Undefined) > 0 || d.version == nil {
		d.factsRefused(j.Resource, "the deployed version does not have it, or has it with unknown values")
		d.endJob(j, executor.Result{})
		return
	}
	at := now()
	t := executor.Task{
		ID:        uuid.New(),
		Action:    executor.GetFacts,
		Resource:  r,
		Blueprint: d.version.of(r.ID),
		Reason:    "fact refresh",
		Timeout:   d.cfg.Timeout,
	}
	d.inBackground++
	go func() {
		result := d.call(t)
		cutOff := d.tasks.Err() != nil
		d.post(func() {
			d.inBackground--
			if !cutOff {
				d.recordAnswer(t, at, result)
			}
			d.endJob(j, result)
		})
	}()
}

// recordAnswer records the facts that a resource reported.
func (d *Deployer) recordAnswer(t executor.Task, began time.Time, result executor.Result) {
	at := now()
	status := result.Status
	if status == intent.StatusDry || status == "" {
		status = intent.StatusDeployed
	}
	id := t.Resource.ID
	d.facts.asked[id] = at
	end := intent.FinishedAction{
		Facts: facts(id, result.Facts, at),
		Action: intent.Action{
			ID: t.ID, Environment: d.env, Kind: intent.ActionGetFact, Resource: id, Version: t.Resource.Version,
			Started: began, Finished: &at, Status: status, Change: intent.NoChange, Messages: result.Messages,
		},
	}
	d.recordInquiry(end)
}

// factsRefused records that a resource was not asked.
func (d *Deployer) factsRefused(id intent.ResourceID, why string) {
	at := now()
	d.recordInquiry(intent.FinishedAction{Action: intent.Action{
		ID: uuid.New(), Environment: d.env, Kind: intent.ActionGetFact, Resource: id, Version: d.sched.Version(),
		Started: at, Finished: &at, Status: intent.StatusUnavailable, Change: intent.NoChange,
		Messages: []intent.LogLine{line(at, "WARNING", "Not asked for its facts: "+why+".")},
	}})
}

// recordInquiry makes an answer durable, and lets the server find out whether the model waits for it.
func (d *Deployer) recordInquiry(end intent.FinishedAction) {
	d.inBackground++
	d.commits.Go(func() {
		orPermanent := permanentFailures()
		err := d.persist(d.records, "record facts", func(ctx context.Context) error {
			if err := d.cfg.Store.FinishActions(ctx, d.env, []intent.FinishedAction{end}); err != nil {
				return orPermanent(err)
			}
			return orPermanent(d.cfg.Store.FactsAnswered(ctx, d.env, []intent.ResourceID{end.Action.Resource}))
		})
		if err != nil && d.records.Err() == nil {
			d.log.Error("facts could not be recorded", "resource", end.Action.Resource.String(), "error", err)
		}
		if err == nil && len(end.Facts) > 0 {
			d.cfg.OnFacts()
		}
		d.cfg.OnChange(Event{Resource: end.Action.Resource})
		d.post(func() { d.inBackground-- })
	})
}
