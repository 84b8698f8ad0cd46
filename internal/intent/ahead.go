package intent

// Ahead is a task that is recorded before its turn, without an entry in the log.
type Ahead struct {
	Resource ResourceID
	Action   ActionID // the id that its log entry will have
}
