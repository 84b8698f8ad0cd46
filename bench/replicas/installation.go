package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ordain.dev/ordain/bench/peer"
	"ordain.dev/ordain/server/store/postgres"
)

type config struct {
	dir          string
	binary       string // the ordain to run
	env          []string
	rounds       int
	seed         uint64
	environments int
	items        int // resources of each environment
	agents       int // remote ones
	pause        time.Duration
	patience     time.Duration
	out          io.Writer
}

// installation is a database with all processes that use it, and the environments.
type installation struct {
	config
	database *postgres.Server
	nats     *nats
	network  *network // between the agents and their server
	port     int      // of the agent server
	places   []*place // of processes, agents included
	environs []*environ
	site     string

	mu     sync.Mutex
	faults map[string]int // how often what was done
}

// place is where one process runs, and is started again.
type place struct {
	name  string
	roles string // of a server process; empty: it is an agent
	token string // with which an agent joins
	mu    sync.Mutex
	now   *peer.Server // nil while it does not run
}

// environ is an environment with its repository.
type environ struct {
	id   string
	repo *peer.Repository
}

// newInstallation starts everything, and deploys all environments once.
func newInstallation(ctx context.Context, c config) (_ *installation, err error) {
	in := &installation{config: c, site: filepath.Join(c.dir, "site"), faults: map[string]int{}}
	defer func() {
		if err != nil {
			in.stop()
		}
	}()
	data := filepath.Join(c.dir, "database")
	if err := os.MkdirAll(data, 0o711); err != nil {
		return nil, err
	}
	in.database, err = postgres.Start(ctx, postgres.Config{
		DataDir: filepath.Join(data, "data"), SocketDir: filepath.Join(data, "socket"),
		CacheDir: filepath.Join(c.dir, "cache"), Logger: slog.New(slog.DiscardHandler),
		Settings: map[string]string{"max_connections": "200"},
	})
	if err != nil {
		return nil, err
	}
	if in.nats, err = startNATS(); err != nil {
		return nil, err
	}
	if in.port, err = peer.FreePort(); err != nil {
		return nil, err
	}
	if in.network, err = newNetwork(fmt.Sprint("127.0.0.1:", in.port)); err != nil {
		return nil, err
	}
	in.places = append(in.places, &place{name: "agents", roles: "agent"})
	for n := range 3 {
		in.places = append(in.places, &place{name: fmt.Sprint("process", n), roles: "process"})
	}
	for n := range 2 {
		in.places = append(in.places, &place{name: fmt.Sprint("api", n), roles: "api"})
	}
	for _, p := range in.places {
		if err := in.start(ctx, p); err != nil {
			return nil, err
		}
	}
	for n := range c.environments {
		e, err := in.newEnviron(ctx, n)
		if err != nil {
			return nil, err
		}
		in.environs = append(in.environs, e)
	}
	if err := in.settle(ctx); err != nil {
		return nil, err
	}
	for n := range min(c.agents, 3*c.environments) {
		if err := in.join(ctx, in.environs[n%c.environments], fmt.Sprint("a", n/c.environments)); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// join starts a remote agent of an environment.
func (in *installation) join(ctx context.Context, e *environ, name string) error {
	var made struct {
		Token string `json:"token"`
	}
	err := in.api().Call(ctx, http.MethodPost, "/api/v2/agent_token", e.id, map[string]any{"agent": name}, &made)
	if err != nil {
		return err
	}
	p := &place{name: "agent-" + name + "-" + e.id[:8], token: made.Token}
	in.places = append(in.places, p)
	if err := in.start(ctx, p); err != nil {
		return err
	}
	return in.await(ctx, p.name+" to connect", func() bool {
		var all []struct {
			Name      string `json:"name"`
			Connected bool   `json:"connected"`
		}
		err := in.api().Call(ctx, http.MethodGet, "/api/v2/remote_agent", e.id, nil, &all)
		for _, a := range all {
			if err == nil && a.Name == name && a.Connected {
				return true
			}
		}
		return false
	})
}

func (in *installation) await(ctx context.Context, what string, holds func() bool) error {
	for limit := time.Now().Add(in.patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) || ctx.Err() != nil {
			return fmt.Errorf("waited in vain for %s", what)
		}
	}
	return nil
}

func (in *installation) newEnviron(ctx context.Context, n int) (*environ, error) {
	site, dir := in.siteOf(n), filepath.Join(in.dir, fmt.Sprint("repo", n))
	for _, d := range []string{site, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	repo, err := peer.NewRepository(ctx, dir, peer.Model{
		Items: in.items, Agents: 3, Plugins: peer.JournalPlugins(site),
	})
	if err != nil {
		return nil, err
	}
	id, err := in.api().Bind(ctx, repo.Bare, "main")
	return &environ{id: id, repo: repo}, err
}

func (in *installation) siteOf(n int) string { return filepath.Join(in.site, fmt.Sprint(n)) }

// start starts the process of a place.
func (in *installation) start(ctx context.Context, p *place) error {
	env := append([]string{
		"ORDAIN_ISOLATION_ALLOW_WRITE=" + in.site, "ORDAIN_ISOLATION_FIRST_USER=0",
		// All share the cache of wheels: this is about processes, not about downloads.
		"ORDAIN_CONFIG_CACHE_DIR=" + filepath.Join(in.dir, "cache"),
	}, in.env...)
	env = append(env, "ORDAIN_BUS_URL="+in.nats.url(), "ORDAIN_AGENT_SERVER_PUBLIC_URL="+in.network.url())
	if p.roles == "api" || p.roles == "agent" {
		env = append(env, "ORDAIN_COMPILER_PYTHON=/nowhere/python") // they need none
	}
	var s *peer.Server
	var err error
	switch p.roles {
	case "":
		s, err = peer.StartAgent(in.binary, filepath.Join(in.dir, p.name), p.token)
	case "agent":
		env = append(env, fmt.Sprint("ORDAIN_AGENT_SERVER_BIND_PORT=", in.port))
		fallthrough
	default:
		s, err = peer.StartRoles(ctx, in.binary, filepath.Join(in.dir, p.name), p.roles, in.database.URL(),
			filepath.Join(in.dir, "key"), env...)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = s
	return nil
}

func (in *installation) stop() {
	for _, p := range in.places {
		p.mu.Lock()
		if p.now != nil {
			_ = p.now.Resume()
			p.now.Stop()
		}
		p.mu.Unlock()
	}
	if in.network != nil {
		in.network.close()
	}
	if in.nats != nil {
		in.nats.stop()
	}
	if in.database != nil {
		_ = in.database.Stop(context.Background())
	}
}

// api returns a process with the role api that runs.
func (in *installation) api() *peer.Server {
	for {
		for _, p := range in.places {
			p.mu.Lock()
			now := p.now
			p.mu.Unlock()
			if p.roles == "api" && now != nil {
				return now
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// owners returns the place that owns each environment; nil: none does.
func (in *installation) owners(ctx context.Context) (map[*environ]*place, error) {
	pids, err := peer.Record{URL: in.database.URL()}.Owners(ctx)
	if err != nil {
		return nil, err
	}
	out := map[*environ]*place{}
	for _, e := range in.environs {
		for _, p := range in.places {
			p.mu.Lock()
			if p.now != nil && pids[e.id] == p.now.PID() {
				out[e] = p
			}
			p.mu.Unlock()
		}
	}
	return out, nil
}
