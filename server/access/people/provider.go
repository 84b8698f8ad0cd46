package people

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// Identify returns the user whom an identity provider knows by an identity. It makes the user at the first login, and
// notes the groups of the user at each.
func (s *Service) Identify(ctx context.Context, identity, name string, groups []string) (access.User, error) {
	if err := s.needEnabled(); err != nil {
		return access.User{}, err
	}
	name, err := checkName(name)
	if err != nil {
		return access.User{}, err
	}
	u, err := s.store.Identify(ctx, access.User{ID: uuid.New(), Name: name, Groups: groups}, identity)
	switch {
	case fault.Is(err, fault.Conflict):
		return u, fault.New("people.Identify", fault.Forbidden, "somebody else has the user name "+name).
			Hint("an administrator can delete that user, for you to log in again")
	case err != nil:
		return u, err
	case u.Disabled:
		s.log.Warn("somebody who is disabled tried to log in", "user", u.Name, "address", originOf(ctx).Address)
		return u, fault.New("people.Identify", fault.Forbidden, "you may not use this server any more").
			Hint("ask an administrator")
	}
	s.changed()
	return u, nil
}
