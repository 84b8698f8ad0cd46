package intent

import "time"

// ServerLoad is what waits and what is done at the moment, in all environments that are not halted.
type ServerLoad struct {
	Environments, Halted int

	CompilesWaiting, CompilesRunning     int
	CompileWaitsSince                    *time.Time // the one that has waited the longest
	ResourcesWaiting, ResourcesDeploying int
	MessagesWaiting                      int // for forges
	MessageWaitsSince                    *time.Time
	RemoteAgents                         int // that joined
	Unreachable                          int // agents whose target cannot be reached
	DeadMessages                         []DeadMessages
}

// DeadMessages counts the messages of an environment for its forge that are not tried any more.
type DeadMessages struct {
	Environment EnvironmentID
	Name        string // of the environment
	N           int
}
