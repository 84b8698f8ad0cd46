package intent

// AgentHealth counts the resources of one agent by their status, orphans left out.
type AgentHealth struct {
	Name        string
	Paused      bool
	Unreachable bool // its breaker is open
	Resources   map[Status]int
}
