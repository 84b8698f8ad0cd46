package intent

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ClusterState is what became of a cluster.
type ClusterState string

// The states of clusters.
const (
	ClusterPending      ClusterState = "pending"      // it was not made in full yet
	ClusterActive       ClusterState = "active"       // it is as it was wanted last
	ClusterIncomplete   ClusterState = "incomplete"   // making or deleting it failed
	ClusterInconsistent ClusterState = "inconsistent" // a change of it failed
	ClusterTerminated   ClusterState = "terminated"   // it has no machines any more
)

// Cluster is a cluster as it is recorded. Manifests are JSON of server/cluster/manifest.
type Cluster struct {
	ID          uuid.UUID
	Environment EnvironmentID
	Number      int64 // for people
	Name        string
	State       ClusterState
	Owner       string
	Made        time.Time
	Ended       *time.Time
	Wanted      json.RawMessage // nil: it is to be deleted
	WantedAt    string          // commit
	Applied     json.RawMessage // that was reached in full last; nil: none
	AppliedAt   string
	Expires     *time.Time // nil: never
	Noticed     *time.Time // when its end was announced
	Paused      bool
	MayDelete   bool // a person asked for its end
	Retry       bool // a person asked for another job
	Problem     string
}

// ClusterNodeState is whether a node has a machine.
type ClusterNodeState string

// The states of nodes.
const (
	NodePlanned ClusterNodeState = "planned"
	NodeMade    ClusterNodeState = "made" // its provider was asked for a machine: there may be one
	NodeGone    ClusterNodeState = "gone"
)

// ClusterNode is a machine of a cluster.
type ClusterNode struct {
	Cluster    uuid.UUID
	Number     int
	Hostname   string
	Hardware   string
	Image      string
	Provider   string
	Services   json.RawMessage // by name: plan.Service
	State      ClusterNodeState
	Ready      bool
	Automators []string
	Facts      json.RawMessage // object: what plug-ins returned, with "addresses" and "hostname"
	Sealed     []byte
	Made       *time.Time
	Gone       *time.Time
}

// ClusterJobState is how far a job is.
type ClusterJobState string

// The states of jobs.
const (
	JobRunning  ClusterJobState = "running"
	JobComplete ClusterJobState = "complete"
	JobFailed   ClusterJobState = "failed"
	JobAborted  ClusterJobState = "aborted"
)

// ClusterJob is one change of a cluster: a graph of tasks.
type ClusterJob struct {
	ID      uuid.UUID
	Cluster uuid.UUID
	Number  int
	Action  string // create, change, delete
	State   ClusterJobState
	Goal    json.RawMessage // manifest; nil: no machines
	Prior   json.RawMessage
	At      string // commit
	MadeBy  string
	Made    time.Time
	Ended   *time.Time
	Total   int
	Done    int // tasks that are complete
	Failed  int
	Problem string
}

// ClusterTaskState is how far a task is.
type ClusterTaskState string

// The states of tasks.
const (
	TaskWaiting  ClusterTaskState = "waiting"
	TaskReady    ClusterTaskState = "ready"
	TaskRunning  ClusterTaskState = "running"
	TaskComplete ClusterTaskState = "complete"
	TaskFailed   ClusterTaskState = "failed"
	TaskDropped  ClusterTaskState = "dropped"
)

// ClusterTask is one action on one node.
type ClusterTask struct {
	ID        uuid.UUID
	Job       uuid.UUID
	Number    int
	Cluster   uuid.UUID
	Project   uuid.UUID
	Node      int
	Service   string
	Action    string
	Provider  string
	Needs     []int32
	After     []string
	State     ClusterTaskState
	Attempts  int
	Config    string
	Replace   bool
	NotBefore *time.Time // nil: at once
	Fence     int64
	LeaseTo   *time.Time
	TakenBy   string
	Started   *time.Time
	Ended     *time.Time
	Output    string
	Problem   string
}

// ClusterTaskEnd is how an attempt at a task ended.
type ClusterTaskEnd struct {
	ID      uuid.UUID
	Fence   int64
	State   ClusterTaskState // complete, failed, or ready to be tried again
	Wait    time.Duration    // until it is tried again
	Replace bool
	// Again, of a confirm that is ready to be tried again, makes the machine again before that.
	Again   bool
	Output  string
	Problem string
	// Facts are merged into those of the node; nil: none. Sealed replaces what was sealed; nil: it stays.
	Facts  json.RawMessage
	Sealed []byte
	// Phase of the service after it, if it is complete and an action of a service. Automators of a bootstrap.
	Phase      string
	Automators []string
}

// Provisioner is a provisioner that runs elsewhere.
type Provisioner struct {
	ID      uuid.UUID
	Project uuid.UUID
	Name    string
	Joined  time.Time
	Revoked *time.Time
	Seen    *time.Time
	Program string
	Room    int
	Serial  string
	Expires time.Time
	Problem string
	Running int // tasks that it works on
}

// ProvisionerToken lets one provisioner join, once. Its secret is not kept.
type ProvisionerToken struct {
	ID      uuid.UUID
	Project uuid.UUID
	Name    string
	Made    time.Time
	MadeBy  string
	Expires time.Time
	Used    *time.Time
	Revoked *time.Time
}
