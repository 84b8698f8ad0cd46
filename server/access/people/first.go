package people

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// firstLinkHolds is how long the link to make the first administrator can be used. A restart makes another one.
const firstLinkHolds = time.Hour

// FirstLink returns a link to a page that makes the first administrator. It is empty if there are users already, or if
// nobody can log in. The store keeps only its hash, and an earlier link is void.
func (s *Service) FirstLink(ctx context.Context) (string, error) {
	if !s.enabled {
		return "", nil
	}
	secret := rand.Text()
	stored, err := s.store.SetFirstLink(ctx, digest(secret), s.now().Add(firstLinkHolds))
	if err != nil || !stored {
		return "", err
	}
	return s.public + "/first/" + secret, nil
}

// FirstLinkWorks reports whether the first administrator can be made with the secret of a link.
func (s *Service) FirstLinkWorks(ctx context.Context, secret string) (bool, error) {
	return s.store.FirstLinkWorks(ctx, digest(secret), s.now())
}

// MakeFirst makes the first administrator with the secret of a link, which then works no more. NotFound: it does not
// work.
func (s *Service) MakeFirst(ctx context.Context, secret, name, password string) (access.User, error) {
	works, err := s.FirstLinkWorks(ctx, secret) // before a hash is computed for somebody who guesses
	if err != nil {
		return access.User{}, err
	}
	gone := fault.New("people.MakeFirst", fault.NotFound, "this link was used, has expired, or never existed").
		Hint("if there is no user yet, a restart of the server prints a new link")
	if !works {
		return access.User{}, gone
	}
	u, hash, err := s.newUser(ctx, name, password)
	if err != nil {
		return u, err
	}
	err = s.store.UseFirstLink(ctx, digest(secret), s.now(), u, hash, access.Grant{
		ID: uuid.New(), Kind: access.OfUser, User: u.ID, Role: access.Administrator.Name, By: "the first link",
	})
	if fault.Is(err, fault.NotFound) {
		return u, gone
	}
	return u, err
}
