// Package authority decides which provisioners there are elsewhere, and which
// certificate counts.
//
//	person ─ CreateToken ──▶ ordain-provisioner.… ──▶ provisioner ─ Join ──▶ certificate
//	provisioner ─ each request ─▶ Identify ─▶ desk: a project and a name, and nothing that it says about itself
//	            ─ Renew ─▶ another certificate, which takes the place of the first when it is used
//	person ─ Revoke: the next request is refused, and those that wait for tasks end
//
// A join token is for one provisioner of one project, works once, and is kept as the hash
// of its secret. The CA is that of the agent server; the certificates that it signs for
// provisioners cannot be taken for those of agents (package ca).
//
// The record has one serial number for a provisioner: that of the certificate that counts.
// A renewed certificate has the number of the one before in it. When it is used for the
// first time, it takes its place in the record. So an answer that is lost locks no
// provisioner out, and a certificate of before a revocation never comes back.
package authority

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// Root is the authority of the agent server. *authority.Service of server/agent is one.
type Root interface {
	// CA signs the certificates.
	CA() *ca.Authority
	// Trust and TrustHash are the PEM and the hash of the CA that the server's own certificate goes back to; empty: one
	// that machines know.
	Trust() string
	TrustHash() string
	// URL is the address of the agent server; empty: it is not known in this process.
	URL() string
}

// Config configures a Service. All fields are required unless their comment says otherwise.
type Config struct {
	Store  *store.Store
	Root   Root
	Logger *slog.Logger
	// Lifetime of certificates; 30 days when zero.
	Lifetime time.Duration
	Now      func() time.Time // nil: time.Now
}

const maxName = 200 // bytes of a provisioner's name

// Service makes join tokens and provisioners. It is safe for concurrent use.
type Service struct {
	c        Config
	joins    *semaphore.Weighted
	requests requests
	noticed  jointoken.Notices
}

// New returns a service.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Root == nil || c.Logger == nil {
		return nil, errors.New("authority.New: a part of the configuration is missing")
	}
	if c.Lifetime == 0 {
		c.Lifetime = 30 * 24 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c: c, joins: semaphore.NewWeighted(joinsAtOnce)}, nil
}

// CreateToken makes a join token for a provisioner of a project. The text is not kept: this is the only time that it
// can be shown. No lifetime means an hour.
func (s *Service) CreateToken(
	ctx context.Context, project intent.ProjectID, name string, lifetime time.Duration,
) (t intent.ProvisionerToken, text string, err error) {
	const op = "provisioner.CreateToken"
	lifetime, err = jointoken.Lifetime(lifetime)
	if err := errors.Join(checkName(name), err); err != nil {
		return t, "", fault.New(op, fault.Invalid, err.Error())
	}
	url := s.c.Root.URL()
	if url == "" {
		return t, "", fault.New(op, fault.Conflict, "the address of the agent server is not known").
			Hint("set [agent-server] public-url, or start the server with the role agent")
	}
	if _, err := s.c.Store.Project(ctx, project); err != nil {
		return t, "", err
	}
	now := s.c.Now()
	waiting, err := s.c.Store.ProvisionerTokensWaiting(ctx, project, now)
	if err != nil {
		return t, "", err
	}
	if waiting >= jointoken.MaxWaiting {
		return t, "", fault.New(op, fault.Conflict,
			fmt.Sprintf("the project has %d join tokens of provisioners that wait", waiting)).
			Hint("revoke those that are not needed")
	}
	secret, hash, err := jointoken.New()
	if err != nil {
		return t, "", fault.Wrap(op, fault.Internal, err)
	}
	t = intent.ProvisionerToken{
		ID: uuid.New(), Project: project, Name: name, Made: now.UTC().Truncate(time.Microsecond),
		MadeBy: access.Of(ctx).Name,
	}
	t.Expires = t.Made.Add(lifetime)
	if err := s.c.Store.AddProvisionerToken(ctx, t, hash); err != nil {
		return t, "", err
	}
	audit.Subject(ctx, "the join token of provisioner "+name)
	audit.Change(ctx, nil, map[string]any{"id": t.ID, "provisioner": name, "expires": t.Expires})
	token := protocol.JoinToken{URL: url, ID: t.ID.String(), Secret: secret, CA: s.c.Root.TrustHash()}
	return t, token.Provisioner(), nil
}

// checkName refuses what cannot be the name of a provisioner.
func checkName(name string) error {
	if strings.HasPrefix(name, "server/") {
		return errors.New("names that begin with server/ are those of the server's own provisioners")
	}
	return jointoken.CheckName("provisioner", name, maxName)
}

// Tokens lists the join tokens of a project, the newest first, also those that ended lately.
func (s *Service) Tokens(ctx context.Context, project intent.ProjectID) ([]intent.ProvisionerToken, error) {
	return s.c.Store.ProvisionerTokens(ctx, project)
}

// RevokeToken revokes a join token that was not used.
func (s *Service) RevokeToken(ctx context.Context, project intent.ProjectID, id uuid.UUID) error {
	audit.Subject(ctx, "the join token "+id.String())
	err := s.c.Store.RevokeProvisionerToken(ctx, project, id, s.c.Now())
	if fault.Is(err, fault.NotFound) {
		return fault.New("provisioner.RevokeToken", fault.NotFound,
			"the project has no join token "+id.String()+" that could still be used").
			Hint("a provisioner that has joined is revoked by its name")
	}
	return err
}

// Provisioners lists the provisioners of a project that run elsewhere, also those that were revoked.
func (s *Service) Provisioners(ctx context.Context, project intent.ProjectID) ([]intent.Provisioner, error) {
	return s.c.Store.Provisioners(ctx, &project)
}

// Revoke ends a provisioner: its next request is refused, and what it works on goes to others when its leases are over.
// It can join again with a new token.
func (s *Service) Revoke(ctx context.Context, project intent.ProjectID, name string) error {
	const op = "provisioner.Revoke"
	audit.Subject(ctx, "the provisioner "+name)
	p, err := s.c.Store.ProvisionerNamed(ctx, project, name)
	if err == nil {
		err = s.c.Store.RevokeProvisioner(ctx, p.ID)
	}
	switch {
	case fault.Is(err, fault.NotFound) && p.Revoked != nil:
		return fault.New(op, fault.Conflict, "the provisioner "+name+" was revoked at "+jointoken.Stamp(*p.Revoked))
	case fault.Is(err, fault.NotFound):
		return fault.New(op, fault.NotFound, "no provisioner "+name+" has joined the project")
	case err != nil:
		return err
	}
	s.requests.end(ca.Provisioner{Project: project, Name: name})
	s.c.Logger.Info("a provisioner was revoked", "project", project, "provisioner", name, "by", access.Of(ctx).Name)
	return nil
}

// Run removes join tokens that ended long ago, now and then, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		err := s.c.Store.ForgetProvisionerTokens(ctx, s.c.Now().Add(-jointoken.KeepEnded))
		if err != nil && ctx.Err() == nil {
			s.c.Logger.Warn("old join tokens of provisioners could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
