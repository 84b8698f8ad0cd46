package intent

import "time"

// Queue is what the scheduler of an environment runs and has to run, agent by agent.
type Queue struct {
	// Here reports whether the owner of the environment answered. If not, the other fields are empty.
	Here    bool
	Halted  bool
	Running int // tasks and jobs
	Waiting int // deployments that wait
	Jobs    int // dry runs of resources, and questions for facts, that wait
	// Full: as much runs as may run at once in the environment.
	Full bool
	// Agents are those with something that runs or waits, the busiest first; More is how many were left out.
	Agents []AgentQueue
	More   int
}

// AgentQueue is what one agent runs and has to run.
type AgentQueue struct {
	Agent   string
	Running []QueuedTask
	// Next are the first that wait: those whose turn it is before those that wait for something else.
	Next    []QueuedTask
	Waiting int
	Jobs    int
	// Why is why nothing more starts here; empty: what comes next waits only for what runs.
	Why AgentWait
	// Until is when that ends, as far as is known; zero: unknown.
	Until time.Time
}

// AgentWait is why an agent starts nothing more.
type AgentWait string

// The reasons.
const (
	AgentHalted      AgentWait = "halted"      // its environment is halted
	AgentPaused      AgentWait = "paused"      // a person paused it
	AgentUnreachable AgentWait = "unreachable" // its target cannot be reached, and is tried again later
	AgentGap         AgentWait = "gap"         // the least time between two starts is not over
	AgentBusy        AgentWait = "busy"        // it runs as much as it may at once
	AgentFull        AgentWait = "full"        // its environment runs as much as it may at once
)

// QueuedTask is a task that runs or waits.
type QueuedTask struct {
	Resource ResourceID
	Priority string // "new version"
	Reason   string // for people
	// Since is when it began; zero: it did not, or this is unknown.
	Since time.Time
	// WaitsFor is the resource that has to end first; zero: none has to.
	WaitsFor ResourceID `json:",omitzero"`
	// Gate is the window that holds it now.
	Gate Gate
	// Sent: it is in the executor already, behind the one that runs.
	Sent bool
	// Job: it only looks, or asks for facts.
	Job bool
}

// QueueQuestion says how much of a queue is asked for. An Agent is one by name, whatever it runs; empty: all.
type QueueQuestion struct {
	Agent  string
	Agents int // at most so many agents
	Next   int // at most so many tasks that wait, of each agent
}

// Most of a queue that can be asked for: so many agents, and so many waiting tasks of each.
const (
	MostQueueAgents = 200
	MostQueueNext   = 50
)
