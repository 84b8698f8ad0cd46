package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/jointoken"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/task"
)

// Identify returns whose certificate this is, by the record of this moment. Its error is a *Refused.
func (s *Service) Identify(ctx context.Context, certificates []*x509.Certificate) (desk.Who, error) {
	p, err := s.identify(ctx, certificates)
	return desk.Who{ID: p.ID, Project: p.Project, Name: p.Name}, err
}

// identify returns the provisioner of a certificate. Its error is a *Refused.
func (s *Service) identify(ctx context.Context, certificates []*x509.Certificate) (none intent.Provisioner, _ error) {
	no := func(reason, message string) (intent.Provisioner, error) {
		return none, refuse(http.StatusUnauthorized, reason, message)
	}
	if len(certificates) == 0 {
		return no(task.NoCertificate, "this needs the certificate of a provisioner, which gets one by joining"+again)
	}
	who, serial, after, err := s.c.Root.CA().IdentifyProvisioner(certificates[0], s.c.Now())
	switch {
	case errors.Is(err, ca.ErrExpired):
		return no(task.IsExpired, "the provisioner's certificate expired at "+jointoken.Stamp(certificates[0].NotAfter)+
			". It has to join again"+again)
	case err != nil:
		return no(task.NoCertificate, err.Error())
	}
	// The second look is for a certificate that two requests used for the first time in the same moment.
	for range 2 {
		p, err := s.c.Store.ProvisionerNamed(ctx, who.Project, who.Name)
		switch {
		case fault.Is(err, fault.NotFound):
			return no(task.IsUnknown, "the "+who.String()+" does not exist any more"+again)
		case err != nil:
			return none, s.unavailable("the certificate of a provisioner cannot be looked up", err)
		case p.Revoked != nil:
			return no(task.IsRevoked, "the "+who.String()+" was revoked at "+jointoken.Stamp(*p.Revoked)+again)
		case p.Serial == serial:
			return p, nil
		case after == "" || p.Serial != after:
			return no(task.IsReplaced, "the "+who.String()+" has another certificate since, which ended this one: "+
				"it has joined again, or renewed it elsewhere"+again)
		}
		err = s.c.Store.RenewProvisioner(ctx, p.ID, after, serial, certificates[0].NotAfter)
		if err == nil {
			p.Serial, p.Expires = serial, certificates[0].NotAfter
			return p, nil
		}
		if !fault.Is(err, fault.NotFound) {
			return none, s.unavailable("the certificate of a provisioner cannot be recorded", err)
		}
	}
	return none, refuse(http.StatusServiceUnavailable, task.IsBusy,
		"the provisioner's certificate changed just now; try again")
}

// Renew makes another certificate for the provisioner with a certificate. The present one counts until the new one is
// used for the first time. Its error is a *Refused.
func (s *Service) Renew(ctx context.Context, certificates []*x509.Certificate, request string) (ca.Issued, error) {
	p, err := s.identify(ctx, certificates)
	if err != nil {
		return ca.Issued{}, err
	}
	who := ca.Provisioner{Project: p.Project, Name: p.Name}
	issued, err := s.c.Root.CA().SignProvisioner(request, who, p.Serial, s.c.Now(), s.c.Lifetime)
	if err != nil {
		return issued, refuse(http.StatusBadRequest, task.IsBadRequest, err.Error())
	}
	return issued, nil
}
