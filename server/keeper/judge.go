package keeper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// judgement decides what the webhooks of one environment start.
type judgement struct {
	*Registry
	e        intent.Environment
	outcomes map[uuid.UUID]intent.DeliveryOutcome
	// failedLooks counts how often in a row the repository could not be asked before.
	failedLooks int
}

func (j *judgement) end(
	d intent.Delivery,
	state intent.OutcomeState,
	compile *intent.CompileID,
	format string,
	args ...any,
) {
	now := j.cfg.Now()
	j.outcomes[d.ID] = intent.DeliveryOutcome{
		Environment: j.e.ID,
		State:       state,
		Reason:      fmt.Sprintf(format, args...),
		Compile:     compile,
		Handled:     &now,
	}
}

// judge decides on each webhook by its content. It answers those that may have moved the
// source together, with one look at the repository. If it returns an error, they wait.
func (j *judgement) judge(ctx context.Context, waiting []intent.Delivery) (trouble error) {
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

// concerns returns why a webhook does not concern the environment; empty if it may.
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
		if last = whyIgnored(j.e.Source.Branch, one); last == "" {
			if !one.Deleted {
				return ""
			}
			last = shortRef(one.Ref) + " was deleted; what is deployed stays"
		}
	}
	return last
}

// moved answers pushes to the branch or tag that the environment follows, with one look at the repository.
func (j *judgement) moved(ctx context.Context, pushes []intent.Delivery) error {
	src, err := j.cfg.Sources.Of(ctx, j.e)
	if err != nil {
		return j.wait(pushes, err)
	}
	tip, err := j.cfg.Git.Tip(ctx, src)
	if err != nil {
		j.looked(ctx, j.e.ID, j.failedLooks+1, err)
		return j.wait(pushes, err)
	}
	j.heard(pushes, tip)
	cause := pushes[len(pushes)-1]
	for _, d := range pushes {
		if d.Event.Commit == tip {
			cause = d
		}
	}
	m, err := j.sourceMoved(ctx, j.e, tip, intent.Trigger{Type: "webhook", Message: describe(cause.Event)})
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

// heard reports webhooks of the forge to the watcher. It leaves out those that a person
// redelivered: they do not prove that the forge's webhooks arrive.
func (j *judgement) heard(pushes []intent.Delivery, tip string) {
	var commits []string
	for _, d := range pushes {
		if d.ReplayOf == nil {
			commits = append(commits, d.Event.Commit)
		}
	}
	if len(commits) > 0 {
		j.watcher.Heard(j.e.ID, append(commits, tip))
	}
}

// wait leaves webhooks for later, and gives up those that waited too long.
func (j *judgement) wait(pushes []intent.Delivery, err error) error {
	late := 0
	for _, d := range pushes {
		if j.cfg.Now().Sub(d.Received) > deliveryPatience {
			j.end(d, intent.OutcomeFailed, nil, "the repository could not be asked: %v", err)
			late++
		}
	}
	if late == len(pushes) {
		return nil
	}
	return err
}

// modules answers pushes to repositories of modules: it asks for a compile, which uses
// the newest versions of the modules that the project's constraints allow.
func (j *judgement) modules(ctx context.Context, pushes []intent.Delivery) error {
	names := []string{}
	for _, d := range pushes {
		if name := d.Outcomes[0].Module; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	newest := describe(pushes[len(pushes)-1].Event)
	m, err := j.moduleMoved(ctx, j.e, fmt.Sprintf("%s of the module %s", newest, strings.Join(names, ", ")))
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

// pull handles a webhook about a pull or merge request. It asks the forge about the
// request, and does not trust the webhook's author, fork and commits.
func (j *judgement) pull(ctx context.Context, d intent.Delivery) {
	p := d.Event.Pull
	if p == nil || p.Action == intent.PullOther {
		j.end(d, intent.OutcomeSkipped, nil, "nothing of the pull request that a preview shows was changed")
		return
	}
	err := forge.LookUp(ctx, j.cfg.Store, j.cfg.Bus, j.e, p.Number, j.cfg.Now())
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.Invalid):
		j.end(d, intent.OutcomeSkipped, nil, "%s", err)
	case err != nil:
		j.end(d, intent.OutcomeFailed, nil, "%s", err)
	default:
		j.end(d, intent.OutcomeStarted, nil, "the forge is asked about pull request %d", p.Number)
	}
}
