package control

import "time"

// Storm has a burst of webhooks go on, for longer than one may hold anything back.
func (c *Control) Storm() {
	s := &c.arrivals.storm
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.last = stormSize, time.Now().Add(time.Hour)
}

// StormMost is how long a burst may hold something back.
const StormMost = stormMost

// Arrived is closed when n webhooks wait to be recorded; to be called while a
// commit is under way.
func (c *Control) Arrived(n int) <-chan struct{} {
	r, full := &c.arrivals, make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= n {
		close(full)
	} else {
		r.full, r.enough = full, n
	}
	return full
}
