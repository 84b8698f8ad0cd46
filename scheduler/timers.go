package scheduler

import (
	"time"

	"github.com/robfig/cron/v3"

	"ordain.dev/ordain/internal/intent"
)

// Timers are the schedules of periodic work; nil never fires.
type Timers struct {
	Deploy cron.Schedule // what is not as intended
	Repair cron.Schedule // everything
}

// timer is one schedule with its next firing.
type timer struct {
	schedule cron.Schedule
	next     time.Time // zero: never
}

func newTimer(schedule cron.Schedule, now time.Time) timer {
	if schedule == nil {
		return timer{}
	}
	return timer{schedule: schedule, next: schedule.Next(now)}
}

// due reports whether the timer fires, and sets it to its next firing.
func (t *timer) due(now time.Time) bool {
	if t.next.IsZero() || now.Before(t.next) {
		return false
	}
	t.next = t.schedule.Next(now)
	return true
}

type timers struct {
	deploy, repair timer
}

// agentTimers are the timers of an agent that has its own, with the texts that they were made of.
type agentTimers struct {
	deploy, repair         timer
	deployText, repairText string
	ownDeploy, ownRepair   bool
}

// SetTimers replaces the schedules of agents that have none of their own; they count from now.
func (s *Scheduler) SetTimers(t Timers, now time.Time) {
	s.timers = timers{deploy: newTimer(t.Deploy, now), repair: newTimer(t.Repair, now)}
	s.scheduleRetries()
}

// setAgentTimers makes the timers of agents that have their own. Those that did not change keep their next firing.
func (s *Scheduler) setAgentTimers(now time.Time) {
	s.ownTimers = false
	for _, a := range s.agents {
		s.setOwnTimers(a, now)
		s.ownTimers = s.ownTimers || a.timers.ownDeploy || a.timers.ownRepair
	}
	s.scheduleRetries()
}

func (s *Scheduler) setOwnTimers(a *agent, now time.Time) {
	l, t := a.limit, &a.timers
	if l.HasDeploy != t.ownDeploy || l.DeployInterval != t.deployText {
		t.ownDeploy, t.deployText, t.deploy = l.HasDeploy, l.DeployInterval, ownTimer(l.DeployInterval, now)
	}
	if l.HasRepair != t.ownRepair || l.RepairInterval != t.repairText {
		t.ownRepair, t.repairText, t.repair = l.HasRepair, l.RepairInterval, ownTimer(l.RepairInterval, now)
	}
}

// ownTimer parses an interval that was checked when it was set.
func ownTimer(text string, now time.Time) timer {
	schedule, err := intent.ParseInterval(text)
	if err != nil {
		return timer{}
	}
	return newTimer(schedule, now)
}

// dueTimers are the timers that fire at a moment: those of the environment, for agents without their own, and those
// of agents.
type dueTimers struct {
	deploy, repair bool
	agents         map[*agent][2]bool // deploy, repair
}

func (s *Scheduler) dueTimers(now time.Time) dueTimers {
	d := dueTimers{deploy: s.timers.deploy.due(now), repair: s.timers.repair.due(now)}
	if !s.ownTimers {
		return d
	}
	for _, a := range s.agents {
		if own := [2]bool{a.timers.deploy.due(now), a.timers.repair.due(now)}; own != [2]bool{} {
			if d.agents == nil {
				d.agents = make(map[*agent][2]bool)
			}
			d.agents[a] = own
		}
	}
	return d
}

// of returns which of the due timers concern an agent.
func (d *dueTimers) of(a *agent) (deploy, repair bool) {
	own := d.agents[a]
	deploy, repair = own[0], own[1]
	if !a.timers.ownDeploy {
		deploy = d.deploy
	}
	if !a.timers.ownRepair {
		repair = d.repair
	}
	return deploy, repair
}

// Tick fires the timers that are due. It is harmless when none is, and is how a fresh scheduler begins.
func (s *Scheduler) Tick(now time.Time) []Command {
	due := s.dueTimers(now)
	if !s.halted { // firings missed while halted are not made up for
		if due.deploy || due.repair || due.agents != nil {
			s.wishDue(due, now)
		}
		s.retryDue(now)
	}
	s.probeDue(now)
	return s.decide(now)
}

// wishDue wishes for the resources of the timers that are due.
func (s *Scheduler) wishDue(due dueTimers, now time.Time) {
	for _, n := range s.nodes {
		if _, repair := due.of(n.agent); repair && s.wanted(n, RepairTimer, now) {
			s.wishFor(n, RepairTimer)
		}
	}
	for _, n := range s.nodes {
		if deploy, _ := due.of(n.agent); deploy && s.wanted(n, DeployTimer, now) {
			s.wishFor(n, DeployTimer)
		}
	}
}

// NextTick returns when Tick has something to do; zero for never.
func (s *Scheduler) NextTick() time.Time {
	first := intent.Earlier(s.timers.deploy.next, s.timers.repair.next)
	if s.ownTimers {
		for _, a := range s.agents {
			first = intent.Earlier(first, intent.Earlier(a.timers.deploy.next, a.timers.repair.next))
		}
	}
	for _, at := range []time.Time{s.nextRetry(), s.nextProbe(), s.gates.edge, s.nextCooled()} {
		first = intent.Earlier(first, at)
	}
	return first
}
