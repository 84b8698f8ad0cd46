package edge

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hosts are the names to which the server answers. A page whose own name was made to resolve to the server's address
// (DNS rebinding) counts as the same origin for the browser, but its requests carry that name in Host.
type hosts struct{ names map[string]bool }

func newHosts(cfg Config) (*hosts, error) {
	h := &hosts{names: map[string]bool{"localhost": true}}
	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		h.names[strings.ToLower(u.Hostname())] = true
	}
	if ip, err := netip.ParseAddr(cfg.BindAddress); err == nil && !ip.IsUnspecified() ||
		err != nil && cfg.BindAddress != "" {
		h.names[strings.ToLower(cfg.BindAddress)] = true
	}
	for _, name := range cfg.AllowedHosts {
		if name == "" || strings.ContainsAny(name, "/*") {
			return nil, fmt.Errorf("edge.New: %q is not the name of a host", name)
		}
		h.names[hostname(name)] = true
	}
	return h, nil
}

// hostname returns a host without its port, in lower case and without the dot of a full domain name.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// allow reports whether the server answers to the host that a request names.
func (h *hosts) allow(r *http.Request) bool {
	name := hostname(r.Host)
	if h.names[name] {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if ip.Unmap().IsLoopback() {
		return true
	}
	// The address that the client connected to is right, too: no name is involved that could have been rebound.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap().WithZone("") == ip.Unmap().WithZone("")
}
