package intent

// FinishedAction is the end of an action together with what follows from it.
type FinishedAction struct {
	Action Action
	State  ResourceState
	Facts  []Parameter
	// Discovered is what a discovery resource found.
	Discovered []Discovered
	// Drift is what the action says about records of drift; nil: nothing.
	Drift *DriftReport
	// Breaker is how the breaker of the resource's agent is from now on; nil: as it was.
	Breaker *Breaker
	// Notices are what people should hear of it.
	Notices []Notice
}
