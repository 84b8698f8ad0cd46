package gitsync

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

// A server that may not connect to its own machine fetches nothing from there: over HTTP, over SSH, by a name, through
// a proxy on the machine, and not after a redirect either. Without rules, the same sources work.
func TestRepositoriesOnTheServersMachine(t *testing.T) {
	o := newOrigin(t)
	o.push("first", map[string]string{"a": "1"})
	web := o.serve("")
	_, overSSH := o.serveSSH()
	u, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	overHTTP := Source{URL: web.URL + "/origin.git", Branch: "main"}
	byName := Source{URL: "http://localhost:" + u.Port() + "/origin.git", Branch: "main"}
	via := newTunnel(t, "s3cr3t")
	proxied, sshProxied, socks := overHTTP, overSSH, overSSH
	proxied.URL = "http://git.example.org/origin.git"
	proxied.Trust.Proxy = "http://ada:s3cr3t@" + via.address
	sshProxied.Trust.Proxy = "http://ada:s3cr3t@" + via.address
	socks.Trust.Proxy = "socks5://" + via.address
	elsewhere, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("127.0.0.2 is no address of this machine")
	}
	redirecting := &httptest.Server{Listener: elsewhere, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, web.URL+r.URL.RequestURI(), http.StatusFound)
		})}}
	redirecting.Start()
	t.Cleanup(redirecting.Close)
	redirected := Source{URL: redirecting.URL + "/origin.git", Branch: "main"}

	within := &reach.Rules{Refuse: reach.Guarded(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	for name, src := range map[string]Source{
		"HTTP": overHTTP, "SSH": overSSH, "a name": byName, "a proxy": proxied, "a proxy for SSH": sshProxied,
		"a SOCKS proxy": socks, "a redirect": redirected,
	} {
		guarded := newSyncer(t, func(c *Config) { c.Reach = within })
		_, _, err := guarded.Fetch(t.Context(), src)
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "that this server does not connect to") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "a proxy" && name != "a SOCKS proxy" { // there is nothing behind these
			fetch(t, newSyncer(t), src)
		}
	}
	if asked := via.asked(); len(asked) != 1 { // for SSH, without rules
		t.Errorf("the proxy was asked for %q", asked)
	}
	// What the operator allows is reached.
	fetch(t, newSyncer(t, func(c *Config) {
		c.Reach = &reach.Rules{Refuse: reach.Guarded(), Allow: reach.Loopback()}
	}), byName)
}

// Where people log in, a repository on the server's disk brings no others from there with it: they may be anybody's.
func TestSubmodulesOnTheServersDisk(t *testing.T) {
	a := &parent{place: place{shown: "/srv/git/a.git", local: "/srv/git/a.git"}}
	for _, raw := range []string{"../b.git", "/var/lib/inmanta/server/.mirrors/x.git", "file:///srv/git/b.git"} {
		if _, err := a.resolve(raw, true); err == nil {
			t.Errorf("%s is used as a submodule", raw)
		}
		if _, err := a.resolve(raw, false); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := a.resolve("https://git.example.org/b.git", true); err != nil {
		t.Error(err)
	}
}
