package intent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// AgentLimits say how an agent's work is limited, by name or pattern.
type AgentLimits []AgentLimit

// AgentLimit is one of them. What it leaves out, a less specific one decides.
type AgentLimit struct {
	Pattern     string        // a name, or a pattern of such
	Concurrency int           // tasks at once; 0: not said
	MinGap      time.Duration // between two starts
	// DeployInterval and RepairInterval are as the settings of the environment:
	// seconds or a cron expression. HasDeploy and HasRepair tell that they were given.
	DeployInterval, RepairInterval string
	HasGap, HasDeploy, HasRepair   bool
}

const (
	mostAgentLimits = 1000
	// MostConcurrency is how many tasks of one agent may run side by side.
	MostConcurrency = 64
	longestGap      = 3600
)

// ParseAgentLimits reads the setting agent_limits: a dict of limits by agent or
// pattern. The most specific comes first: a name before patterns, and of
// patterns the one that says more characters.
func ParseAgentLimits(dict map[string]any) (AgentLimits, error) {
	if len(dict) > mostAgentLimits {
		return nil, fmt.Errorf("%d entries are more than %d", len(dict), mostAgentLimits)
	}
	var out AgentLimits
	for _, name := range slices.Sorted(maps.Keys(dict)) {
		l, err := parseAgentLimit(name, dict[name])
		if err != nil {
			return nil, fmt.Errorf("agent %q: %w", name, err)
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out,
		func(a, b AgentLimit) int { return cmp.Compare(specific(b.Pattern), specific(a.Pattern)) })
	return out, nil
}

func parseAgentLimit(name string, value any) (AgentLimit, error) {
	l := AgentLimit{Pattern: name}
	if err := checkAgentPattern(name); err != nil {
		return l, err
	}
	f, err := fieldsOf(name, value)
	if err != nil {
		return l, err
	}
	l.Concurrency = f.number("concurrency", 1, MostConcurrency)
	l.MinGap = time.Duration(f.number("min_gap", 0, longestGap)) * time.Second
	l.HasGap = f.given["min_gap"] != nil
	l.DeployInterval, l.HasDeploy = f.interval("deploy_interval")
	l.RepairInterval, l.HasRepair = f.interval("repair_interval")
	return l, f.done()
}

// specific is how much a pattern says.
func specific(pattern string) int {
	if !strings.ContainsAny(pattern, "*?") {
		return maxPatternLength + 1
	}
	return len(pattern) - strings.Count(pattern, "*")
}

// Of gives what holds for an agent: of each limit what the most specific entry
// says that says it. One task at once is what nobody needs to say.
func (ls AgentLimits) Of(agent string) AgentLimit {
	out := AgentLimit{Pattern: agent}
	for _, l := range ls {
		if !matchPattern(l.Pattern, agent) {
			continue
		}
		if out.Concurrency == 0 {
			out.Concurrency = l.Concurrency
		}
		if l.HasGap && !out.HasGap {
			out.MinGap, out.HasGap = l.MinGap, true
		}
		if l.HasDeploy && !out.HasDeploy {
			out.DeployInterval, out.HasDeploy = l.DeployInterval, true
		}
		if l.HasRepair && !out.HasRepair {
			out.RepairInterval, out.HasRepair = l.RepairInterval, true
		}
	}
	out.Concurrency = max(out.Concurrency, 1)
	return out
}
