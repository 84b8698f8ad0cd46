package gitsync

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// tlsServer serves the repository over HTTPS, with a certificate that no machine trusts.
func (o *origin) tlsServer(password string) (server *httptest.Server, bundle string) {
	plain := o.serve(password)
	server = httptest.NewTLSServer(plain.Config.Handler)
	o.t.Cleanup(server.Close)
	return server, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// A private certificate authority is trusted by the sources that name it, and only by them.
func TestCABundle(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("first", map[string]string{"a": "1"})
	server, bundle := o.tlsServer("s3cr3t")
	src := Source{
		URL:         server.URL + "/origin.git",
		Credentials: Credentials{Username: "ada", Password: "s3cr3t"},
		Trust:       Trust{CABundle: bundle},
	}
	fetch(t, s, src)
	src.Trust.CABundle = ""
	_, _, err := s.Fetch(t.Context(), src)
	wantFault(t, err, fault.Unavailable, "not trusted", "git_ca_bundle")
	src.Trust.CABundle = "no certificate"
	_, _, err = s.Fetch(t.Context(), src)
	wantFault(t, err, fault.Invalid, "git_ca_bundle holds no certificate")
}

// HTTP and HTTPS go through the proxy of the environment.
func TestHTTPThroughAProxy(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	o.push("first", map[string]string{"a": "1"})
	via := newTunnel(t, "s3cr3t")
	secure, bundle := o.tlsServer("")
	for _, url := range []string{o.serve("").URL, secure.URL} {
		before := len(via.asked())
		src := Source{
			URL:   url + "/origin.git",
			Trust: Trust{Proxy: "http://ada:s3cr3t@" + via.address, CABundle: bundle},
		}
		fetch(t, s, src)
		if len(via.asked()) == before {
			t.Errorf("%s: the proxy was not asked", url)
		}
		src.Trust.Proxy = "http://ada:s3cr3t-wrong@" + via.address
		_, _, err := s.Fetch(t.Context(), src)
		wantFault(t, err, fault.Unavailable, url)
	}
	_, _, err := s.Fetch(t.Context(), Source{URL: "https://h.invalid/x", Trust: Trust{Proxy: "ftp://ada:s3cr3t@h"}})
	wantFault(t, err, fault.Invalid, "git_proxy is not the URL of a proxy")
}

// Only the server of a repository sees its credentials.
func TestSameHost(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"https://h/a", "https://H/b", true},
		{"https://h/a", "https://h:443/b", true},
		{"https://h/a", "https://h:8443/b", false},
		{"https://h/a", "http://h/b", false},
		{"https://h/a", "https://h.evil/b", false},
		{"https://h/a", "https://h@evil/b", false},
		{"git@h:a", "ssh://other@h/b", true},
		{"git@h:a", "ssh://git@h:2222/b", false},
		{"git@h:a", "https://h/b", false},
		{"/srv/a", "/srv/b", false},
		{"https://h/a", "nonsense", false},
	} {
		if SameHost(tt.a, tt.b) != tt.same {
			t.Errorf("%s and %s: not %v", tt.a, tt.b, tt.same)
		}
	}
}
