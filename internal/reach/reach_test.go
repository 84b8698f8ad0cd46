package reach

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Every spelling of an address that must not be reached is refused, and no other address.
func TestAddresses(t *testing.T) {
	r := &Rules{Refuse: Guarded(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	for text, refused := range map[string]bool{
		"127.0.0.1": true, "127.8.9.1": true, "::1": true, "0.0.0.0": true, "::": true, "::ffff:127.0.0.1": true,
		"169.254.169.254": true, "fe80::1%eth0": true, "64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true,
		"fd00:ec2::254": true, "224.0.0.1": true, "127.0.0.2": false, "10.0.0.1": false, "192.168.1.1": false,
		"93.184.216.34": false, "2606:2800:220:1::1": false, "64:ff9b::808:808": false,
	} {
		err := r.Check("host", netip.MustParseAddr(text))
		if (err != nil) != refused || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v, refused should be %v", text, err, refused)
		}
		if err := (*Rules)(nil).Check("host", netip.MustParseAddr(text)); err != nil {
			t.Error("no rules refuse", text, err)
		}
	}
}

// A server on loopback is reached by no name, no address, and no redirect.
func TestServersOnLoopbackAreNotReached(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++ }))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	// The first server may be reached, as if it were elsewhere, and sends its guests to the second.
	elsewhere, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("127.0.0.2 is no address of this machine")
	}
	redirecting := &httptest.Server{Listener: elsewhere, Config: &http.Server{Handler: http.RedirectHandler(
		"http://localhost:"+u.Port()+"/latest/meta-data", http.StatusFound)}}
	redirecting.Start()
	t.Cleanup(redirecting.Close)
	rules := &Rules{Refuse: Guarded(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	for _, address := range []string{
		server.URL, "http://localhost:" + u.Port(), "http://0.0.0.0:" + u.Port(),
		"http://[::ffff:127.0.0.1]:" + u.Port(),
		"http://127.1.1.1:" + u.Port(), redirecting.URL,
	} {
		client := &http.Client{Transport: &http.Transport{
			DialContext: Dialer{Rules: rules, Timeout: 5 * time.Second}.DialContext,
		}}
		answer, err := client.Get(address)
		if err == nil {
			_ = answer.Body.Close()
		}
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "does not connect to") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked != 0 {
		t.Errorf("the server was asked %d times", asked)
	}
	free := &http.Client{Transport: &http.Transport{DialContext: Dialer{Rules: rules,
		Free: func(a string) bool { return a == u.Host }}.DialContext}}
	if answer, err := free.Get(server.URL); err != nil || asked != 1 {
		t.Error("what the operator named is not reached:", err)
	} else {
		_ = answer.Body.Close()
	}
}
