package workers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

var rules = limits{Max: 3, Idle: 5 * time.Minute, Turn: time.Minute, Silent: 2 * time.Minute}

// now is the time at which these tests decide.
var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// waiting returns a project that has waited for a while.
func waiting(d time.Duration) project {
	return project{ID: uuid.New(), Listed: true, Workers: 4, Ready: 1, Waiting: ago(d)}
}

// busy returns a project whose provisioner has worked for a while.
func busy(d time.Duration) project {
	return project{
		ID: uuid.New(), Listed: true, Workers: 4, Ready: 1, Running: true, Room: 4, Since: ago(d), Asked: now,
		Worked: now,
	}
}

func with(p project, f func(*project)) project {
	f(&p)
	return p
}

func TestDecide(t *testing.T) {
	old, older := busy(2*time.Minute), busy(3*time.Minute)
	young := busy(10 * time.Second)
	idle := with(busy(20*time.Second), func(p *project) { p.Listed, p.Worked = false, ago(time.Second) })
	draining := with(busy(time.Hour), func(p *project) { p.Draining = true })
	silent := with(busy(time.Hour), func(p *project) { p.Asked = ago(3 * time.Minute) })
	bored := with(busy(time.Hour), func(p *project) { p.Listed, p.Worked = false, ago(6*time.Minute) })
	resized := with(busy(time.Second), func(p *project) { p.Workers = 5 })
	off := with(waiting(time.Hour), func(p *project) { p.Workers = 0 })
	elsewhere := with(waiting(time.Hour), func(p *project) { p.Ready = 0 })
	crashed := with(waiting(time.Hour), func(p *project) { p.NotBefore = now.Add(time.Second) })
	first, second, third := waiting(9*time.Second), waiting(8*time.Second), waiting(7*time.Second)
	ids := func(all ...project) (out []uuid.UUID) {
		for _, p := range all {
			out = append(out, p.ID)
		}
		return out
	}
	for name, c := range map[string]struct {
		all                []project
		start, drain, kill []project
	}{
		"there is room": {all: []project{second, first}, start: []project{first, second}},
		"those that wait longest are first": {
			all: []project{third, young, second, first}, start: []project{first, second}},
		"nothing to do here":              {all: []project{off, elsewhere, crashed}},
		"full, and nobody has had a turn": {all: []project{young, young, young, first}},
		"full, and the oldest ends":       {all: []project{old, young, older, first}, drain: []project{older}},
		"full, and as many end as wait": {
			all: []project{old, young, older, first, second, third}, drain: []project{older, old}},
		"full, and one is about to end":      {all: []project{old, draining, older, first}},
		"full, and one has nothing to do":    {all: []project{old, idle, older, first}, drain: []project{idle}},
		"one has had nothing to do for long": {all: []project{old, bored}, drain: []project{bored}},
		"one has had nothing to do for a bit": {all: []project{
			old, idle}},
		"one hangs":             {all: []project{silent, old, first}, start: []project{first}, kill: []project{silent}},
		"one has another room":  {all: []project{resized, old}, drain: []project{resized}},
		"nobody else wants one": {all: []project{old, older, young}},
	} {
		o := decide(now, c.all, rules)
		if !slices.Equal(o.Start, ids(c.start...)) || !slices.Equal(o.Drain, ids(c.drain...)) ||
			!slices.Equal(o.Kill, ids(c.kill...)) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// Twenty projects always have something to do, and there is room for three provisioners. Never are there more, and none
// waits for much longer than it takes when all others have their turns.
func TestTurnsAreFair(t *testing.T) {
	const projects = 20
	random := rand.New(rand.NewPCG(1, 2))
	at := now
	all := make([]project, projects)
	for i := range all {
		all[i] = project{ID: uuid.New(), Listed: true, Workers: 1, Ready: 1, Waiting: at}
	}
	byID := func(id uuid.UUID) *project {
		return &all[slices.IndexFunc(all, func(p project) bool { return p.ID == id })]
	}
	worst, starts := time.Duration(0), map[uuid.UUID]int{}
	for range 20_000 {
		at = at.Add(time.Second)
		running := 0
		for i := range all {
			p := &all[i]
			p.Asked = at
			if p.Draining && random.IntN(5) == 0 {
				p.Running, p.Draining, p.Waiting = false, false, at
			}
			if p.Running {
				running++
			}
		}
		o := decide(at, all, rules)
		for _, id := range o.Start {
			p := byID(id)
			worst = max(worst, at.Sub(p.Waiting))
			p.Running, p.Room, p.Since = true, 1, at
			starts[id]++
			running++
		}
		for _, id := range o.Drain {
			byID(id).Draining = true
		}
		if running > rules.Max {
			t.Fatalf("%d provisioners", running)
		}
	}
	// Each of the others has a turn of a minute, and ends within seconds; three go on at a time.
	if most := 10 * time.Minute; worst > most {
		t.Errorf("a project waited for %s", worst)
	}
	for id, n := range starts {
		if n < 40 || len(starts) != projects {
			t.Errorf("%d of %d projects had a turn, %s %d times", len(starts), projects, id, n)
		}
	}
}

func TestPause(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 0, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 8: time.Minute, 1000: time.Minute,
	} {
		if got := pause(n, time.Second, time.Minute); got != want {
			t.Errorf("after %d crashes: %s, want %s", n, got, want)
		}
	}
}
