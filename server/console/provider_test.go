package console

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/golang-jwt/jwt/v5"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/access/provider"
	"ordain.dev/ordain/server/access/provider/providertest"
	"ordain.dev/ordain/server/servertest"
)

// withProvider returns a server on which people log in at a real identity provider, and that provider. The console is
// served at an address.
func withProvider(t *testing.T, r *servertest.Rich, address string) (http.Handler, *providertest.Provider) {
	t.Helper()
	idp := providertest.New(t, address)
	r.RequireLogin(func(c *people.Config) { c.PublicURL = address })
	return newConsole(t, r.Server, func(c *Config) {
		c.Heartbeat = 100 * time.Millisecond
		c.Provider = provider.New(provider.Config{
			Issuer: idp.URL, ClientID: providertest.ClientID, ClientSecret: providertest.ClientSecret,
			Scopes: []string{"openid", "profile", "email"}, UsernameClaim: "preferred_username", GroupsClaim: "groups",
			Name: "Example", PublicURL: address, Key: r.Key(), Logger: r.Log,
		})
	}), idp
}

// Noor logs in at her organisation. Her group has a role, so she sees the environments of the project. Her login
// expires, she logs in again, and when she logs out she can log out of the provider, too. Once she has left the group,
// she sees nothing.
func TestLoginAtAnIdentityProvider(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r := servertest.NewRich(t)
	var h http.Handler
	b := browse(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { h.ServeHTTP(w, q) }))
	var idp *providertest.Provider
	h, idp = withProvider(t, r, b.base)
	idp.SetGroups("netops", "cooks")
	administrator, _ := access.Off{}.Authenticate(nil)
	_, err := r.People.Give(access.With(t.Context(), administrator), access.Grant{
		Kind: access.OfGroup, Subject: "netops", Role: "operator", Scope: access.Scope{Project: r.Project.ID},
	}, access.Target{Project: r.Project.ID})
	must(t, err)

	atProvider := func() {
		t.Helper()
		b.do(chromedp.Click(chromedp.CSS(`a[href^="/login/oidc"]`)))
		b.until(`document.querySelector('form[action="/login/username"]')`)
		b.fill(`form[action="/login/username"]`, map[string]string{
			"username": providertest.User, "password": providertest.Password,
		})
	}
	page := "/e/" + r.Production.ID.String()
	b.open(page)
	b.until(`location.pathname == '/login'`)
	b.accessible("login with a provider")
	atProvider()
	b.until(`location.pathname == '` + page + `' && document.querySelector('#live')?.textContent == 'Live'`)
	b.open("/account")
	b.until(`[...document.querySelectorAll('li')].some(l => l.textContent.includes('through the group netops'))`)
	u, err := r.People.UserNamed(t.Context(), providertest.User)
	if err != nil || u.Method != access.ByOIDC || len(u.Groups) != 2 {
		t.Errorf("the user is %+v, %v", u, err)
	}

	b.open(page)
	b.until(`document.querySelector('#live')?.textContent == 'Live'`)
	r.LetPeopleWait(9 * time.Hour)
	b.until(`location.pathname == '/login'`)
	idp.SetGroups("cooks")
	atProvider()
	b.until(`location.pathname == '` + page + `'`)
	b.until(`document.querySelector('h1') && !document.body.textContent.includes('` + r.Production.Name + `')`)
	b.open("/account")
	b.do(chromedp.Click(chromedp.CSS(`form[action="/logout"] button`)))
	b.until(`document.querySelector('h1').textContent == 'You are logged out here'`)
	b.accessible("leaving")
	b.do(chromedp.Click(chromedp.CSS(`main a.button`)))
	b.until(`location.pathname == '/login' && document.querySelector('[role=status]')`)
	if idp.Logouts() != 1 {
		t.Errorf("%d logouts at the provider", idp.Logouts())
	}
	b.open(page)
	b.until(`location.pathname == '/login'`)
}

// loginByHand logs in at the provider without a browser, and returns the address that the provider sends the browser
// back to.
func loginByHand(t *testing.T, client *http.Client, console string) string {
	t.Helper()
	answer, err := client.Get(console + "/login/oidc")
	must(t, err)
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	answer.Body.Close()
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindSubmatch(text)
	if id == nil {
		t.Fatalf("there is no login form: %s", text)
	}
	client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == provider.CallbackPath {
			return http.ErrUseLastResponse
		}
		return nil
	}
	defer func() { client.CheckRedirect = nil }()
	answer, err = client.PostForm(answer.Request.URL.Scheme+"://"+answer.Request.URL.Host+"/login/username", url.Values{
		"id": {string(id[1])}, "username": {providertest.User}, "password": {providertest.Password},
	})
	must(t, err)
	answer.Body.Close()
	back := answer.Header.Get("Location")
	if !strings.Contains(back, "code=") {
		t.Fatalf("the provider answers %d %s", answer.StatusCode, back)
	}
	return back
}

// What an attacker could bring instead of an honest answer of the provider is refused: a code of somebody else's login
// or that was used before, and ID tokens that are unsigned, signed by nobody known, or meant for another program,
// another login, another issuer or another time.
func TestForgedAnswersOfAnIdentityProvider(t *testing.T) {
	t.Parallel()
	r := servertest.NewRich(t)
	var h http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { h.ServeHTTP(w, q) }))
	defer server.Close()
	var idp *providertest.Provider
	h, idp = withProvider(t, r, server.URL)
	browser := func() *http.Client {
		jar, err := cookiejar.New(nil)
		must(t, err)
		return &http.Client{Jar: jar}
	}
	in := func(client *http.Client, back string) bool {
		t.Helper()
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		defer func() { client.CheckRedirect = nil }()
		answer, err := client.Get(back)
		must(t, err)
		answer.Body.Close()
		for _, c := range answer.Cookies() {
			if c.Name == "ordain_session" && c.Value != "" {
				return true
			}
		}
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%d", answer.StatusCode)
		}
		return false
	}
	noor := browser()
	back := loginByHand(t, noor, server.URL)
	if in(browser(), back) {
		t.Error("another browser came in with the code")
	}
	eve := browser()
	loginByHand(t, eve, server.URL)
	if in(eve, back) {
		t.Error("a browser with a login of its own came in with the code of another one")
	}
	noor = browser()
	back = loginByHand(t, noor, server.URL)
	address, _ := url.Parse(server.URL)
	kept := noor.Jar.Cookies(address)
	if !in(noor, back) {
		t.Fatal("an honest login failed")
	}
	replay := browser()
	replay.Jar.SetCookies(address, kept)
	if in(replay, back) {
		t.Error("a code was used twice")
	}

	other := func(name string, value any) func(jwt.MapClaims) string {
		return func(c jwt.MapClaims) string { c[name] = value; return idp.Sign(c) }
	}
	for name, tamper := range map[string]func(jwt.MapClaims) string{
		"unsigned": func(c jwt.MapClaims) string {
			body, _ := json.Marshal(c)
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
				base64.RawURLEncoding.EncodeToString(body) + "."
		},
		"shared secret": func(c jwt.MapClaims) string {
			text, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(providertest.ClientSecret))
			return text
		},
		"changed": func(c jwt.MapClaims) string {
			parts := strings.Split(idp.Sign(c), ".")
			c["sub"] = "eve"
			body, _ := json.Marshal(c)
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString(body) + "." + parts[2]
		},
		"another audience": other("aud", "another program"),
		"another nonce":    other("nonce", "of another login"),
		"no nonce":         other("nonce", nil),
		"another issuer":   other("iss", "https://eve.example.org"),
		"expired":          other("exp", time.Now().Add(-time.Hour).Unix()),
		"another subject": func(c jwt.MapClaims) string { // than the one of userinfo
			c["sub"], c["preferred_username"] = "somebody else", "max"
			return idp.Sign(c)
		},
	} {
		idp.Tamper(tamper)
		client := browser()
		if in(client, loginByHand(t, client, server.URL)) {
			t.Errorf("%s: the login succeeded", name)
		}
	}
	idp.Tamper(func(c jwt.MapClaims) string { return idp.Sign(c) })
	client := browser()
	if !in(client, loginByHand(t, client, server.URL)) {
		t.Error("the test signs badly, and shows nothing")
	}

	// A user with the same name who logs in with a password is somebody else.
	must(t, r.People.DeleteUser(access.With(t.Context(), access.Principal{}), providertest.User))
	r.AddPerson(t, providertest.User, access.Binding{Role: access.Administrator})
	client = browser()
	if back := loginByHand(t, client, server.URL); in(client, back) {
		t.Error("the provider took over a user of this server")
	}
}
