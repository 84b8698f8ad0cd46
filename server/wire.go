package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/reach"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/metrics"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/replica"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// wire makes the parts above the store, and the doors. It does not start them.
func (s *Server) wire(ctx context.Context, records *store.Store) (http.Handler, error) {
	o := s.cfg.Options
	key, installation, err := s.openKey(ctx, records)
	if err != nil {
		return nil, err
	}
	s.hidden = append(s.hidden, o.Secrets()...)
	s.known.Store(key.Redactor(s.hidden...))
	sources := source.NewOpener(records, key, s.hidden...)
	confined, err := s.isolate()
	if err != nil {
		return nil, err
	}
	maker, err := venv.New(venv.Config{
		Confine: s.installers(confined),
		Python:  o.Python, CacheDir: s.layout.CacheDir(), ToolsDir: filepath.Join(s.layout.CacheDir(), "tools"),
		Records: s.layout.VenvRecords(), SSHAgent: o.GitSSHAgent, Mask: s.masker(records, sources), Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	python := ""
	if o.Has(config.RoleProcess) {
		found, err := maker.Interpreter(ctx, "")
		if err != nil {
			return nil, err // without Python, nothing can be compiled or deployed
		}
		python, s.python = found.Path, found.Version
	}
	syncer, err := gitsync.New(s.gitConfig(".env", ".env-py*", ".env.new"))
	if err != nil {
		return nil, err
	}
	modules, err := gitsync.New(s.gitConfig())
	if err != nil {
		return nil, err
	}
	builder, err := build.New(build.Config{
		Layout: s.layout, Maker: maker, Git: modules, Program: s.cfg.Program,
		NoLocal: o.Auth != config.AuthOff, Timeout: o.CompileTimeout, Memory: o.CompileMemory, Isolation: confined,
		Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, builder.Close)
	events := &bus.Bus{}
	s.bus = events
	if s.connection, err = s.connect(events, records, installation, key); err != nil {
		return nil, err
	}
	forges := &forge.Opener{Sources: sources, Version: s.cfg.Version, Reach: s.reachable()}
	commands, err := record.New(record.Config{Store: records, Key: key, Bus: events})
	if err != nil {
		return nil, err
	}
	deployments := &deployments{
		server: s, store: records, maker: maker, bus: events, sources: sources, record: commands,
		isolation: confined,
	}
	if err := s.openCatalogue(records, events, key); err != nil {
		return nil, err
	}
	clusters := &clusterFiles{s: s}
	if s.keepers, err = keeper.New(keeper.Config{
		Store: records, Bus: events, Logger: s.log, Layout: s.layout, Git: syncer, Builder: builder,
		Sources: sources, Forges: forges, NewDeployer: deployments.new, Version: s.cfg.Version,
		Clusters: clusters, Compiles: o.CompileConcurrency, AuditRetention: o.AuditRetention,
		Peers: func() int { return s.peers.With(config.RoleProcess) },
	}); err != nil {
		return nil, err
	}
	if s.peers, err = replica.New(replica.Config{
		Store: records, Logger: s.log, Roles: o.Roles, Version: s.cfg.Version, Address: s.url, Share: s.keepers.Share,
	}); err != nil {
		return nil, err
	}
	s.forge = forge.NewService(forge.Config{
		Store: records, Bus: events, Logger: s.log, Git: fetching{syncer}, Sources: sources, Forges: forges,
		Keepers: s.keepers, PublicURL: s.publicURL(), Now: time.Now, Clusters: s.clusterPlans,
		Explain: s.explain,
	})
	if err := s.openClusters(records, events, key, syncer, sources); err != nil {
		return nil, err
	}
	if err := s.openWorkers(records, events, confined, python); err != nil {
		return nil, err
	}
	if s.metrics, err = metrics.New(metrics.Config{Store: records, Logger: s.log}); err != nil {
		return nil, err
	}
	if s.processes, err = process.New(process.Config{
		Record: records, Bus: events, Logger: s.log, Worker: records.Replica().String(),
		Definitions: []process.Definition{s.forge.Process()}, Queues: map[string]int{store.ForgeQueue: forge.Senders},
	}); err != nil {
		return nil, err
	}
	if s.control, err = control.New(control.Config{
		Store: records, Bus: events, Logger: s.log, Git: fetching{syncer}, Sources: sources, Keepers: s.keepers,
		Forge: s.forge, Remotes: syncer,
	}); err != nil {
		return nil, err
	}
	if err := s.openAgents(ctx, records, events, key, sources); err != nil {
		return nil, err
	}
	return s.doors(ctx, records, events, key)
}

// gitConfig returns the configuration of a Syncer that keeps files with these names in
// its checkouts.
func (s *Server) gitConfig(keep ...string) gitsync.Config {
	agent := ""
	if s.cfg.Options.GitSSHAgent {
		if agent = os.Getenv("SSH_AUTH_SOCK"); agent == "" {
			s.log.Warn("git.ssh-agent is on, but the server was started without SSH_AUTH_SOCK")
		}
	}
	return gitsync.Config{
		Mirrors: s.layout.Mirrors(), Keep: keep, Logger: s.log, SSHAgent: agent, Learned: s.learnHostKey,
		Reach: s.reachable(), Closed: s.cfg.Options.Auth != config.AuthOff,
	}
}

// reachable returns which addresses the server connects to for the people who use it; nil: any.
func (s *Server) reachable() *reach.Rules {
	o := s.cfg.Options
	refuse := o.GitRefuse
	if o.GitGuarded && o.Auth != config.AuthOff { // a developer alone may use servers of the same machine
		refuse = slices.Concat(refuse, reach.Guarded())
	}
	if len(refuse) == 0 {
		return nil
	}
	return &reach.Rules{Refuse: refuse, Allow: o.GitAllow}
}
