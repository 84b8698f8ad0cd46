package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

var agentList = list{
	sort: "name.asc", id: textID,
	columns: map[string]kind{"name": word, "process_name": word, "paused": truth, "status": word},
	filters: map[string]kind{"name": text, "process_name": text, "status": text},
}

func (s *server) agents(g *gin.Engine) {
	call(s, g, http.MethodGet, "/api/v2/agents", func(ctx context.Context, a struct {
		inEnvironment
		paging
	}) (reply, error) {
		q, err := agentList.query(a.paging)
		if err != nil {
			return reply{}, err
		}
		halted, err := s.halted(ctx, a.inEnvironment)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.Agents(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		return paged("/api/v2/agents", agentList, q, page,
			func(x intent.Agent) any { return agentOf(a.inEnvironment, x, halted) },
			func(x intent.Agent) place {
				switch q.Sort {
				case "paused":
					return at(strconv.FormatBool(x.Paused), x.Name)
				case "status":
					return at(agentStatus(x, halted), x.Name)
				case "process_name":
					return place{nil, x.Name}
				}
				return at(x.Name, x.Name)
			})
	})
	call(s, g, http.MethodGet, "/api/v1/agent", func(ctx context.Context, a struct {
		inEnvironment
		Start *string `arg:"start"`
		End   *string `arg:"end"`
		Limit int     `arg:"limit"`
	}) (reply, error) {
		q, err := agentList.query(paging{Limit: a.Limit, Start: a.Start, End: a.End})
		if err != nil {
			return reply{}, err
		}
		halted, err := s.halted(ctx, a.inEnvironment)
		if err != nil {
			return reply{}, err
		}
		page, err := s.store.Agents(ctx, a.Env, q)
		if err != nil {
			return reply{}, err
		}
		out := []any{}
		for _, x := range page.Items {
			one := agentOf(a.inEnvironment, x, halted)
			one["state"], one["last_failover"], one["primary"] = one["status"], "", ""
			out = append(out, one)
		}
		return v1(map[string]any{"agents": out, "servertime": stamp(s.now())})
	})
	call(s, g, http.MethodPost, "/api/v2/agent/{name}/{action}", func(ctx context.Context, a struct {
		inEnvironment
		actor
		Name   string `arg:"name,required"`
		Action string `arg:"action,required"`
	}) (reply, error) {
		return s.agentAction(a.as(ctx), a.inEnvironment, a.Name, a.Action)
	})
	call(s, g, http.MethodPost, "/api/v2/agents/{action}", func(ctx context.Context, a struct {
		inEnvironment
		actor
		Action string `arg:"action,required"`
	}) (reply, error) {
		return s.agentAction(a.as(ctx), a.inEnvironment, "", a.Action)
	})
}

func (s *server) halted(ctx context.Context, in inEnvironment) (bool, error) {
	e, err := s.environment(ctx, in.Env)
	return e.Halted, err
}

// agentAction pauses or unpauses. An unknown agent is an error here, and not in
// the reference: whoever mistypes a name must not believe that it is paused.
func (s *server) agentAction(ctx context.Context, in inEnvironment, name, action string) (reply, error) {
	halted, err := s.halted(ctx, in)
	if err != nil {
		return reply{}, err
	}
	switch action {
	case "pause", "unpause":
		if halted {
			return reply{}, fault.New(
				"api",
				fault.Forbidden,
				"Can not pause or unpause agents when the environment has been halted.",
			)
		}
		if err := s.control.PauseAgent(ctx, in.Env, name, action == "pause"); err != nil {
			return reply{}, err
		}
		return nothing()
	case "keep_paused_on_resume", "unpause_on_resume":
		if !halted {
			return reply{}, fault.New(
				"api",
				fault.Forbidden,
				"Cannot set on_resume state of agents when the environment is not halted.",
			)
		}
		// A pause outlives a halt here: unpause_on_resume lifts it, keep leaves it.
		if err := s.control.PauseAgent(ctx, in.Env, name, action == "keep_paused_on_resume"); err != nil {
			return reply{}, err
		}
		return nothing()
	}
	return reply{}, invalid(
		"%q is not an action on agents: want pause, unpause, keep_paused_on_resume or unpause_on_resume",
		action,
	)
}

// agentStatus: agents run inside the server, so that one is up unless paused.
func agentStatus(a intent.Agent, halted bool) string {
	if a.Paused || halted {
		return "paused"
	}
	return "up"
}

func agentOf(in inEnvironment, a intent.Agent, halted bool) map[string]any {
	var onResume any
	if halted {
		onResume = !a.Paused
	}
	return map[string]any{
		"environment": in.Env, "name": a.Name, "paused": a.Paused || halted, "process_id": nil, "process_name": nil,
		"unpause_on_resume": onResume, "status": agentStatus(a, halted), "last_failover": nil,
		"breaker": breakerOf(a.Breaker), "paused_by": textOrNull(a.PausedBy), "paused_at": maybe(a.PausedAt),
	}
}
