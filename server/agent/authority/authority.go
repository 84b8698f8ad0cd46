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
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
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

// Lifetimes of join tokens, and how long people see those that have ended.
const (
	TokenLifetime    = time.Hour
	MaxTokenLifetime = 7 * 24 * time.Hour
	keepEnded        = 30 * 24 * time.Hour
	keepContents     = 14 * 24 * time.Hour
	maxTokens        = 1000 // of an environment that can still be used
	maxName          = 500  // bytes of an agent's name
)

// Service makes join tokens and agents. It is safe for concurrent use.
type Service struct {
	c         Config
	authority *ca.Authority
	trust     string // PEM of what agents trust; empty: the authorities of their machines
	trustHash string

	mu      sync.Mutex
	noticed map[uuid.UUID]time.Time // when a refused token was last put into the audit trail
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
	s := &Service{c: c, noticed: map[uuid.UUID]time.Time{}}
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

// CreateToken makes a join token for an agent of an environment. The text is not kept: this is the only time that it
// can be shown. No lifetime means an hour.
func (s *Service) CreateToken(
	ctx context.Context, env intent.EnvironmentID, agent string, lifetime time.Duration,
) (t intent.JoinToken, text string, err error) {
	const op = "authority.CreateToken"
	if err := checkName(agent); err != nil {
		return t, "", fault.New(op, fault.Invalid, err.Error())
	}
	if lifetime == 0 {
		lifetime = TokenLifetime
	}
	if lifetime < time.Minute || lifetime > MaxTokenLifetime {
		return t, "", fault.New(op, fault.Invalid, "a join token lasts a minute at least and seven days at most")
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
	if usable >= maxTokens {
		return t, "", fault.New(op, fault.Conflict,
			fmt.Sprintf("the environment has %d join tokens that wait", usable)).
			Hint("revoke those that are not needed")
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return t, "", fault.Wrap(op, fault.Internal, err)
	}
	t = intent.JoinToken{
		ID: uuid.New(), Environment: env, Agent: agent, Made: now.UTC().Truncate(time.Microsecond),
		MadeBy: access.Of(ctx).Name,
	}
	t.Expires = t.Made.Add(lifetime)
	coded := base64.RawURLEncoding.EncodeToString(secret)
	if err := s.c.Store.AddJoinToken(ctx, t, hashOf(coded)); err != nil {
		return t, "", err
	}
	audit.Subject(ctx, "the join token of agent "+agent)
	audit.Change(ctx, nil, map[string]any{"id": t.ID, "agent": agent, "expires": t.Expires})
	return t, protocol.JoinToken{URL: url, ID: t.ID.String(), Secret: coded, CA: s.trustHash}.String(), nil
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// checkName refuses what cannot be the name of an agent.
func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return errors.New("the name of the agent is empty, or has spaces at an end")
	case len(name) > maxName || !utf8.ValidString(name):
		return fmt.Errorf("the name of the agent is longer than %d bytes, or not UTF-8", maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the name of the agent has control characters")
	}
	return nil
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
		Token: id, Hash: hashOf(token.Secret), From: from, Program: cut(r.Program), At: now,
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
		return none, s.whyNot(ctx, id, hashOf(token.Secret), from)
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
	if err != nil || known != hash {
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
		why = refuse(http.StatusForbidden, "used", "this join token was used at "+stamp(*t.Used)+", from "+t.UsedFrom+
			". A token works once: if that was not you, revoke the agent "+t.Agent+another)
	case t.Revoked != nil:
		why = refuse(http.StatusForbidden, "revoked", "this join token was revoked at "+stamp(*t.Revoked)+another)
	default:
		why = refuse(http.StatusForbidden, "expired", "this join token expired at "+stamp(t.Expires)+another)
	}
	s.c.Logger.Warn("an agent tried to join with a token that has ended", "environment", t.Environment,
		"agent", t.Agent, "token", id, "address", from, "reason", why.Reason)
	if s.notice(id) {
		s.trail(ctx, t.Environment, t.Agent, id, from, why)
	}
	return why
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// notice reports whether the refusal of a token belongs into the audit trail: once per minute.
func (s *Service) notice(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.c.Now()
	if now.Sub(s.noticed[id]) < time.Minute {
		return false
	}
	if len(s.noticed) > 10_000 {
		clear(s.noticed)
	}
	s.noticed[id] = now
	return true
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

// Identified is an agent with a certificate that counts.
type Identified struct {
	ca.Identity
	Serial  string    // of the certificate
	Made    time.Time // and the times from and to which it is valid
	Expires time.Time
}

// Identify returns whose certificate this is. Its error is a *Refused.
func (s *Service) Identify(ctx context.Context, certificates []*x509.Certificate) (Identified, error) {
	if len(certificates) == 0 {
		return Identified{}, refuse(http.StatusForbidden, "certificate", "this needs the certificate of an agent; "+
			"an agent gets one by joining")
	}
	who, serial, err := s.authority.Identify(certificates[0], s.c.Now())
	const again = ". It has to join again, with a new token: ordain agent token create"
	switch {
	case errors.Is(err, ca.ErrExpired):
		return Identified{}, refuse(http.StatusForbidden, "expired", "the agent's certificate expired at "+
			stamp(certificates[0].NotAfter)+again)
	case err != nil:
		return Identified{}, refuse(http.StatusForbidden, "certificate", err.Error())
	}
	state, err := s.c.Store.AgentCertificate(ctx, serial, who.Environment, who.Agent)
	switch {
	case fault.Is(err, fault.NotFound):
		return Identified{}, refuse(
			http.StatusForbidden,
			"removed",
			"the "+who.String()+" does not exist any more"+again,
		)
	case err != nil:
		return Identified{}, s.unavailable("the certificate of an agent cannot be looked up", err)
	case state.State == intent.RemoteRemoved:
		return Identified{}, refuse(http.StatusForbidden, "removed", "the "+who.String()+" was removed"+again)
	case state.State == intent.RemoteRevoked:
		return Identified{}, refuse(http.StatusForbidden, "revoked", "the "+who.String()+" was revoked"+again)
	case state.Revoked:
		return Identified{}, refuse(http.StatusForbidden, "revoked", "the "+who.String()+
			" has joined again since, which ended this certificate"+again)
	}
	return Identified{Identity: who, Serial: serial, Made: state.Made.UTC(), Expires: state.Expires.UTC()}, nil
}

// Renew makes a new certificate for a connected agent. broken is about the agent's request.
func (s *Service) Renew(
	ctx context.Context, who ca.Identity, request string,
) (issued ca.Issued, broken, err error) {
	issued, broken = s.authority.SignAgent(request, who, s.c.Now(), s.c.Lifetime)
	if broken != nil {
		return issued, broken, nil
	}
	return issued, nil, s.c.Store.AddAgentCertificate(ctx, who.Environment, who.Agent,
		store.AgentCertificate{Serial: issued.Serial, Made: issued.Made, Expires: issued.Expires})
}

// Run removes what ended long ago, now and then, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		now := s.c.Now()
		err := s.c.Store.ForgetAgents(ctx, now.Add(-keepEnded), now.Add(-keepContents))
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
