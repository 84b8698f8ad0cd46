package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) agentCalls(c *calls) {
	whole(c, http.MethodGet, "/api/v2/agents", "List the agents.",
		access.SeeAgents, s.listAgents, pagesOf(store.AgentList))
	whole(c, http.MethodGet, "/api/v1/agent", "List the agents.", access.SeeAgents, s.listAgentsV1)
	const actions = ": pause, unpause, keep_paused_on_resume or unpause_on_resume"
	done[noBody](c, http.MethodPost, "/api/v2/agent/{name}/{action}", "Do something to an agent"+actions+".",
		access.PauseAgents, s.actOnAgent)
	done[noBody](c, http.MethodPost, "/api/v2/agents/{action}", "Do something to all agents"+actions+
		", or remove_all_agent_venvs, which removes the virtual environments that no handler runs in.",
		access.PauseAgents, s.actOnAgents)
	v2(c, http.MethodGet, "/api/v2/executors",
		"Show what runs the handlers, and what that takes on disk. Inmanta has no such call.",
		access.SeeAgents, s.getExecutors)
}

// agentBase is what every answer about an agent has.
type agentBase struct {
	Environment     uuid.UUID  `json:"environment"`
	Name            string     `json:"name"`
	Paused          bool       `json:"paused"`
	ProcessID       *uuid.UUID `json:"process_id"`
	ProcessName     *string    `json:"process_name"`
	UnpauseOnResume *bool      `json:"unpause_on_resume"`
	Status          string     `json:"status"`
	Breaker         breaker    `json:"breaker"`
	PausedBy        *string    `json:"paused_by"`
	PausedAt        *timestamp `json:"paused_at"`
}

type agent struct {
	agentBase
	LastFailover *timestamp `json:"last_failover"`
}

// agentV1 has the keys that clients of version 14 read.
type agentV1 struct {
	agentBase
	State        string `json:"state"`
	LastFailover string `json:"last_failover"`
	Primary      string `json:"primary"`
}

type agentList struct {
	Agents     []agentV1 `json:"agents"`
	ServerTime timestamp `json:"servertime"`
}

type executors struct {
	Here         bool              `json:"here"`
	Processes    []executorProcess `json:"processes"`
	Folders      []executorFolder  `json:"folders"`
	DiskBytes    int64             `json:"disk_bytes"`
	DiskMaxBytes int64             `json:"disk_max_bytes"`
}

type executorProcess struct {
	Blueprint   string     `json:"blueprint"`
	Venv        string     `json:"venv"`
	Modules     []string   `json:"modules"`
	PID         int        `json:"pid"`
	MemoryBytes int64      `json:"memory_bytes"`
	Running     int        `json:"running"`
	Agents      int        `json:"agents"`
	Started     timestamp  `json:"started"`
	IdleSince   *timestamp `json:"idle_since"`
	Ending      bool       `json:"ending"`
}

type executorFolder struct {
	Kind       string    `json:"kind"`
	Hash       string    `json:"hash"`
	Bytes      int64     `json:"bytes"`
	BytesAlone int64     `json:"bytes_alone"`
	LastUsed   timestamp `json:"last_used"`
	InUse      bool      `json:"in_use"`
}

type agentsAction struct {
	byActor
	Action agentsActionName `arg:"action,required"`
}

type agentAction struct {
	byActor
	Action agentActionName `arg:"action,required"`
	Name   string          `arg:"name,required"`
	// Strict makes it an error that there is no such agent, so that nobody who mistypes a name believes that it is
	// paused. Inmanta's clients do not know it, and expect that such an agent is ignored.
	Strict bool `arg:"strict"`
}

func (s *server) listAgents(ctx context.Context, a pageIn) (page[agent], error) {
	q, err := a.query(store.AgentList)
	if err != nil {
		return page[agent]{}, err
	}
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return page[agent]{}, err
	}
	found, err := s.store.Agents(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/agents", list: store.AgentList}, q, found,
		func(x intent.Agent) agent { return agent{agentBase: agentOf(e, x)} },
		func(x intent.Agent) place {
			switch q.Sort {
			case "paused":
				return at(strconv.FormatBool(x.Paused), x.Name)
			case "status":
				return at(agentStatus(x, e.Halted), x.Name)
			case "process_name":
				return place{nil, x.Name}
			}
			return at(x.Name, x.Name)
		}), err
}

func (s *server) listAgentsV1(ctx context.Context, a oldWindow) (agentList, error) {
	q, err := paging{Limit: a.Limit, Start: a.Start, End: a.End}.query(store.AgentList)
	if err != nil {
		return agentList{}, err
	}
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return agentList{}, err
	}
	found, err := s.store.Agents(ctx, a.Env, q)
	return agentList{listed(found.Items, func(x intent.Agent) agentV1 {
		base := agentOf(e, x)
		return agentV1{agentBase: base, State: base.Status}
	}), stamp(s.now())}, err
}

func (s *server) actOnAgents(ctx context.Context, a agentsAction) error {
	ctx = a.as(ctx)
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return err
	}
	if a.Action == removeVenvs {
		return s.control.RemoveVenvs(ctx, e)
	}
	return s.act(ctx, e, string(a.Action), "")
}

// schedulerAgent is the name under which the reference lists its scheduler among the agents.
const schedulerAgent = "$__scheduler"

// actOnAgent acts on one agent.
func (s *server) actOnAgent(ctx context.Context, a agentAction) error {
	if a.Name == schedulerAgent {
		return invalid("%s is no agent that could be told to %s; halt the environment", schedulerAgent, a.Action)
	}
	ctx = a.as(ctx)
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return err
	}
	err = s.act(ctx, e, string(a.Action), a.Name)
	if fault.Is(err, fault.NotFound) && !a.Strict {
		return nil
	}
	return err
}

// act pauses or unpauses an agent, or all of them.
func (s *server) act(ctx context.Context, e intent.Environment, action, name string) error {
	switch action {
	case "pause", "unpause":
		if e.Halted {
			return fault.New("api", fault.Forbidden,
				"Can not pause or unpause agents when the environment has been halted.")
		}
		return s.control.PauseAgent(ctx, e.ID, name, action == "pause")
	case "keep_paused_on_resume", "unpause_on_resume":
		if !e.Halted {
			return fault.New("api", fault.Forbidden,
				"Cannot set on_resume state of agents when the environment is not halted.")
		}
		// A pause outlives a halt here: unpause_on_resume lifts it, keep_paused_on_resume leaves it.
		return s.control.PauseAgent(ctx, e.ID, name, action == "keep_paused_on_resume")
	}
	return invalid("%q is not an action on agents", action)
}

func (s *server) getExecutors(ctx context.Context, a inEnvironment) (executors, error) {
	x, err := s.control.Executors(ctx, a.Env)
	return executors{
		Here: x.Here, DiskBytes: x.Disk, DiskMaxBytes: x.DiskMax,
		Processes: listed(x.Processes, func(p intent.ExecutorProcess) executorProcess {
			return executorProcess{
				Blueprint: p.Blueprint, Venv: p.Venv, Modules: notNil(p.Modules), PID: p.PID, MemoryBytes: p.RSS,
				Running: p.Running, Agents: p.Agents, Started: stamp(p.Started), IdleSince: unlessZero(p.IdleSince),
				Ending: p.Ending,
			}
		}),
		Folders: listed(x.Folders, func(f intent.ExecutorFolder) executorFolder {
			return executorFolder{
				Kind: f.Kind, Hash: f.Hash, Bytes: f.Size, BytesAlone: f.Alone, LastUsed: stamp(f.LastUsed),
				InUse: f.InUse,
			}
		}),
	}, err
}

// agentStatus is paused or up: agents run inside the server.
func agentStatus(a intent.Agent, halted bool) string {
	if a.Paused || halted {
		return "paused"
	}
	return "up"
}

func agentOf(e intent.Environment, a intent.Agent) agentBase {
	out := agentBase{
		Environment: e.ID, Name: a.Name, Paused: a.Paused || e.Halted, Status: agentStatus(a, e.Halted),
		Breaker: breakerOf(a.Breaker), PausedBy: orNull(a.PausedBy), PausedAt: maybe(a.PausedAt),
	}
	if e.Halted {
		out.UnpauseOnResume = new(!a.Paused)
	}
	return out
}
