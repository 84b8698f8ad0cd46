package scheduler

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Timers are the schedules of periodic work; nil never fires.
type Timers struct {
	Deploy cron.Schedule // what is not as intended
	Repair cron.Schedule // everything
}

type timers struct {
	schedule   Timers
	nextDeploy time.Time // zero: never
	nextRepair time.Time
}

// SetTimers replaces the schedules; they count from now.
func (s *Scheduler) SetTimers(t Timers, now time.Time) {
	s.timers = timers{schedule: t, nextDeploy: next(t.Deploy, now), nextRepair: next(t.Repair, now)}
}

func next(schedule cron.Schedule, now time.Time) time.Time {
	if schedule == nil {
		return time.Time{}
	}
	return schedule.Next(now)
}

// Tick fires the timers that are due. It does no harm when none is, and is
// how a fresh scheduler begins.
func (s *Scheduler) Tick(now time.Time) []Command {
	var due []Priority
	if at := s.timers.nextRepair; !at.IsZero() && !now.Before(at) {
		s.timers.nextRepair = next(s.timers.schedule.Repair, now)
		due = append(due, RepairTimer)
	}
	if at := s.timers.nextDeploy; !at.IsZero() && !now.Before(at) {
		s.timers.nextDeploy = next(s.timers.schedule.Deploy, now)
		due = append(due, DeployTimer)
	}
	if !s.halted { // what was missed while halted is not made up for
		for _, kind := range due {
			for _, n := range s.nodes {
				if s.wanted(n, kind, now) {
					s.enqueue(n, kind, kind.String())
				}
			}
		}
	}
	return s.decide(now)
}

// NextTick is when Tick has something to do; zero: never.
func (s *Scheduler) NextTick() time.Time {
	d, r := s.timers.nextDeploy, s.timers.nextRepair
	if d.IsZero() || !r.IsZero() && r.Before(d) {
		return r
	}
	return d
}
