package reach

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"golang.org/x/net/http/httpproxy"
)

// Use makes a transport connect with this dialer, through a proxy that somebody set. Without one, the proxy in the
// environment variables of the server counts: the operator chose it, so it may be in any network. What is asked of it
// by address is checked here; what is asked of it by name, it has to judge itself.
func (d Dialer) Use(t *http.Transport, proxy *url.URL) {
	if proxy != nil {
		t.Proxy, t.DialContext = http.ProxyURL(proxy), d.DialContext
		return
	}
	operators := environmentProxies()
	d.Free = func(address string) bool { return slices.Contains(operators, address) }
	t.DialContext = d.DialContext
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		via, err := http.ProxyFromEnvironment(r)
		if via == nil || err != nil {
			return via, err
		}
		if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
			if err := d.Rules.Check(r.URL.Hostname(), ip); err != nil {
				return nil, err
			}
		}
		return via, nil
	}
}

// environmentProxies returns the hosts and ports of the proxies in the environment variables.
func environmentProxies() (out []string) {
	c := httpproxy.FromEnvironment()
	for _, text := range []string{c.HTTPProxy, c.HTTPSProxy} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			u, err = url.Parse("http://" + text) // the scheme may be left out
		}
		if err != nil || u.Hostname() == "" {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
		}
		if port == "" {
			port = "80"
		}
		out = append(out, net.JoinHostPort(u.Hostname(), port))
	}
	return out
}
