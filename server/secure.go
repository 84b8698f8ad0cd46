package server

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"ordain.dev/ordain/server/edge"
)

// secure opens the server's certificates. It returns nil when the server does not speak HTTPS itself, and else the
// names of hosts that the certificates are for.
func (s *Server) secure() (settings *tls.Config, names []string, err error) {
	o := s.cfg.Options
	if o.BehindProxy && len(o.TrustedProxies) == 0 {
		s.log.Warn("[server] behind-proxy is on without trusted-proxies: all clients count as one, the proxy")
	}
	switch {
	case len(o.ACMEDomains) > 0:
		settings, err = edge.ACME{
			Domains: o.ACMEDomains, Email: o.ACMEEmail, Directory: o.ACMEDirectory, Authority: o.ACMECAFile,
			Cache: s.layout.Certificates(),
		}.TLS()
		return settings, o.ACMEDomains, err
	case o.CertFile != "":
		files := edge.Files{Certificate: o.CertFile, Key: o.KeyFile, Authority: o.CAFile}
		certificate, err := edge.OpenCertificate(files, s.log)
		if err != nil {
			return nil, nil, err
		}
		return certificate.TLS(), certificate.Names(), nil
	}
	return nil, nil, nil
}

// listensAt returns the URL of a port that the server listens on. When it listens on all addresses of the machine, the
// host is the first name of its certificate, or else the name of the machine.
func (s *Server) listensAt(port int, names []string) string {
	host := s.cfg.Options.BindAddress
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		machine, _ := os.Hostname()
		host = cmp.Or(strings.Join(names[:min(1, len(names))], ""), machine, "localhost")
	}
	scheme := "http"
	if s.cfg.Options.TLS() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}
