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

// Arriving counts the webhooks that wait to be recorded.
func (c *Control) Arriving() int {
	c.arrivals.mu.Lock()
	defer c.arrivals.mu.Unlock()
	return len(c.arrivals.waiting)
}
