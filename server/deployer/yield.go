package deployer

import "time"

// While a push is compiled, what timers wish for waits: it would take the
// processors from the compile, and repair what is about to change. The first
// moments after the compile belong to what it changed. A model that is compiled
// again and again does not keep timers waiting for good: they wait from a credit
// that fills as time goes by.
//
//	credit ▔▔╲        ╱▔▔▔▔╲      ╱▔▔
//	          ╲______╱      ╲    ╱
//	       compile        compile

const mostYield = 30 * time.Second

// yield is what of that the loop knows.
type yield struct {
	compiling bool
	on        bool          // the scheduler was told
	changed   time.Time     // when it was told last
	spent     time.Duration // of the credit, then
	until     time.Time     // when the credit is spent; zero unless on
}

// Compiling says that a compile of the environment begins or is over.
func (d *Deployer) Compiling(begins bool) {
	d.post(func() {
		d.yield.compiling = begins
		if d.sched != nil && !d.stopping {
			d.giveWay(now()) // before what else came in at the same time
		}
	})
}

// giveWay tells the scheduler when to yield, and when no longer.
func (d *Deployer) giveWay(at time.Time) {
	y := &d.yield
	on := !d.stopping && (y.compiling || d.wanted > d.sched.Version())
	switch {
	case on && !y.on:
		spent := max(0, y.spent-at.Sub(y.changed))
		if spent >= mostYield/2 { // for a short while it is not worth it
			return
		}
		y.spent, y.until = spent, at.Add(mostYield-spent)
		d.unprepare("")
	case !on && y.on, y.on && !at.Before(y.until):
		y.spent += at.Sub(y.changed)
		y.until, on = time.Time{}, false
	default:
		return
	}
	y.on, y.changed = on, at
	d.carry(d.sched.Yield(on, at))
}
