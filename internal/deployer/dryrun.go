package deployer

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// DryRun finds what deploying a version would change, with the same handlers
// stopped before they enforce. It has a budget of its own: so many resources
// at once, one per agent, beside what is being deployed. Results are stored as
// they come; the dry run is complete when every resource of the version has one.
func (d *Deployer) DryRun(id intent.ActionID, version int) {
	d.post(func() {
		if d.stopping {
			return
		}
		d.dryRuns++
		go func() {
			if err := d.dryRun(id, version); err != nil {
				d.log.Error("a dry run could not be completed", "dryrun", id, "version", version, "error", err)
			}
			d.post(func() { d.dryRuns-- })
		}()
	})
}

func (d *Deployer) dryRun(id intent.ActionID, version int) error {
	var resources []intent.Resource
	var code *versionCode
	var paused []string
	err := d.persist(d.tasks, "read a version for a dry run", func(ctx context.Context) (err error) {
		if resources, code, err = d.readVersion(ctx, version); err == nil {
			paused, err = d.pausedAgents(ctx)
		}
		if fault.Is(err, fault.NotFound) {
			return permanent{err}
		}
		return err
	})
	if err != nil {
		return err
	}
	known, work := sortDryRun(resources, paused)
	diffs := make(chan intent.ResourceDiff)
	stored := make(chan error, 1)
	go func() { stored <- d.storeDiffs(id, known, diffs) }()

	// One worker takes one agent after the other.
	agents := make(chan []intent.Resource)
	var wg sync.WaitGroup
	for range d.cfg.DryRuns {
		wg.Go(func() {
			for list := range agents {
				for _, r := range list {
					result := d.call(executor.Task{
						ID: uuid.New(), Action: executor.DryRun, Resource: r, Blueprint: code.of(r.ID),
						Reason: "dry run", Timeout: d.cfg.Timeout,
					})
					if d.tasks.Err() != nil {
						return
					}
					diffs <- diffOf(r, result)
				}
			}
		})
	}
feed:
	for _, list := range work {
		select {
		case agents <- list:
		case <-d.tasks.Done():
			break feed
		}
	}
	close(agents)
	wg.Wait()
	close(diffs)
	if err := <-stored; err != nil {
		return err
	}
	return d.tasks.Err()
}

// sortDryRun tells apart what needs no handler and what does, the latter by agent.
func sortDryRun(resources []intent.Resource, paused []string) (known []intent.ResourceDiff, work [][]intent.Resource) {
	down := make(map[string]bool, len(paused))
	for _, name := range paused {
		down[name] = true
	}
	blocked := make(map[intent.ResourceID]bool)
	behind := make(map[intent.ResourceID][]intent.ResourceID)
	var reach []intent.ResourceID
	for i := range resources {
		for _, need := range resources[i].Requires {
			behind[need] = append(behind[need], resources[i].ID)
		}
		if len(resources[i].Undefined) > 0 {
			blocked[resources[i].ID] = true
			reach = append(reach, resources[i].ID)
		}
	}
	for len(reach) > 0 {
		id := reach[len(reach)-1]
		reach = reach[:len(reach)-1]
		for _, next := range behind[id] {
			if !blocked[next] {
				blocked[next] = true
				reach = append(reach, next)
			}
		}
	}
	place := make(map[string]int)
	for _, r := range resources {
		diff := intent.ResourceDiff{ID: r.ID}
		switch {
		case len(r.Undefined) > 0:
			diff.Kind = intent.DiffUndefined
		case blocked[r.ID]:
			diff.Kind = intent.DiffSkipped
		case down[r.ID.Agent]:
			diff.Kind = intent.DiffAgentDown
		default:
			at, ok := place[r.ID.Agent]
			if !ok {
				at = len(work)
				place[r.ID.Agent] = at
				work = append(work, nil)
			}
			work[at] = append(work[at], r)
			continue
		}
		known = append(known, diff)
	}
	return known, work
}

// diffOf reads what a handler found. A target that cannot be reached is not "no change".
func diffOf(r intent.Resource, result executor.Result) intent.ResourceDiff {
	diff := intent.ResourceDiff{ID: r.ID, Attributes: result.Changes}
	was, purging := result.Changes["purged"]
	switch {
	case result.Status == intent.StatusUnavailable:
		diff.Kind = intent.DiffAgentDown
	case result.Status != intent.StatusDry:
		diff.Kind = intent.DiffModified
		diff.Attributes = map[string]intent.AttributeChange{
			"handler": {Current: "FAILED", Desired: "The handler could not tell what it would change: " + lastError(result)},
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

func lastError(result executor.Result) string {
	for i := len(result.Messages) - 1; i >= 0; i-- {
		if m := result.Messages[i]; m.Level == "ERROR" || m.Level == "CRITICAL" {
			return m.Message
		}
	}
	return "it ended as " + string(result.Status)
}

// storeDiffs stores what comes, as much at a time as came while the part before was stored.
func (d *Deployer) storeDiffs(id intent.ActionID, first []intent.ResourceDiff, diffs <-chan intent.ResourceDiff) error {
	const most = 500
	var failed error
	store := func(list []intent.ResourceDiff) {
		if len(list) == 0 || failed != nil {
			return
		}
		orPermanent := hopeless()
		failed = d.persist(d.records, "record a dry run", func(ctx context.Context) error {
			err := d.cfg.Store.AddDryRunDiffs(ctx, d.env, id, list)
			return orPermanent(err)
		})
		d.cfg.OnChange(Event{DryRun: id})
	}
	for len(first) > most {
		store(first[:most])
		first = first[most:]
	}
	store(first)
	for diff := range diffs {
		list := []intent.ResourceDiff{diff}
	more:
		for len(list) < most {
			select {
			case next, ok := <-diffs:
				if !ok {
					break more
				}
				list = append(list, next)
			default:
				break more
			}
		}
		store(list)
	}
	return failed
}
