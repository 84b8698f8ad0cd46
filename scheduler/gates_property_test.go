package scheduler

import (
	"time"

	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/intent"
)

// rulesGen generates windows that open and close within the minutes that a history takes, and limits of agents.
func rulesGen() *rapid.Generator[Rules] {
	window := func(name string, kind intent.WindowKind, cron string, minutes int, agents []string,
		resources intent.Patterns) intent.Window {
		w, err := intent.NewWindow(
			intent.Window{
				Name:      name,
				Kind:      kind,
				Cron:      cron,
				Duration:  time.Duration(minutes) * time.Minute,
				Agents:    agents,
				Resources: resources,
			},
		)
		if err != nil {
			panic(err)
		}
		return w
	}
	windows := intent.Windows{
		window("w7", intent.WindowOpen, "*/7 * * * *", 2, []string{"a", "b"}, nil),
		window("w5", intent.WindowOpen, "*/5 * * * *", 1, []string{"b"}, nil),
		window("f6", intent.WindowFreeze, "*/6 * * * *", 3, []string{"c*"}, nil),
		window("f4", intent.WindowFreeze, "*/4 * * * *", 2, nil, intent.Patterns{"*name=0*"}),
	}
	limits, err := intent.ParseAgentLimits(map[string]any{
		"a": map[string]any{"concurrency": 3.0}, "b": map[string]any{"min_gap": 30.0},
		"?": map[string]any{
			"concurrency":     2.0,
			"deploy_interval": "45",
			"repair_interval": "*/3 * * * *",
		}, "c": map[string]any{"deploy_interval": "90", "repair_interval": "0"},
	})
	if err != nil {
		panic(err)
	}
	return rapid.Custom(func(t *rapid.T) Rules {
		var r Rules
		if rapid.Bool().Draw(t, "windows") {
			r.Windows = windows
		}
		if rapid.Bool().Draw(t, "limits") {
			r.Agents = limits
		}
		r.Concurrency = rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "concurrency")
		return r
	})
}

// held determines in the plainest way whether a window holds a resource: the windows of rulesGen open at minutes that
// a number divides.
func (o *observer) held(id intent.ResourceID) bool {
	if len(o.rules.Windows) == 0 {
		return false
	}
	for _, v := range o.rules.Overrides {
		if v.Agents[0] == id.Agent && o.now.Before(v.Until) {
			return false
		}
	}
	open := func(every, minutes int) bool {
		for back := range minutes {
			if o.now.Truncate(time.Minute).Add(-time.Duration(back)*time.Minute).Minute()%every == 0 {
				return true
			}
		}
		return false
	}
	switch {
	case id.Value[0] == '0' && open(4, 2):
		return true
	case id.Agent == "a":
		return !open(7, 2)
	case id.Agent == "b":
		return !open(7, 2) && !open(5, 1)
	case id.Agent == "c":
		return open(6, 3)
	}
	return false
}

// checkRules: what starts respects windows, limits and gaps.
func (o *observer) checkRules(c Start) {
	id := c.Resource.ID
	if !c.Report && o.held(id) {
		o.t.Fatalf("%s starts at %s, and a window holds it", id, o.now)
	}
	o.checkLimits(id)
	for _, most := range []int{o.limits.Concurrency, o.rules.Concurrency} {
		if most > 0 && len(o.running) >= most {
			o.t.Fatalf("%d run already", len(o.running))
		}
	}
}

// checkLimits: what starts on an agent, jobs included, respects its limits.
func (o *observer) checkLimits(id intent.ResourceID) {
	limit := o.rules.Agents.Of(id.Agent)
	beside := 0
	for _, j := range o.jobs.running {
		if j.Resource.Agent == id.Agent {
			beside++
		}
	}
	for _, r := range o.running {
		if r.Resource.ID.Agent == id.Agent {
			beside++
		}
	}
	if beside >= limit.Concurrency && !o.sent.behind[id] {
		o.t.Fatalf("%s starts while %d run on the same agent", id, beside)
	}
	if at, ok := o.started[id.Agent]; ok && o.now.Before(at.Add(limit.MinGap)) {
		o.t.Fatalf("%s starts at %s, %s after the last start on its agent", id, o.now, o.now.Sub(at))
	}
}

// rests reports whether something waits only for the gap of its agent.
func (o *observer) rests() bool { return !o.s.nextCooled().IsZero() }
