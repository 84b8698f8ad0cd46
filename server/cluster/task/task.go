// Package task has what the server and provisioners say to each other: tasks,
// their results, and the requests of the desk. It is used by both sides, sends
// nothing itself, and checks what can be checked of one message alone.
//
//	provisioner ── take ──▶ desk: tasks, each with a lease (a fence number and a time)
//	            ── renew ─▶ before the time is over, as long as it works on them
//	            ── output ▶ while they print
//	            ── finish ▶ results; those whose lease went elsewhere are dropped
//
// A provisioner holds nothing beyond a task: what it has to know is in the task.
package task

import (
	"encoding/json"

	"github.com/google/uuid"
)

// Action is what a task does.
type Action string

// The actions on a machine, and those of a service on it, in the order of a node's life.
const (
	Create     Action = "create"
	Confirm    Action = "confirm"
	Bootstrap  Action = "bootstrap"
	Install    Action = "install"
	Configure  Action = "configure"
	Initialize Action = "initialize"
	Start      Action = "start"
	Stop       Action = "stop"
	Remove     Action = "remove"
	Delete     Action = "delete"
)

// OfProvider reports whether a provider carries out the action, and not an automator.
func (a Action) OfProvider() bool { return a == Create || a == Confirm || a == Delete }

// Task is one thing to do on one node, with all that it needs.
type Task struct {
	ID      uuid.UUID `json:"id"`
	Fence   int64     `json:"fence"`    // number of the lease: goes into every message about the task
	LeaseMS int64     `json:"lease_ms"` // from when the task was taken
	Attempt int       `json:"attempt"`  // from 1
	Action  Action    `json:"action"`
	// Tag is the same for every attempt to make, find or delete the machine of the node, and no other machine has it.
	// A provider plug-in labels the machine with it, and looks for it before it makes one.
	Tag string `json:"tag"`
	// Replace asks a create to delete the machine with the tag first: it was made, and could not be confirmed.
	Replace  bool     `json:"replace,omitempty"`
	Cluster  Cluster  `json:"cluster"`
	Node     Node     `json:"node"`
	Provider Provider `json:"provider"`
	Service  *Service `json:"service,omitempty"` // of the actions install to remove
	// Automators are the types to prepare the node for, of a bootstrap.
	Automators []string `json:"automators,omitempty"`
	// Config is the configuration of the cluster, its macros expanded.
	Config json.RawMessage `json:"config,omitempty"`
	// Nodes are all nodes of the cluster, by number.
	Nodes map[int]Peer `json:"nodes,omitempty"`
	// Resources are the files that the plug-ins of the task may use.
	Resources []Resource `json:"resources,omitempty"`
	// Secrets are values that must not appear in output: those of sensitive fields.
	Secrets   []string `json:"secrets,omitempty"`
	TimeoutMS int64    `json:"timeout_ms"`
}

// Cluster is whose task it is.
type Cluster struct {
	ID          uuid.UUID `json:"id"`
	Name        string    `json:"name"`
	Owner       string    `json:"owner"`
	Environment string    `json:"environment"`
}

// Fields are the values of a plug-in's fields.
type Fields map[string]json.RawMessage

// Node is the machine.
type Node struct {
	Number       int      `json:"number"`
	Hostname     string   `json:"hostname"`
	HardwareType string   `json:"hardwaretype"`
	ImageType    string   `json:"imagetype"`
	Flavor       string   `json:"flavor"`
	Image        string   `json:"image"`
	SSHUser      string   `json:"sshuser"`
	Services     []string `json:"services"`
	// Addresses are access_v4 (from outside) and bind_v4 (on the machine itself).
	Addresses map[string]string `json:"addresses,omitempty"`
	// Facts are what plug-ins returned for this node so far, as providerid and ssh_host_keys.
	Facts Fields `json:"facts,omitempty"`
}

// Provider is where the machine is, with all values of the provider's and the user's fields.
type Provider struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Fields Fields `json:"fields"`
}

// Service is the software, and how its action is carried out.
type Service struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // of the automator
	Fields Fields `json:"fields"`
}

// Peer is a node of the cluster as others see it.
type Peer struct {
	Hostname  string            `json:"hostname"`
	Addresses map[string]string `json:"addresses,omitempty"`
	Services  []string          `json:"services"`
}

// Resource is a file that a plug-in may use. It is fetched by its hash, once.
type Resource struct {
	Kind        string `json:"kind"` // providertypes or automatortypes
	Plugin      string `json:"plugin"`
	Type        string `json:"type"`
	Name        string `json:"name"`
	Version     int    `json:"version"`
	Format      string `json:"format"` // file or archive
	Permissions string `json:"permissions,omitempty"`
	Hash        string `json:"hash"` // SHA-256
	Size        int64  `json:"size"`
}

// Status is how an attempt ended.
type Status string

// The statuses. Failed is tried again after a while, as often as the server allows; Refused is not: trying again
// cannot help, as with a wrong credential.
const (
	Done    Status = "done"
	Failed  Status = "failed"
	Refused Status = "refused"
)

// Result is how an attempt ended.
type Result struct {
	ID        uuid.UUID         `json:"id"`
	Fence     int64             `json:"fence"`
	Status    Status            `json:"status"`
	Problem   string            `json:"problem,omitempty"` // for people: what happened, and what to do
	Hostname  string            `json:"hostname,omitempty"`
	Addresses map[string]string `json:"addresses,omitempty"`
	Facts     Fields            `json:"facts,omitempty"`  // are added to the node's
	Secret    Fields            `json:"secret,omitempty"` // likewise, and sealed
	Output    string            `json:"output,omitempty"` // the last of it, for the record
}
