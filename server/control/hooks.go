package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// hooks is the part of a keeper that acts on webhooks. They wait in the place
// of record, so what a killed server left is found by the next owner.
type hooks struct {
	wake chan struct{}
	// failures counts how often the repository could not be asked in a row.
	failures int
}

const (
	hookBatch = 1000
	// hookPatience is how long a webhook waits for a repository that cannot be asked.
	hookPatience = 15 * time.Minute
	// hookGap is the time between two looks while webhooks keep coming.
	hookGap      = 50 * time.Millisecond
	hookRetryMin = time.Second
	hookRetryMax = time.Minute
	// hookLook is how often a process looks for webhooks that another one received.
	hookLook = time.Second
)

// wakeHooks tells the keeper of an environment that webhooks wait.
func (c *Control) wakeHooks(env intent.EnvironmentID) {
	c.mu.Lock()
	k := c.keepers[env]
	c.mu.Unlock()
	if k != nil {
		select {
		case k.hooks.wake <- struct{}{}:
		default:
		}
	}
}

// lookForHooks wakes the keepers whose webhooks were received by other processes.
func (c *Control) lookForHooks() {
	c.mu.Lock()
	ctx := c.running
	c.mu.Unlock()
	ticker := time.NewTicker(hookLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		envs, err := c.cfg.Store.WaitingEnvironments(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.cfg.Logger.Debug("cannot look for webhooks", "error", err)
			}
			continue
		}
		for _, env := range envs {
			if c.deployer(env) != nil { // owned here
				c.wakeHooks(env)
			}
		}
	}
}

// keepHooks acts on webhooks until ctx ends.
func (k *keeper) keepHooks(ctx context.Context) {
	for ctx.Err() == nil {
		k.control.arrivals.storm.pass(ctx)
		again := k.handleHooks(ctx)
		if again > 0 {
			pause(ctx, again)
			continue
		}
		select {
		case <-ctx.Done():
		case <-k.hooks.wake:
		}
	}
}

// handleHooks acts on all webhooks that wait. It gives the time after which it
// should be tried again; zero when nothing is left.
func (k *keeper) handleHooks(ctx context.Context) time.Duration {
	c := k.control
	waiting, err := c.cfg.Store.WaitingDeliveries(ctx, k.env, hookBatch)
	if err != nil {
		return k.hookTrouble(ctx, err)
	}
	if len(waiting) == 0 {
		k.hooks.failures = 0
		return 0
	}
	e, err := c.cfg.Store.Environment(ctx, k.env)
	if fault.Is(err, fault.NotFound) {
		return 0
	}
	if err != nil {
		return k.hookTrouble(ctx, err)
	}
	j := &judgement{control: c, e: e, outcomes: map[uuid.UUID]intent.DeliveryOutcome{}}
	trouble := j.all(ctx, waiting)
	if ctx.Err() != nil {
		return 0
	}
	if len(j.outcomes) > 0 {
		if err := c.cfg.Store.FinishDeliveries(ctx, k.env, j.outcomes); err != nil {
			return k.hookTrouble(ctx, err)
		}
		c.publish(k.env, bus.Delivery, "")
	}
	if trouble != nil {
		return k.hookTrouble(ctx, trouble)
	}
	k.hooks.failures = 0
	return hookGap // there may be more
}

// hookTrouble gives the wait after another failure.
func (k *keeper) hookTrouble(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	wait := min(hookRetryMin<<min(k.hooks.failures, 10), hookRetryMax)
	k.hooks.failures++
	k.log.Warn("webhooks wait", "error", err, "next", wait)
	return wait
}

// judgement decides what the webhooks of one environment do.
type judgement struct {
	control  *Control
	e        intent.Environment
	outcomes map[uuid.UUID]intent.DeliveryOutcome
}

func (j *judgement) end(
	d intent.Delivery,
	state intent.OutcomeState,
	compile *intent.CompileID,
	format string,
	args ...any,
) {
	now := j.control.cfg.Now()
	j.outcomes[d.ID] = intent.DeliveryOutcome{
		Environment: j.e.ID,
		State:       state,
		Reason:      fmt.Sprintf(format, args...),
		Compile:     compile,
		Handled:     &now,
	}
}

// all judges each by what it says. Those that may have moved the source are
// answered together, by one look at the repository; an error says that it could
// not be had, and they wait.
func (j *judgement) all(ctx context.Context, waiting []intent.Delivery) (trouble error) {
	var moved, modules []intent.Delivery
	for _, d := range waiting {
		var why string
		switch {
		case j.e.Halted:
			why = "the environment is halted; it looks at the repository when it is resumed"
		case !j.e.Bool("server_compile"):
			why = "the environment does not compile on the server"
		case d.Event.Kind == intent.HookPull:
			j.pull(ctx, d)
			continue
		case j.e.Follows() != "" && d.Event.Kind != intent.HookPing:
			why = followsInstead(j.e)
		default:
			why = j.concerns(d)
		}
		switch {
		case why != "":
			j.end(d, intent.OutcomeSkipped, nil, "%s", why)
		case d.Outcomes[0].Module != "":
			modules = append(modules, d)
		default:
			moved = append(moved, d)
		}
	}
	if len(moved) > 0 {
		trouble = j.moved(ctx, moved)
	}
	if len(modules) > 0 {
		if err := j.modules(ctx, modules); err != nil {
			trouble = err
		}
	}
	return trouble
}

// concerns says why a webhook does not concern the environment; empty when it may.
func (j *judgement) concerns(d intent.Delivery) string {
	e, module := d.Event, d.Outcomes[0].Module
	switch e.Kind {
	case intent.HookPing:
		return "a test of the webhook: it is set up well"
	case intent.HookPush, intent.HookTag:
	default:
		return fmt.Sprintf("events of the kind %q start nothing; pushes and pull requests do", e.Name)
	}
	if module != "" {
		if e.Deleted {
			return fmt.Sprintf("%s of the module %s was deleted", shortRef(e.Ref), module)
		}
		return ""
	}
	var last string
	for _, one := range append([]intent.HookEvent{e}, e.More...) {
		if one.DefaultBranch == "" {
			one.DefaultBranch = e.DefaultBranch
		}
		if last = followed(j.e.Source.Branch, one); last == "" {
			if !one.Deleted {
				return ""
			}
			last = shortRef(one.Ref) + " was deleted; what is deployed stays"
		}
	}
	return last
}

// followed says why an environment with this branch setting does not follow
// what moved; empty when it does. Without a setting it follows the default
// branch; and any, when the forge does not say which that is: the fetch finds out.
func followed(setting string, e intent.HookEvent) string {
	const heads, tags = "refs/heads/", "refs/tags/"
	branch, isBranch := strings.CutPrefix(e.Ref, heads)
	tag, isTag := strings.CutPrefix(e.Ref, tags)
	other := func(what string) string {
		if isTag {
			return fmt.Sprintf("it follows %s, not tags", what)
		}
		return fmt.Sprintf("it follows %s, not %s", what, shortRef(e.Ref))
	}
	switch {
	case !isBranch && !isTag:
		return fmt.Sprintf("%s is neither a branch nor a tag", e.Ref)
	case setting == "":
		if isBranch && (e.DefaultBranch == "" || e.DefaultBranch == branch) {
			return ""
		}
		return other("the default branch")
	case strings.HasPrefix(setting, "semver:"):
		if isTag {
			return ""
		}
		return fmt.Sprintf("it follows tags in the range %s, not branches", strings.TrimPrefix(setting, "semver:"))
	case isCommit(setting):
		return "it is bound to the commit " + setting[:7]
	case strings.HasPrefix(setting, "refs/"):
		if setting == e.Ref {
			return ""
		}
		return other(shortRef(setting))
	case setting == branch && isBranch, setting == tag && isTag:
		return ""
	}
	return other(setting)
}

func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func shortRef(ref string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if short, ok := strings.CutPrefix(ref, prefix); ok {
			return short
		}
	}
	return ref
}

// moved answers pushes to what the environment follows, by one look at the repository.
func (j *judgement) moved(ctx context.Context, pushes []intent.Delivery) error {
	c := j.control
	source, err := c.gitSource(ctx, j.e)
	if err != nil {
		return j.wait(pushes, err)
	}
	tip, err := c.cfg.Git.Tip(ctx, source)
	if err != nil {
		return j.wait(pushes, err)
	}
	j.heard(pushes, tip)
	cause := pushes[len(pushes)-1]
	for _, d := range pushes {
		if d.Event.Commit == tip {
			cause = d
		}
	}
	m, err := c.sourceMoved(ctx, j.e.ID, tip, "webhook", describe(cause.Event))
	if err != nil {
		return j.wait(pushes, err)
	}
	for _, d := range pushes {
		state := intent.OutcomeSkipped
		if m.started {
			state = intent.OutcomeStarted
		}
		reason := m.reason
		if commit := d.Event.Commit; commit != "" && commit != tip && isCommit(tip) {
			reason = fmt.Sprintf("%s moved on to %s: %s", shortRef(d.Event.Ref), tip[:7], reason)
		}
		j.end(d, state, m.compile, "%s", reason)
	}
	return nil
}

// heard tells the watcher of webhooks that the forge sent; one that a person sent
// again proves nothing.
func (j *judgement) heard(pushes []intent.Delivery, tip string) {
	var commits []string
	for _, d := range pushes {
		if d.ReplayOf == nil {
			commits = append(commits, d.Event.Commit)
		}
	}
	if len(commits) > 0 {
		j.control.cfg.Watcher.Heard(j.e.ID, append(commits, tip))
	}
}

// wait leaves webhooks for later, but those that waited for too long.
func (j *judgement) wait(pushes []intent.Delivery, err error) error {
	late := 0
	for _, d := range pushes {
		if j.control.cfg.Now().Sub(d.Received) > hookPatience {
			j.end(d, intent.OutcomeFailed, nil, "the repository could not be asked: %v", err)
			late++
		}
	}
	if late == len(pushes) {
		return nil
	}
	return err
}

// modules answers pushes to repositories of modules: the project is compiled
// again, with what its constraints allow of them.
func (j *judgement) modules(ctx context.Context, pushes []intent.Delivery) error {
	c := j.control
	names := []string{}
	for _, d := range pushes {
		if name := d.Outcomes[0].Module; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	m, err := c.moduleMoved(
		ctx,
		j.e.ID,
		fmt.Sprintf("%s of the module %s", describe(pushes[len(pushes)-1].Event), strings.Join(names, ", ")),
	)
	if err != nil {
		return j.wait(pushes, err)
	}
	for _, d := range pushes {
		state := intent.OutcomeSkipped
		if m.started {
			state = intent.OutcomeStarted
		}
		j.end(d, state, m.compile, "the project uses the module %s: %s", d.Outcomes[0].Module, m.reason)
	}
	return nil
}
