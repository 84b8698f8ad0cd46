package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
	guards "ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/servertest"
)

// guardedConsole returns a server on which people log in, and a console of it.
func guardedConsole(t *testing.T, options ...func(*people.Config)) (*servertest.Rich, http.Handler) {
	t.Helper()
	r := servertest.NewRich(t)
	r.RequireLogin(options...)
	return r, newConsole(t, r.Server)
}

// fill types into the fields of a form and sends it.
func (b *tab) fill(form string, fields map[string]string) {
	b.t.Helper()
	for name, value := range fields {
		b.do(chromedp.SetValue(chromedp.CSS(form+` [name="`+name+`"]`), value))
	}
	b.do(chromedp.Click(chromedp.CSS(form + ` button`)))
}

func (b *tab) login(name string) {
	b.t.Helper()
	b.fill(`form[action="/login"]`, map[string]string{"name": name, "password": servertest.Password})
}

// The first administrator follows the link that the server printed, is sent to the login and comes in. The link works
// once. The pages of the login show nothing of the server, and axe finds no fault in them.
func TestTheFirstAdministrator(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := guardedConsole(t)
	link, err := r.People.FirstLink(t.Context())
	must(t, err)
	b := browse(t, h)
	b.open("/")
	b.until(`location.pathname == '/login'`)
	b.open(link)
	b.accessible("first")
	form := `form[action="` + link + `"]`
	b.fill(form, map[string]string{"name": "ada", "password": servertest.Password, "again": "something else"})
	b.until(`document.querySelector('[role=alert]')?.textContent == 'The two passwords differ.'`)
	b.fill(form, map[string]string{"name": "ada", "password": servertest.Password, "again": servertest.Password})
	b.until(`location.pathname == '/login' && document.querySelector('[role=status]')`)
	b.accessible("login")
	if text := eval[string](b, `document.body.textContent`); strings.Contains(text, r.Production.Name) {
		t.Error("the login names an environment")
	}
	b.login("ada")
	b.until(`location.pathname == '/' && document.body.textContent.includes('` + r.Production.Name + `')`)
	b.open("/people")
	b.until(
		`[...document.querySelectorAll('li')].some(l => l.textContent.includes('administrator on the whole server'))`,
	)
	if w := get(t, h, link); w.Code != http.StatusNotFound {
		t.Errorf("the link works again: %d", w.Code)
	}
	if again, err := r.People.FirstLink(t.Context()); again != "" || err != nil {
		t.Errorf("there is a user, and yet a link: %q, %v", again, err)
	}
}

// Noor, who has a page of an environment open, logs in on the way to it, works, and logs out. The page behind her is
// then not to be had with the back button, and her other tab notices.
func TestLoginAndLogout(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := guardedConsole(t)
	r.AddPerson(t, "noor", access.Binding{Role: access.Operator, Scope: access.Scope{Project: r.Project.ID}})
	page := "/e/" + r.Production.ID.String() + "/resources?status=failed"
	b := browse(t, h)
	b.open(page)
	b.until(`location.pathname == '/login'`)
	b.login("noor")
	b.until(`location.pathname + location.search == '` + page + `'`)
	other, closeOther := chromedp.NewContext(b.ctx)
	defer closeOther()
	second := &tab{t: t, ctx: other, base: b.base}
	second.open("/e/" + r.Production.ID.String())
	second.until(`document.querySelector('#live')?.textContent == 'Live'`)
	b.do(chromedp.Click(chromedp.CSS(`form[action="/logout"] button`)))
	b.until(`location.pathname == '/login'`)
	second.until(`location.pathname == '/login'`)
	b.back()
	b.until(`location.pathname == '/login' && location.search.includes('next=')`)
	if text := eval[string](b, `document.body.textContent`); strings.Contains(text, r.Production.Name) {
		t.Error("the back button shows the page")
	}
}

// A login that nobody used for too long ends: a page that is open goes to the login, and comes back after it.
func TestALoginThatExpires(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r := servertest.NewRich(t)
	r.RequireLogin()
	h := newConsole(t, r.Server, func(c *Config) { c.Heartbeat = 100 * time.Millisecond })
	r.AddPerson(t, "noor", access.Binding{Role: access.Viewer})
	b := browse(t, h)
	page := "/e/" + r.Production.ID.String()
	b.open("/login?next=" + url.QueryEscape(page))
	b.login("noor")
	b.until(`document.querySelector('#live')?.textContent == 'Live'`)
	r.LetPeopleWait(9 * time.Hour)
	b.until(`location.pathname == '/login'`)
	b.login("noor")
	b.until(`location.pathname == '` + page + `'`)
}

// After too many wrong passwords the page says how long to wait.
func TestTooManyWrongPasswords(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := guardedConsole(t)
	r.AddPerson(t, "noor")
	r.StopPeoplesClock()
	b := browse(t, h)
	b.open("/login")
	wrong := map[string]string{"name": "noor", "password": "wrong"}
	for range 5 {
		b.fill(`form[action="/login"]`, wrong)
		b.until(`document.querySelector('[role=alert]')?.textContent == 'Invalid username or password.'`)
		b.open("/login")
	}
	b.login("noor")
	b.until(
		`document.querySelector('[role=alert]')?.textContent.startsWith('Too many logins have failed. Try again in')`,
	)
	b.accessible("blocked")
	r.LetPeopleWait(5 * time.Second)
	b.login("noor")
	b.until(`location.pathname == '/'`)
}

// Ada adds noor, gives her a role, makes a role of her own, and takes all of it back. The pages of people fit their
// screens.
func TestThePeoplePage(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := guardedConsole(t)
	r.AddPerson(t, "ada", access.Binding{Role: access.Administrator})
	b := browse(t, h)
	b.open("/login?next=/people")
	b.login("ada")
	b.until(`location.pathname == '/people'`)
	b.do(chromedp.Click(chromedp.CSS(`#add summary`)))
	b.fill(`form[action="/people/add"]`, map[string]string{"name": "noor", "password": servertest.Password})
	b.until(`document.querySelector('[role=status]')?.textContent.startsWith('The user was added')`)
	b.do(chromedp.Click(chromedp.CSS(`#role summary`)))
	b.do(chromedp.Click(chromedp.CSS(`#role [value="operate"]`)))
	b.fill(`form[action="/people/role"]`, map[string]string{"name": "night shift"})
	b.until(`document.querySelector('[role=status]')?.textContent == 'The role was made.'`)
	b.do(chromedp.Click(chromedp.CSS(`#give summary`)))
	b.fill(`form[action="/people/give"]`, map[string]string{
		"name": "noor", "role": "night shift", "place": "environment " + r.Production.ID.String(),
	})
	b.until(`document.querySelector('.grant + .grant, tr:nth-child(2) .grant')?.textContent.includes('night shift')`)
	for _, screen := range screens {
		b.look(screen.width, screen.height, screen.scheme)
		for _, page := range []string{"/people", "/account"} {
			b.open(page)
			b.keepsTo(page+" "+screen.name, screen.rules)
			b.fits(page + " " + screen.name)
		}
	}
	noor := r.Login(t, access.ConsoleClient, "noor")
	w := withCookie(h, "GET", "/e/"+r.Production.ID.String(), noor.Text, "")
	if w.Code != http.StatusForbidden { // the role operates, but does not read
		t.Errorf("noor gets %d", w.Code)
	}
	b.open("/people")
	b.do(chromedp.Click(chromedp.CSS(`tr:nth-child(2) form[action="/people/take"] button`)))
	b.until(`document.querySelector('[role=status]')?.textContent == 'The role was taken away.'`)
	b.do(chromedp.Click(chromedp.CSS(`form[action="/people/role/delete"] button`)))
	b.until(`document.querySelector('[role=status]')?.textContent == 'The role was deleted.'`)
}

func withCookie(h http.Handler, method, path, token, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.AddCookie(&http.Cookie{Name: "ordain_session", Value: token})
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A login gives the browser a new token, whatever it had before, and ends the one that it had. A page of another site
// cannot log anybody in or out, and the address to go on to is always one of this console.
func TestLoginsCannotBeForged(t *testing.T) {
	t.Parallel()
	r, h := guardedConsole(t)
	guard, err := guards.New(guards.Config{
		BindAddress: "127.0.0.1", AllowedHosts: []string{"example.com"}, MaxConnections: 10, Logger: r.Log,
		Ping: r.Store.Ping,
	})
	must(t, err)
	h = guard.Handler(h)
	r.AddPerson(t, "noor")
	r.AddPerson(t, "eve")
	form := "name=noor&password=" + url.QueryEscape(servertest.Password)
	planted := r.Login(t, access.ConsoleClient, "eve").Text
	w := withCookie(h, "POST", "/login", planted, form)
	cookie := w.Result().Cookies()[0]
	if w.Code != http.StatusSeeOther || cookie.Value == planted || !cookie.HttpOnly ||
		cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
		t.Fatalf("%d %+v", w.Code, cookie)
	}
	if w := withCookie(h, "GET", "/account", planted, ""); w.Code != http.StatusSeeOther {
		t.Errorf("the planted token still works: %d", w.Code)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		for _, path := range []string{"/login", "/logout", "/account/password", "/people/add"} {
			if w := withCookie(h, "POST", path, cookie.Value, form, header...); w.Code != http.StatusForbidden ||
				len(w.Result().Cookies()) > 0 {
				t.Errorf("%s of another site: %d", path, w.Code)
			}
		}
	}
	if w := withCookie(h, "GET", "/account", cookie.Value, ""); w.Code != http.StatusOK {
		t.Errorf("noor is logged out: %d", w.Code)
	}
	for _, next := range []string{
		"https://evil.example/", "//evil.example", `/\evil.example`, `\\evil.example`, "javascript:alert(1)",
		"/\t/evil.example", "evil", "",
	} {
		w := withCookie(h, "POST", "/login", "", form+"&next="+url.QueryEscape(next))
		if to := w.Header().Get("Location"); to != "/" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
	if w := withCookie(h, "GET", "/account", r.Login(t, access.APIClient, "noor").Text, ""); w.Code == http.StatusOK {
		t.Error("a token of the API works as a cookie")
	}
}

// Over HTTPS the cookie is only sent over HTTPS, and bound to this host.
func TestCookiesOverHTTPS(t *testing.T) {
	t.Parallel()
	r, h := guardedConsole(t, func(c *people.Config) { c.PublicURL = "https://ordain.example.org" })
	r.AddPerson(t, "noor")
	w := withCookie(h, "POST", "/login", "", "name=noor&password="+url.QueryEscape(servertest.Password))
	cookie := w.Result().Cookies()[0]
	if cookie.Name != "__Host-ordain_session" || !cookie.Secure || cookie.Domain != "" || cookie.Path != "/" {
		t.Errorf("%+v", cookie)
	}
}

// Noor sees where she is logged in, ends another login, and changes her password, which ends all others.
func TestTheAccountPage(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := guardedConsole(t)
	r.AddPerson(t, "noor")
	r.AddPerson(t, "eve")
	here := r.Login(t, access.ConsoleClient, "noor").Text
	there := r.Login(t, access.ConsoleClient, "noor").Text
	alive := func(token string) bool { return withCookie(h, "GET", "/account", token, "").Code == http.StatusOK }
	sessions, err := r.People.Sessions(t.Context(), r.Login(t, access.APIClient, "eve").User.ID)
	must(t, err)
	if w := withCookie(h, "POST", "/account/end", here, "id="+sessions[0].ID.String()); w.Code != http.StatusNotFound {
		t.Errorf("noor ends a login of eve: %d", w.Code)
	}
	page := withCookie(h, "GET", "/account", here, "").Body.String()
	_, rest, _ := strings.Cut(page, `action="/account/end"><input type="hidden" name="id" value="`)
	if w := withCookie(h, "POST", "/account/end", here, "id="+rest[:36]); w.Code != http.StatusSeeOther {
		t.Errorf("%d", w.Code)
	}
	if !alive(here) || alive(there) {
		t.Error("the wrong login ended")
	}
	there = r.Login(t, access.ConsoleClient, "noor").Text
	change := url.Values{"current": {"wrong"}, "password": {"another password"}, "again": {"another password"}}
	if w := withCookie(h, "POST", "/account/password", here, change.Encode()); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong present password: %d", w.Code)
	}
	change.Set("current", servertest.Password)
	if w := withCookie(h, "POST", "/account/password", here, change.Encode()); w.Code != http.StatusSeeOther {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !alive(here) || alive(there) {
		t.Error("a new password ends all other logins, and only them")
	}
}
