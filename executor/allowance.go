package executor

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Allowance bounds the processes of several managers together, such as those of the environments of a project. When a
// manager may not start a process, one of them all has to end one. It is safe for concurrent use.
//
//	take is refused ──▶ the manager waits ──▶ all are asked for room ──▶ one retires a process ──▶ give ──▶ wake
type Allowance struct {
	mu      sync.Mutex
	most    int64 // negative: no bound
	taken   int64
	members map[*Manager]int // places that each has
	waiting map[*Manager]bool
}

// NewAllowance makes an allowance without a bound.
func NewAllowance() *Allowance {
	return &Allowance{most: -1, members: map[*Manager]int{}, waiting: map[*Manager]bool{}}
}

// Limit sets the bound; a negative one means none. Processes that run already stay until others need their place.
func (a *Allowance) Limit(most int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most != most {
		a.most = most
		a.wake()
	}
}

// take gives a manager a place, or makes it wait for one. The caller holds the lock of the manager.
func (a *Allowance) take(m *Manager) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most < 0 || a.taken < a.most {
		a.taken++
		a.members[m]++
		delete(a.waiting, m)
		return true
	}
	a.waiting[m] = true
	// Those that have most are the first to be asked for one that is busy.
	holders := slices.SortedFunc(maps.Keys(a.members), func(x, y *Manager) int {
		return cmp.Compare(a.members[y], a.members[x])
	})
	m.work.Go(func() { askForRoom(holders) })
	return false
}

// give returns a place of a manager. The caller may hold the lock of the manager.
func (a *Allowance) give(m *Manager) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken--
	if a.members[m]--; a.members[m] == 0 {
		delete(a.members, m)
	}
	a.wake()
}

// wake lets the managers that wait try again. The caller holds mu, so the managers are locked by goroutines of their
// own: a manager calls with its lock held.
func (a *Allowance) wake() {
	for m := range a.waiting {
		delete(a.waiting, m) // it waits again if there is no place
		go func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.wakeWaiters()
		}()
	}
}

// askForRoom makes one of several managers end a process: one that is idle, or else one that has had its turn.
func askForRoom(managers []*Manager) {
	for _, idleOnly := range []bool{true, false} {
		for _, m := range managers {
			if m.yield(idleOnly) {
				return
			}
		}
	}
}

// yield retires a process for another manager, unless one is ending already.
func (m *Manager) yield(idleOnly bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retiring > 0 || m.makeRoom(idleOnly)
}

// SetAllowance puts the manager under an allowance, from its next process on.
func (m *Manager) SetAllowance(a *Allowance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.allowance == a {
		return
	}
	m.allowance = a
	if m.processes > 0 {
		m.generation++ // processes that count elsewhere are replaced before their next task
	}
	m.wakeWaiters()
}
