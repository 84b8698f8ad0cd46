package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// NewVersion makes a released version the intent. It wishes only for what the version changed and for what became
// deployable by it; everything else keeps its state. On an error nothing changed: ErrCycle, ErrDuplicate, ErrOld.
func (s *Scheduler) NewVersion(
	version int,
	resources []intent.Resource,
	code map[string]string,
	now time.Time,
) ([]Command, error) {
	if version <= s.version {
		return nil, fmt.Errorf("version %d: %w (%d)", version, ErrOld, s.version)
	}
	g, err := newGraph(resources)
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", version, err)
	}
	s.adopt(g, version, code)
	s.setAgentTimers(now) // of agents that are new
	reason := fmt.Sprintf("new version %d", version)
	for _, n := range s.nodes {
		current := n.underWay(NewVersion)
		switch {
		case n.state.Blocked == intent.TemporarilyBlocked && s.badDependency(n) == nil:
			n.state.Blocked = intent.NotBlocked
			s.allowProbe(n.agent)
			s.enqueue(n, NewVersion, reason)
		case n.state.Compliance == intent.HasUpdate && !current:
			only := n.update || !n.queued
			s.allowProbe(n.agent)
			s.enqueue(n, NewVersion, reason)
			n.update = only
		}
	}
	return s.decide(now), nil
}

// load is adopt for a snapshot: it also takes up what was left undone.
func (s *Scheduler) load(g *graph, snap Snapshot) {
	cutOff := make(map[*node]bool)
	for _, st := range snap.States {
		if st.IsDeploying {
			n := s.known[st.ID]
			n.state = Interrupted(n.state)
			cutOff[n] = true
		}
	}
	s.lastStarts(slices.Collect(maps.Keys(cutOff)), snap.Now)
	s.adopt(g, snap.Version, snap.Code)
	reason := fmt.Sprintf("version %d, taken up again", snap.Version)
	for i, n := range s.nodes {
		if n.state.LastRun == intent.RunSkipped && n.state.Blocked == intent.NotBlocked && s.badDependency(n) != nil {
			n.state.Blocked = intent.TemporarilyBlocked
		}
		switch {
		case cutOff[n], n.state.Compliance == intent.HasUpdate:
			s.enqueue(n, NewVersion, reason)
		case n.state.LastRun == intent.RunSkipped && s.badDependency(n) == nil:
			s.enqueue(n, NewVersion, reason)
		case s.missedEvent(i):
			s.enqueue(n, NewVersion, reason+" for an event")
		}
	}
}

// missedEvent reports whether something changed after the last run of a resource that receives its events.
func (s *Scheduler) missedEvent(i int) bool {
	if !s.graph.resources[i].ReceiveEvents {
		return false
	}
	last := s.nodes[i].state.LastRunAt
	return slices.ContainsFunc(s.graph.requires[i], func(j int32) bool {
		at := s.nodes[j].state.LastEvents
		return s.graph.resources[j].SendEvent && at != nil && (last == nil || at.After(*last))
	})
}

// adopt makes g the intent: states follow, and wishes for resources that left are dropped.
func (s *Scheduler) adopt(g *graph, version int, code map[string]string) {
	for p := range s.epoch {
		s.epoch[p]++ // the edges may have changed
	}
	for _, a := range s.withBehind {
		s.recall(a)
	}
	left, leftVersion := s.nodes, s.version
	s.graph, s.version, s.code = g, version, code
	s.nodes = make([]*node, len(g.resources))
	for _, n := range left {
		n.pos = -1
	}
	for _, a := range s.agents {
		a.resources = 0
	}
	for i := range g.resources {
		r := g.resources[i]
		n := s.known[r.ID]
		if n == nil {
			n = s.newNode(intent.ResourceState{ID: r.ID})
			s.known[r.ID] = n
		}
		n.pos = int32(i)
		n.agent.resources++
		s.nodes[i] = n
		s.renew(n, r)
	}
	for _, n := range left {
		if n.pos < 0 {
			s.dequeue(n)
			n.state.Orphaned = leftVersion
		}
	}
	s.block()
	s.scheduleRetries()
	for _, n := range s.nodes {
		if n.queued && n.waitOn != nil {
			s.toPlace = append(s.toPlace, n)
		}
	}
}

// renew brings the state of one resource in line with its intent. The store derives the same from a change of the
// intent when it releases a version.
func (s *Scheduler) renew(n *node, r *intent.Resource) {
	st := &n.state
	switch {
	case st.Orphaned > 0: // it came back, and nobody looked after it meanwhile
		st.Orphaned = 0
		st.DeployedHash = ""
		st.Compliance = intent.HasUpdate
		st.Blocked = intent.NotBlocked
		*st = Unparked(*st)
		st.Drifted = false
	case st.IntentHash != r.AttributeHash:
		deploys := n.running && !n.runReport // a look does not change what is deployed
		back := !deploys && st.DeployedHash == r.AttributeHash && st.LastRun == intent.RunSuccessful &&
			(st.Compliance == intent.HasUpdate || st.Compliance == intent.Undefined)
		st.Compliance = intent.HasUpdate
		if back { // to what is deployed, before anything else was tried
			st.Compliance = intent.Compliant
			if n.update {
				s.dequeue(n)
			}
		}
		*st = Unparked(*st)
		st.Drifted = false
		if st.Blocked == intent.TemporarilyBlocked {
			st.Blocked = intent.NotBlocked
		}
	case st.FailedCode != "" && st.FailedCode != s.code[r.ID.Type]: // a new handler may do better
		parked := st.Parked != intent.NotParked
		*st = Unparked(*st)
		if st.Compliance == intent.NonCompliant && st.LastRun == intent.RunFailed {
			st.Compliance = intent.HasUpdate
		}
		if parked {
			s.out = append(s.out, SetState{State: *st, Freed: true})
		}
	}
	st.IntentHash = r.AttributeHash
}

// block marks what cannot be deployed: undefined resources and everything that requires them. What was blocked and is
// no longer becomes deployable.
func (s *Scheduler) block() {
	g := s.graph
	s.blocked = make([]bool, len(g.resources))
	var reach []int32
	for i := range g.resources {
		if len(g.resources[i].Undefined) > 0 {
			s.blocked[i] = true
			reach = append(reach, int32(i))
		}
	}
	for len(reach) > 0 {
		i := reach[len(reach)-1]
		reach = reach[:len(reach)-1]
		for _, j := range g.after[i] {
			if !s.blocked[j] {
				s.blocked[j] = true
				reach = append(reach, j)
			}
		}
	}
	for i, n := range s.nodes {
		st := &n.state
		switch {
		case len(g.resources[i].Undefined) > 0:
			st.Compliance = intent.Undefined
		case st.Compliance == intent.Undefined || st.Compliance == "":
			st.Compliance = intent.HasUpdate
			if st.LastRun == intent.RunSuccessful && st.DeployedHash == st.IntentHash {
				st.Compliance = intent.Compliant
			}
		}
		switch {
		case s.blocked[i]:
			st.Blocked = intent.IsBlocked
			s.dequeue(n)
		case st.Blocked == intent.IsBlocked:
			st.Blocked = intent.NotBlocked
			if st.LastRun == intent.RunSkipped && st.Compliance == intent.NonCompliant {
				// It waits again for the recovery of something, if that still needs to recover.
				st.Blocked = intent.TemporarilyBlocked
			}
		}
	}
}
