// Package provider logs people in at an identity provider, by OpenID Connect.
//
//	browser ─▶ Begin ─▶ cookie: state, nonce, PKCE verifier, sealed ─▶ the provider asks who it is
//	                                                                             │
//	Identity ◀─ claims ◀─ ID token: signature, issuer, audience, nonce ◀─ Finish ◀─ code, state
//
// Nothing of a login is kept on the server until it has succeeded. The cookie binds the answer of the provider to the
// browser that asked: a code that somebody else brings, or brings again, is refused. The session that follows is that
// of package people.
package provider

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// CallbackPath is where the provider sends people back to.
const CallbackPath = "/login/oidc/callback"

const (
	timeout    = 10 * time.Second
	askAgain   = 5 * time.Second // after which a provider that did not answer is asked again
	loginTime  = 10 * time.Minute
	sealedFor  = "a login that has begun"
	maxGroups  = 1000
	maxText    = 300 // bytes of a name
	maxAddress = 2000
)

// algorithms are those that an ID token may be signed with: none of them is "none", and none takes a shared secret.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512,
	oidc.EdDSA,
}

// Config configures a Provider. All fields but ClientSecret and Now are required.
type Config struct {
	Issuer        string
	ClientID      string
	ClientSecret  string
	Scopes        []string
	UsernameClaim string
	GroupsClaim   string
	Name          string      // for people
	PublicURL     string      // the address of the console
	Key           *secret.Key // seals what the browser keeps during a login
	Logger        *slog.Logger
	Now           func() time.Time // nil: time.Now
}

// Provider is an identity provider. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	client *http.Client

	mu     sync.Mutex
	found  *description
	failed error
	asked  time.Time
}

// description is what a provider says of itself.
type description struct {
	*oidc.Provider
	logout string // where people log out; may be empty
}

// Identity is who somebody is, as the provider says.
type Identity struct {
	ID     string // of the person at this issuer, for ever
	Name   string
	Groups []string
}

// New returns a provider. It asks the provider nothing before somebody logs in.
func New(cfg Config) *Provider {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Provider{cfg: cfg, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name returns the name of the provider for people.
func (p *Provider) Name() string { return p.cfg.Name }

// describe returns what the provider says of itself. It is asked once.
func (p *Provider) describe() (*description, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if p.failed == nil || time.Since(p.asked) > askAgain {
		// The provider keeps this context for later requests, which outlive the one that is served.
		found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.client), p.cfg.Issuer)
		p.failed, p.asked = err, time.Now()
		if err == nil {
			var more struct {
				Logout string `json:"end_session_endpoint"`
			}
			p.failed = found.Claims(&more)
			p.found = &description{found, more.Logout}
			return p.found, p.failed
		}
		p.cfg.Logger.Warn("the identity provider does not answer", "issuer", p.cfg.Issuer, "error", err)
	}
	return nil, fault.New("provider.describe", fault.Unavailable, "the identity provider does not answer").
		Hint("try again in a minute; an administrator can look into the server's log")
}

func (p *Provider) oauth(d *description) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: d.Endpoint(),
		RedirectURL: p.cfg.PublicURL + CallbackPath, Scopes: p.cfg.Scopes,
	}
}

// begun is what the browser keeps during a login.
type begun struct {
	State    string
	Nonce    string
	Verifier string
	Next     string // the page to go to afterwards
	Until    time.Time
}

// Begin begins a login: it gives the browser a cookie and returns the address to send it to.
func (p *Provider) Begin(w http.ResponseWriter, next string) (string, error) {
	d, err := p.describe()
	if err != nil {
		return "", err
	}
	if len(next) > maxAddress {
		next = "/"
	}
	b := begun{
		State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(),
		Next: next, Until: p.cfg.Now().Add(loginTime),
	}
	text, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	sealed, err := p.cfg.Key.Seal(text, sealedFor)
	if err != nil {
		return "", err
	}
	http.SetCookie(w, p.cookie(base64.RawURLEncoding.EncodeToString(sealed), int(loginTime.Seconds())))
	return p.oauth(d).AuthCodeURL(b.State, oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier)), nil
}

// cookie returns the cookie of a login. Lax, since the browser comes back from the site of the provider.
func (p *Provider) cookie(value string, age int) *http.Cookie {
	secure := strings.HasPrefix(p.cfg.PublicURL, "https://")
	name := "ordain_login"
	if secure {
		name = "__Host-ordain_login"
	}
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteLaxMode,
	}
}

// refuse logs why a login failed and returns a fault that says less. The cause holds no secrets.
func (p *Provider) refuse(why string, err error) error {
	p.cfg.Logger.Warn("a login at the identity provider failed", "why", why, "error", err)
	return fault.New("provider.Finish", fault.Unauthorized, "the login at the identity provider failed: "+why).
		Hint("log in again")
}

// Finish ends a login. It returns who it is and the page to go to.
func (p *Provider) Finish(w http.ResponseWriter, r *http.Request) (who Identity, next string, err error) {
	b, err := p.begun(r)
	http.SetCookie(w, p.cookie("", -1)) // whatever happens, it counts once
	if err != nil {
		return who, "/", err
	}
	query := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.State)) != 1 {
		return who, "/", p.refuse("the answer belongs to another login", nil)
	}
	if code := query.Get("error"); code != "" {
		if len(code) > 100 {
			code = code[:100]
		}
		return who, "/", p.refuse("the provider did not allow it", errors.New(code))
	}
	d, err := p.describe()
	if err != nil {
		return who, "/", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), p.client), timeout)
	defer cancel()
	token, err := p.oauth(d).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(b.Verifier))
	if err != nil {
		var answered *oauth2.RetrieveError
		if errors.As(err, &answered) {
			err = errors.New(answered.Response.Status + " " + answered.ErrorCode) // the body may hold anything
		}
		return who, "/", p.refuse("the provider did not accept the code", err)
	}
	claims, err := p.claims(ctx, d, token, b.Nonce)
	if err != nil {
		return who, "/", err
	}
	who, err = p.identity(claims)
	return who, b.Next, err
}

// begun returns the login that a browser has begun.
func (p *Provider) begun(r *http.Request) (b begun, err error) {
	cookie, err := r.Cookie(p.cookie("", 0).Name)
	if err != nil {
		return b, p.refuse("this browser has not begun a login, or too long ago", nil)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	var text []byte
	if err == nil {
		text, err = p.cfg.Key.Open(sealed, sealedFor)
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil || !p.cfg.Now().Before(b.Until) {
		return begun{}, p.refuse("this browser has not begun a login, or too long ago", nil)
	}
	return b, nil
}

// claims returns what the ID token says, and what the provider says when it is asked about its subject.
func (p *Provider) claims(
	ctx context.Context, d *description, token *oauth2.Token, nonce string,
) (map[string]any, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, p.refuse("the provider sent no ID token", nil)
	}
	identity, err := d.Verifier(&oidc.Config{
		ClientID: p.cfg.ClientID, SupportedSigningAlgs: algorithms, Now: p.cfg.Now,
	}).Verify(ctx, raw)
	if err != nil {
		return nil, p.refuse("its ID token cannot be trusted", err)
	}
	if subtle.ConstantTimeCompare([]byte(identity.Nonce), []byte(nonce)) != 1 {
		return nil, p.refuse("its ID token belongs to another login", nil)
	}
	if identity.AccessTokenHash != "" {
		if err := identity.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, p.refuse("its tokens do not belong together", err)
		}
	}
	claims := map[string]any{}
	if err := identity.Claims(&claims); err != nil {
		return nil, p.refuse("its ID token cannot be read", err)
	}
	if party, ok := claims["azp"].(string); ok && party != p.cfg.ClientID {
		return nil, p.refuse("its ID token is for another program", nil)
	}
	_, named := claims[p.cfg.UsernameClaim]
	_, grouped := claims[p.cfg.GroupsClaim]
	if named && grouped || d.UserInfoEndpoint() == "" {
		return claims, nil
	}
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, p.refuse("the provider does not say who it is", err)
	}
	if info.Subject != identity.Subject {
		return nil, p.refuse("the provider speaks of somebody else", nil)
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return nil, p.refuse("the provider's answer cannot be read", err)
	}
	for name, value := range more {
		if _, ok := claims[name]; !ok { // what was signed counts first
			claims[name] = value
		}
	}
	return claims, nil
}

// identity reads who it is from claims.
func (p *Provider) identity(claims map[string]any) (who Identity, err error) {
	subject, _ := claims["sub"].(string)
	who.Name, _ = claims[p.cfg.UsernameClaim].(string)
	if subject == "" || len(subject) > maxText {
		return who, p.refuse("its ID token has no subject", nil)
	}
	if who.Name == "" || len(who.Name) > maxText {
		return who, p.refuse("the claim "+p.cfg.UsernameClaim+" holds no user name", nil)
	}
	who.ID = p.cfg.Issuer + " " + subject
	switch groups := claims[p.cfg.GroupsClaim].(type) {
	case string:
		who.Groups = []string{groups}
	case []any:
		for _, g := range groups {
			name, ok := g.(string)
			if !ok || name == "" || len(name) > maxText || slices.Contains(who.Groups, name) {
				continue
			}
			if who.Groups = append(who.Groups, name); len(who.Groups) == maxGroups {
				break
			}
		}
	}
	return who, nil
}

// LogoutAddress returns where people log out of the provider, too; empty if it offers no such thing. back is the path
// to come back to.
func (p *Provider) LogoutAddress(back string) string {
	d, err := p.describe()
	if err != nil || d.logout == "" {
		return ""
	}
	u, err := url.Parse(d.logout)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	query := u.Query()
	query.Set("client_id", p.cfg.ClientID)
	query.Set("post_logout_redirect_uri", p.cfg.PublicURL+back)
	u.RawQuery = query.Encode()
	return u.String()
}
