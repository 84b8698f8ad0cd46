package config

import (
	"fmt"
	"net/url"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// The ways in which server processes tell each other what changed, besides a cluster of NATS.
const (
	BusOff      = "off"      // not at all
	BusEmbedded = "embedded" // through a NATS server in one of them
)

// busURL reads off, embedded or a list of servers.
func busURL(c *Config, s string) error {
	c.Bus, c.BusServers = s, nil
	if s == "" || s == BusOff || s == BusEmbedded {
		return nil
	}
	c.Bus = ""
	for _, server := range words(s) {
		u, err := url.Parse(server)
		switch {
		case err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.RawQuery != "" ||
			strings.Trim(u.Path, "/") != "":
			return fmt.Errorf("%q is not off, embedded or the address of a NATS server", withoutUser(server))
		case u.User != nil:
			return fmt.Errorf("the address of %s holds credentials; set bus.user and bus.password-file, or "+
				"bus.credentials-file", u.Host)
		}
		c.BusServers = append(c.BusServers, server)
	}
	return nil
}

// withoutUser removes what may be credentials from an address.
func withoutUser(address string) string {
	if i := strings.LastIndex(address, "@"); i >= 0 {
		return "…" + address[i:]
	}
	return address
}

// checkBus checks that the options of the event bus fit together.
func (c *Config) checkBus() error {
	bad := func(name, what, advice string) error {
		return fault.New("config.Load", fault.Invalid, "the option "+name+" is wrong: "+what).Hint(advice)
	}
	login := c.BusUser != "" || c.BusPassword != ""
	switch cluster := len(c.BusServers) > 0; {
	case cluster && c.BusListen != "":
		return bad("bus.listen", "with a cluster of NATS in bus.url, no process of ours runs a server",
			"set bus.url or bus.listen")
	case !cluster && (login || c.BusCredentials != "" || c.BusTLSCA != "" || c.BusTLSCert != ""):
		return bad("bus.url", "there are credentials or certificates for a cluster of NATS, but no cluster",
			"set bus.url to its servers, such as tls://nats-1.example.org:4222")
	case (c.BusUser == "") != (c.BusPassword == ""):
		return bad("bus.user", "a user needs a password, and a password a user",
			"set bus.user and bus.password-file, or neither")
	case login && c.BusCredentials != "":
		return bad("bus.credentials-file", "there are a user and a password, too",
			"set either bus.credentials-file, or bus.user and bus.password-file")
	case (c.BusTLSCert == "") != (c.BusTLSKey == ""):
		return bad("bus.tls-cert", "a certificate needs a key, and a key a certificate",
			"set bus.tls-cert and bus.tls-key, or neither")
	}
	return nil
}
