package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/bench/peer"
	"ordain.dev/ordain/server/store/postgres"
)

// installation is a database with the servers that use it, and the environments.
type installation struct {
	config
	database *postgres.Server
	record   peer.Record
	servers  []*peer.Server // that run
	environs []*environ
}

// environ is an environment with its repository, and the folder that its resources are deployed to.
type environ struct {
	id   string
	repo *peer.Repository
	site string
}

func newInstallation(ctx context.Context, c config) (*installation, error) {
	in := &installation{config: c}
	data := filepath.Join(c.dir, "database")
	if err := os.MkdirAll(data, 0o711); err != nil {
		return nil, err
	}
	var err error
	in.database, err = postgres.Start(ctx, postgres.Config{
		DataDir: filepath.Join(data, "data"), SocketDir: filepath.Join(data, "socket"), CacheDir: c.cache,
		Logger: slog.New(slog.DiscardHandler), Settings: map[string]string{"max_connections": "200"},
	})
	if err != nil {
		return nil, err
	}
	in.record = peer.Record{URL: in.database.URL()}
	return in, nil
}

func (in *installation) stop() {
	for _, s := range in.servers {
		s.Stop()
	}
	_ = in.database.Stop(context.Background())
}

// start starts a server; its files are in the folder name.
func (in *installation) start(ctx context.Context, binary, name, roles string) (*peer.Server, error) {
	s, err := peer.StartRoles(ctx, binary, filepath.Join(in.dir, name), roles, in.database.URL(),
		filepath.Join(in.dir, "key"),
		"ORDAIN_ISOLATION_ALLOW_WRITE="+filepath.Join(in.dir, "site"), "ORDAIN_ISOLATION_FIRST_USER=0",
		"ORDAIN_CONFIG_CACHE_DIR="+in.cache)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	in.servers = append(in.servers, s)
	return s, nil
}

// end stops a server, by kill if that is set.
func (in *installation) end(s *peer.Server, kill bool) {
	in.servers = slices.DeleteFunc(in.servers, func(other *peer.Server) bool { return other == s })
	if kill {
		s.Kill()
	} else {
		s.Stop()
	}
}

// bind makes an environment with a repository, through the API of a server.
func (in *installation) bind(ctx context.Context, s *peer.Server, n int) error {
	e := &environ{site: filepath.Join(in.dir, "site", fmt.Sprint(n))}
	dir := filepath.Join(in.dir, fmt.Sprint("repo", n))
	for _, d := range []string{e.site, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	var err error
	if e.repo, err = peer.NewRepository(ctx, dir, peer.Model{
		Items: in.items, Agents: 3, Plugins: peer.JournalPlugins(e.site),
	}); err != nil {
		return err
	}
	if e.id, err = s.Bind(ctx, e.repo.Bare, "main"); err != nil {
		return err
	}
	in.environs = append(in.environs, e)
	return nil
}

// pushAll changes every second resource of every environment.
func (in *installation) pushAll(ctx context.Context) error {
	var items []int
	for i := 0; i < in.items; i += 2 {
		items = append(items, i)
	}
	for _, e := range in.environs {
		if err := e.repo.ChangeSome(ctx, items, ""); err != nil {
			return err
		}
		if err := e.repo.Push(ctx); err != nil {
			return err
		}
	}
	return nil
}

// await waits until what is left is nothing.
func (in *installation) await(ctx context.Context, what string, left func() ([]string, error)) error {
	for limit := time.Now().Add(in.patience); ; time.Sleep(50 * time.Millisecond) {
		rest, err := left()
		switch {
		case err == nil && len(rest) == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(limit):
			return fmt.Errorf("waited %s for %s; %d left: %s (%w)", in.patience, what, len(rest),
				strings.Join(rest[:min(len(rest), 5)], "; "), errors.Join(err))
		}
	}
}

// undeployed lists what is not as it was pushed, or still under way.
func (in *installation) undeployed(ctx context.Context) (left []string, err error) {
	for n, e := range in.environs {
		for i := range in.items {
			content, err := os.ReadFile(filepath.Join(e.site, fmt.Sprint("item", i)))
			if err != nil || string(content) != e.repo.Value(i) {
				left = append(left,
					fmt.Sprintf("item%d of environment %d is %q, not %s", i, n, content, e.repo.Value(i)))
			}
		}
	}
	if len(left) > 0 {
		return left, nil
	}
	return in.record.Unsettled(ctx)
}

// notOwnedBy lists the environments that a server does not own.
func (in *installation) notOwnedBy(ctx context.Context, s *peer.Server) (others []string, err error) {
	owners, err := in.record.Owners(ctx)
	for n, e := range in.environs {
		if owners[e.id] != s.PID() {
			others = append(others, fmt.Sprint("environment ", n))
		}
	}
	return others, err
}

// check looks at a state in which everything is deployed: nothing was written twice, and
// every server runs and answers.
func (in *installation) check(ctx context.Context) error {
	var troubles []error
	for n, e := range in.environs {
		twice, err := peer.WrittenTwice(e.site)
		if err != nil {
			return err
		}
		for _, what := range twice {
			troubles = append(troubles, fmt.Errorf("environment %d wrote %s", n, what))
		}
	}
	twice, err := in.record.ChangedTwice(ctx)
	if err != nil {
		return err
	}
	for _, what := range twice {
		troubles = append(troubles, errors.New(what))
	}
	for _, s := range in.servers {
		if err := in.answers(ctx, s); err != nil {
			troubles = append(troubles, fmt.Errorf("the server at %s: %w", s.URL(), err))
		}
	}
	return errors.Join(troubles...)
}

// answers asks a server for what people look at most, and changes a setting through it.
func (in *installation) answers(ctx context.Context, s *peer.Server) error {
	if err := syscall.Kill(s.PID(), 0); err != nil {
		return fmt.Errorf("it does not run any more: %w", err)
	}
	for _, e := range in.environs {
		var resources []struct {
			Status string `json:"status"`
		}
		if err := s.Call(ctx, http.MethodGet, "/api/v2/resource?limit=100", e.id, nil, &resources); err != nil {
			return err
		}
		if len(resources) != min(in.items, 100) {
			return fmt.Errorf("it lists %d resources, not %d", len(resources), in.items)
		}
		for _, path := range []string{
			"/api/v2/environment/" + e.id, "/api/v2/compilereport?limit=5", "/api/v2/desiredstate?limit=5",
			"/api/v2/agents", "/api/v2/environment_settings",
		} {
			if err := s.Call(ctx, http.MethodGet, path, e.id, nil, nil); err != nil {
				return fmt.Errorf("GET %s: %w", path, err)
			}
		}
		if err := s.Set(ctx, e.id, "available_versions_to_keep", 50); err != nil {
			return err
		}
	}
	return nil
}
