package edge

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// A client that connects directly has the address of the connection, whatever it claims. A trusted proxy names the
// client; what the client itself put into the header before does not count.
func TestClientAddress(t *testing.T) {
	g := guard(t, func(c *Config) {
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
		c.HTTPS, c.PublicURL = true, "https://ordain.example.org"
	})
	for _, c := range []struct {
		peer    string
		forward []string
		proto   string
		want    string
		secure  bool
	}{
		{"198.51.100.1:5", nil, "", "198.51.100.1", false},
		{"198.51.100.1:5", []string{"203.0.113.9"}, "https", "198.51.100.1", false},
		{"10.0.0.1:5", []string{"203.0.113.9"}, "https", "203.0.113.9", true},
		{"10.0.0.1:5", []string{"203.0.113.9"}, "http", "203.0.113.9", false},
		{"10.0.0.1:5", []string{"127.0.0.1, 203.0.113.9"}, "https, http", "203.0.113.9", false},
		{"10.0.0.1:5", []string{"127.0.0.1", "203.0.113.9, 10.0.0.2"}, "https", "203.0.113.9", true},
		{"[::ffff:10.0.0.1]:5", []string{"203.0.113.9:4711"}, "HTTPS", "203.0.113.9", true},
		{"[::1]:5", []string{"[2001:db8::7]:4711"}, "https", "2001:db8::7", true},
		{"10.0.0.1:5", []string{"203.0.113.9, nonsense"}, "https", "10.0.0.1", true},
		{"10.0.0.1:5", []string{"203.0.113.9, nonsense, 10.0.0.7"}, "https", "10.0.0.7", true},
		{"10.0.0.1:5", []string{"10.0.0.8, 10.0.0.7"}, "https", "10.0.0.8", true},
		{"10.0.0.1:5", []string{""}, "", "10.0.0.1", false},
		{"10.0.0.1:5", nil, "", "10.0.0.1", false},
	} {
		r := httptest.NewRequest("GET", "http://ordain.example.org/", nil)
		r.RemoteAddr = c.peer
		for _, value := range c.forward {
			r.Header.Add("X-Forwarded-For", value)
		}
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		w := httptest.NewRecorder()
		got := ""
		g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = ClientAddress(r) })).
			ServeHTTP(w, r)
		if strict := w.Header().Get("Strict-Transport-Security") != ""; got != c.want || strict != c.secure {
			t.Errorf("%+v: address %s, encrypted %v", c, got, strict)
		}
	}
	bare := httptest.NewRequest("GET", "/", nil) // without a guard, as in calls of handlers
	bare.RemoteAddr = "192.0.2.1:80"
	bare.Header.Set("X-Forwarded-For", "203.0.113.9")
	if got := ClientAddress(bare); got != "192.0.2.1" {
		t.Errorf("without a guard: %s", got)
	}
}
