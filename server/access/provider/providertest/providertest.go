// Package providertest runs identity providers for tests, on this machine.
//
//	New     a real one for people: the example server of zitadel/oidc, with a login page and groups
//	NewJobs an issuer of the identity tokens of CI jobs, with the claims that a test wants
package providertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client that is registered, and a user.
const (
	ClientID     = "ordain"
	ClientSecret = "the secret of ordain"
	User         = "noor"
	Password     = "verysecure"
)

// Provider is an identity provider for people.
type Provider struct {
	URL string

	mu      sync.Mutex
	groups  []string
	tamper  func(claims jwt.MapClaims) (token string)
	logouts int
	storage *storage.Storage
}

// users is the one user that there is.
type users struct{ storage.UserStore }

var noor = &storage.User{ID: "id-of-noor", Username: User, Password: Password, Email: "noor@example.org"}

func (users) GetUserByID(id string) *storage.User {
	if id != noor.ID {
		return nil
	}
	return noor
}

func (users) GetUserByUsername(name string) *storage.User {
	if name != noor.Username {
		return nil
	}
	return noor
}

// New runs a provider until the test ends. Its client comes back to the address of a console.
func New(t testing.TB, console string) *Provider {
	t.Helper()
	p := &Provider{}
	server := httptest.NewUnstartedServer(nil)
	p.URL = "http://" + server.Listener.Addr().String()
	client := storage.WebClient(ClientID, ClientSecret, console+"/login/oidc/callback")
	p.storage = storage.NewStorageWithClients(users{storage.NewUserStore(p.URL)}, map[string]*storage.Client{
		ClientID: client,
	})
	next := exampleop.SetupServer(p.URL, records{p.storage, p, console}, nil, false)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(next, w, r) })
	server.Start()
	t.Cleanup(server.Close)
	return p
}

// SetGroups says in which groups the user is.
func (p *Provider) SetGroups(groups ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups = groups
}

// Tamper replaces the ID tokens that the provider sends by what a function makes of their claims; nil: no longer.
func (p *Provider) Tamper(f func(jwt.MapClaims) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = f
}

// Sign returns a token with these claims that the provider has signed.
func (p *Provider) Sign(claims jwt.MapClaims) string {
	key, err := p.storage.SigningKey(context.Background())
	if err != nil {
		panic(err)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header["kid"] = key.ID()
	text, err := t.SignedString(key.Key())
	if err != nil {
		panic(err)
	}
	return text
}

// Logouts returns how often somebody has logged out at the provider.
func (p *Provider) Logouts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logouts
}

func (p *Provider) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	tamper := p.tamper
	if r.URL.Path == "/end_session" {
		p.logouts++
	}
	p.mu.Unlock()
	if r.URL.Path != "/oauth/token" || tamper == nil {
		next.ServeHTTP(w, r)
		return
	}
	got := httptest.NewRecorder()
	next.ServeHTTP(got, r)
	answer := map[string]any{}
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
		panic(err)
	}
	if text, ok := answer["id_token"].(string); ok {
		claims := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(text, claims); err != nil {
			panic(err)
		}
		answer["id_token"] = tamper(claims)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(got.Code)
	_ = json.NewEncoder(w).Encode(answer)
}

// records is the storage of the example, with groups and a place to come back to after a logout.
type records struct {
	*storage.Storage
	provider *Provider
	console  string
}

func (r records) SetUserinfoFromToken(
	ctx context.Context, info *oidc.UserInfo, token, subject, origin string,
) error {
	if err := r.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	r.provider.mu.Lock()
	defer r.provider.mu.Unlock()
	info.AppendClaims("groups", r.provider.groups)
	return nil
}

func (r records) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := r.Storage.GetClientByClientID(ctx, id)
	return returning{c, r.console}, err
}

type returning struct {
	op.Client
	console string
}

func (c returning) PostLogoutRedirectURIs() []string {
	return []string{c.console + "/login?notice=out"}
}

// Jobs is an issuer of the identity tokens of CI jobs.
type Jobs struct {
	URL string

	mu   sync.Mutex
	key  *rsa.PrivateKey
	kid  int
	keys int // how often its keys were read
}

// NewJobs runs an issuer until the test ends.
func NewJobs(t testing.TB) *Jobs {
	t.Helper()
	j := &Jobs{}
	j.Rotate()
	server := httptest.NewServer(http.HandlerFunc(j.serve))
	j.URL = server.URL
	t.Cleanup(server.Close)
	return j
}

// Rotate makes the issuer sign with another key.
func (j *Jobs) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.key, j.kid = key, j.kid+1
}

// KeysRead returns how often the keys of the issuer were read.
func (j *Jobs) KeysRead() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.keys
}

// Token returns an identity token with these claims besides issuer and times, which they can replace.
func (j *Jobs) Token(claims jwt.MapClaims) string {
	all := jwt.MapClaims{
		"iss": j.URL, "iat": time.Now().Unix(), "nbf": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(),
	}
	for name, value := range claims {
		all[name] = value
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, all)
	t.Header["kid"] = fmt.Sprint(j.kid)
	text, err := t.SignedString(j.key)
	if err != nil {
		panic(err)
	}
	return text
}

func (j *Jobs) serve(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		answer = map[string]any{
			"issuer": j.URL, "jwks_uri": j.URL + "/keys", "authorization_endpoint": j.URL + "/none",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
	case r.URL.Path == "/keys":
		j.mu.Lock()
		j.keys++
		answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{
			Key: j.key.Public(), KeyID: fmt.Sprint(j.kid), Algorithm: "RS256", Use: "sig",
		}}}
		j.mu.Unlock()
	default:
		http.NotFound(w, r)
		return
	}
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(answer)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.Copy(w, &b)
}
