package demo

import (
	"context"
	"fmt"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// until waits until done reports true. It asks whenever something changes in the
// environment, and every second.
func (d *demo) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changes := d.server.Bus().Subscribe(func(e bus.Event) bool { return e.Environment == d.env })
	defer changes.Close()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-changes.Events():
		case <-time.After(time.Second): // events may be lost
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		}
	}
}

// showCompile shows the stages of the next compile as they end, and returns its report.
func (d *demo) showCompile(ctx context.Context) (*intent.Compile, error) {
	c := d.server.Store()
	var found *intent.Compile
	shown := 0
	err := d.until(ctx, "the compile", func() (bool, error) {
		if found == nil {
			page, err := c.Compiles(ctx, d.env, intent.ListQuery{Limit: 1, Sort: "requested", Desc: true})
			if err != nil || len(page.Items) == 0 || page.Items[0].ID == d.last {
				return false, err
			}
			found = &page.Items[0]
			d.last = found.ID
			d.n.say("noticed by %s", found.Trigger.Type)
		}
		report, stages, err := c.Compile(ctx, found.ID)
		if err != nil {
			return false, err
		}
		for ; shown < len(stages) && stages[shown].Completed != nil; shown++ {
			s := stages[shown]
			d.n.took(s.Name, s.Completed.Sub(s.Started))
			if s.ReturnCode != nil && *s.ReturnCode != 0 && s.Name != intent.StageCompile {
				d.n.quote(s.ErrOutput)
			}
		}
		found = &report
		return report.Completed != nil, nil
	})
	if err != nil {
		return nil, err
	}
	if found.Revision != nil {
		d.n.say("commit %s %q by %s", found.Revision.Short(), found.Revision.Subject, found.Revision.Author)
	}
	return found, nil
}

// actions returns the ids of the deployments so far.
func (d *demo) actions(ctx context.Context) (map[intent.ActionID]bool, error) {
	actions, err := d.server.Store().Actions(ctx, d.env, intent.ResourceID{}, intent.ActionDeploy, 1000)
	if err != nil {
		return nil, err
	}
	seen := make(map[intent.ActionID]bool, len(actions))
	for _, a := range actions {
		seen[a.ID] = true
	}
	return seen, nil
}

// showDeployment shows each deployment as it ends, until every resource is as intended.
func (d *demo) showDeployment(
	ctx context.Context,
	before map[intent.ActionID]bool,
) (deployed []intent.Action, total int, err error) {
	c := d.server.Store()
	err = d.until(ctx, "the deployment", func() (bool, error) {
		// before Actions, which then has everything that is counted as deployed
		counts, err := c.ResourceCounts(ctx, d.env)
		if err != nil {
			return false, err
		}
		actions, err := c.Actions(ctx, d.env, intent.ResourceID{}, intent.ActionDeploy, 1000)
		if err != nil {
			return false, err
		}
		for i := len(actions) - 1; i >= 0; i-- {
			a := actions[i]
			if before[a.ID] || a.Finished == nil {
				continue
			}
			before[a.ID] = true
			deployed = append(deployed, a)
			d.n.say("%-8s %-8s %s (%s)", a.Status, a.Change, a.Resource,
				a.Finished.Sub(a.Started).Round(time.Millisecond))
			if a.Status == intent.StatusFailed || a.Status == intent.StatusUnavailable {
				for _, m := range a.Messages {
					if m.Level == "ERROR" {
						d.n.quote(m.Message)
					}
				}
			}
		}
		total = 0
		for _, n := range counts {
			total += n
		}
		if counts[intent.StatusFailed] > 0 && counts[intent.StatusDeploying]+counts[intent.StatusAvailable] == 0 {
			return false, fmt.Errorf("%d resources failed; the console at %s shows why",
				counts[intent.StatusFailed], d.server.URL())
		}
		return total > 0 && counts[intent.StatusDeployed] == total, nil
	})
	return deployed, total, err
}

// waitRepaired waits for a deployment that is not in before and changed something.
func (d *demo) waitRepaired(ctx context.Context, before map[intent.ActionID]bool) (repaired intent.Action, err error) {
	err = d.until(ctx, "the repair", func() (bool, error) {
		actions, err := d.server.Store().Actions(ctx, d.env, intent.ResourceID{}, intent.ActionDeploy, 1000)
		if err != nil {
			return false, err
		}
		for _, a := range actions {
			if !before[a.ID] && a.Finished != nil && a.Change != intent.NoChange && a.Change != "" {
				repaired = a
				return true, nil
			}
		}
		return false, nil
	})
	return repaired, err
}
