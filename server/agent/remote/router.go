package remote

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// internalAgent is the agent of resources that are about the server itself. It is never remote.
const internalAgent = "internal"

// Here runs tasks in this server.
type Here interface {
	Run(ctx context.Context, t executor.Task) executor.Result
	Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result))
	Recall(tasks []intent.ActionID)
}

// Router sends each task to this server or to a remote agent:
//
//	agent `internal`                                     ─▶ this server
//	a remote agent of this name has joined               ─▶ it
//	std::AgentConfig says autostart = false, none joined ─▶ unavailable, with a line that says how one joins
//	anything else, autostarted agents included           ─▶ this server
type Router struct {
	Here        Here
	Remote      *Executor
	Environment intent.Environment
	// Unmanaged returns the agents that the active version does not want to be started by the server.
	Unmanaged func(ctx context.Context, env intent.EnvironmentID) (map[string]bool, error)
	Bus       *bus.Bus

	mu        sync.Mutex
	read      time.Time // when unmanaged was read; zero: it has to be read
	version   int       // the newest version of a task since then
	unmanaged map[string]bool
	releases  *bus.Subscription
}

// unmanagedAge is how long the list of unmanaged agents counts although no release was heard of.
const unmanagedAge = 10 * time.Second

// Start follows releases.
func (r *Router) Start() {
	r.releases = r.Bus.SubscribeHints(func(v bus.Event) bool {
		return v.Topic == bus.Lagged || v.Topic == bus.Version && v.Environment == r.Environment.ID
	})
	go func() {
		for range r.releases.Events() {
			r.mu.Lock()
			r.read = time.Time{}
			r.mu.Unlock()
		}
	}()
}

// Stop ends that.
func (r *Router) Stop() {
	if r.releases != nil {
		r.releases.Close()
	}
}

// Run implements deployer.Executor.
func (r *Router) Run(ctx context.Context, t executor.Task) executor.Result {
	switch where, err := r.where(ctx, t); {
	case err != nil:
		return failed(t, time.Now(), intent.StatusUnavailable, err)
	case where == remote:
		return r.Remote.Run(ctx, t)
	case where == nowhere:
		return r.unavailable(t)
	}
	return r.Here.Run(ctx, t)
}

// Begin implements deployer.Executor.
func (r *Router) Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result)) {
	var stay, leave []executor.Task
	for _, t := range tasks {
		switch where, known := r.known(t); {
		case !known && t.Behind:
			result := resultOf(t, time.Now())
			result.Withdrawn = true
			done(result)
		case !known: // where has to be read first
			go func() { done(r.Run(ctx, t)) }()
		case where == remote:
			leave = append(leave, t)
		case where == nowhere:
			go func() { done(r.unavailable(t)) }()
		default:
			stay = append(stay, t)
		}
	}
	if len(stay) > 0 {
		r.Here.Begin(ctx, stay, done)
	}
	if len(leave) > 0 {
		r.Remote.Begin(ctx, leave, done)
	}
}

// Recall implements deployer.Executor.
func (r *Router) Recall(tasks []intent.ActionID) {
	r.Here.Recall(tasks)
	r.Remote.Recall(tasks)
}

type place int

const (
	here place = iota
	remote
	nowhere
)

// known returns where a task goes, if that can be said without reading the record.
func (r *Router) known(t executor.Task) (place, bool) {
	agent := t.Resource.ID.Agent
	if agent == internalAgent {
		return here, true
	}
	if !r.Remote.isReady() {
		return here, false
	}
	if r.Remote.Has(agent) {
		return remote, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read.IsZero() || t.Resource.Version > r.version || time.Since(r.read) > unmanagedAge {
		return here, false
	}
	if r.unmanaged[agent] {
		return nowhere, true
	}
	return here, true
}

// where returns where a task goes.
func (r *Router) where(ctx context.Context, t executor.Task) (place, error) {
	if t.Resource.ID.Agent != internalAgent {
		if err := r.Remote.awaitReady(ctx); err != nil {
			return nowhere, err
		}
	}
	if where, known := r.known(t); known {
		return where, nil
	}
	began := time.Now()
	unmanaged, err := r.Unmanaged(ctx, r.Environment.ID)
	if err != nil {
		return nowhere, fmt.Errorf("whether this agent is remote cannot be read: %w", err)
	}
	r.mu.Lock()
	r.read, r.unmanaged, r.version = began, unmanaged, max(r.version, t.Resource.Version)
	r.mu.Unlock()
	if unmanaged[t.Resource.ID.Agent] {
		return nowhere, nil
	}
	return here, nil
}

// unavailable is the result of a task whose agent has not joined.
func (r *Router) unavailable(t executor.Task) executor.Result {
	out := resultOf(t, time.Now())
	agent := t.Resource.ID.Agent
	out.Status = intent.StatusUnavailable
	out.Messages = []intent.LogLine{
		line("ERROR", fmt.Sprintf("std::AgentConfig of the agent %s has autostart = false, and no "+
			"remote agent of this name has joined. This command makes a join token for one: "+
			"ordain agent token create %s %s", agent, r.Environment.Name, agent)),
	}
	return out
}
