package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/gateway"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/callback"
	provisioners "ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/edge"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// openAgents makes the authority of remote agents, and the server that they talk to if this process has the role.
func (s *Server) openAgents(
	ctx context.Context, records *store.Store, events *bus.Bus, key *secret.Key, sources *source.Opener,
) error {
	o := s.cfg.Options
	own, trust, err := s.agentCertificate()
	if err != nil {
		return err
	}
	var listener net.Listener
	at := o.AgentURL
	if o.AgentPort != config.AgentPortOff && o.Has(config.RoleAgent) {
		if listener, err = listen(o.AgentAddress, o.AgentPort); err != nil {
			return err
		}
		s.undo = append(s.undo, func() { _ = listener.Close() })
		port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		at = cmp.Or(at, "https://"+net.JoinHostPort(s.agentHosts()[0], port))
	}
	if s.agents, err = authority.New(ctx, authority.Config{
		Store: records, Key: key, Bus: events, Logger: s.log, URL: func() string { return at },
		OwnCertificate: own != nil, OwnCA: trust, Lifetime: o.AgentCertLifetime,
	}); err != nil {
		return err
	}
	if s.clusters.Provisioners, err = provisioners.New(provisioners.Config{
		Store: records, Root: s.agents, Logger: s.log, Lifetime: o.AgentCertLifetime,
	}); err != nil {
		return err
	}
	commands, err := record.New(record.Config{Store: records, Key: key, Bus: events})
	if err != nil || listener == nil {
		return err
	}
	s.gateway, err = gateway.New(gateway.Config{
		Authority: s.agents, Record: commands, Store: records, Bus: events, Logger: s.log, Version: s.cfg.Version,
		Listener: listener, TLS: own, Hosts: s.agentHosts(), MaxAgents: o.AgentConnections,
		Provisioners: s.clusters.Provisioners.Handler(s.clusters.Desk),
		Desk: func(env intent.EnvironmentID) (gateway.Desk, error) {
			return callback.New(env, func() http.Handler { return s.rest })
		},
		Files: func(env intent.EnvironmentID) (gateway.Files, error) { return files{records, env}, nil },
		Variables: func(ctx context.Context, env intent.EnvironmentID) (map[string]string, []string, error) {
			all, err := (&variables{sources: sources, env: env, passed: o.ExecutorEnvironment}).all(ctx)
			values, plain := map[string]string{}, []string{}
			for _, v := range all {
				if values[v.Name] = v.Value; !v.Secret {
					plain = append(plain, v.Name)
				}
			}
			return values, plain, err
		},
	})
	return err
}

// agentCertificate opens the operator's certificate for the agent server, and the authority that agents rely on then.
func (s *Server) agentCertificate() (settings *tls.Config, trust string, err error) {
	o := s.cfg.Options
	if o.AgentCertFile == "" {
		return nil, "", nil
	}
	certificate, err := edge.OpenCertificate(edge.Files{
		Certificate: o.AgentCertFile, Key: o.AgentKeyFile, Authority: o.AgentCAFile,
	}, s.log)
	if err != nil {
		return nil, "", err
	}
	if o.AgentCAFile != "" {
		text, err := os.ReadFile(o.AgentCAFile)
		if err != nil {
			return nil, "", fault.Disk("server.agentCertificate", o.AgentCAFile, err)
		}
		trust = string(text)
	}
	return certificate.TLS(), trust, nil
}

// agentHosts returns the names and addresses under which agents reach their server, the one to use first.
func (s *Server) agentHosts() []string {
	o := s.cfg.Options
	var hosts []string
	if u, err := url.Parse(o.AgentURL); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	}
	machine, _ := os.Hostname() // it may have no name
	if ip, err := netip.ParseAddr(o.AgentAddress); err == nil && ip.IsUnspecified() {
		hosts = append(append(hosts, o.AgentHosts...), machine)
	} else {
		hosts = append(append(hosts, o.AgentHosts...), o.AgentAddress, machine)
	}
	hosts = append(hosts, "localhost", "127.0.0.1", "::1")
	return slices.DeleteFunc(hosts, func(h string) bool { return h == "" })
}
