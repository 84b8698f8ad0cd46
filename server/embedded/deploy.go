package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
	"ordain.dev/ordain/server/deployer"
)

// Order says what to deploy.
type Order struct {
	Version int
	Full    bool     // also what is as intended
	Agents  []string // only those of these agents; empty: of all
	// Elsewhere are agents whose resources are not for this machine.
	Elsewhere []string
	// Confirmed releases a version that takes much away.
	Confirmed bool
}

// chosen reports whether the resources of an agent are to be deployed.
func (o Order) chosen(agent string) bool {
	return (len(o.Agents) == 0 || slices.Contains(o.Agents, agent)) && !slices.Contains(o.Elsewhere, agent)
}

// Step is one thing that happened: a handler has ended.
type Step struct {
	Resource intent.ResourceID
	Status   intent.Status
	Change   intent.Change
	Reason   string // why it did not succeed
}

// Progress is how far a deployment or a dry run is.
type Progress struct {
	Done, Total int
	Running     []intent.ResourceID // some of those that are being deployed now
}

// Watch is told what happens. Both functions are called from other goroutines, one at a time; both may be nil.
type Watch struct {
	Step     func(Step)
	Progress func(Progress)
}

// progressEvery is how often Watch.Progress is called.
const progressEvery = 250 * time.Millisecond

// Left is a resource that is not as intended.
type Left struct {
	Resource intent.ResourceID `json:"resource"`
	Status   intent.Status     `json:"status"`
	Reason   string            `json:"reason"`
}

// Report is what became of an order.
type Report struct {
	Version    int `json:"version"`
	Total      int `json:"total"`       // resources of the agents that were chosen
	AsIntended int `json:"as_intended"` // of these
	Ran        int `json:"ran"`         // deployments that were tried
	Changed    int `json:"changed"`     // of these, those that changed something
	// Left are those that are not as intended, by id.
	Left []Left `json:"left"`
	// Other is how many resources of other agents the model has.
	Other int `json:"other"`
	// Orphans are resources that were deployed and that the model no longer has. They stay where they are.
	Orphans []intent.ResourceID `json:"orphans"`
}

// Deploy makes a version the intent and deploys it, until nothing is left that could be done. If ctx ends, handlers
// are told to end and what had finished is recorded; then it returns the report so far with the error of ctx.
func (w *World) Deploy(ctx context.Context, o Order, watch Watch) (Report, error) {
	if err := w.Release(ctx, o.Version, o.Confirmed); err != nil {
		return Report{}, err
	}
	total, err := w.toDo(ctx, o)
	if err != nil {
		return Report{}, err
	}
	ongoing := &deployment{watch: watch, total: total, last: map[intent.ResourceID]intent.Action{}}
	err = w.drive(ctx, ongoing, o.chosen, false, func(d *deployer.Deployer) {
		what := intent.DeployRequest{Full: o.Full, Agents: o.Agents}
		d.Deploy(intent.Request{}, what)
	})
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	report, failed := w.report(late, o, ongoing)
	if err == nil {
		w.tidy(late)
	}
	return report, errors.Join(err, failed)
}

// toDo returns how many deployments are certain to be tried.
func (w *World) toDo(ctx context.Context, o Order) (n int, err error) {
	states, err := w.store.States(ctx, w.env.ID)
	for _, s := range states {
		waits := s.Compliance == intent.Undefined || s.Blocked == intent.IsBlocked
		if s.Orphaned == 0 && o.chosen(s.ID.Agent) && !waits &&
			(o.Full || s.Status() != intent.StatusDeployed) {
			n++
		}
	}
	return n, err
}

// deployment is what happens in a deployment, or in a dry run.
type deployment struct {
	watch Watch
	total int

	mu      sync.Mutex
	done    int
	changed int
	last    map[intent.ResourceID]intent.Action
}

// finished notes what the record has just taken.
func (r *deployment) finished(done []intent.FinishedAction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range done {
		a := f.Action
		if a.Kind != intent.ActionDeploy {
			continue
		}
		r.done++
		if a.Change != intent.NoChange && a.Change != "" {
			r.changed++
		}
		r.last[a.Resource] = a
		if r.watch.Step != nil {
			r.watch.Step(Step{Resource: a.Resource, Status: a.Status, Change: a.Change, Reason: reasonOf(a)})
		}
	}
}

func (r *deployment) progress(running []scheduler.Running) {
	if r.watch.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{Done: r.done, Total: max(r.total, r.done+len(running))}
	for _, one := range running[:min(len(running), 3)] {
		p.Running = append(p.Running, one.ID)
	}
	r.watch.Progress(p)
}

// drive runs a deployer: it starts it, lets begin ask for something, and waits until nothing is left to do, the record
// is lost, or ctx ends.
func (w *World) drive(
	ctx context.Context, r *deployment, chosen func(string) bool, look bool, begin func(*deployer.Deployer),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kept := &record{
		Store: w.store, chosen: chosen, finished: r.finished,
		trouble: func(err error) {
			cancel(fault.Wrap("embedded.Deploy", fault.KindOf(err), err).Say("what was deployed cannot be recorded").
				Hint("is the disk full? " + w.layout.LogDir() + " says more; the next run goes on"))
		},
	}
	var records deployer.Store = kept
	if look {
		records = looking{kept}
	}
	d, err := deployer.New(deployer.Config{
		Environment: w.env, Store: records, Executor: w.executors, Logger: w.log, ActionLog: w.actions,
		PythonVersion: w.python.Minor, Libc: w.python.Libc, Timeout: w.cfg.Timeout,
	})
	if err != nil {
		return err
	}
	if err := d.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer d.Stop()
	begin(d)
	watching := make(chan struct{})
	defer func() { cancel(nil); <-watching }()
	go func() {
		defer close(watching)
		w.watch(ctx, cancel, func() { r.progress(d.Snapshot().Running) })
	}()
	if err := d.Wait(ctx); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// watch reports the progress regularly, and gives the run up when the database ends.
func (w *World) watch(ctx context.Context, giveUp context.CancelCauseFunc, progress func()) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.db.Done():
			giveUp(fault.New("embedded.Deploy", fault.Unavailable,
				"the private database ended, so what is deployed cannot be recorded: "+lastLine(w.db.LastWords())).
				Hint("is the disk full? the next run goes on from what was recorded"))
			return
		case <-ticker.C:
			progress()
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// report says how each resource is.
func (w *World) report(ctx context.Context, o Order, r *deployment) (Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Report{
		Version: o.Version, Ran: r.done, Changed: r.changed, Left: []Left{}, Orphans: []intent.ResourceID{},
	}
	states, err := w.store.States(ctx, w.env.ID)
	if err != nil {
		return out, err
	}
	for _, s := range states {
		switch agent := s.ID.Agent; {
		case s.Orphaned > 0:
			out.Orphans = append(out.Orphans, s.ID)
			continue
		case len(o.Agents) > 0 && !slices.Contains(o.Agents, agent):
			out.Other++
			continue
		}
		out.Total++
		status := s.Status()
		if status == intent.StatusDeployed {
			out.AsIntended++
			continue
		}
		reason, err := w.why(ctx, o, r, s)
		if err != nil {
			return out, err
		}
		out.Left = append(out.Left, Left{s.ID, status, reason})
	}
	slices.SortFunc(out.Left, func(a, b Left) int { return a.Resource.Compare(b.Resource) })
	slices.SortFunc(out.Orphans, intent.ResourceID.Compare)
	return out, nil
}

// why says why a resource is not as intended.
func (w *World) why(ctx context.Context, o Order, r *deployment, s intent.ResourceState) (string, error) {
	switch {
	case slices.Contains(o.Elsewhere, s.ID.Agent):
		return fmt.Sprintf("the agent %s is not on this machine (std::AgentConfig with autostart = false); "+
			"--map %s=local deploys it here", s.ID.Agent, s.ID.Agent), nil
	case s.Compliance == intent.Undefined:
		return "it has values that are not known yet", nil
	case s.Blocked == intent.IsBlocked:
		return "it requires something whose values are not known yet", nil
	}
	a, tried := r.last[s.ID]
	if !tried {
		older, err := w.store.Actions(ctx, w.env.ID, s.ID, intent.ActionDeploy, 1)
		if err != nil {
			return "", err
		}
		if len(older) == 0 || older[0].Finished == nil || older[0].Version != o.Version {
			return "it was not tried: something that it requires did not get done", nil
		}
		a = older[0]
	}
	if reason := reasonOf(a); reason != "" {
		return reason, nil
	}
	return "its handler ended as " + string(a.Status), nil
}

// mostReason is the largest part of an error that is shown, in bytes.
const mostReason = 2000

// reasonOf returns what the handler said last about why it did not succeed; empty when it did.
func reasonOf(a intent.Action) string {
	if a.Status == intent.StatusDeployed {
		return ""
	}
	for _, levels := range [][]string{{"ERROR", "CRITICAL"}, {"WARNING"}, {"INFO"}} {
		for _, line := range slices.Backward(a.Messages) {
			if slices.Contains(levels, line.Level) {
				return line.Message[:min(len(line.Message), mostReason)]
			}
		}
	}
	return ""
}
