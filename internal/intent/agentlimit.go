package intent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// AgentLimits holds the limits of agents, by name or pattern.
type AgentLimits []AgentLimit

// AgentLimit is the limits of the agents with a name or pattern. A less specific
// AgentLimit decides what this one leaves out.
type AgentLimit struct {
	Pattern     string        // a name, or a pattern of names
	Concurrency int           // tasks at once; 0: not given
	MinGap      time.Duration // between two starts
	// DeployInterval and RepairInterval replace the environment's settings: seconds or
	// a cron expression. HasDeploy and HasRepair report whether they were given.
	DeployInterval, RepairInterval string
	HasGap, HasDeploy, HasRepair   bool
}

const (
	mostAgentLimits = 1000
	// MostConcurrency is how many tasks of one agent may run at a time.
	MostConcurrency = 64
	longestGap      = 3600
)

// ParseAgentLimits reads the setting agent_limits: a dict of limits by agent or
// pattern. It sorts them, the most specific first: a name comes before patterns, and
// a pattern with more literal characters before one with fewer.
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

// specific returns how specific a pattern is.
func specific(pattern string) int {
	if !strings.ContainsAny(pattern, "*?") {
		return maxPatternLength + 1
	}
	return len(pattern) - strings.Count(pattern, "*")
}

// Of returns the limits of an agent. Each is from the most specific entry that gives
// it. The default is one task at a time.
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
