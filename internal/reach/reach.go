// Package reach says which addresses the server may connect to on behalf of others. People and models name hosts: the
// URL of a repository, a proxy, the API of a forge, the issuer of a token. Without a check, such a name leads to
// services that trust everybody who can reach them: those of the server's own machine, and the metadata service of its
// cloud, which gives out passwords.
//
// The check belongs to the dialer, after the name was resolved. So it holds for every redirect, for every name that
// leads to such an address, and for a name that leads elsewhere the next time it is asked for.
package reach

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Guarded returns the networks that nobody should get at through this server: those that only its machine or its
// cloud give a meaning.
func Guarded() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "127.0.0.0/8", "::/128", "::1/128", // this machine
		"169.254.0.0/16", "fe80::/10", // its link, with the metadata service of most clouds
		"100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128", // those of other clouds
		"224.0.0.0/4", "ff00::/8", "255.255.255.255/32", // nobody in particular
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// Loopback returns the networks of the server's own machine.
func Loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// Rules decide which addresses may be connected to. A nil Rules allows all of them. Rules are not changed after their
// first use.
type Rules struct {
	Refuse []netip.Prefix
	Allow  []netip.Prefix // of Refuse, these are allowed nevertheless
}

// Check returns a Forbidden fault if an address may not be connected to. host is the name that somebody gave.
func (r *Rules) Check(host string, ip netip.Addr) error {
	if r == nil {
		return nil
	}
	ip = plain(ip)
	in := func(networks []netip.Prefix) bool {
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
	}
	if !in(r.Refuse) || in(r.Allow) {
		return nil
	}
	what := host
	if host != ip.String() {
		what += " leads to " + ip.String() + ", which"
	}
	return fault.New("reach.Check", fault.Forbidden, what+" is in a network that this server does not connect to").
		Hint("check the host; an operator can allow the network with [git] allow-networks")
}

// plain returns the address that an address stands for: IPv4 addresses can be written as IPv6 ones, and translators
// of networks take them out again.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if b := ip.As16(); ip.Is6() && translated.Contains(ip) {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

var translated = netip.MustParsePrefix("64:ff9b::/96")

// Dialer connects to what the rules allow.
type Dialer struct {
	Rules   *Rules
	Timeout time.Duration
	// Free are the hosts and ports that the rules do not hold for, because the operator named them.
	Free func(address string) bool
}

// DialContext connects to an address, as net.Dialer does.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: d.Timeout, KeepAlive: 30 * time.Second}
	if d.Rules != nil && (d.Free == nil || !d.Free(address)) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		dialer.Control = func(_, to string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(to)
			if err != nil {
				return fmt.Errorf("%s is no address of a network: %w", to, err)
			}
			return d.Rules.Check(strings.TrimSuffix(host, "."), at.Addr())
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// Dial connects to an address.
func (d Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}
