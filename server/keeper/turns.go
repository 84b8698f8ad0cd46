package keeper

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// turns bounds how many compiles run at a time and is fair between environments. An
// environment waits once, no matter how many requests it has, and the next turn goes to
// the waiting environment whose last turn is the longest ago.
//
//	many requests of one environment:   A A A A A A A …          A B A C A …
//	                                    ────────────────▶ turns ─────────────▶
//	one request of each of two others:        B  C
//
// A project with a quota has at most so many turns at a time, of compiles and previews together; its environments wait
// without keeping others from their turns.
//
// The requests themselves wait in the database, so that one turn answers all requests
// that arrived before it.
type turns struct {
	projects *projectTurns

	mu      sync.Mutex
	free    int
	count   uint64
	last    map[intent.EnvironmentID]uint64 // when each had its last turn, counted in turns
	waiting []*waiter
}

type waiter struct {
	env     intent.EnvironmentID
	project intent.ProjectID
	turn    chan struct{} // closed when it is its turn
}

func newTurns(n int, projects *projectTurns) *turns {
	t := &turns{free: n, last: map[intent.EnvironmentID]uint64{}, projects: projects}
	projects.all = append(projects.all, t)
	return t
}

// projectTurns counts the turns of each project, and limits those of projects with a quota.
type projectTurns struct {
	all []*turns // that it counts together

	mu   sync.Mutex
	held map[intent.ProjectID]int
	most map[intent.ProjectID]int64 // of projects with a quota
}

func newProjectTurns() *projectTurns {
	return &projectTurns{held: map[intent.ProjectID]int{}, most: map[intent.ProjectID]int64{}}
}

// limit sets how many turns a project may have at a time, by its quota.
func (p *projectTurns) limit(project intent.ProjectID, q intent.Quota) {
	p.mu.Lock()
	most, limited := q[intent.QuotaCompiles]
	if limited {
		p.most[project] = most
	} else {
		delete(p.most, project)
	}
	p.mu.Unlock()
	p.handOut()
}

// take reports whether a project may have one more turn, and counts it.
func (p *projectTurns) take(project intent.ProjectID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if most, limited := p.most[project]; limited && int64(p.held[project]) >= most {
		return false
	}
	p.held[project]++
	return true
}

func (p *projectTurns) giveBack(project intent.ProjectID) {
	p.mu.Lock()
	if p.held[project]--; p.held[project] == 0 {
		delete(p.held, project)
	}
	p.mu.Unlock()
	p.handOut()
}

func (p *projectTurns) handOut() {
	for _, t := range p.all {
		t.mu.Lock()
		t.handOut()
		t.mu.Unlock()
	}
}

// take waits for a turn, or returns the error of ctx if that ends first.
func (t *turns) take(ctx context.Context, env intent.EnvironmentID, project intent.ProjectID) (*turn, error) {
	w := &waiter{env: env, project: project, turn: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.handOut()
	t.mu.Unlock()
	select {
	case <-w.turn:
		return &turn{turns: t, env: env, project: project, held: true}, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // the turn came at the same moment
		t.giveBack(project)
	}
	return nil, ctx.Err()
}

// giveBack frees a place.
func (t *turns) giveBack(project intent.ProjectID) {
	t.mu.Lock()
	t.free++
	t.mu.Unlock()
	t.projects.giveBack(project)
}

// handOut assigns free places to waiting environments; t.mu is held.
func (t *turns) handOut() {
	for t.free > 0 && len(t.waiting) > 0 {
		order := slices.Clone(t.waiting)
		slices.SortStableFunc(order, func(a, b *waiter) int { return cmp.Compare(t.last[a.env], t.last[b.env]) })
		next := slices.IndexFunc(order, func(w *waiter) bool { return t.projects.take(w.project) })
		if next < 0 {
			return // the projects of all that wait have as many turns as they may
		}
		w := order[next]
		t.waiting = slices.DeleteFunc(t.waiting, func(o *waiter) bool { return o == w })
		t.count++
		t.last[w.env] = t.count
		t.free--
		close(w.turn)
	}
}

// forget drops a deleted environment.
func (t *turns) forget(env intent.EnvironmentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, env)
}

// turn is one place among the running compiles.
type turn struct {
	turns   *turns
	env     intent.EnvironmentID
	project intent.ProjectID
	mu      sync.Mutex
	held    bool
}

// release returns the place; a second call does nothing.
func (t *turn) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.held {
		return
	}
	t.held = false
	t.turns.giveBack(t.project)
}

// fetchGrace is how long a fetch keeps its place, so that a first clone or a repository
// that does not answer does not keep other environments from compiling.
const fetchGrace = 5 * time.Second

// during calls do, which may wait for a remote. If do takes longer than fetchGrace,
// during releases the place and waits for one again afterwards. A nil turn has no place
// to release.
func (t *turn) during(ctx context.Context, do func()) {
	if t == nil {
		do()
		return
	}
	lent := make(chan struct{})
	lend := time.AfterFunc(fetchGrace, func() {
		defer close(lent)
		t.release()
	})
	do()
	if lend.Stop() {
		return
	}
	<-lent
	if retaken, err := t.turns.take(ctx, t.env, t.project); err == nil {
		t.mu.Lock()
		t.held, retaken.held = true, false
		t.mu.Unlock()
	}
}
