package people

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// CopyGrants gives the roles that users and groups have in one environment in another one, too, as far as the sender
// may see and give them. It returns those that it gave. from and to are the environments as targets. Tokens get
// nothing: each is made for one environment.
func (s *Service) CopyGrants(ctx context.Context, from, to access.Target) (given []access.Grant, err error) {
	p := access.Of(ctx)
	if !s.Enabled() || !p.Decide(access.AssignRoles, from).Allowed || !p.Decide(access.AssignRoles, to).Allowed {
		return nil, nil
	}
	grants, err := s.Grants(ctx, uuid.Nil, uuid.Nil)
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		if g.Scope.Environment != from.Environment || g.Kind == access.OfToken {
			continue
		}
		g.Scope = access.Scope{Environment: to.Environment}
		switch made, err := s.Give(ctx, g, to); {
		case fault.Is(err, fault.Forbidden), fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		case err != nil:
			return given, err
		default:
			given = append(given, made)
		}
	}
	return given, nil
}

// RolesOf writes grants as the audit trail keeps them.
func RolesOf(grants []access.Grant) (out []string) {
	for _, g := range grants {
		out = append(out, g.Role+" for "+string(g.Kind)+" "+g.Subject)
	}
	return out
}
