package console

import (
	"context"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

const (
	// drawnAgents is how many agents the map draws; those that need a look come first.
	drawnAgents = 3000
	// namedCells is how many agents of a group are drawn with their names. More are drawn as shapes that show a name
	// when they are pointed at.
	namedCells = 60
	// largeMap is the number of agents from which on the map is drawn anew no more often than every largeMapPace.
	largeMap     = 200
	largeMapPace = 10 * time.Second
)

// agentMap shows all agents of an environment at once, each by the worst state of what it looks after.
//
//	■ failed · 2 agents        web07 3   web12 1
//	● as intended · 1,998      ●●●●●●●●●●●●●●●●●●
type agentMap struct {
	Sentence string
	Groups   []agentGroup
	More     int // that are not drawn
}

// agentGroup are the agents in one state.
type agentGroup struct {
	State state
	N     int
	Dense bool // without names
	Cells []agentCell
}

type agentCell struct {
	Name string
	Text string // how many of its resources are not as intended
	Off  int
	URL  string
}

// agentRank orders the looks of agents, the worst first. A look that is not in it comes last but for the intended.
var agentRank = []state{
	unreachable, failed, unavailable, undefined, blocked, differs, paused, waiting, cancelled, pending, deploying,
}

func rankOf(s state) int {
	if s == intended {
		return len(agentRank) + 1
	}
	if i := slices.Index(agentRank, s); i >= 0 {
		return i
	}
	return len(agentRank)
}

// agentMap reads the map, and how many agents there are.
func (c *console) agentMap(ctx context.Context, env intent.EnvironmentID) (agentMap, int, error) {
	all, err := c.store.AgentHealth(ctx, env)
	if err != nil {
		return agentMap{}, 0, err
	}
	return agentMapOf(all), len(all), nil
}

func agentMapOf(all []intent.AgentHealth) (m agentMap) {
	groups := map[state]*agentGroup{}
	off := 0
	for _, a := range all {
		look := agentLook(a)
		g := groups[look]
		if g == nil {
			g = &agentGroup{State: look}
			groups[look] = g
		}
		cell := agentCellOf(a)
		g.Cells = append(g.Cells, cell)
		if g.N++; look != intended {
			off++
		}
	}
	switch {
	case len(all) == 0:
		return m
	case off == 0:
		m.Sentence = "All resources of " + plural(len(all), "agent") + " are as intended."
	default:
		verbs := " need attention or are at work."
		if off == 1 {
			verbs = " needs attention or is at work."
		}
		m.Sentence = count(off) + " of " + plural(len(all), "agent") + verbs
	}
	left := drawnAgents
	for _, g := range groups {
		m.Groups = append(m.Groups, *g)
	}
	slices.SortFunc(m.Groups, func(a, b agentGroup) int { return rankOf(a.State) - rankOf(b.State) })
	for i := range m.Groups {
		g := &m.Groups[i]
		drawn := min(left, g.N)
		m.More += g.N - drawn
		left -= drawn
		g.Cells, g.Dense = g.Cells[:drawn], g.N > namedCells
	}
	return m
}

// agentLook is the worst state of an agent: whether its target can be reached, and what its resources are. That it is
// paused is worse than work that waits, and better than work that failed.
func agentLook(a intent.AgentHealth) state {
	look := intended
	consider := func(s state) {
		if rankOf(s) < rankOf(look) {
			look = s
		}
	}
	if a.Unreachable {
		consider(unreachable)
	}
	if a.Paused {
		consider(paused)
	}
	for status, n := range a.Resources {
		if n > 0 {
			consider(stateOf(status))
		}
	}
	return look
}

func agentCellOf(a intent.AgentHealth) agentCell {
	total := 0
	for _, n := range a.Resources {
		total += n
	}
	off := total - a.Resources[intent.StatusDeployed]
	cell := agentCell{Name: a.Name, Off: off, URL: agentResources(a.Name, off > 0)}
	switch {
	case off == 0:
		cell.Text = plural(total, "resource")
	default:
		cell.Text = count(off) + " of " + plural(total, "resource") + " not as intended"
	}
	if a.Paused {
		cell.Text += ", paused"
	}
	return cell
}
