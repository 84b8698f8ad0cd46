package scheduler

import (
	"reflect"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Rules say where, when and how much may run, as the settings of an environment have it. The zero value allows
// everything.
type Rules struct {
	Windows   intent.Windows
	Overrides []intent.Override
	Agents    intent.AgentLimits
	// Concurrency is how many tasks may run at once; 0 for as many as Limits allows, which remains the upper bound.
	Concurrency int
}

// gates is the effect of the rules at a moment. A wish whose turn comes while a window holds it is set aside. At the
// next edge, when a window opens or closes or an override ends, all wishes that were set aside take their turn again.
//
//	ready ──its turn──▶ held? ──no──▶ running
//	  ▲                   │ yes
//	  └──── an edge ─── aside
type gates struct {
	rules Rules
	open  []bool    // of the windows
	edge  time.Time // when that, or the overrides, change; zero: never
	aside []*node
}

// agentGate is the part of gates that concerns one agent.
type agentGate struct {
	windows    []int // indexes of those that may apply to its resources
	overridden bool  // an override lets its resources through
}

// SetRules replaces the rules. What is running is left to end.
func (s *Scheduler) SetRules(r Rules, now time.Time) []Command {
	same := reflect.DeepEqual(r.Agents, s.gates.rules.Agents)
	s.gates.rules = r
	s.refreshWindows(now)
	for _, a := range s.agents {
		s.applyLimits(a)
	}
	if !same {
		s.setAgentTimers(now)
	}
	return s.decide(now)
}

// refreshGates updates the gates when time has changed something about them.
func (s *Scheduler) refreshGates(now time.Time) {
	if edge := s.gates.edge; !edge.IsZero() && !now.Before(edge) {
		s.refreshWindows(now)
		for _, a := range s.agents {
			s.applyWindows(a)
		}
	}
	s.endCooling(now)
}

// refreshWindows determines which windows are open and when the next edge is; wishes that were set aside take their
// turn again.
func (s *Scheduler) refreshWindows(now time.Time) {
	g := &s.gates
	g.open, g.edge = make([]bool, len(g.rules.Windows)), time.Time{}
	for i := range g.rules.Windows {
		var until time.Time
		g.open[i], until = g.rules.Windows[i].At(now)
		g.edge = intent.Earlier(g.edge, until)
	}
	var lasting []intent.Override
	for _, o := range g.rules.Overrides {
		if o.Lasts(now) {
			lasting = append(lasting, o)
			g.edge = intent.Earlier(g.edge, o.Until)
		}
	}
	g.rules.Overrides = lasting
	for _, n := range g.aside {
		n.gated = false
		s.toPlace = append(s.toPlace, n)
	}
	clear(g.aside)
	g.aside = g.aside[:0]
}

// applyLimits brings an agent in line with the rules.
func (s *Scheduler) applyLimits(a *agent) {
	a.limit = s.gates.rules.Agents.Of(a.name)
	s.applyWindows(a)
	s.startCooling(a)
	if a.heapAt >= 0 || len(a.ready) > 0 {
		s.updateHeaps(a)
	}
}

func (s *Scheduler) applyWindows(a *agent) {
	a.gate = agentGate{}
	for i := range s.gates.rules.Windows {
		if s.gates.rules.Windows[i].CoversAgent(a.name) {
			a.gate.windows = append(a.gate.windows, i)
		}
	}
	for _, o := range s.gates.rules.Overrides {
		a.gate.overridden = a.gate.overridden || o.Covers(a.name)
	}
}

// held reports whether a window or a freeze keeps changes of n from starting. A look is not a change.
func (s *Scheduler) held(n *node) bool {
	if n.report || n.agent.gate.overridden {
		return false
	}
	applies, inside := false, false
	for _, i := range n.agent.gate.windows {
		w := &s.gates.rules.Windows[i]
		if len(w.Resources) > 0 && !w.Resources.Match(n.state.ID) {
			continue
		}
		if w.Kind == intent.WindowFreeze {
			if s.gates.open[i] {
				return true
			}
			continue
		}
		applies, inside = true, inside || s.gates.open[i]
	}
	return applies && !inside
}

// gateOf returns what holds n, for which held is true. Wishes that the same windows apply to share the answer.
func (s *Scheduler) gateOf(n *node, known map[string]intent.Gate, now time.Time) intent.Gate {
	key := make([]byte, len(s.gates.rules.Windows))
	for _, i := range n.agent.gate.windows {
		if s.gates.rules.Windows[i].Covers(n.state.ID) {
			key[i] = 1
		}
	}
	g, ok := known[string(key)]
	if !ok {
		g = s.gates.rules.Windows.Gate(n.state.ID, now)
		known[string(key)] = g
	}
	return g
}

// setAside keeps a held wish until the next edge.
func (s *Scheduler) setAside(n *node) {
	if !n.gated {
		n.gated = true
		s.gates.aside = append(s.gates.aside, n)
	}
}

// NextEdge returns when a window opens or closes, or an override ends; zero for never.
func (s *Scheduler) NextEdge() time.Time { return s.gates.edge }

// Concurrency returns how many tasks of an agent may run at once.
func (s *Scheduler) Concurrency(agent string) int {
	return s.gates.rules.Agents.Of(agent).Concurrency
}

// bounds returns the limits together with the environment's own.
func (s *Scheduler) bounds() Limits {
	l := s.limits
	if own := s.gates.rules.Concurrency; own > 0 && (l.Concurrency <= 0 || own < l.Concurrency) {
		l.Concurrency = own
	}
	return l
}
