package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/tokens"
)

func (s *server) tokenCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v2/token", "List one's own personal tokens.", access.SeeSelf, s.listTokens)
	v2(c, http.MethodPost, "/api/v2/token", "Make a personal token, which may do what its owner may do within some "+
		"roles, on the whole server or in a project, an environment, or all environments with a tag. The answer alone "+
		"shows it.", access.ManageSelf, s.createToken)
	done[noBody](c, http.MethodDelete, "/api/v2/token/{token}", "Revoke one of one's own personal tokens.",
		access.ManageSelf, s.revokeToken)
	v2(c, http.MethodPost, "/api/v2/token/exchange",
		"Exchange the identity token of a CI job for a token of this server.", access.ExchangeToken, s.exchangeToken)

	const auth = "/environment_auth"
	v2(c, http.MethodGet, "/api/v2"+auth, "List the tokens of an environment, also those that were revoked lately.",
		access.SeeTokens, s.listEnvironmentTokens)
	v2(c, http.MethodPost, "/api/v2"+auth, "Make a token for clients of an environment. An idempotent one is the same "+
		"whenever it is asked for, until it is revoked.", access.ManageTokens, s.createEnvironmentToken)
	whole(c, http.MethodPost, "/api/v1"+auth, "Make a token for clients of an environment.",
		access.ManageTokens, s.createEnvironmentTokenV1)
	done[nullData](c, http.MethodDelete, "/api/v2"+auth+"/{jti}", "Revoke a token of an environment.",
		access.ManageTokens, s.revokeEnvironmentToken)

	const trust = "/api/v2/project/{id}/trust"
	v2(c, http.MethodGet, trust, "List which CI jobs a project trusts.", access.SeeTrusts, s.listTrusts)
	v2(c, http.MethodPost, trust, "Trust the CI jobs whose identity token has these claims: they get a role in the "+
		"project or in one of its environments.", access.ManageTrusts, s.addTrust)
	done[noBody](c, http.MethodDelete, trust+"/{trust}",
		"Trust some CI jobs no more. The tokens that they got end at once.", access.ManageTrusts, s.deleteTrust)
}

// scopeAnswer is where roles hold; all null: on the whole server.
type scopeAnswer struct {
	Project     *string `json:"project"`
	Environment *string `json:"environment"`
	Tag         *string `json:"tag"`
}

func scopeOf(scope access.Scope) (a scopeAnswer) {
	switch {
	case scope.Project != uuid.Nil:
		a.Project = new(scope.Project.String())
	case scope.Environment != uuid.Nil:
		a.Environment = new(scope.Environment.String())
	case scope.Tag != "":
		a.Tag = &scope.Tag
	}
	return a
}

// personalToken is a person's own token, without its text.
type personalToken struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Roles []string `json:"roles"`
	scopeAnswer
	Created  timestamp  `json:"created"`
	Expires  timestamp  `json:"expires"`
	LastUsed *timestamp `json:"last_used"`
}

type newPersonalToken struct {
	personalToken
	Token string `json:"token"` // it is shown this once
}

func personalTokenOf(t access.PersonalToken) personalToken {
	return personalToken{
		ID: t.ID.String(), Name: t.Name, Roles: t.Roles, scopeAnswer: scopeOf(t.Scope), Created: stamp(t.Created),
		Expires: stamp(t.Expires), LastUsed: maybe(t.LastUsed),
	}
}

func (s *server) listTokens(ctx context.Context, _ struct{}) ([]personalToken, error) {
	all, err := s.tokens.Personal(ctx)
	return listed(all, personalTokenOf), err
}

type tokenArguments struct {
	Name        string    `arg:"name,required"`
	Roles       []string  `arg:"roles,required"`
	Expire      int       `arg:"expire,required"` // seconds
	Project     uuid.UUID `arg:"project"`
	Environment uuid.UUID `arg:"environment"`
	Tag         string    `arg:"tag"`
}

func (s *server) createToken(ctx context.Context, a tokenArguments) (newPersonalToken, error) {
	scope, err := oneScope(a.Project, a.Environment, a.Tag)
	if err == nil {
		_, err = s.target(ctx, a.Project, a.Environment)
	}
	if err != nil {
		return newPersonalToken{}, err
	}
	lifetime, err := lifetimeOf(a.Expire)
	if err != nil {
		return newPersonalToken{}, err
	}
	t, text, err := s.tokens.CreatePersonal(ctx, access.PersonalToken{
		Name: a.Name, Roles: a.Roles, Scope: scope,
	}, lifetime)
	return newPersonalToken{personalTokenOf(t), text}, err
}

func lifetimeOf(seconds int) (time.Duration, error) {
	const longest = 100 * 365 * 24 * 60 * 60
	if seconds <= 0 || seconds > longest {
		return 0, invalid("expire must be a positive number of seconds, and less than a century")
	}
	return time.Duration(seconds) * time.Second, nil
}

type oneToken struct {
	Token uuid.UUID `arg:"token,required"`
}

func (s *server) revokeToken(ctx context.Context, a oneToken) error {
	return s.tokens.RevokePersonal(ctx, a.Token)
}

type exchangeArguments struct {
	Token string `arg:"token,required" max:"16384"` // the identity token
	Trust string `arg:"trust"`                      // the name or id of a trust, if several accept the token
}

type exchanged struct {
	Token   string    `json:"token"`
	Expires timestamp `json:"expires"`
	Trust   string    `json:"trust"`
	Project string    `json:"project"`
}

func (s *server) exchangeToken(ctx context.Context, a exchangeArguments) (exchanged, error) {
	got, err := s.tokens.Exchange(ctx, a.Token, a.Trust)
	return exchanged{
		Token: got.Text, Expires: stamp(got.Expires), Trust: got.Trust.Name, Project: got.Trust.Project.String(),
	}, err
}

// environmentToken is a token of an environment, without its text.
type environmentToken struct {
	JTI         string     `json:"jti"`
	CreatedBy   string     `json:"created_by"`
	ClientTypes []string   `json:"client_types"`
	Environment string     `json:"environment"`
	Idempotent  bool       `json:"idempotent"`
	IssuedAt    timestamp  `json:"issued_at"`
	ExpiresAt   *timestamp `json:"expires_at"`
	RevokedAt   *timestamp `json:"revoked_at"`
	LastUsed    *timestamp `json:"last_used"`
}

func (s *server) listEnvironmentTokens(ctx context.Context, a inEnvironment) ([]environmentToken, error) {
	all, err := s.tokens.OfEnvironment(ctx, a.Env)
	return listed(all, func(t access.EnvironmentToken) environmentToken {
		return environmentToken{
			JTI: t.ID.String(), CreatedBy: t.By, ClientTypes: t.ClientTypes, Environment: t.Environment.String(),
			Idempotent: t.Idempotent, IssuedAt: stamp(t.Issued), ExpiresAt: maybe(t.Expires),
			RevokedAt: maybe(t.Revoked), LastUsed: maybe(t.LastUsed),
		}
	}), err
}

type environmentTokenV1 struct {
	inEnvironment
	ClientTypes []string `arg:"client_types,required"`
	Idempotent  bool     `arg:"idempotent"`
}

type environmentTokenArguments struct {
	environmentTokenV1
	Expire *int `arg:"expire"` // seconds
}

func (s *server) createEnvironmentToken(ctx context.Context, a environmentTokenArguments) (string, error) {
	n := tokens.NewEnvironmentToken{Environment: a.Env, ClientTypes: a.ClientTypes, Idempotent: a.Idempotent}
	if a.Expire != nil {
		lifetime, err := lifetimeOf(*a.Expire)
		if err != nil {
			return "", err
		}
		n.Lifetime = &lifetime
	}
	_, text, err := s.tokens.CreateEnvironment(ctx, n)
	return text, err
}

type tokenAnswer struct {
	Token string `json:"token"`
}

func (s *server) createEnvironmentTokenV1(ctx context.Context, a environmentTokenV1) (tokenAnswer, error) {
	text, err := s.createEnvironmentToken(ctx, environmentTokenArguments{environmentTokenV1: a})
	return tokenAnswer{text}, err
}

type oneJTI struct {
	inEnvironment
	JTI uuid.UUID `arg:"jti,required"`
}

func (s *server) revokeEnvironmentToken(ctx context.Context, a oneJTI) error {
	return s.tokens.RevokeEnvironment(ctx, a.Env, a.JTI)
}

// trust says which CI jobs a project trusts.
type trust struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Issuer      string            `json:"issuer"`
	Audience    string            `json:"audience"`
	Claims      map[string]string `json:"claims"`
	Role        string            `json:"role"`
	Environment *string           `json:"environment"` // null: the whole project
	Lifetime    int               `json:"lifetime"`    // seconds
	Created     timestamp         `json:"created"`
	CreatedBy   string            `json:"created_by"`
	LastUsed    *timestamp        `json:"last_used"`
}

func trustOf(t access.Trust) trust {
	out := trust{
		ID: t.ID.String(), Name: t.Name, Issuer: t.Issuer, Audience: t.Audience, Claims: t.Claims, Role: t.Role,
		Lifetime: int(t.Lifetime / time.Second), Created: stamp(t.Created), CreatedBy: t.By,
		LastUsed: maybe(t.LastUsed),
	}
	if t.Environment != uuid.Nil {
		out.Environment = new(t.Environment.String())
	}
	return out
}

func (s *server) listTrusts(ctx context.Context, a oneProject) ([]trust, error) {
	all, err := s.tokens.Trusts(ctx, a.ID)
	return listed(all, trustOf), err
}

type trustArguments struct {
	oneProject
	Name        string            `arg:"name,required"`
	Issuer      string            `arg:"issuer,required"`
	Claims      map[string]string `arg:"claims,required"`
	Role        string            `arg:"role,required"`
	Audience    string            `arg:"audience"` // empty: the address of this server
	Environment uuid.UUID         `arg:"environment"`
	Lifetime    int               `arg:"lifetime"` // seconds; 0: 15 minutes
}

func (s *server) addTrust(ctx context.Context, a trustArguments) (trust, error) {
	target := access.Target{Project: a.ID}
	if a.Environment != uuid.Nil {
		e, err := s.store.Environment(ctx, a.Environment)
		if err != nil || e.ProjectID != a.ID {
			return trust{}, invalid("the project has no such environment")
		}
		target = access.TargetOf(e)
	}
	t, err := s.tokens.AddTrust(ctx, access.Trust{
		Project: a.ID, Name: a.Name, Issuer: a.Issuer, Audience: a.Audience, Claims: a.Claims, Role: a.Role,
		Environment: a.Environment, Lifetime: time.Duration(min(max(a.Lifetime, -1), 1<<30)) * time.Second,
	}, target)
	return trustOf(t), err
}

type oneTrust struct {
	oneProject
	Trust uuid.UUID `arg:"trust,required"`
}

func (s *server) deleteTrust(ctx context.Context, a oneTrust) error {
	return s.tokens.DeleteTrust(ctx, a.ID, a.Trust)
}

// tokenInQuery lets a link bring a token as ?token=, as Inmanta's web console does for the description of the API. A
// link to anything else cannot: tokens in links get into histories and logs.
func tokenInQuery(next gin.HandlerFunc) gin.HandlerFunc {
	return func(g *gin.Context) {
		if token := g.Query("token"); token != "" && g.GetHeader("Authorization") == "" {
			g.Request = g.Request.Clone(g.Request.Context())
			g.Request.Header.Set("Authorization", "Bearer "+token)
		}
		g.Header("Referrer-Policy", "no-referrer")
		next(g)
	}
}
