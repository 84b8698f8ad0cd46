package workers

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// limits are what decide goes by.
type limits struct {
	Max    int           // provisioners at a time
	Idle   time.Duration // a provisioner without anything to do ends after this
	Turn   time.Duration // a provisioner goes on for so long, although other projects wait
	Silent time.Duration // one that asks nothing for so long hangs
}

// project is what decide knows of a project.
type project struct {
	ID uuid.UUID
	// From the record: how many tasks may run at a time here, and how many are ready or run. Listed: it has any.
	Listed         bool
	Workers, Ready int

	// Of its provisioner, if it runs.
	Running  bool
	Draining bool // it was asked to end after its tasks
	Room     int
	Since    time.Time // its start
	Asked    time.Time // the last time that it asked the desk for anything
	Worked   time.Time // the last time that the project was listed

	// Of one that does not run.
	Waiting   time.Time // since when it should
	NotBefore time.Time // it crashed, and is not started again before
}

// wants reports whether a project needs a provisioner of this server.
func (p project) wants() bool { return p.Listed && p.Ready > 0 && p.Workers > 0 }

// orders are what is to be done.
type orders struct {
	Start, Drain, Kill []uuid.UUID
}

// decide says which provisioners start and end. Projects that wait get a place in the order in which they began to
// wait; when there are more than places, provisioners whose turn is over are asked to end, those first that have
// nothing to do, and then those that have run for longest.
func decide(now time.Time, all []project, l limits) (out orders) {
	var waiting, busy []project
	running, leaving := 0, 0
	for _, p := range all {
		switch {
		case !p.Running:
			if p.wants() && !p.NotBefore.After(now) {
				waiting = append(waiting, p)
			}
			continue
		case now.Sub(p.Asked) >= l.Silent:
			out.Kill = append(out.Kill, p.ID)
			leaving++
		case p.Draining:
			leaving++
		case p.Listed && p.Room != p.Workers, !p.Listed && now.Sub(p.Worked) >= l.Idle:
			out.Drain = append(out.Drain, p.ID)
			leaving++
		default:
			busy = append(busy, p)
		}
		running++
	}
	slices.SortFunc(waiting, func(a, b project) int {
		return cmp.Or(a.Waiting.Compare(b.Waiting), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	for len(waiting) > 0 && running < l.Max {
		out.Start = append(out.Start, waiting[0].ID)
		waiting = waiting[1:]
		running++
	}
	missing := len(waiting) - leaving
	slices.SortFunc(busy, func(a, b project) int {
		switch {
		case a.Listed != b.Listed && !a.Listed:
			return -1
		case a.Listed != b.Listed:
			return 1
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	for _, p := range busy {
		if missing <= 0 {
			break
		}
		if !p.Listed || now.Sub(p.Since) >= l.Turn {
			out.Drain = append(out.Drain, p.ID)
			missing--
		}
	}
	return out
}

// pause returns how long a provisioner is not started again after it crashed n times in a row.
func pause(n int, first, most time.Duration) time.Duration {
	if n < 1 {
		return 0
	}
	if n > 30 || first<<(n-1) > most {
		return most
	}
	return first << (n - 1)
}
