// Package authority decides which agents there are, and which certificate counts.
//
//	person ─ CreateToken ──▶ ordain-join.… ──▶ agent ─ Join ──▶ certificate ─ Identify ──▶ connection
//	person ─ Revoke, Remove: every certificate of the agent ends, and its connection
//
// A join token is for one agent of one environment, works once, and is kept as the
// hash of its secret. Who joined, and who tried to with a token that had ended, is in
// the audit trail of the environment.
package authority

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/store"
)

// Config configures a Service. All fields are required unless their comment says otherwise.
type Config struct {
	Store  *store.Store
	Key    *secret.Key // seals the key of the CA
	Bus    *bus.Bus
	Logger *slog.Logger
	// URL returns the address at which agents reach the agent server; empty: it is not known in this process.
	URL func() string
	// OwnCertificate says that the operator has a certificate for the agent server. OwnCA is the PEM of the authority
	// that it goes back to; empty: agents rely on the authorities of their machines.
	OwnCertificate bool
	OwnCA          string
	// Lifetime of the certificates of agents; 30 days when zero.
	Lifetime time.Duration
	Now      func() time.Time // nil: time.Now
}

const (
	keepContents = 14 * 24 * time.Hour
	maxName      = 500 // bytes of an agent's name
)

// Service makes join tokens and agents. It is safe for concurrent use.
type Service struct {
	c         Config
	authority *ca.Authority
	trust     string // PEM of what agents trust; empty: the authorities of their machines
	trustHash string

	noticed jointoken.Notices
}

const sealedFor = "agent authority"

// New returns a service. It makes the CA if there is none yet.
func New(ctx context.Context, c Config) (*Service, error) {
	const op = "authority.New"
	if c.Store == nil || c.Key == nil || c.Bus == nil || c.Logger == nil || c.URL == nil {
		return nil, errors.New("authority.New: a part of the configuration is missing")
	}
	if c.Lifetime == 0 {
		c.Lifetime = 30 * 24 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	certificate, key, err := ca.Make(c.Now())
	if err != nil {
		return nil, fault.Wrap(op, fault.Internal, err)
	}
	sealed, err := c.Key.Seal(key, sealedFor)
	if err != nil {
		return nil, err
	}
	if certificate, sealed, err = c.Store.AgentAuthority(ctx, certificate, sealed); err != nil {
		return nil, err
	}
	if key, err = c.Key.Open(sealed, sealedFor); err != nil {
		return nil, err
	}
	s := &Service{c: c}
	if s.authority, err = ca.Open(certificate, key); err != nil {
		return nil, fault.Wrap(op, fault.Internal, err)
	}
	switch {
	case !c.OwnCertificate:
		s.trust, s.trustHash = s.authority.PEM(), s.authority.Hash()
	case c.OwnCA != "":
		block, _ := pem.Decode([]byte(c.OwnCA))
		if block == nil {
			return nil, fault.New(op, fault.Invalid, "the authority of the agent server's certificate is not in PEM")
		}
		s.trust, s.trustHash = string(pem.EncodeToMemory(block)), ca.Hash(block.Bytes)
	}
	return s, nil
}

// Trust returns the PEM of the CA that agents trust, or an empty text when they rely on those of their machines.
func (s *Service) Trust() string { return s.trust }

// TrustHash returns the SHA-256 of that CA in hexadecimal, or an empty text.
func (s *Service) TrustHash() string { return s.trustHash }

// CA returns the authority that signs certificates of agents.
func (s *Service) CA() *ca.Authority { return s.authority }

// URL returns the address at which the agent server is reached; empty: it is not known in this process.
func (s *Service) URL() string { return s.c.URL() }

// ServerCertificate makes a certificate for the agent server, with these names and addresses.
func (s *Service) ServerCertificate(hosts []string) (tls.Certificate, error) {
	return s.authority.SignServer(hosts, s.c.Now())
}

// Agents lists the remote agents of an environment, without those that were removed.
func (s *Service) Agents(ctx context.Context, env intent.EnvironmentID) ([]intent.RemoteAgent, error) {
	return s.c.Store.RemoteAgents(ctx, env)
}

// Revoke ends the certificates of an agent and its connection. It can join again with a new token.
func (s *Service) Revoke(ctx context.Context, env intent.EnvironmentID, agent string) error {
	return s.end(ctx, env, agent, intent.RemoteRevoked)
}

// Remove revokes an agent and forgets it.
func (s *Service) Remove(ctx context.Context, env intent.EnvironmentID, agent string) error {
	return s.end(ctx, env, agent, intent.RemoteRemoved)
}

func (s *Service) end(ctx context.Context, env intent.EnvironmentID, agent string, state intent.RemoteState) error {
	audit.Subject(ctx, "the remote agent "+agent)
	ended, err := s.c.Store.EndRemoteAgent(ctx, env, agent, state, access.Of(ctx).Name, s.c.Now())
	if fault.Is(err, fault.NotFound) {
		return fault.New("authority.end", fault.NotFound, "no remote agent "+agent+" has joined the environment")
	}
	if err != nil {
		return err
	}
	s.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Command, ID: agent})
	for _, id := range ended {
		s.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Answered, ID: id.String()})
	}
	s.c.Logger.Info("a remote agent was "+string(state), "environment", env, "agent", agent,
		"by", access.Of(ctx).Name, "commands lost", len(ended))
	return nil
}

// Run removes what ended long ago, now and then, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		now := s.c.Now()
		err := s.c.Store.ForgetAgents(ctx, now.Add(-jointoken.KeepEnded), now.Add(-keepContents))
		if err != nil && ctx.Err() == nil {
			s.c.Logger.Warn("old join tokens, certificates and contents could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
