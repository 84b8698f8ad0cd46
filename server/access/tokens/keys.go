package tokens

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// KeyConfig is a section [auth_jwt_NAME] of the configuration, as Inmanta has them: a key of which JWTs are accepted.
//
//	algorithm             HS256 or RS256
//	sign                  the server signs its own tokens with this key, which is of HS256
//	client-types          those that tokens may have
//	key                   of HS256, in base64 for URLs
//	expire                seconds that the server's own tokens last; 0 or nothing: for ever
//	issuer, audience      of the tokens; without an audience, it is the issuer
//	jwks-uri              where the keys of RS256 are, with jwks-request-timeout and validate-cert
type KeyConfig struct {
	Section string
	Options map[string]string // texts, as in the file
}

// key is a key of which JWTs are accepted.
type key struct {
	issuer   string
	audience string
	clients  []string      // types that its tokens may have
	secret   []byte        // of HS256
	remote   oidc.KeySet   // of RS256
	lifetime time.Duration // of the tokens that the server signs with it; 0: they do not expire
}

// ownIssuer is the issuer of the tokens that are signed with the key that the server made.
const ownIssuer = "ordain"

// inmantaIssuer is the issuer of a section that names none.
const inmantaIssuer = "https://localhost:8888/"

// sealedFor binds the sealed key to its use.
const sealedFor = "the key that signs tokens"

// openKeys makes or opens the key that signs tokens, and reads the sections of the configuration. The first key is the
// one that signs.
func (s *Service) openKeys(ctx context.Context) error {
	for _, section := range s.Keys {
		k, sign, err := section.open(s.Reach)
		if err != nil {
			return fault.New("tokens.New", fault.Invalid, "["+section.Section+"] "+err.Error())
		}
		if slices.ContainsFunc(s.keys, func(other *key) bool { return other.issuer == k.issuer }) {
			return fault.New("tokens.New", fault.Invalid,
				"["+section.Section+"] has the issuer of another section, "+k.issuer)
		}
		if sign {
			if s.signs {
				return fault.New("tokens.New", fault.Invalid, "["+section.Section+"] another section signs already")
			}
			s.signs = true
			s.keys = append([]*key{k}, s.keys...)
			continue
		}
		s.keys = append(s.keys, k)
	}
	if s.signs {
		return nil
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return fault.Wrap("tokens.New", fault.Internal, err)
	}
	sealed, err := s.Key.Seal(fresh, sealedFor)
	if err != nil {
		return err
	}
	if sealed, err = s.Store.TokenKey(ctx, sealed); err != nil {
		return err
	}
	own := &key{issuer: ownIssuer, audience: ownIssuer, clients: []string{"api", "compiler", "agent"}}
	if own.secret, err = s.Key.Open(sealed, sealedFor); err != nil {
		return err
	}
	s.keys = append([]*key{own}, s.keys...)
	return nil
}

// open checks a section.
func (c KeyConfig) open(within *reach.Rules) (k *key, sign bool, err error) {
	k = &key{issuer: c.Options["issuer"], audience: c.Options["audience"]}
	if k.issuer == "" {
		k.issuer = inmantaIssuer
	}
	if k.audience == "" {
		k.audience = k.issuer
	}
	if sign, err = truth("sign", c.Options["sign"], false); err != nil {
		return nil, false, err
	}
	if k.clients, err = checkClients(strings.Split(c.Options["client-types"], ",")); err != nil {
		return nil, false, fmt.Errorf("client_types: %w", err)
	}
	if text := c.Options["expire"]; text != "" {
		if k.lifetime, err = seconds("expire", text); err != nil {
			return nil, false, err
		}
	}
	switch algorithm := strings.ToUpper(c.Options["algorithm"]); {
	case algorithm == "HS256":
		k.secret, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(c.Options["key"], "="))
		if err != nil || len(k.secret) < 32 { // the error would quote the key
			err = errors.New("key: HS256 needs 32 bytes or more, in base64 for URLs")
		}
	case algorithm != "RS256":
		err = fmt.Errorf("algorithm: %q is neither HS256 nor RS256", c.Options["algorithm"])
	case sign:
		err = errors.New("sign: the server signs with HS256 only")
	default:
		k.remote, err = c.openRemote(within)
	}
	return k, sign, err
}

// openRemote returns the keys of RS256. They are fetched when they are needed.
func (c KeyConfig) openRemote(within *reach.Rules) (oidc.KeySet, error) {
	address := c.Options["jwks-uri"]
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u)) {
		return nil, errors.New("jwks_uri: RS256 needs the address of its keys, which begins with https://")
	}
	timeout := 30 * time.Second
	if text := c.Options["jwks-request-timeout"]; text != "" {
		if timeout, err = seconds("jwks_request_timeout", text); err != nil {
			return nil, err
		}
	}
	valid, err := truth("validate_cert", c.Options["validate-cert"], true)
	client := newClient(timeout, within, func(t *http.Transport) {
		if !valid {
			t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the operator has asked for it
		}
	})
	return oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), address), err
}

func seconds(name, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text + "s")
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: %q is not a number of seconds", name, text)
	}
	return d, nil
}

func truth(name, text string, def bool) (bool, error) {
	switch strings.ToLower(text) {
	case "":
		return def, nil
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%s: %q is neither true nor false", name, text)
}

// claims are those of a JWT that count here.
type claims struct {
	jwt.RegisteredClaims
	ClientTypes   string              `json:"urn:inmanta:ct,omitempty"`
	Environment   string              `json:"urn:inmanta:env,omitempty"`
	CreatedBy     string              `json:"urn:inmanta:created_by,omitempty"`
	Administrator bool                `json:"urn:inmanta:is_admin,omitempty"`
	Roles         map[string][]string `json:"urn:inmanta:roles,omitempty"`
}

// verify returns the claims of a JWT whose signature, issuer, audience and times are right.
func (s *Service) verify(ctx context.Context, text string, now time.Time) (claims, *key, error) {
	var unverified jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(text, &unverified); err != nil {
		return claims{}, nil, forbidden("Unable to decode provided JWT bearer token.")
	}
	i := slices.IndexFunc(s.keys, func(k *key) bool { return k.issuer == unverified.Issuer })
	if i < 0 {
		return claims{}, nil, forbidden("Unknown issuer for token")
	}
	k := s.keys[i]
	var c claims
	if k.secret != nil {
		_, err := jwt.ParseWithClaims(text, &c, func(*jwt.Token) (any, error) { return k.secret, nil },
			jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer(k.issuer), jwt.WithAudience(k.audience),
			jwt.WithTimeFunc(func() time.Time { return now }))
		if err != nil {
			return claims{}, nil, forbidden("The token is wrong, or it has expired.")
		}
		return c, k, nil
	}
	verifier := oidc.NewVerifier(k.issuer, k.remote, &oidc.Config{
		ClientID: k.audience, SupportedSigningAlgs: []string{"RS256"}, Now: s.Now,
	})
	token, err := verifier.Verify(ctx, text)
	if err == nil {
		err = token.Claims(&c)
	}
	if err != nil {
		return claims{}, nil,
			forbidden("The token is wrong, or it has expired, or its issuer cannot be asked for keys.")
	}
	return c, k, nil
}

// forbidden is the answer to a bad JWT, as Inmanta's clients know it.
func forbidden(why string) error { return fault.New("tokens.Authenticate", fault.Forbidden, why) }

// addressee returns who issued a token and for whom, as far as it says so itself: nothing of it is verified.
func addressee(text string) (issuer string, audiences []string, ok bool) {
	var c jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(text, &c); err != nil {
		return "", nil, false
	}
	return c.Issuer, c.Audience, true
}
