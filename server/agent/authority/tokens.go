package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/agent/protocol"
)

// CreateToken makes a join token for an agent of an environment. The text is not kept: this is the only time that it
// can be shown. No lifetime means an hour.
func (s *Service) CreateToken(
	ctx context.Context, env intent.EnvironmentID, agent string, lifetime time.Duration,
) (t intent.JoinToken, text string, err error) {
	const op = "authority.CreateToken"
	lifetime, err = jointoken.Lifetime(lifetime)
	if err := errors.Join(jointoken.CheckName("agent", agent, maxName), err); err != nil {
		return t, "", fault.New(op, fault.Invalid, err.Error())
	}
	url := s.c.URL()
	if url == "" {
		return t, "", fault.New(op, fault.Conflict, "the address of the agent server is not known").
			Hint("set [agent-server] public-url, or start the server with the role agent")
	}
	now := s.c.Now()
	usable, err := s.c.Store.JoinTokensWaiting(ctx, env, now)
	if err != nil {
		return t, "", err
	}
	if usable >= jointoken.MaxWaiting {
		return t, "", fault.New(op, fault.Conflict,
			fmt.Sprintf("the environment has %d join tokens that wait", usable)).
			Hint("revoke those that are not needed")
	}
	secret, hash, err := jointoken.New()
	if err != nil {
		return t, "", fault.Wrap(op, fault.Internal, err)
	}
	t = intent.JoinToken{
		ID: uuid.New(), Environment: env, Agent: agent, Made: now.UTC().Truncate(time.Microsecond),
		MadeBy: access.Of(ctx).Name,
	}
	t.Expires = t.Made.Add(lifetime)
	if err := s.c.Store.AddJoinToken(ctx, t, hash); err != nil {
		return t, "", err
	}
	audit.Subject(ctx, "the join token of agent "+agent)
	audit.Change(ctx, nil, map[string]any{"id": t.ID, "agent": agent, "expires": t.Expires})
	return t, protocol.JoinToken{URL: url, ID: t.ID.String(), Secret: secret, CA: s.trustHash}.String(), nil
}

// Tokens lists the join tokens of an environment, the newest first, also those that ended lately.
func (s *Service) Tokens(ctx context.Context, env intent.EnvironmentID) ([]intent.JoinToken, error) {
	return s.c.Store.JoinTokens(ctx, env)
}

// RevokeToken revokes a join token that was not used.
func (s *Service) RevokeToken(ctx context.Context, env intent.EnvironmentID, id uuid.UUID) error {
	audit.Subject(ctx, "the join token "+id.String())
	err := s.c.Store.RevokeJoinToken(ctx, env, id, s.c.Now())
	if fault.Is(err, fault.NotFound) {
		return fault.New("authority.RevokeToken", fault.NotFound,
			"the environment has no join token "+id.String()+" that could still be used").
			Hint("an agent that has joined is revoked by its name")
	}
	return err
}
