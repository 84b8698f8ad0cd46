package tokens

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// NewEnvironmentToken says which token of an environment is wanted.
type NewEnvironmentToken struct {
	Environment uuid.UUID
	ClientTypes []string
	// Idempotent: the same token is returned whenever it is asked for, until it is revoked. It never expires.
	Idempotent bool
	// Lifetime of the token; nil: that of the signing key, or for ever.
	Lifetime *time.Duration
}

// CreateEnvironment makes a token for clients of an environment.
func (s *Service) CreateEnvironment(
	ctx context.Context, n NewEnvironmentToken,
) (t access.EnvironmentToken, text string, err error) {
	if err := s.needEnabled(); err != nil {
		return t, "", err
	}
	bad := func(what string) error { return fault.New("tokens.CreateEnvironment", fault.Invalid, what) }
	types, err := checkClients(n.ClientTypes)
	signer := s.keys[0]
	const longest = 100 * 365 * 24 * time.Hour // what the date can hold
	switch {
	case err != nil:
		return t, "", err
	case n.Lifetime != nil && (*n.Lifetime <= 0 || *n.Lifetime > longest):
		return t, "", bad("expire must be a positive number of seconds")
	case n.Lifetime != nil && n.Idempotent:
		return t, "", bad("An idempotent token cannot have an expiry: such tokens carry no time-based claims")
	case slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(signer.clients, t) }):
		return t, "", bad("the key that signs tokens is only for clients of the types " +
			strings.Join(signer.clients, ", "))
	}
	t = access.EnvironmentToken{
		ID: uuid.New(), Environment: n.Environment, ClientTypes: types, Idempotent: n.Idempotent,
		By: access.Of(ctx).Name, Issued: s.Now().UTC().Truncate(time.Second),
	}
	lifetime := signer.lifetime
	if n.Lifetime != nil {
		lifetime = *n.Lifetime
	}
	if lifetime > 0 && !n.Idempotent {
		expires := t.Issued.Add(lifetime)
		t.Expires = &expires
	}
	if t, err = s.Store.AddEnvironmentToken(ctx, t); err != nil {
		return t, "", err
	}
	audit.Subject(ctx, "the environment token "+t.ID.String())
	audit.Change(ctx, nil, map[string]any{
		"id": t.ID, "client_types": t.ClientTypes, "idempotent": t.Idempotent, "expires": t.Expires,
	})
	text, err = signer.sign(t)
	return t, text, err
}

// sign returns the text of a token. It is the same whenever an idempotent token is signed.
func (k *key) sign(t access.EnvironmentToken) (string, error) {
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: k.issuer, Audience: jwt.ClaimStrings{k.audience}, ID: t.ID.String(),
		},
		ClientTypes: strings.Join(t.ClientTypes, ","), Environment: t.Environment.String(), CreatedBy: t.By,
	}
	if !t.Idempotent {
		c.IssuedAt = jwt.NewNumericDate(t.Issued)
	}
	if t.Expires != nil {
		c.ExpiresAt = jwt.NewNumericDate(*t.Expires)
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(k.secret)
	if err != nil {
		return "", fault.Wrap("tokens.sign", fault.Internal, err)
	}
	return text, nil
}

// OfEnvironment lists the tokens of an environment, the newest first.
func (s *Service) OfEnvironment(ctx context.Context, env uuid.UUID) ([]access.EnvironmentToken, error) {
	return s.Store.EnvironmentTokens(ctx, env)
}

// RevokeEnvironment revokes a token of an environment.
func (s *Service) RevokeEnvironment(ctx context.Context, env, id uuid.UUID) error {
	audit.Subject(ctx, "the environment token "+id.String())
	err := s.Store.RevokeEnvironmentToken(ctx, env, id, s.Now())
	s.known.forget()
	if fault.Is(err, fault.NotFound) {
		return fault.New("tokens.RevokeEnvironment", fault.NotFound,
			"No token with jti "+id.String()+" exists in environment "+env.String()+".")
	}
	return err
}

// byJWT returns what a JWT stands for: clients of an environment, or what its issuer says of roles.
func (s *Service) byJWT(ctx context.Context, text string, now time.Time) (proof, error) {
	c, k, err := s.verify(ctx, text, now)
	if err != nil {
		return proof{}, err
	}
	var out proof
	if c.ExpiresAt != nil {
		out.expires = c.ExpiresAt.Time
	}
	types := []string{access.APIClients}
	if c.ClientTypes != "" {
		if types, err = checkClients(strings.Split(c.ClientTypes, ",")); err != nil {
			return proof{}, forbidden("The token has an unknown client type.")
		}
	}
	types = slices.DeleteFunc(types, func(t string) bool { return !slices.Contains(k.clients, t) })
	digest := digestOf(text)
	p := access.Principal{
		Kind: access.Environment, Credential: "jwt " + hex.EncodeToString(digest[:6]),
		Name: "a token for " + strings.Join(types, ", "),
	}
	if c.CreatedBy != "" {
		p.Name += " that " + c.CreatedBy + " made"
	}
	if c.Subject != "" {
		p.Name = c.Subject
	}
	switch {
	case c.Environment != "":
		if p.Only, err = uuid.Parse(c.Environment); err != nil {
			return proof{}, forbidden("The token names no environment that could exist.")
		}
		p.Bindings = clientBindings(types, access.Scope{Environment: p.Only})
	case k.secret != nil: // its signer has the key that makes every token
		p.Bindings = clientBindings(types, access.Scope{})
		if slices.Contains(types, access.APIClients) {
			p.Bindings = append(p.Bindings, access.Binding{Role: access.Administrator})
		}
	default:
		if p.Bindings, err = s.claimed(ctx, c); err != nil {
			return proof{}, err
		}
	}
	if len(p.Bindings) == 0 {
		return proof{}, forbidden("The token gives no role on this server.")
	}
	if k == s.keys[0] && c.ID != "" {
		if err := s.registered(ctx, c, &p, &out, now); err != nil {
			return proof{}, err
		}
	}
	out.principal = p
	return out, nil
}

// claimed returns the roles that an issuer of other tokens gives.
func (s *Service) claimed(ctx context.Context, c claims) (out []access.Binding, err error) {
	if c.Administrator {
		out = append(out, access.Binding{Role: access.Administrator, Through: "its issuer " + c.Issuer})
	}
	roles, err := s.People.Roles(ctx)
	for env, names := range c.Roles {
		id, bad := uuid.Parse(env)
		if bad != nil || id == uuid.Nil {
			continue
		}
		for _, r := range roles {
			if slices.Contains(names, r.Name) {
				out = append(out, access.Binding{
					Role: r, Scope: access.Scope{Environment: id}, Through: "its issuer " + c.Issuer,
				})
			}
		}
	}
	return out, err
}

// registered checks that a token with an id was made here and not revoked.
func (s *Service) registered(
	ctx context.Context, c claims, p *access.Principal, out *proof, now time.Time,
) error {
	id, err := uuid.Parse(c.ID)
	if err != nil {
		return forbidden("The provided token has an invalid jti claim.")
	}
	t, err := s.Store.EnvironmentToken(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && t.Environment != p.Only:
		return forbidden("The provided token is not recognized; it may have been revoked.")
	case err != nil:
		return err
	case t.Revoked != nil:
		return forbidden("The provided token has been revoked.")
	}
	p.Credential = t.ID.String()
	out.used = dueAt(t.LastUsed, now, func() error {
		return s.Store.UsedEnvironmentToken(context.WithoutCancel(ctx), t.ID, now)
	})
	return nil
}
