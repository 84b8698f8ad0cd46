package people

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// How failed logins are held against a name and an address. Each failure after the free ones blocks for twice as long
// as the one before.
const (
	freeForUser    = 5
	freeForAddress = 50 // there may be many people behind one
	firstBlock     = 2 * time.Second
	longestBlock   = 15 * time.Minute
	forgetFailures = time.Hour
)

func blockAfter(kind string, failures int) time.Duration {
	free := freeForUser
	if kind == "address" {
		free = freeForAddress
	}
	if failures < free {
		return 0
	}
	return min(longestBlock, firstBlock<<min(failures-free, 20))
}

// invalidLogin is the answer to every login that fails, so that nobody learns which users there are.
func invalidLogin() error {
	return fault.New("people.Login", fault.Unauthorized, "Invalid username or password")
}

// Login starts a session for somebody who knows a password. earlier is the token that the client had until then, or
// empty. The fault is Unauthorized for a wrong name or password, and TooMany while too many logins have failed.
func (s *Service) Login(ctx context.Context, client, name, password, earlier string) (Token, error) {
	if err := s.needEnabled(); err != nil {
		return Token{}, err
	}
	u, err := s.attempt(ctx, name, password)
	if err != nil {
		return Token{}, err
	}
	return s.StartSession(ctx, u, client, earlier)
}

// attempt returns the user with a name and a password. It counts attempts that fail.
func (s *Service) attempt(ctx context.Context, name, password string) (access.User, error) {
	if len(name) > 400 {
		name = "" // nobody has such a name
	}
	name = norm.NFKC.String(name)
	from := originOf(ctx)
	subjects := []store.LoginSubject{
		{
			Kind:    "address",
			Subject: digest(network(from.Address)),
		}, {Kind: "user", Subject: digest(strings.ToLower(name))},
	}
	done, err := s.turns.wait(ctx, subjects[1].Subject)
	if err != nil {
		return access.User{}, err
	}
	defer done()
	blocked, err := s.store.TryLogin(ctx, subjects, s.now(), s.now().Add(-forgetFailures), blockAfter)
	if err != nil {
		return access.User{}, err
	}
	if !blocked.IsZero() {
		wait := blocked.Sub(s.now()).Round(time.Second) + time.Second
		s.log.Warn("a login is refused after too many failures", "address", from.Address)
		return access.User{}, fault.New("people.Login", fault.TooMany, "Too many logins have failed").
			Hint(fmt.Sprintf("try again in %s", wait))
	}
	u, err := s.verify(ctx, name, password)
	if err != nil {
		if fault.Is(err, fault.Unauthorized) {
			s.log.Warn("a login failed", "address", from.Address)
		}
		return access.User{}, err
	}
	return u, s.store.LoginSucceeded(ctx, subjects)
}

// StartSession starts a session for a user who has proved who they are.
func (s *Service) StartSession(ctx context.Context, u access.User, client, earlier string) (Token, error) {
	token, err := s.start(ctx, u, client, earlier, s.now().Add(s.lifetime))
	if err != nil {
		return Token{}, err
	}
	s.log.Info("somebody logged in", "user", u.Name, "client", client, "address", originOf(ctx).Address)
	return token, s.store.LoggedIn(ctx, u.ID, s.now())
}

// verify returns the user with a name and a password. It computes a hash whether there is such a user or not.
func (s *Service) verify(ctx context.Context, name, password string) (access.User, error) {
	u, err := s.store.UserNamed(ctx, name)
	var hash string
	if err == nil {
		hash, err = s.store.PasswordHash(ctx, u.ID)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return u, err
	}
	ok, old, err := s.hasher.match(ctx, password, hash)
	switch {
	case err != nil:
		return u, err
	case !ok || u.Disabled:
		return u, invalidLogin()
	}
	if old {
		secret, _ := normalize(password)
		renewed, err := s.hasher.hash(ctx, secret)
		if err == nil {
			err = s.store.Rehash(ctx, u.ID, hash, renewed)
		}
		if err != nil {
			s.log.Warn("a password could not be hashed anew", "user", u.Name, "error", err)
		}
	}
	return u, nil
}

// turns lets the attempts for one name run one after another, so that people who log in several times at once do not
// block themselves: an attempt counts as failed until it has succeeded.
type turns [64]chan struct{}

func newTurns() (t turns) {
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	return t
}

// wait returns when it is the turn of an attempt for a name with this digest. done ends the turn.
func (t *turns) wait(ctx context.Context, digest string) (done func(), err error) {
	turn := t[crc32.ChecksumIEEE([]byte(digest))%uint32(len(t))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fault.Wrap("people.Login", fault.Unavailable, ctx.Err()).
			Say("the call ended before it was its turn")
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// network returns what stands for an address when failures are counted: of IPv6, a site gets a whole /64.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.Prefix(64) // 64 is never too long
	return prefix.String()
}
