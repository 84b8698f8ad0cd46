package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/tool"
)

// browser starts Chromium, for which every name of example domains is this machine.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := tool.Need(t, os.Getenv("ORDAIN_TEST_BROWSER"),
		"chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	ctx, cancel := context.WithTimeout(ctx, lab.Patience)
	t.Cleanup(func() {
		cancel()
		closeTab()
		stopAllocator()
	})
	return ctx
}

// attempts are what a page can make a browser send without the consent of the server that gets it. Each is a promise
// that ends when the browser has an answer.
const attempts = `
const form = (action, enctype, fields) => new Promise(done => {
	const frame = document.createElement("iframe");
	frame.name = "f" + Math.random();
	document.body.append(frame);
	const form = document.createElement("form");
	Object.assign(form, {action, method: "POST", enctype, target: frame.name});
	for (const [name, value] of Object.entries(fields)) {
		const input = document.createElement("input");
		Object.assign(input, {name, value, type: "hidden"});
		form.append(input);
	}
	document.body.append(form);
	frame.onload = () => { if (sent) done("form: answered"); };
	let sent = false;
	setTimeout(() => { sent = true; form.submit(); }, 0);
});
const send = (url, options) => fetch(url, {mode: "no-cors", ...options}).then(r => r.type, e => String(e));
window.attack = (server, env) => Promise.all([
	send(server + "/api/v1/notify/" + env, {method: "POST", body: '{"metadata": {"type": "stolen"}}'}),
	send(server + "/api/v1/notify/" + env, {method: "POST", body: new Blob(['{"metadata": {"type": "stolen"}}'])}),
	send(server + "/api/v1/notify/" + env + "?update=false"),
	send(server + "/api/v1/deploy?tid=" + env, {method: "POST"}),
	form(server + "/api/v1/notify/" + env, "text/plain", {'{"metadata": {"type": "stolen", "x': '"}}'}),
	form(server + "/e/" + env + "/halt", "application/x-www-form-urlencoded", {}),
	form(server + "/environments", "application/x-www-form-urlencoded", {project: "stolen", name: "stolen"}),
	new Promise(done => {
		const image = new Image();
		image.onload = image.onerror = () => done("image");
		image.src = server + "/api/v1/notify/" + env;
	}),
	new Promise(done => {
		const events = new EventSource(server + "/e/" + env + "?live");
		events.onopen = () => { events.close(); done("events: open"); };
		events.onerror = () => { events.close(); done("events: refused"); };
	}),
]).then(all => all.join(", "));
`

// untouched checks that nothing happened to the environment that bind made.
func untouched(c *lab.Child, env string) {
	c.T.Helper()
	var projects []struct {
		Name         string `json:"name"`
		Environments []struct {
			Name   string `json:"name"`
			Halted bool   `json:"halted"`
		} `json:"environments"`
	}
	if err := c.Client.Call(c.T.Context(), http.MethodGet, "/api/v2/project?environment_details=true", "", nil,
		&projects); err != nil {
		c.T.Fatal(err)
	}
	if len(projects) != 1 || len(projects[0].Environments) != 1 || projects[0].Environments[0].Halted {
		c.T.Errorf("projects and environments were changed: %+v", projects)
	}
	var compiles []struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := c.Client.Call(c.T.Context(), http.MethodGet, "/api/v2/compilereport?limit=100", env, nil,
		&compiles); err != nil {
		c.T.Fatal(err)
	}
	for _, compile := range compiles {
		if kind := compile.Metadata["type"]; kind == "api" || kind == "stolen" {
			c.T.Errorf("a compile was started: %v", compile.Metadata)
		}
	}
}

// window is a page in a real browser.
type window struct {
	t   *testing.T
	ctx context.Context
}

func (w window) open(address string) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, chromedp.Navigate(address)); err != nil {
		w.t.Fatal(err)
	}
}

// eval returns the text that an expression, or its promise, becomes.
func (w window) eval(expression string, args ...any) string {
	w.t.Helper()
	text, err := chromedp.Run(w.ctx,
		chromedp.Evaluate[string](fmt.Sprintf(expression, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

// follow clicks a link and returns the text of the page that it leads to.
func (w window) follow(link string) string {
	w.t.Helper()
	if _, err := chromedp.RunResponse(w.ctx, chromedp.Click("#"+link)); err != nil {
		w.t.Fatal(err)
	}
	return w.eval("document.body.innerText")
}

// A page of another site, and one of another port of the same host, can change nothing, start nothing and follow
// nothing in a browser that reaches the server. A link to the console works.
func TestPagesOfOtherSites(t *testing.T) {
	tool.Heavy(t, "runs servers")
	w := window{t, browser(t)}
	c := ownChild(t)
	env := c.Bind(c.Dir + "/none")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>a site</title><body><a id="notify" href="%[1]s/api/v1/notify/%[2]s">x</a>
<a id="console" href="%[1]s/">y</a><script>%[3]s</script>`, c.URL, env, attempts)
	}))
	defer site.Close()
	at, err := url.Parse(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"attacker.example", "127.0.0.1", "localhost"} {
		address := "http://" + host + ":" + at.Port()
		w.open(address)
		did := w.eval("attack(%q, %q)", c.URL, env)
		t.Log(host, ": ", did)
		if !strings.Contains(did, "events: refused") {
			t.Errorf("a page of %s follows events: %s", host, did)
		}
		if text := w.follow("notify"); !strings.Contains(text, "another site") {
			t.Errorf("a link of %s that starts a compile leads to %q", host, text)
		}
		untouched(c, env)
		w.open(address)
		if text := w.follow("console"); !strings.Contains(text, "Environments") {
			t.Errorf("a link of %s to the console leads to %q", host, text)
		}
	}
}

// A site that makes its own name resolve to the server's address is the same origin for the browser. It gets no page
// and no events, and can change nothing.
func TestReboundNames(t *testing.T) {
	tool.Heavy(t, "runs servers")
	w := window{t, browser(t)}
	c := ownChild(t)
	env := c.Bind(c.Dir + "/none")
	// The attacker's page has no policy that would hold back its script.
	if _, err := chromedp.Call(w.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(address(c), ":")
	w.open("http://evil.example:" + port + "/")
	if text := w.eval("document.body.innerText"); !strings.Contains(text, "does not answer to the name") {
		t.Errorf("a rebound name shows %q", text)
	}
	for _, call := range []string{
		`fetch("/api/v2/project")`,
		`fetch("/api/v2/project", {method: "PUT", headers: {"Content-Type": "application/json"},
			body: '{"name": "stolen"}'})`,
		`fetch("/api/v1/notify/" + env)`,
		`fetch("/e/" + env + "/halt", {method: "POST"})`,
		`fetch("/e/" + env + "?live")`,
		`fetch("/hooks/counts")`,
	} {
		if status := w.eval(`(env => %s.then(r => String(r.status)))(%q)`, call, env); status != "421" {
			t.Errorf("%s is answered %s to a rebound name", call, status)
		}
	}
	events := w.eval(`new Promise(done => {
		const events = new EventSource("/e/" + %q + "?live");
		events.onopen = () => { events.close(); done("open"); };
		events.onerror = () => { events.close(); done("refused"); };
	})`, env)
	if events != "refused" {
		t.Error("a rebound name gets events")
	}
	untouched(c, env)
}
