package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

func (s *server) remoteAgentCalls(c *calls) {
	const agents, tokens = "/api/v2/remote_agent", "/api/v2/agent_token"
	v2(c, http.MethodGet, agents, "List the remote agents of an environment: those that run on, or close to, their "+
		"targets.", access.SeeAgents, s.listRemoteAgents)
	done[noBody](c, http.MethodPost, agents+"/{name}/revoke", "Revoke a remote agent: it is disconnected, and has to "+
		"join again with a new token.", access.RevokeAgent, s.revokeRemoteAgent)
	done[noBody](c, http.MethodDelete, agents+"/{name}", "Revoke a remote agent and forget it.", access.RemoveAgent,
		s.removeRemoteAgent)
	v2(c, http.MethodGet, tokens, "List the tokens with which agents join, also those that ended lately.",
		access.SeeJoinTokens, s.listJoinTokens)
	v2(c, http.MethodPost, tokens, "Make a token with which an agent joins, once. The answer alone shows it.",
		access.ManageJoinTokens, s.createJoinToken)
	done[noBody](c, http.MethodDelete, tokens+"/{token}", "Revoke a join token that was not used.",
		access.ManageJoinTokens, s.revokeJoinToken)
}

// remoteAgent is an agent on its target.
type remoteAgent struct {
	Name        string     `json:"name"`
	State       string     `json:"state"` // joined or revoked
	Connected   bool       `json:"connected"`
	Since       *timestamp `json:"since"` // when it connected, or was disconnected
	Replica     *string    `json:"replica"`
	Program     string     `json:"program"`
	OS          string     `json:"os"`
	Arch        string     `json:"arch"`
	Libc        string     `json:"libc"`
	Pythons     []string   `json:"pythons"`
	Joined      timestamp  `json:"joined"`
	Ended       *timestamp `json:"ended"` // when it was revoked
	EndedBy     *string    `json:"ended_by"`
	Certificate *timestamp `json:"certificate_expires"`
	Waiting     int        `json:"waiting"` // commands without an answer
	Problem     *string    `json:"problem"` // what went wrong with it last
	ProblemAt   *timestamp `json:"problem_at"`
}

func (s *server) listRemoteAgents(ctx context.Context, a inEnvironment) ([]remoteAgent, error) {
	all, err := s.store.RemoteAgents(ctx, a.Env)
	return listed(all, func(r intent.RemoteAgent) remoteAgent {
		return remoteAgent{
			Name: r.Name, State: string(r.State), Connected: r.Connected, Since: maybe(r.Since),
			Replica: orNull(r.Replica),
			Program: r.Program, OS: r.Machine.OS, Arch: r.Machine.Arch, Libc: r.Machine.Libc,
			Pythons: notNil(r.Machine.Pythons), Joined: stamp(r.Joined), Ended: maybe(r.Ended),
			EndedBy:     orNull(r.EndedBy),
			Certificate: maybe(r.Expires), Waiting: r.Waiting, Problem: orNull(r.Problem),
			ProblemAt: maybe(r.ProblemAt),
		}
	}), err
}

type oneRemoteAgent struct {
	inEnvironment
	Name string `arg:"name,required"`
}

func (s *server) revokeRemoteAgent(ctx context.Context, a oneRemoteAgent) error {
	if s.agents == nil {
		return noAgents()
	}
	return s.agents.Revoke(ctx, a.Env, a.Name)
}

func (s *server) removeRemoteAgent(ctx context.Context, a oneRemoteAgent) error {
	if s.agents == nil {
		return noAgents()
	}
	return s.agents.Remove(ctx, a.Env, a.Name)
}

func noAgents() error {
	return fault.New("api", fault.Unavailable, "this server has no part for remote agents")
}

// joinToken is a join token, without its secret.
type joinToken struct {
	ID       string     `json:"id"`
	Agent    string     `json:"agent"`
	State    string     `json:"state"` // waiting, used, expired or revoked
	Made     timestamp  `json:"made"`
	MadeBy   string     `json:"made_by"`
	Expires  timestamp  `json:"expires"`
	Used     *timestamp `json:"used"`
	UsedFrom *string    `json:"used_from"`
	Revoked  *timestamp `json:"revoked"`
}

type newJoinToken struct {
	joinToken
	Token string `json:"token"` // it is shown this once
}

func (s *server) joinTokenOf(t intent.JoinToken) joinToken {
	return joinToken{
		ID: t.ID.String(), Agent: t.Agent, State: t.State(s.now()), Made: stamp(t.Made), MadeBy: t.MadeBy,
		Expires: stamp(t.Expires), Used: maybe(t.Used), UsedFrom: orNull(t.UsedFrom), Revoked: maybe(t.Revoked),
	}
}

func (s *server) listJoinTokens(ctx context.Context, a inEnvironment) ([]joinToken, error) {
	all, err := s.store.JoinTokens(ctx, a.Env)
	return listed(all, s.joinTokenOf), err
}

type joinTokenArguments struct {
	inEnvironment
	Agent  string `arg:"agent,required"`
	Expire *int   `arg:"expire"` // seconds; an hour by default
}

func (s *server) createJoinToken(ctx context.Context, a joinTokenArguments) (newJoinToken, error) {
	if s.agents == nil {
		return newJoinToken{}, noAgents()
	}
	var lifetime time.Duration
	if a.Expire != nil {
		var err error
		if lifetime, err = lifetimeOf(*a.Expire); err != nil {
			return newJoinToken{}, err
		}
	}
	t, text, err := s.agents.CreateToken(ctx, a.Env, a.Agent, lifetime)
	if err != nil {
		return newJoinToken{}, err
	}
	return newJoinToken{s.joinTokenOf(t), text}, nil
}

type oneJoinToken struct {
	inEnvironment
	Token uuid.UUID `arg:"token,required"`
}

func (s *server) revokeJoinToken(ctx context.Context, a oneJoinToken) error {
	if s.agents == nil {
		return noAgents()
	}
	return s.agents.RevokeToken(ctx, a.Env, a.Token)
}
