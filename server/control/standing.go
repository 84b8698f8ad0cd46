package control

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/standing"
)

// Standing says what is deployed in an environment, what the tip of its branch is, and why they differ.
func (c *Control) Standing(ctx context.Context, env intent.EnvironmentID) (intent.Standing, error) {
	e, err := c.cfg.Store.Environment(ctx, env)
	if err != nil {
		return intent.Standing{}, err
	}
	all, err := c.Standings(ctx, []intent.Environment{e})
	if s, found := all[env]; found || err != nil {
		return s, err
	}
	return intent.Standing{}, fault.New("control.Standing", fault.NotFound, "there is no such environment any more")
}

// Standings returns the standing of several environments. One that was deleted meanwhile is left out.
func (c *Control) Standings(
	ctx context.Context,
	envs []intent.Environment,
) (map[intent.EnvironmentID]intent.Standing, error) {
	ids := make([]intent.EnvironmentID, len(envs))
	for i, e := range envs {
		ids[i] = e.ID
	}
	facts, err := c.cfg.Store.StandingFacts(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[intent.EnvironmentID]intent.Standing, len(facts))
	for _, e := range envs {
		f, found := facts[e.ID]
		if !found {
			continue
		}
		f.Environment = e
		if f.Waiting != nil {
			f.Waits = c.waits(ctx, e, f.Running)
		}
		if err := c.closedWindow(ctx, &f); err != nil {
			return nil, err
		}
		out[e.ID] = standing.Decide(f)
	}
	return out, nil
}

// Waits says for what a compile that has not started waits; nil when it does not wait.
func (c *Control) Waits(ctx context.Context, e intent.Environment, run intent.Compile) (*intent.Wait, error) {
	if run.Started != nil || run.Completed != nil {
		return nil, nil
	}
	open, err := c.cfg.Store.OpenCompiles(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	var running *intent.LastRun
	for _, o := range open {
		if o.Started != nil && o.Substitute == nil {
			running = &intent.LastRun{ID: o.ID}
			if o.Revision != nil {
				running.Revision = *o.Revision
			}
		}
	}
	return c.waits(ctx, e, running), nil
}

func (c *Control) waits(ctx context.Context, e intent.Environment, running *intent.LastRun) *intent.Wait {
	switch {
	case running != nil:
		text := "the run before it"
		if commit := running.Revision.Short(); commit != "" {
			text += ", of " + commit
		}
		return &intent.Wait{Kind: intent.WaitsRun, Text: text, Run: &running.ID}
	case e.Halted:
		return &intent.Wait{Kind: intent.WaitsHalted, Text: "the environment to be resumed"}
	case !e.Bool("server_compile"):
		return &intent.Wait{Kind: intent.WaitsHalted, Text: "the setting server_compile to be switched on"}
	}
	if w := c.cfg.Keepers.Turn(ctx, e.ID); w != nil {
		return w
	}
	return &intent.Wait{Kind: intent.WaitsServer, Text: "a server process that takes the environment"}
}

// closedWindow finds out whether changes wait for a window or the end of a freeze that holds all of the environment.
func (c *Control) closedWindow(ctx context.Context, f *intent.StandingFacts) error {
	windows, err := f.Environment.Windows()
	if err != nil || len(windows) == 0 || f.Active == nil {
		return nil // the setting was checked when it was stored
	}
	var everywhere intent.Windows
	for _, w := range windows {
		if len(w.Resources) == 0 && len(w.Agents) == 0 {
			everywhere = append(everywhere, w)
		}
	}
	now := c.cfg.Now()
	gate := everywhere.Gate(intent.ResourceID{}, now)
	if !gate.Held() || intent.Overridden(f.Environment.Overrides, "", now) != nil {
		return nil
	}
	counts, err := c.cfg.Store.ResourceCounts(ctx, f.Environment.ID)
	if err != nil {
		return err
	}
	if counts[intent.StatusAvailable]+counts[intent.StatusNonCompliant]+counts[intent.StatusSkipped] > 0 {
		f.Window, f.WindowUntil = gate.String(), gate.Until
	}
	return nil
}
