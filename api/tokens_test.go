package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/provider/providertest"
	"ordain.dev/ordain/server/access/tokens"
)

// bearing returns a client that sends a token.
func (c *client) bearing(token string) *client {
	other := *c
	other.token = token
	return &other
}

// personal makes a personal token of the client's user.
func (c *client) personal(body string) (token, id string) {
	c.t.Helper()
	made := c.call("POST", "/api/v2/token", body, 200)
	return made.text("data", "token"), made.text("data", "id")
}

// Noor makes a token that may look at one environment, though she may operate the whole project. It does no more than
// that, cannot make tokens itself, and ends at once when it is revoked.
func TestAPersonalToken(t *testing.T) {
	_, r := withPeople(t)
	c := newClient(t, r.Server, func(cfg *Config) { cfg.Audit = &audit.Recorder{Store: r.Store, Logger: r.Log} })
	c.tid = r.Production.ID.String()
	r.AddPerson(t, "olga", access.Binding{Role: access.Operator, Scope: access.Scope{Project: r.Project.ID}})
	olga := c.as("olga")
	text, id := olga.personal(
		`{"name": "dashboard", "roles": ["viewer"], "expire": 3600, "environment": "` + c.tid + `"}`)
	if !strings.HasPrefix(text, "ordain_pat_") {
		t.Errorf("no scanner for secrets can know %s", text)
	}
	token := c.bearing(text)
	token.get("/api/v2/environment/" + c.tid)
	token.call("POST", "/api/v2/actions/environment/halt", "", 403)
	token.call("GET", "/api/v2/environment/"+r.Sandbox.ID.String(), "", 404)
	token.call("POST", "/api/v2/token", `{"name": "more", "roles": ["viewer"], "expire": 60}`, 403)
	token.call("DELETE", "/api/v2/token/"+id, "", 403)
	token.call("POST", "/api/v2/logout", "", 403)

	list := olga.get("/api/v2/token").part("data", 0)
	list.is("dashboard", "name")
	list.is(c.tid, "environment")
	if list.at("last_used") == nil {
		t.Error("nobody can see that the token was used")
	}
	if strings.Contains(fmt.Sprint(list.body), text) {
		t.Error("the list shows the token")
	}
	for _, changed := range []string{text[:len(text)-1] + "x", text + "A", "ordain_pat_" + strings.Repeat("A", 33)} {
		c.bearing(changed).call("GET", "/api/v2/environment/"+c.tid, "", 401)
	}
	c.as("noor").call("DELETE", "/api/v2/token/"+id, "", 404) // it is not hers
	olga.call("DELETE", "/api/v2/token/"+id, "", 200)
	token.call("GET", "/api/v2/environment/"+c.tid, "", 401)
	var n int
	entries := c.as("ada").get("/api/v2/audit?limit=100").list("data")
	for _, e := range entries {
		text := fmt.Sprint(e)
		if strings.Contains(text, "personal token") {
			n++
		}
		if strings.Contains(text, "ordain_pat_") {
			t.Errorf("the audit trail holds the token: %s", text)
		}
	}
	if n < 2 {
		t.Errorf("the audit trail says nothing of the token: %v", entries)
	}
}

// A token is worth no more than its owner: when Olga loses her role or is disabled, her token ends at once, and it ends
// when its time is over.
func TestATokenIsWorthNoMoreThanItsOwner(t *testing.T) {
	c, r := withPeople(t)
	c.tid = r.Production.ID.String()
	path := "/api/v2/environment/" + c.tid
	u := r.AddPerson(t, "olga", access.Binding{Role: access.Operator, Scope: access.Scope{Project: r.Project.ID}})
	ada, olga := c.as("ada"), c.as("olga")
	text, _ := olga.personal(`{"name": "all", "roles": ["administrator"], "expire": 3600}`)
	token := c.bearing(text)
	token.get(path)
	token.call("DELETE", path, "", 403) // she is no administrator
	grants, err := r.People.Grants(t.Context(), u.ID, uuid.Nil)
	if err != nil || len(grants) != 1 {
		t.Fatal(grants, err)
	}
	ada.call("DELETE", "/api/v2/role_binding/"+grants[0].ID.String(), "", 200)
	token.call("GET", path, "", 404)
	ada.call("POST", "/api/v2/role_binding", `{"user": "olga", "role": "viewer"}`, 200)
	token.get(path)
	ada.call("PATCH", "/api/v2/user/olga", `{"disabled": true}`, 200)
	token.call("GET", path, "", 401)
	ada.call("PATCH", "/api/v2/user/olga", `{"disabled": false}`, 200)
	token.get(path)
	r.LetPeopleWait(2 * time.Hour)
	token.call("GET", path, "", 401)

	// A role that is gone must not leave a token without a limit.
	ada = c.as("ada")
	ada.call("POST", "/api/v2/role", `{"name": "halter", "labels": ["read"]}`, 200)
	ada.call("POST", "/api/v2/token", `{"name": "forever", "roles": ["viewer"], "expire": 99999999}`, 400).
		says("at most 365 days")
	ada.call("POST", "/api/v2/token", `{"name": "empty", "roles": [], "expire": 60}`, 400)
	ada.call("POST", "/api/v2/token", `{"name": "never", "roles": ["viewer"]}`, 400)
	text, _ = ada.personal(`{"name": "t", "roles": ["halter"], "expire": 3600}`)
	c.bearing(text).get(path)
	ada.call("DELETE", "/api/v2/role?name=halter", "", 200)
	c.bearing(text).call("GET", path, "", 401)
}

// A token of an environment is a JWT with the claims that Inmanta's clients know. It is good for its environment and
// its types of clients only, is listed with its last use, and can be revoked, also when it is idempotent.
func TestEnvironmentTokens(t *testing.T) {
	c, r := withPeople(t)
	c.tid = r.Production.ID.String()
	ada := c.as("ada")
	const auth = "/api/v2/environment_auth"
	c.call("POST", auth, `{"client_types": ["api"]}`, 401)
	c.as("noor").call("POST", auth, `{"client_types": ["api"]}`, 404)
	ada.call("POST", auth, `{"client_types": ["robot"]}`, 400)
	ada.call("POST", auth, `{"client_types": ["api"], "idempotent": true, "expire": 60}`, 400)
	ada.call("POST", auth, `{"client_types": ["api"], "expire": 0}`, 400)
	text := ada.call("POST", auth, `{"client_types": ["compiler", "api"], "expire": 3600}`, 200).text("data")
	claims := claimsOf(t, text)
	if claims["urn:inmanta:ct"] != "api,compiler" || claims["urn:inmanta:env"] != c.tid || claims["jti"] == nil ||
		claims["exp"].(float64)-claims["iat"].(float64) != 3600 || claims["iss"] == nil || claims["aud"] == nil {
		t.Errorf("the claims are %v", claims)
	}

	api := c.bearing(text)
	api.get("/api/v2/environment/" + c.tid)
	for _, other := range []string{r.Sandbox.ID.String(), "11111111-1111-1111-1111-111111111111"} {
		api.call("GET", "/api/v2/environment/"+other, "", 403).says("not valid for the requested environment")
	}
	api.call("GET", "/api/v2/project/"+r.Project.ID.String(), "", 403)
	api.call("POST", auth, `{"client_types": ["api"]}`, 403)
	agent := c.bearing(ada.call("POST", "/api/v1/environment_auth", `{"client_types": ["agent"]}`, 200).text("token"))
	agent.get("/api/v2/environment_settings")
	agent.call("POST", "/api/v1/deploy", `{}`, 403)
	agent.call("POST", "/api/v2/actions/environment/halt", "", 403)

	same := func() string {
		return ada.call("POST", auth, `{"client_types": ["api"], "idempotent": true}`, 200).text("data")
	}
	stable := same()
	if same() != stable {
		t.Error("an idempotent token changed")
	}
	if c := claimsOf(t, stable); c["iat"] != nil || c["exp"] != nil {
		t.Errorf("an idempotent token has times: %v", c)
	}
	c.bearing(stable).get("/api/v2/environment/" + c.tid)
	r.ConfigureTokens(t) // the server starts again
	restarted := newClient(t, r.Server)
	restarted.bearing(stable).get("/api/v2/environment/" + c.tid)
	jti := claimsOf(t, stable)["jti"].(string)
	list := ada.get(auth).list("data")
	if len(list) != 3 {
		t.Errorf("%d tokens are listed", len(list))
	}
	ada.call("DELETE", auth+"/"+jti, "", 200)
	c.bearing(stable).call("GET", "/api/v2/environment/"+c.tid, "", 403).says("revoked")
	if same() == stable {
		t.Error("a revoked token is given out again")
	}
	ada.call("DELETE", auth+"/"+r.Sandbox.ID.String(), "", 404)
	for _, item := range ada.get(auth).list("data") {
		one := item.(map[string]any)
		if one["jti"] == jti && (one["revoked_at"] == nil || one["last_used"] == nil) {
			t.Errorf("the revoked token is listed as %v", one)
		}
	}
	r.LetPeopleWait(2 * time.Hour)
	api.call("GET", "/api/v2/environment/"+c.tid, "", 403)
}

// Forged tokens are refused: unsigned, signed with another key, changed, of another issuer, or for another audience.
func TestForgedEnvironmentTokens(t *testing.T) {
	c, r := withPeople(t)
	c.tid = r.Production.ID.String()
	good := c.as("ada").call("POST", "/api/v2/environment_auth", `{"client_types": ["agent"]}`, 200).text("data")
	parts := strings.Split(good, ".")
	claims := claimsOf(t, good)
	claims["urn:inmanta:ct"] = "api"
	body, _ := json.Marshal(claims)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	signed := func(change string, value any) string {
		other := jwt.MapClaims{}
		for k, v := range claims {
			other[k] = v
		}
		other[change] = value
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, other).SignedString([]byte(strings.Repeat("k", 32)))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, forged := range map[string]string{
		"unsigned":         none + "." + base64.RawURLEncoding.EncodeToString(body) + ".",
		"changed":          parts[0] + "." + base64.RawURLEncoding.EncodeToString(body) + "." + parts[2],
		"without its end":  parts[0] + "." + parts[1] + ".",
		"another key":      signed("sub", "eve"),
		"another issuer":   signed("iss", "eve"),
		"nothing":          "..",
		"much":             strings.Repeat("a", 100_000) + ".b.c",
		"another audience": signed("aud", "somebody else"),
	} {
		w := c.bearing(forged).send("GET", "/api/v2/environment/"+c.tid, "")
		if w.Code != 403 && w.Code != 401 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// The keys of an Inmanta server go on working: its section signs our tokens, and tokens that it made are accepted.
func TestKeysOfInmanta(t *testing.T) {
	c, r := withPeople(t)
	key := []byte(strings.Repeat("i", 32))
	r.ConfigureTokens(t, func(cfg *tokens.Config) {
		cfg.Keys = []tokens.KeyConfig{{Section: "auth_jwt_default", Options: map[string]string{
			"algorithm": "HS256", "sign": "true", "client-types": "agent,compiler,api", "expire": "0",
			"key": base64.URLEncoding.EncodeToString(key), "issuer": "https://inmanta.example.org:8888/",
		}}}
	})
	c = newClient(t, r.Server)
	c.tid = r.Production.ID.String()
	old := jwt.MapClaims{
		"iss": "https://inmanta.example.org:8888/", "aud": []string{"https://inmanta.example.org:8888/"},
		"urn:inmanta:ct": "api", "urn:inmanta:env": c.tid,
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, old).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	c.bearing(text).get("/api/v2/environment/" + c.tid)
	made := c.as("ada").call("POST", "/api/v2/environment_auth", `{"client_types": ["api"]}`, 200).text("data")
	if _, err := jwt.Parse(made, func(*jwt.Token) (any, error) { return key, nil }); err != nil {
		t.Errorf("the token is not signed with the key of the file: %v", err)
	}
	c.bearing(made).get("/api/v2/environment/" + c.tid)
	for name, options := range map[string]map[string]string{
		"key":          {"algorithm": "HS256", "client-types": "api", "key": "c2hvcnQ"},
		"algorithm":    {"algorithm": "none", "client-types": "api"},
		"client_types": {"algorithm": "HS256"},
		"jwks_uri":     {"algorithm": "RS256", "client-types": "api", "jwks-uri": "http://example.org/keys"},
	} {
		_, err := tokens.New(t.Context(), tokens.Config{
			Enabled: true, Keys: []tokens.KeyConfig{{Section: "auth_jwt_x", Options: options}},
		})
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "c2hvcnQ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A link may bring a token to the description of the API, and to nothing else.
func TestTokenInALink(t *testing.T) {
	c, r := withPeople(t)
	c.tid = r.Production.ID.String()
	text, _ := c.as("ada").personal(`{"name": "docs", "roles": ["viewer"], "expire": 3600}`)
	for path, want := range map[string]int{
		docsPath: 401, docsPath + "?token=" + text: 200, docsPath + "?token=x.y.z": 403,
		"/api/v2/environment/" + c.tid + "?token=" + text: 401,
	} {
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// While nobody has to log in, there are no tokens.
func TestNoTokensWithoutAuthentication(t *testing.T) {
	c, _ := rich(t)
	c.call("POST", "/api/v2/environment_auth", `{"client_types": ["api"]}`, 400).says("Authentication is disabled")
	c.call("POST", "/api/v2/token", `{"name": "x", "roles": ["viewer"], "expire": 60}`, 400)
	c.call("POST", "/api/v2/token/exchange", `{"token": "a.b.c"}`, 400)
}

func claimsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", text)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	claims := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// Tokens of another issuer that the configuration names count for an environment that they name, or with the roles
// that they give; those of its users that say nothing of this server do not.
func TestTokensOfAnotherIssuer(t *testing.T) {
	c, r := withPeople(t)
	issuer := providertest.NewJobs(t)
	r.ConfigureTokens(t, func(cfg *tokens.Config) {
		cfg.Keys = []tokens.KeyConfig{{Section: "auth_jwt_keycloak", Options: map[string]string{
			"algorithm": "RS256", "client-types": "api", "issuer": issuer.URL, "audience": "ordain",
			"jwks-uri": issuer.URL + "/keys",
		}}}
	})
	c = newClient(t, r.Server)
	c.tid = r.Production.ID.String()
	path := "/api/v2/environment/" + c.tid
	for name, one := range map[string]struct {
		claims jwt.MapClaims
		want   int
	}{
		"an environment":      {jwt.MapClaims{"aud": "ordain", "urn:inmanta:env": c.tid}, 200},
		"another environment": {jwt.MapClaims{"aud": "ordain", "urn:inmanta:env": r.Sandbox.ID.String()}, 403},
		"a client type too few": {
			jwt.MapClaims{"aud": "ordain", "urn:inmanta:env": c.tid, "urn:inmanta:ct": "agent"}, 403,
		},
		"an administrator": {jwt.MapClaims{"aud": "ordain", "urn:inmanta:is_admin": true}, 200},
		"a role": {
			jwt.MapClaims{"aud": "ordain", "urn:inmanta:roles": map[string][]string{c.tid: {"viewer"}}}, 200,
		},
		"anybody":          {jwt.MapClaims{"aud": "ordain", "sub": "noor"}, 403},
		"another audience": {jwt.MapClaims{"aud": "wiki", "urn:inmanta:is_admin": true}, 403},
		"expired":          {jwt.MapClaims{"aud": "ordain", "urn:inmanta:is_admin": true, "exp": 1}, 403},
	} {
		if w := c.bearing(issuer.Token(one.claims)).send("GET", path, ""); w.Code != one.want {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, one.want, w.Body)
		}
	}
	// The server's own tokens are signed with its own key, and nothing of the issuer counts for them.
	forged := issuer.Token(jwt.MapClaims{"iss": "ordain", "aud": "ordain", "urn:inmanta:env": c.tid})
	c.bearing(forged).call("GET", path, "", 403)
}
