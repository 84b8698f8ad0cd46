package plan

import (
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// Phase is how far a service is on a node.
type Phase string

// The phases. A service that was stopped is initialized.
const (
	Absent      Phase = ""
	Installed   Phase = "installed"
	Configured  Phase = "configured"
	Initialized Phase = "initialized"
	Started     Phase = "started"
)

// Rank orders phases.
func (p Phase) Rank() int {
	switch p {
	case Installed:
		return 1
	case Configured:
		return 2
	case Initialized:
		return 3
	case Started:
		return 4
	}
	return 0
}

// After is the phase that a service has after an action; Absent after remove.
func After(a task.Action) Phase {
	switch a {
	case task.Install:
		return Installed
	case task.Configure:
		return Configured
	case task.Initialize, task.Stop:
		return Initialized
	case task.Start:
		return Started
	}
	return Absent
}

// Service is a service on a node as it is.
type Service struct {
	Phase  Phase  `json:"phase"`
	Config string `json:"config,omitempty"` // digest of the configuration that it was configured or started with last
}

// Has is a node as it is.
type Has struct {
	Number int
	Made   bool // there may be a machine: its creation was begun, and it was not deleted
	Ready  bool // it was bootstrapped
	// Automators are the types that it was bootstrapped for.
	Automators []string
	Services   map[string]Service
}

// Wants is a node as it is to be. A service of Stopped is not started.
type Wants struct {
	Number   int
	Services []string
	Config   map[string]string // digest of the configuration, by service
}

// Want is a cluster as it is to be.
type Want struct {
	Nodes   []Wants
	Stopped map[string]bool
	// Services are the definitions, also of services that go.
	Services map[string]*catalogue.Service
}

// Task is one action on one node.
type Task struct {
	Number  int         `json:"number"` // from 1; tasks that it needs have smaller ones
	Node    int         `json:"node"`
	Service string      `json:"service,omitempty"`
	Action  task.Action `json:"action"`
	Needs   []int       `json:"needs,omitempty"`  // tasks of the same node
	After   []string    `json:"after,omitempty"`  // groups
	Stage   int         `json:"stage"`            // the length of the longest way to it: for people
	Config  string      `json:"config,omitempty"` // digest, of configure and start
}

// Group returns the name of the group that the task is in.
func (t Task) Group() string { return GroupOf(t.Action, t.Service) }

// GroupOf returns the name of a group.
func GroupOf(a task.Action, service string) string {
	if service == "" {
		return string(a)
	}
	return string(a) + " " + service
}

// Plan is a graph of tasks.
type Plan struct {
	Tasks   []Task `json:"tasks"`
	Makes   []int  `json:"makes,omitempty"`   // numbers of nodes
	Deletes []int  `json:"deletes,omitempty"` // numbers of nodes
	Stages  int    `json:"stages"`
}
