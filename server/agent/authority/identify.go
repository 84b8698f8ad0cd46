package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/store"
)

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
			jointoken.Stamp(certificates[0].NotAfter)+again)
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
