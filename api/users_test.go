package api

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/servertest"
)

// withPeople returns a client of a server on which people log in, ada as its administrator and noor as a stranger to
// everything.
func withPeople(t *testing.T) (*client, *servertest.Rich) {
	t.Helper()
	r := servertest.NewRich(t)
	r.RequireLogin()
	r.AddPerson(t, "ada", access.Binding{Role: access.Administrator})
	r.AddPerson(t, "noor")
	return newClient(t, r.Server), r
}

// as returns a client that is logged in as somebody.
func (c *client) as(name string) *client {
	c.t.Helper()
	other := *c
	other.token = ""
	other.token = other.call("POST", "/api/v2/login",
		`{"username": "`+name+`", "password": "`+servertest.Password+`"}`, 200).text("data", "token")
	return &other
}

// Ada logs in, sees who she is, renews her login, and logs out. Each token ends when it should, and a wrong password
// is answered like a wrong name.
func TestALogin(t *testing.T) {
	c, _ := withPeople(t)
	c.call("GET", "/api/v2/current_user", "", 401)
	for _, name := range []string{"ada", "eve"} {
		c.call("POST", "/api/v2/login", `{"username": "`+name+`", "password": "wrong"}`, 401).
			is("Invalid username or password", "message")
	}
	w := c.send("POST", "/api/v2/login", `{"username": "Ada", "password": "`+servertest.Password+`"}`)
	token, ok := strings.CutPrefix(w.Header().Get("Authorization"), "Bearer ")
	if w.Code != 200 || !ok || !strings.Contains(w.Body.String(), token) {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	c.token = token
	c.get("/api/v2/current_user").is("ada", "data", "username")
	c.get("/api/v2/session").is(true, "data", 0, "current")
	renewed := c.call("POST", "/api/v2/login/renew", "", 200).part("data")
	renewed.is(true, "user", "is_admin")
	renewed.is("database", "user", "auth_method")
	c.call("GET", "/api/v2/current_user", "", 401)
	c.call("POST", "/api/v2/login", `{"username": "ada", "password": "`+servertest.Password+`"}`, 200)
	c.token = renewed.text("token")
	c.get("/api/v2/current_user")
	c.call("POST", "/api/v2/logout", "", 200)
	c.call("GET", "/api/v2/current_user", "", 401)
	c.token = "nonsense"
	c.call("GET", "/api/v2/current_user", "", 401)
}

// While nobody has to log in, nobody can, and there are no users.
func TestWithoutLogins(t *testing.T) {
	c := newClient(t, servertest.New(t, servertest.Present))
	c.call("POST", "/api/v2/login", `{"username": "ada", "password": "x"}`, 400).says("should be enabled")
	c.call("POST", "/api/v2/login/renew", "", 400)
	c.call("POST", "/api/v2/user", `{"username": "ada", "password": "`+servertest.Password+`"}`, 400)
	c.call("GET", "/api/v2/current_user", "", 404)
	if n := len(c.get("/api/v2/user").list("data")); n != 0 {
		t.Errorf("%d users", n)
	}
}

// Ada adds bob, changes his password, disables and deletes him. Each time his logins end at once. Nobody else may do
// so, and the last administrator stays.
func TestUsers(t *testing.T) {
	c, _ := withPeople(t)
	ada, noor := c.as("ada"), c.as("noor")
	bob := `{"username": "bob", "password": "` + servertest.Password + `"}`
	noor.call("POST", "/api/v2/user", bob, 403)
	noor.call("GET", "/api/v2/user", "", 403)
	noor.call("DELETE", "/api/v2/user/ada", "", 403)
	noor.call("PATCH", "/api/v2/user/ada/password", `{"password": "`+servertest.Password+`"}`, 404)
	c.call("POST", "/api/v2/user", bob, 401)
	ada.call("POST", "/api/v2/user", bob, 200).is("bob", "data", "username")
	ada.call("POST", "/api/v2/user", strings.Replace(bob, "bob", "BOB", 1), 409)
	for name, password := range map[string]string{
		"":    servertest.Password,
		"a/b": servertest.Password,
		"eve": "too short",
		"eva": strings.Repeat("x", 129),
	} {
		ada.call("POST", "/api/v2/user", `{"username": "`+name+`", "password": "`+password+`"}`, 400)
	}
	b := c.as("bob")
	b.call("PATCH", "/api/v2/user/bob/password", `{"password": "`+servertest.Password+`2"}`, 400)
	b.call("PATCH", "/api/v2/user/bob/password",
		`{"password": "`+servertest.Password+`2", "current_password": "wrong"}`, 401).
		is("The current password is incorrect", "message")
	elsewhere := c.as("bob")
	b.call("PATCH", "/api/v2/user/bob/password",
		`{"password": "`+servertest.Password+`2", "current_password": "`+servertest.Password+`"}`, 200)
	b.get("/api/v2/current_user")
	elsewhere.call("GET", "/api/v2/current_user", "", 401)
	ada.call("PATCH", "/api/v2/user/bob/password", `{"password": "`+servertest.Password+`"}`, 200)
	b.call("GET", "/api/v2/current_user", "", 401)
	b = c.as("bob")
	ada.call("PATCH", "/api/v2/user/bob", `{"disabled": true}`, 200)
	b.call("GET", "/api/v2/current_user", "", 401)
	c.call("POST", "/api/v2/login", bob, 401).is("Invalid username or password", "message")
	ada.call("PATCH", "/api/v2/user/bob", `{"disabled": false}`, 200)
	b = c.as("bob")
	ada.call("DELETE", "/api/v2/user/bob", "", 200)
	b.call("GET", "/api/v2/current_user", "", 401)
	ada.call("DELETE", "/api/v2/user/bob", "", 404)
	ada.call("DELETE", "/api/v2/user/ada", "", 409).says("last administrator")
	ada.call("PATCH", "/api/v2/user/ada", `{"disabled": true}`, 409)
	ada.call("PATCH", "/api/v2/is_admin", `{"username": "ada", "is_admin": false}`, 409)
	ada.call("PATCH", "/api/v2/is_admin", `{"username": "noor", "is_admin": true}`, 200)
	noor.get("/api/v2/user").is(true, "data", 1, "is_admin")
	noor.call("PATCH", "/api/v2/is_admin", `{"username": "ada", "is_admin": false}`, 200)
	ada.call("GET", "/api/v2/user", "", 403)
}

// Ada gives noor roles in an environment, a project, and for a tag; each counts at once and is explained. Noor, who
// may give roles in one environment, gives none there that allows more than she may do herself.
func TestRoles(t *testing.T) {
	c, r := withPeople(t)
	ada, noor := c.as("ada"), c.as("noor")
	env := r.Production.ID.String()
	noor.tid = env
	halt := "/api/v2/access/explain?verb=environment.halt&environment=" + env
	noor.call("POST", "/api/v2/actions/environment/halt", "", 404)
	noor.call("GET", halt, "", 404) // for her there is no such environment
	ada.get(halt+"&user=noor").is(false, "data", "visible")
	role := `{"environment": "` + env + `", "role": "operator"}`
	noor.call("POST", "/api/v2/role_assignment/noor", role, 404)
	ada.call("POST", "/api/v2/role_assignment/noor", role, 200)
	ada.call("POST", "/api/v2/role_assignment/noor", role, 200)
	noor.get("/api/v2/role_assignment/noor").is("operator", "data", "assignments", env, 0)
	noor.call("GET", "/api/v2/role_assignment/ada", "", 404)
	noor.get(halt).is(true, "data", "allowed")
	noor.call("GET", halt+"&user=ada", "", 403)
	noor.call("POST", "/api/v2/actions/environment/halt", "", 200)
	noor.call("POST", "/api/v2/role_assignment/ada", role, 403)
	ada.call("DELETE", "/api/v2/role_assignment/noor?environment="+env+"&role=operator", "", 200)
	ada.call("DELETE", "/api/v2/role_assignment/noor?environment="+env+"&role=operator", "", 400)
	noor.call("POST", "/api/v2/actions/environment/resume", "", 404)

	ada.call("POST", "/api/v2/role", `{"name": "giver", "verbs": ["environment.role", "environment.halt"]}`, 200)
	ada.call("POST", "/api/v2/role", `{"name": "giver"}`, 400)
	ada.call("POST", "/api/v2/role", `{"name": "odd", "labels": ["everything"]}`, 400)
	ada.call("POST", "/api/v2/role", `{"name": "viewer"}`, 400)
	ada.call("DELETE", "/api/v2/role", `{"name": "viewer"}`, 400)
	made := ada.call(
		"POST",
		"/api/v2/role_binding",
		`{"user": "noor", "role": "giver", "environment": "`+env+`"}`,
		200,
	)
	noor.call("POST", "/api/v2/role_assignment/noor", `{"environment": "`+env+`", "role": "administrator"}`, 403).
		says("which you may not do yourself")
	noor.call("POST", "/api/v2/role_assignment/ada", `{"environment": "`+env+`", "role": "giver"}`, 200)
	ada.call("DELETE", "/api/v2/role", `{"name": "giver"}`, 400).says("still has")
	ada.call("DELETE", "/api/v2/role_binding/"+made.text("data", "id"), "", 200)
	noor.call("POST", "/api/v2/role_assignment/ada", `{"environment": "`+env+`", "role": "giver"}`, 404)

	members := "/api/v2/project/" + r.Project.ID.String() + "/member"
	noor.call("GET", members, "", 404)
	member := ada.call("POST", members, `{"user": "noor", "role": "administrator"}`, 200).text("data", "id")
	noor.get(members).is("noor", "data", 0, "subject")
	noor.call("POST", "/api/v2/role_binding", `{"user": "noor", "role": "administrator"}`, 403)
	noor.call("DELETE", members+"/"+member, "", 200)
	noor.call("GET", members, "", 404)
	for _, body := range []string{
		`{"role": "viewer"}`, `{"user": "noor", "group": "x", "role": "viewer"}`,
		`{"user": "noor", "role": "viewer", "tag": "x", "environment": "` + env + `"}`,
	} {
		ada.call("POST", "/api/v2/role_binding", body, 400)
	}
	ada.call("POST", "/api/v2/role_binding", `{"user": "noor", "role": "none"}`, 404)
	ada.call("POST", "/api/v2/role_binding", `{"group": "netops", "role": "viewer", "tag": "prod"}`, 200).
		is("prod", "data", "tag")
}

// After five wrong passwords a name is blocked for a while, the right password included, and twice as long after each
// further failure. A name that nobody has is blocked in the same way.
func TestWrongPasswordsBlockAName(t *testing.T) {
	c, r := withPeople(t)
	r.StopPeoplesClock()
	try := func(name, password string, want int) {
		t.Helper()
		c.call("POST", "/api/v2/login", `{"username": "`+name+`", "password": "`+password+`"}`, want)
	}
	for _, name := range []string{"noor", "nobody"} {
		for range 5 {
			try(name, "wrong", 401)
		}
		try(name, servertest.Password, 429)
	}
	try("ada", servertest.Password, 200)
	r.LetPeopleWait(3 * time.Second)
	try("noor", "wrong", 401)
	r.LetPeopleWait(3 * time.Second)
	try("noor", servertest.Password, 429)
	r.LetPeopleWait(3 * time.Second)
	try("noor", servertest.Password, 200)
	try("noor", "wrong", 401)
	try("noor", servertest.Password, 200)
}

// A login ends when it is not used for a while, and at its deadline however much it is used.
func TestLoginsExpire(t *testing.T) {
	r := servertest.NewRich(t)
	r.RequireLogin(func(cfg *people.Config) { cfg.Idle, cfg.Lifetime = time.Hour, 150*time.Minute })
	r.AddPerson(t, "noor")
	c := newClient(t, r.Server).as("noor")
	for range 3 {
		r.LetPeopleWait(40 * time.Minute)
		c.get("/api/v2/current_user")
	}
	r.LetPeopleWait(40 * time.Minute)
	c.call("GET", "/api/v2/current_user", "", 401)
	c = c.as("noor")
	r.LetPeopleWait(61 * time.Minute)
	c.call("GET", "/api/v2/current_user", "", 401)
}

// BenchmarkAuthentication is a call that reads the database, for everybody and for somebody with a token.
func BenchmarkAuthentication(b *testing.B) {
	r := servertest.NewRich(b)
	serve := func(b *testing.B, token string) {
		h, err := New(Config{
			Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.People.API(), People: r.People,
			Tokens: r.Tokens, Agents: r.Agents,
		})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			req := httptest.NewRequest("GET", "/api/v2/environment_settings", nil)
			req.Header.Set(tidHeader, r.Production.ID.String())
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, req); w.Code != 200 {
				b.Fatal(w.Code, w.Body)
			}
		}
	}
	b.Run("off", func(b *testing.B) { serve(b, "") })
	r.RequireLogin()
	r.AddPerson(b, "noor", access.Binding{Role: access.Operator, Scope: access.Scope{Project: r.Project.ID}})
	token := r.Login(b, access.APIClient, "noor").Text
	b.Run("token", func(b *testing.B) { serve(b, token) })
}

// What ada does to noor is in the audit trail under her name, without a password.
func TestChangesOfPeopleAreInTheTrail(t *testing.T) {
	r := servertest.NewRich(t)
	r.RequireLogin()
	r.AddPerson(t, "ada", access.Binding{Role: access.Administrator})
	c := newClient(t, r.Server, func(cfg *Config) {
		cfg.Audit = &audit.Recorder{Store: r.Store, Logger: r.Log}
	})
	ada := c.as("ada")
	ada.call("POST", "/api/v2/user", `{"username": "noor", "password": "`+servertest.Password+`"}`, 200)
	given := ada.call("POST", "/api/v2/role_binding", `{"user": "noor", "role": "operator", "tag": "prod"}`, 200)
	ada.call("PATCH", "/api/v2/user/noor", `{"disabled": true}`, 200)
	ada.call("PATCH", "/api/v2/user/noor/password", `{"password": "`+servertest.Password+`"}`, 200)
	ada.call("DELETE", "/api/v2/role_binding/"+given.text("data", "id"), "", 200)
	ada.call("DELETE", "/api/v2/user/ada", "", 409)
	w := ada.send("GET", "/api/v2/audit", "")
	for _, want := range []string{
		"user noor", "operator", "environments with the tag prod", `"disabled":true`, "password of the user noor",
		"last administrator", `"ada"`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is not in the trail: %s", want, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), servertest.Password) {
		t.Error("the trail has the password")
	}
}
