package server

import (
	"os"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/eventbus"
	"ordain.dev/ordain/server/store"
)

// connect returns the service that connects the bus to those of other processes, or nil when events stay in this one.
func (s *Server) connect(
	b *bus.Bus, records *store.Store, installation uuid.UUID, key *secret.Key,
) (*eventbus.Service, error) {
	o := s.cfg.Options
	cluster := eventbus.Cluster{
		Servers: o.BusServers, CA: o.BusTLSCA, Cert: o.BusTLSCert, Key: o.BusTLSKey, User: o.BusUser,
		Password: o.BusPassword, CredentialsFile: o.BusCredentials,
	}
	switch {
	case len(cluster.Servers) > 0 || o.Bus == config.BusEmbedded:
	case o.Bus == config.BusOff, o.DatabaseURL == "": // nobody shares a private database
		return nil, nil
	}
	return eventbus.New(eventbus.Config{
		Bus: b, Record: records, Installation: installation, Key: key, Name: "ordain " + strconv.Itoa(os.Getpid()),
		Logger: s.log, Cluster: cluster, Listen: o.BusListen,
	})
}
