package task

import "github.com/google/uuid"

// Version is the version of the protocol; it is part of the paths.
const Version = 1

// Paths of the desk. Requests and answers are JSON, but for the content of a resource.
const (
	HelloPath    = "/provisioner/v1/hello"    // POST Hello: Welcome
	TakePath     = "/provisioner/v1/take"     // POST Take: Taken
	RenewPath    = "/provisioner/v1/renew"    // POST Renew: Renewed
	OutputPath   = "/provisioner/v1/output"   // POST Output: 204
	FinishPath   = "/provisioner/v1/finish"   // POST Finish: Finished
	ResourcePath = "/provisioner/v1/resource" // GET ResourcePath/HASH: the content
)

// Limits.
const (
	MaxBody    = 16 << 20 // bytes of one request or answer, but for contents
	MaxOutput  = 64 << 10 // bytes of output that are kept of an attempt: the last ones
	MaxFacts   = 256 << 10
	MaxProblem = 4 << 10
	MaxTake    = 256 // tasks in one answer
	MaxFinish  = 256 // results in one request
)

// Hello introduces a provisioner.
type Hello struct {
	Protocol int    `json:"protocol"`
	Program  string `json:"program"`
	Room     int    `json:"room"` // tasks that it works on at a time
}

// Welcome answers it.
type Welcome struct {
	Project string `json:"project"`
	Name    string `json:"name"` // of the provisioner
	LeaseMS int64  `json:"lease_ms"`
	// Plugins are the types of the project, in JSON as the catalogue has them, by kind and name.
	Plugins map[string]map[string]PluginType `json:"plugins"`
}

// PluginType is what a provisioner has to know of a type.
type PluginType struct {
	ResourceTypes map[string]struct {
		Format      string `json:"format"`
		Permissions string `json:"permissions,omitempty"`
	} `json:"resourceTypes,omitempty"`
}

// Take asks for tasks. Without one that is ready, the answer waits for WaitMS at most.
type Take struct {
	Room   int   `json:"room"`
	WaitMS int64 `json:"wait_ms"`
}

// Taken has tasks, or none.
type Taken struct {
	Tasks []Task `json:"tasks"`
	// Nodes are the nodes of the clusters of these tasks: Task.Nodes of each, which is empty in this message.
	Nodes map[uuid.UUID]map[int]Peer `json:"nodes,omitempty"`
	// Ending asks the provisioner to take no further task, and to end when it has finished those that it has.
	Ending bool `json:"ending,omitempty"`
}

// Lease is a task that a provisioner works on.
type Lease struct {
	ID    uuid.UUID `json:"id"`
	Fence int64     `json:"fence"`
}

// Renew renews leases.
type Renew struct {
	Leases []Lease `json:"leases"`
}

// Renewed says which tasks are no longer this provisioner's. It stops working on them at once.
type Renewed struct {
	Gone []uuid.UUID `json:"gone,omitempty"`
}

// Output is what a task printed since the message before.
type Output struct {
	Lease
	Text string `json:"text"`
}

// Finish has results.
type Finish struct {
	Results []Result `json:"results"`
}

// Finished says which of them were dropped, since their lease went elsewhere.
type Finished struct {
	Dropped []uuid.UUID `json:"dropped,omitempty"`
}

// Refusal is the body of an answer that is not 2xx.
type Refusal struct {
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"` // for programs; see join.go
}
