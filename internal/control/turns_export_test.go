package control

// TurnsWaiting counts the environments that wait to compile.
func (c *Control) TurnsWaiting() int {
	c.compiles.mu.Lock()
	defer c.compiles.mu.Unlock()
	return len(c.compiles.waiting)
}
