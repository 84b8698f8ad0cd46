package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// Queue tells people what runs, what comes next and why it waits, agent by agent. It looks at every wish once.
func (s *Scheduler) Queue(q intent.QueueQuestion, now time.Time) intent.Queue {
	out := intent.Queue{
		Here: true, Halted: s.halted, Waiting: s.wishes,
		Running: s.running + s.jobs.running[dryJob] + s.jobs.running[factJob],
	}
	out.Full = !s.halted && len(s.startable) > 0
	views := map[*agent]*agentView{}
	view := func(a *agent) *agentView {
		if views[a] == nil {
			views[a] = &agentView{agent: a}
		}
		return views[a]
	}
	for _, n := range s.nodes {
		if n.queued {
			view(n.agent).add(n, q.Next)
		}
	}
	for _, a := range s.agents {
		if len(a.running) > 0 || a.jobs.running != nil || a.hasJobs() || a.name == q.Agent {
			view(a)
		}
		out.Jobs += len(a.jobs.waiting[dryJob]) + len(a.jobs.waiting[factJob])
	}
	var list []*agentView
	for _, v := range views {
		if q.Agent == "" || v.agent.name == q.Agent {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b *agentView) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), strings.Compare(a.agent.name, b.agent.name))
	})
	if len(list) > q.Agents {
		out.More = len(list) - q.Agents
		list = list[:q.Agents]
	}
	gates := map[string]intent.Gate{}
	for _, v := range list {
		out.Agents = append(out.Agents, s.agentQueue(v, gates, now))
	}
	return out
}

// agentView gathers the first wishes of an agent.
type agentView struct {
	agent   *agent
	waiting int
	next    []*node // the first ones, in order
}

// size is how much an agent has to do.
func (v *agentView) size() int {
	return v.waiting + len(v.agent.running) + len(v.agent.jobs.waiting[dryJob]) + len(v.agent.jobs.waiting[factJob])
}

// add counts a wish, and keeps it when it is one of the first: those whose turn it is come before the others.
func (v *agentView) add(n *node, most int) {
	v.waiting++
	// turn is 0 for a wish whose turn it is, 1 for one that waits only for what runs, and 2 for all others.
	turn := func(n *node) int {
		switch {
		case n.heapAt >= 0:
			return 0
		case n.waitOn != nil && n.waitOn.running && !n.waitOn.queued:
			return 1
		}
		return 2
	}
	before := func(a, b *node) bool {
		if x, y := turn(a), turn(b); x != y {
			return x < y
		}
		return a.less(b)
	}
	at := len(v.next)
	for at > 0 && before(n, v.next[at-1]) {
		at--
	}
	if at < most {
		v.next = slices.Insert(v.next, at, n)
		v.next = v.next[:min(len(v.next), most)]
	}
}

func (s *Scheduler) agentQueue(v *agentView, gates map[string]intent.Gate, now time.Time) intent.AgentQueue {
	a := v.agent
	out := intent.AgentQueue{
		Agent: a.name, Waiting: v.waiting, Jobs: len(a.jobs.waiting[dryJob]) + len(a.jobs.waiting[factJob]),
	}
	for _, n := range a.running {
		task := intent.QueuedTask{
			Resource: n.state.ID, Priority: n.runPrio.String(), Reason: n.runReason, Sent: n.behind,
		}
		if n.behind {
			out.Next = append(out.Next, task)
			out.Waiting++
			continue
		}
		out.Running = append(out.Running, task)
	}
	if j := a.jobs.running; j != nil {
		out.Running = append(out.Running, intent.QueuedTask{
			Resource: j.Resource, Priority: j.Priority().String(), Reason: j.Priority().String(), Job: true,
		})
	}
	for _, n := range v.next {
		task := intent.QueuedTask{Resource: n.state.ID, Priority: n.prio.String(), Reason: n.reason}
		if n.waitOn != nil && n.heapAt < 0 {
			task.WaitsFor = n.waitOn.state.ID
		}
		if n.gated || s.held(n) {
			task.Gate = s.gateOf(n, gates, now)
		}
		out.Next = append(out.Next, task)
	}
	out.Why, out.Until = s.agentWait(a)
	return out
}

// agentWait returns why an agent starts nothing more, and until when.
func (s *Scheduler) agentWait(a *agent) (intent.AgentWait, time.Time) {
	switch {
	case s.halted:
		return intent.AgentHalted, time.Time{}
	case a.paused:
		return intent.AgentPaused, time.Time{}
	case a.breaker.Open() && !a.probe && a.breaker.ProbeAt != nil:
		return intent.AgentUnreachable, *a.breaker.ProbeAt
	case !a.room():
		return intent.AgentBusy, time.Time{}
	case a.cooling:
		return intent.AgentGap, a.last.Add(a.limit.MinGap)
	case a.heapAt >= 0:
		return intent.AgentFull, time.Time{}
	}
	return "", time.Time{}
}
