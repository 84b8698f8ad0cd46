package intent

import "time"

// ResourceWait says for what a resource waits.
type ResourceWait struct {
	ID          ResourceID
	AgentPaused bool
	Unreachable *time.Time // since when the target of its agent cannot be reached; nil when it can
	// Need is a requirement that is not deployed, and Status its state; zero when there is none.
	Need   ResourceID
	Status Status
}
