package authority

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// Refused is why an agent may not join or connect.
type Refused struct {
	Code int // of HTTP
	protocol.Refusal
}

func (r *Refused) Error() string { return r.Message }

func refuse(code int, reason, message string) *Refused {
	return &Refused{code, protocol.Refusal{Message: message, Reason: reason}}
}

// unavailable is the refusal for an error that is not the agent's.
func (s *Service) unavailable(what string, err error) *Refused {
	s.c.Logger.Error(what, "error", err)
	return refuse(http.StatusServiceUnavailable, "unavailable", "the server cannot look this up now; try again")
}

// Join gives the sender of a join token the identity of an agent. from is its address. Its error is a *Refused.
func (s *Service) Join(ctx context.Context, r protocol.JoinRequest, from string) (protocol.JoinAnswer, error) {
	none := protocol.JoinAnswer{}
	token, err := protocol.ParseToken(r.Token)
	if err != nil {
		return none, refuse(http.StatusForbidden, "unknown", err.Error())
	}
	id, err := uuid.Parse(token.ID)
	if err != nil {
		return none, refuse(http.StatusForbidden, "unknown", "this server knows no such join token")
	}
	now := s.c.Now()
	var issued ca.Issued
	var unusable error
	env, agent, err := s.c.Store.JoinAgent(ctx, store.Joining{
		Token: id, Hash: jointoken.Hash(token.Secret), From: from, Program: cut(r.Program), At: now,
	}, func(env intent.EnvironmentID, agent string) (store.AgentCertificate, error) {
		issued, unusable = s.authority.SignAgent(
			r.Request,
			ca.Identity{Environment: env, Agent: agent},
			now,
			s.c.Lifetime,
		)
		return store.AgentCertificate{Serial: issued.Serial, Made: issued.Made, Expires: issued.Expires}, unusable
	})
	switch {
	case unusable != nil: // the token can still be used
		return none, refuse(http.StatusBadRequest, "request", unusable.Error())
	case fault.Is(err, fault.NotFound):
		return none, s.whyNot(ctx, id, jointoken.Hash(token.Secret), from)
	case err != nil:
		return none, s.unavailable("an agent cannot join", err)
	}
	s.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Command, ID: agent})
	s.trail(ctx, env, agent, id, from, nil)
	s.c.Logger.Info("an agent joined", "environment", env, "agent", agent, "address", from, "program", cut(r.Program))
	return protocol.JoinAnswer{
		Certificate: issued.PEM, CA: s.trust, Environment: env.String(), Agent: agent, URL: token.URL,
	}, nil
}

func cut(text string) string {
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// whyNot says why a join token cannot be used. Only those who have its secret learn more than that.
func (s *Service) whyNot(ctx context.Context, id uuid.UUID, hash, from string) *Refused {
	t, known, err := s.c.Store.JoinToken(ctx, id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return s.unavailable("a join token cannot be looked up", err)
	}
	if err != nil || !jointoken.Same(known, hash) {
		s.c.Logger.Warn(
			"an agent tried to join with a token that this server does not know",
			"token",
			id,
			"address",
			from,
		)
		return refuse(
			http.StatusForbidden,
			"unknown",
			"this server knows no such join token: it is of another server, "+
				"its environment was deleted, or it ended long ago",
		)
	}
	const another = "; ask for a new one: ordain agent token create"
	var why *Refused
	switch {
	case t.Used != nil:
		why = refuse(
			http.StatusForbidden,
			"used",
			"this join token was used at "+jointoken.Stamp(*t.Used)+", from "+t.UsedFrom+
				". A token works once: if that was not you, revoke the agent "+t.Agent+another,
		)
	case t.Revoked != nil:
		why = refuse(
			http.StatusForbidden,
			"revoked",
			"this join token was revoked at "+jointoken.Stamp(*t.Revoked)+another,
		)
	default:
		why = refuse(
			http.StatusForbidden,
			"expired",
			"this join token expired at "+jointoken.Stamp(t.Expires)+another,
		)
	}
	s.c.Logger.Warn("an agent tried to join with a token that has ended", "environment", t.Environment,
		"agent", t.Agent, "token", id, "address", from, "reason", why.Reason)
	if s.noticed.Due(id, s.c.Now()) {
		s.trail(ctx, t.Environment, t.Agent, id, from, why)
	}
	return why
}

// trail puts an agent's attempt to join into the audit trail.
func (s *Service) trail(
	ctx context.Context, env intent.EnvironmentID, agent string, token uuid.UUID, from string, refused *Refused,
) {
	e := intent.AuditEntry{
		At: s.c.Now(), Actor: "agent " + agent, Kind: "agent", Credential: token.String(), Address: from,
		Door: "agent server", Verb: string(access.JoinAgent), Environment: env, Subject: "the remote agent " + agent,
		Outcome: intent.AuditDone,
	}
	if refused != nil {
		e.Outcome, e.Problem = intent.AuditRefused, refused.Message
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if in, err := s.c.Store.Environment(ctx, env); err == nil {
		e.EnvironmentName, e.Project, e.ProjectName = in.Name, in.ProjectID, in.ProjectName
	}
	if err := s.c.Store.AddAudit(ctx, e); err != nil {
		s.c.Logger.Error("an entry of the audit trail could not be written", "actor", e.Actor, "verb", e.Verb,
			"environment", env, "error", err)
	}
}
