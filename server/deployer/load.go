package deployer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// load reads the record in the background, repeatedly until that succeeds. It changes the record too, so the loop's
// end waits for it.
func (d *Deployer) load() {
	d.loading = true
	d.commits.Go(func() {
		var snap scheduler.Snapshot
		var code *versionCode
		err := d.persist(d.tasks, "read the record", func(ctx context.Context) (err error) {
			snap, code, err = d.read(ctx)
			return err
		})
		d.post(func() {
			d.loading = false
			if err == nil && !d.stopping {
				d.loaded(snap, code)
			}
		})
	})
}

// read returns the snapshot to begin with. Deployments that were cut off are still marked in it, although they are
// recorded as ended.
func (d *Deployer) read(ctx context.Context) (scheduler.Snapshot, *versionCode, error) {
	snap := scheduler.Snapshot{Now: now(), Halted: true} // until applyEnvironment
	states, err := d.cfg.Store.States(ctx, d.env)
	if err != nil {
		return snap, nil, err
	}
	forget := d.cfg.Environment.Bool("reset_deploy_progress_on_start")
	if _, err := d.cfg.Store.ResetDeploying(ctx, d.env, now(), forget); err != nil {
		return snap, nil, err
	}
	snap.States = states
	if forget {
		for i := range snap.States {
			snap.States[i].IsDeploying = false
		}
	}
	snap.Breakers = make(map[string]intent.Breaker)
	err = d.eachAgent(ctx, func(a intent.Agent) {
		if a.Paused {
			snap.PausedAgents = append(snap.PausedAgents, a.Name)
		}
		if a.Breaker.Open() {
			snap.Breakers[a.Name] = a.Breaker
		}
	})
	if err != nil {
		return snap, nil, err
	}
	active, err := d.cfg.Store.ActiveVersion(ctx, d.env)
	if err != nil || active == nil {
		return snap, nil, err
	}
	snap.Version = active.Number
	var code *versionCode
	snap.Resources, code, err = d.readVersion(ctx, active.Number)
	if err == nil {
		snap.Code = code.marks
	}
	return snap, code, err
}

// eachAgent calls do for every agent.
func (d *Deployer) eachAgent(ctx context.Context, do func(intent.Agent)) error {
	q := intent.ListQuery{Limit: 1000, Sort: "name"}
	for {
		page, err := d.cfg.Store.Agents(ctx, d.env, q)
		if err != nil {
			return err
		}
		for _, a := range page.Items {
			do(a)
		}
		if page.After == 0 || len(page.Items) == 0 {
			return nil
		}
		last := page.Items[len(page.Items)-1].Name
		q.After = &intent.Bound{Value: &last, ID: last}
	}
}

func (d *Deployer) readVersion(ctx context.Context, number int) ([]intent.Resource, *versionCode, error) {
	resources, err := d.cfg.Store.VersionResources(ctx, d.env, number)
	if err != nil {
		return nil, nil, err
	}
	return d.withCode(ctx, resources, number)
}

func (d *Deployer) withCode(
	ctx context.Context,
	resources []intent.Resource,
	number int,
) ([]intent.Resource, *versionCode, error) {
	code, pip, err := d.cfg.Store.VersionCode(ctx, d.env, number)
	if err != nil {
		return nil, nil, err
	}
	return resources, d.newVersionCode(resources, code, pip), nil
}

// loaded starts the scheduler.
func (d *Deployer) loaded(snap scheduler.Snapshot, code *versionCode) {
	s, err := scheduler.New(snap, d.cfg.Limits)
	if err != nil {
		// The active version cannot be deployed at all; a newer one may correct that.
		d.log.Error("the active version cannot be deployed", "version", snap.Version, "error", err)
		snap.Resources = nil
		for i := range snap.States {
			snap.States[i].IsDeploying = false
		}
		if s, err = scheduler.New(snap, d.cfg.Limits); err != nil {
			d.log.Error("the scheduler cannot start", "error", err)
			return
		}
	}
	d.sched, d.version, d.resources = s, code, snap.Resources
	for _, f := range d.beforeLoad {
		f()
	}
	d.beforeLoad = nil
	d.applyEnvironment()
	d.loadVersion()
	d.takeUpDryRuns()
	d.lookAtFacts(true)
}

// loadVersion reads the newest released version in the background and makes it the intent. Outcomes wait meanwhile,
// so that none is recorded against an intent that the record no longer has.
func (d *Deployer) loadVersion() {
	if d.sched == nil || d.loading || d.stopping || d.newestReleased <= d.sched.Version() {
		return
	}
	d.loading = true
	d.carryOut(d.sched.RecallAll(""))
	number, from, known := d.newestReleased, d.sched.Version(), d.resources
	go func() {
		var resources []intent.Resource
		var code *versionCode
		err := d.persist(d.tasks, "read a version", func(ctx context.Context) (err error) {
			resources, code, err = d.readNewer(ctx, from, known, number)
			if fault.Is(err, fault.NotFound) {
				return permanent{err} // it was deleted since
			}
			return err
		})
		d.post(func() {
			d.loading = false
			if err != nil {
				d.log.Error("a released version cannot be read", "version", number, "error", err)
			} else if !d.stopping {
				d.adopt(number, resources, code)
			}
			if d.newestReleased == number {
				d.newestReleased = 0
			}
			deferred := d.deferred
			d.deferred = nil
			for _, f := range deferred {
				f()
			}
			d.loadVersion()
		})
	}()
}

func (d *Deployer) adopt(number int, resources []intent.Resource, code *versionCode) {
	d.recallPrepared("")
	commands, err := d.sched.NewVersion(number, resources, code.marks, now())
	if err != nil {
		d.log.Error("a released version cannot be deployed; the previous one stays", "version", number, "error", err)
		return
	}
	d.version, d.resources = code, resources
	d.carryOut(commands)
	d.lookAtFacts(true)
	d.cfg.OnChange(Event{})
}

// permanent marks an error that another attempt cannot help.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

const (
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
)

// persist calls f until it succeeds, with growing pauses, so that an unreachable database delays the work and loses
// nothing. It gives up when ctx ends or the error is permanent.
func (d *Deployer) persist(ctx context.Context, what string, f func(context.Context) error) error {
	var failed time.Time
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := f(ctx)
		if err == nil {
			if !failed.IsZero() {
				d.log.Info("the database answers again", "doing", what, "after",
					time.Since(failed).Round(time.Millisecond))
			}
			return nil
		}
		if errors.As(err, new(permanent)) || ctx.Err() != nil {
			return err
		}
		if failed.IsZero() {
			failed = time.Now()
			d.log.Warn("the database does not answer; deployments wait", "doing", what, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// versionCode is the handler code of a version, with the blueprints made of it. All resources of an agent share one
// blueprint, and so do agents with the same resource types.
type versionCode struct {
	types      map[string]intent.ResourceCode
	marks      map[string]string // per type, a text that changes with its code
	agents     map[string]string // per agent, the key of its blueprint
	blueprints map[string]intent.Blueprint
}

func (d *Deployer) newVersionCode(
	resources []intent.Resource,
	code []intent.ResourceCode,
	pip intent.PipConfig,
) *versionCode {
	v := &versionCode{
		types:      make(map[string]intent.ResourceCode, len(code)),
		marks:      make(map[string]string, len(code)),
		agents:     make(map[string]string),
		blueprints: make(map[string]intent.Blueprint),
	}
	for _, c := range code {
		v.types[c.Type] = c
		v.marks[c.Type] = d.blueprint(pip, c).Hash()
	}
	used := make(map[string]map[string]bool)
	for i := range resources {
		id := resources[i].ID
		if used[id.Agent] == nil {
			used[id.Agent] = make(map[string]bool)
		}
		used[id.Agent][id.Type] = true
	}
	for agent, types := range used {
		key := ""
		var codes []intent.ResourceCode
		for _, t := range slices.Sorted(maps.Keys(types)) {
			key += t + "\n"
			codes = append(codes, v.types[t])
		}
		v.agents[agent] = key
		if _, known := v.blueprints[key]; !known {
			v.blueprints[key] = d.blueprint(pip, codes...).Sealed()
		}
	}
	return v
}

// blueprint merges what several types need.
func (d *Deployer) blueprint(pip intent.PipConfig, codes ...intent.ResourceCode) intent.Blueprint {
	b := intent.Blueprint{
		Environment: d.env, Pip: pip, PythonVersion: d.cfg.PythonVersion, Libc: d.cfg.Libc,
		Constraints: slices.Compact(slices.Sorted(slices.Values(d.cfg.Constraints))),
	}
	sources := make(map[string]intent.SourceFile)
	for _, c := range codes {
		b.Requirements = append(b.Requirements, c.Requirements...)
		b.Modules = append(b.Modules, c.Modules...)
		b.Constraints = append(b.Constraints, c.Constraints...)
		for _, s := range c.Sources {
			sources[s.Path] = s
		}
	}
	slices.Sort(b.Requirements)
	b.Requirements = slices.Compact(b.Requirements)
	slices.Sort(b.Modules)
	b.Modules = slices.Compact(b.Modules)
	slices.Sort(b.Constraints)
	b.Constraints = slices.Compact(b.Constraints)
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		b.Sources = append(b.Sources, sources[path])
	}
	return b
}

// of returns the blueprint for a resource.
func (v *versionCode) of(id intent.ResourceID) intent.Blueprint {
	return v.blueprints[v.agents[id.Agent]]
}
