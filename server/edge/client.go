package edge

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the addresses whose word counts when they say for which client they ask.
type proxies []netip.Prefix

func (p proxies) trust(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, prefix := range p {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// client is who sent a request, and how.
type client struct {
	address string
	secure  bool // the client's own connection is encrypted
}

type clientKey struct{}

// identify adds to a request who sent it. Every proxy appends the address that it was asked from to X-Forwarded-For, so
// the list is read from its end as long as the proxies are trusted: what is left of that is the client's own claim.
func (p proxies) identify(r *http.Request) *http.Request {
	c := client{address: hostOf(r.RemoteAddr), secure: r.TLS != nil}
	if ip, err := netip.ParseAddr(c.address); err == nil && p.trust(ip) {
		c.address = p.forwarded(r, c.address)
		if protocols := r.Header.Values("X-Forwarded-Proto"); len(protocols) > 0 {
			last := protocols[len(protocols)-1]
			last = last[strings.LastIndexByte(last, ',')+1:]
			c.secure = strings.EqualFold(strings.TrimSpace(last), "https")
		}
	}
	return r.WithContext(context.WithValue(r.Context(), clientKey{}, c))
}

func (p proxies) forwarded(r *http.Request, address string) string {
	list := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(list) - 1; i >= 0; i-- {
		entry := strings.TrimSpace(list[i])
		ip, err := netip.ParseAddr(strings.Trim(entry, "[]"))
		if err != nil {
			with, portErr := netip.ParseAddrPort(entry)
			if portErr != nil {
				return address // nobody can tell from where the last proxy was asked
			}
			ip = with.Addr()
		}
		if address = ip.Unmap().WithZone("").String(); !p.trust(ip) {
			return address
		}
	}
	return address
}

// ClientAddress returns the address from which a request was sent, without a port. Behind trusted proxies it is the
// address that they name. All that counts, limits or records clients by their address uses it.
func ClientAddress(r *http.Request) string {
	if c, ok := r.Context().Value(clientKey{}).(client); ok {
		return c.address
	}
	return hostOf(r.RemoteAddr)
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// IsSecure reports whether the client's own connection is encrypted.
func IsSecure(r *http.Request) bool {
	c, ok := r.Context().Value(clientKey{}).(client)
	return ok && c.secure || !ok && r.TLS != nil
}

// strictTransport makes browsers use HTTPS only from now on, for a year. Names of the machine itself are left out:
// other programs have the same ones.
func (g *Guard) strictTransport(w http.ResponseWriter, r *http.Request) {
	if !g.https || !IsSecure(r) {
		return
	}
	name := hostname(r.Host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return
	}
	w.Header().Set("Strict-Transport-Security", "max-age=31536000")
}
