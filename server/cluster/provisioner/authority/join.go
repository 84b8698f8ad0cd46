package authority

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/cluster/task"
)

// Refused is why a provisioner may not join or go on.
type Refused struct {
	Code int // of HTTP
	task.Refusal
}

func (r *Refused) Error() string { return r.Message }

func refuse(code int, reason, message string) *Refused {
	return &Refused{code, task.Refusal{Message: message, Reason: reason}}
}

// unavailable is the refusal for an error that is not the provisioner's.
func (s *Service) unavailable(what string, err error) *Refused {
	s.c.Logger.Error(what, "error", err)
	return refuse(http.StatusServiceUnavailable, task.IsUnavailable, "the server cannot look this up now; try again")
}

// again is what people do about a provisioner that is refused.
const again = "; ask for a new token: ordain provisioner token create"

// Join gives the sender of a join token the identity of a provisioner. from is its address. Its error is a *Refused.
func (s *Service) Join(ctx context.Context, j task.Join, from string) (task.Joined, error) {
	none := task.Joined{}
	text, err := protocol.ParseProvisionerToken(j.Token)
	if err != nil {
		return none, refuse(http.StatusForbidden, task.IsUnknown, err.Error())
	}
	unknown := refuse(http.StatusForbidden, task.IsUnknown, "this server knows no such join token: it is of another "+
		"server, its project was deleted, or it ended long ago")
	id, err := uuid.Parse(text.ID)
	if err != nil {
		return none, unknown
	}
	token, hash, err := s.c.Store.ProvisionerToken(ctx, id)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return none, s.unavailable("a join token cannot be looked up", err)
	case err != nil || !jointoken.Same(hash, jointoken.Hash(text.Secret)):
		s.c.Logger.Warn("a provisioner tried to join with a token that this server does not know", "token", id,
			"address", from)
		return none, unknown
	}
	now := s.c.Now()
	if why := ended(token, now); why != nil {
		return none, s.notAgain(ctx, token, from, why)
	}
	who := ca.Provisioner{Project: token.Project, Name: token.Name}
	issued, err := s.c.Root.CA().SignProvisioner(j.Request, who, "", now, s.c.Lifetime)
	if err != nil { // the token can still be used
		return none, refuse(http.StatusBadRequest, task.IsBadRequest, err.Error())
	}
	_, err = s.c.Store.JoinProvisioner(ctx, id, intent.Provisioner{
		ID: uuid.New(), Project: token.Project, Name: token.Name, Serial: issued.Serial, Expires: issued.Expires,
	}, now)
	if fault.Is(err, fault.Conflict) { // it ended since it was looked up
		if now, _, lookup := s.c.Store.ProvisionerToken(ctx, id); lookup == nil {
			if why := ended(now, s.c.Now()); why != nil {
				return none, s.notAgain(ctx, now, from, why)
			}
		}
	}
	if err != nil {
		return none, s.unavailable("a provisioner cannot join", err)
	}
	s.requests.end(who) // of the one that had the name before
	s.trail(ctx, token, from, nil)
	s.c.Logger.Info("a provisioner joined", "project", token.Project, "provisioner", token.Name, "address", from)
	return task.Joined{
		Certificate: issued.PEM, CA: s.c.Root.Trust(), Project: token.Project.String(), Name: token.Name, URL: text.URL,
	}, nil
}

// ended says why a join token cannot be used any more; nil: it can.
func ended(t intent.ProvisionerToken, now time.Time) *Refused {
	switch {
	case t.Used != nil:
		return refuse(http.StatusForbidden, task.IsUsed, "this join token was used at "+jointoken.Stamp(*t.Used)+
			". A token works once: if that was not you, revoke the provisioner "+t.Name+again)
	case t.Revoked != nil:
		return refuse(http.StatusForbidden, task.IsRevoked,
			"this join token was revoked at "+jointoken.Stamp(*t.Revoked)+again)
	case !t.Expires.After(now):
		return refuse(http.StatusForbidden, task.IsExpired,
			"this join token expired at "+jointoken.Stamp(t.Expires)+again)
	}
	return nil
}

// notAgain notes that somebody used a join token that had ended.
func (s *Service) notAgain(ctx context.Context, t intent.ProvisionerToken, from string, why *Refused) *Refused {
	s.c.Logger.Warn("a provisioner tried to join with a token that has ended", "project", t.Project,
		"provisioner", t.Name, "token", t.ID, "address", from, "reason", why.Reason)
	if s.noticed.Due(t.ID, s.c.Now()) {
		s.trail(ctx, t, from, why)
	}
	return why
}

// trail puts an attempt to join into the audit trail.
func (s *Service) trail(ctx context.Context, t intent.ProvisionerToken, from string, refused *Refused) {
	e := intent.AuditEntry{
		At: s.c.Now(), Actor: "provisioner " + t.Name, Kind: "provisioner", Credential: t.ID.String(), Address: from,
		Door: "agent server", Verb: string(access.JoinProvisioner), Project: t.Project,
		Subject: "the provisioner " + t.Name, Outcome: intent.AuditDone,
	}
	if refused != nil {
		e.Outcome, e.Problem = intent.AuditRefused, refused.Message
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if p, err := s.c.Store.Project(ctx, t.Project); err == nil {
		e.ProjectName = p.Name
	}
	if err := s.c.Store.AddAudit(ctx, e); err != nil {
		s.c.Logger.Error("an entry of the audit trail could not be written", "actor", e.Actor, "verb", e.Verb,
			"project", t.Project, "error", err)
	}
}
