package faults

import (
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/config"
)

const password = "correct horse battery"

// A server that people have to log in to lets a stranger in, or lets in nobody at all. The first start prints a link;
// with it, a person makes the first administrator, logs in on the command line and works. A restart ends no login and
// prints no other link.
func TestAServerWithPeople(t *testing.T) {
	w := lab.OwnWorld(t, func(o *config.Config) { o.Auth = config.AuthDatabase })
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	status := func(method, path string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, w.Server.URL()+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Header.Get("Location")
	}
	for path, want := range map[string]int{
		"/": 303, "/search?q=x": 303, "/people": 303, "/login": 200, "/api/v2/project": 401, "/api/v2/docs": 401,
		"/api/v2/health": 200,
	} {
		if got, to := status("GET", path, nil); got != want || got == 303 && !strings.HasPrefix(to, "/login") {
			t.Errorf("%s for a stranger: %d %s", path, got, to)
		}
	}
	path, ok := strings.CutPrefix(w.Server.FirstLink(), w.Server.URL())
	if !ok || !strings.HasPrefix(path, "/first/") {
		t.Fatalf("the link is %q", w.Server.FirstLink())
	}
	log, err := os.ReadFile(w.Server.Layout().ServerLog())
	if err != nil || strings.Contains(string(log), path) { // its reader would become the administrator
		t.Errorf("the link is in the log: %v", err)
	}
	form := url.Values{"name": {"ada"}, "password": {password}, "again": {password}}
	if got, to := status("POST", path, form); got != 303 || to != "/login?notice=made" {
		t.Fatalf("%d %s", got, to)
	}
	if got, _ := status("POST", path, form); got != 404 {
		t.Errorf("the link again: %d", got)
	}
	if code, _, errs := w.Ordain(t, "", "project", "list"); code == 0 || !strings.Contains(errs, "log in") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := w.Ordain(t, password+"\n", "login", "ada"); code != 0 {
		t.Fatal(errs)
	}
	w.Must(t, "project", "create", "bakery")
	lab.Mentions(t, w.Must(t, "user", "list"), "ada")
	personal := strings.TrimSpace(w.Must(t, "token", "create", "ci", "--role", "viewer"))
	w.Must(t, "environment", "create", "oven", "--project", "bakery", "--repo", "https://git.example.com/oven.git",
		"--branch", "main")
	clients := strings.TrimSpace(w.Must(t, "token", "environment", "create", "oven"))

	options, err := lab.Options(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(w.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	w.Server.Stop()
	options.Auth = config.AuthDatabase
	if options.BindPort, err = strconv.Atoi(address.Port()); err != nil {
		t.Fatal(err)
	}
	if w.Server, err = server.New(server.Config{Options: options, Version: "again"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if link := w.Server.FirstLink(); link != "" {
		t.Errorf("there is a user, and yet a link: %s", link)
	}
	lab.Mentions(t, w.Must(t, "project", "list"), "bakery")
	if log, err = os.ReadFile(w.Server.Layout().ServerLog()); err != nil || strings.Contains(string(log), password) {
		t.Errorf("the log has the password: %v", err)
	}
	for _, token := range []string{personal, clients} { // the key that signs them was kept
		if strings.Contains(string(log), token) {
			t.Error("the log has a token")
		}
		t.Setenv("ORDAIN_TOKEN", token)
		lab.Mentions(t, w.Must(t, "environment", "list"), "oven")
		if code, _, _ := w.Ordain(t, "", "project", "create", "cellar"); code == 0 {
			t.Error("a token does more than it may")
		}
	}
	t.Setenv("ORDAIN_TOKEN", "")
	w.Must(t, "logout")
	if code, _, _ := w.Ordain(t, "", "project", "list"); code == 0 {
		t.Error("it works after the logout")
	}
}
