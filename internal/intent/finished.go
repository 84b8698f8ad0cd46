package intent

// FinishedAction is the end of an action together with the state that follows from it.
type FinishedAction struct {
	Action Action
	State  ResourceState
	Facts  []Parameter
}
