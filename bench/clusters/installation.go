package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing/fstest"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
)

// installation is the cluster service on a database of its own. This process is the server.
type installation struct {
	dir      string
	database *postgres.Server
	store    *store.Store
	bus      *bus.Bus
	service  *cluster.Service
	desk     *desk.Desk
	listener net.Listener
	projects []intent.ProjectID
	envs     []intent.Environment
	ctx      context.Context
}

// noRepository refuses: clusters are not changed here by verbs.
type noRepository struct{ cluster.Repository }

// noResources has no files.
type noResources struct{}

func (noResources) Active(context.Context, uuid.UUID, string, string) ([]task.Resource, error) {
	return nil, nil
}

func (noResources) OpenHash(context.Context, uuid.UUID, string) (io.ReadCloser, int64, error) {
	return nil, 0, fault.New("bench", fault.NotFound, "there are no resources")
}

// install starts everything. Close ends it.
func install(ctx context.Context, o options, lease time.Duration) (in *installation, err error) {
	in = &installation{bus: &bus.Bus{}, ctx: access.With(ctx, access.Principal{Kind: access.Person, Name: "bench"})}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	if in.dir, err = os.MkdirTemp("", "ordain-bench-clusters-"); err != nil {
		return in, err
	}
	if err := os.Chmod(in.dir, 0o711); err != nil {
		return in, err
	}
	quiet := slog.New(slog.DiscardHandler)
	if in.database, err = postgres.Start(ctx, postgres.Config{
		DataDir: filepath.Join(in.dir, "data"), SocketDir: filepath.Join(in.dir, "socket"),
		CacheDir: filepath.Join(in.dir, "cache"), Logger: quiet,
	}); err != nil {
		return in, err
	}
	if in.store, err = store.Open(ctx, store.Config{URL: in.database.URL(), Logger: quiet}); err != nil {
		return in, err
	}
	key, err := secret.OpenKey(filepath.Join(in.dir, "key"))
	if err != nil {
		return in, err
	}
	catalogue, err := admin.New(admin.Config{Store: in.store, Key: key, Bus: in.bus})
	if err != nil {
		return in, err
	}
	if in.service, err = cluster.New(cluster.Config{
		Store: in.store, Catalogues: catalogue, Repository: noRepository{}, Key: key, Bus: in.bus, Logger: quiet,
		Owns: func(intent.EnvironmentID) bool { return true }, Sweep: time.Second,
	}); err != nil {
		return in, err
	}
	if in.desk, err = desk.New(desk.Config{
		Store: in.store, Catalogues: catalogue, Resources: noResources{}, Key: key, Bus: in.bus, Logger: quiet,
		Lease: lease, PerProvider: 10_000, Backoff: 100 * time.Millisecond,
	}); err != nil {
		return in, err
	}
	entries, err := admin.ReadFolder(catalogueFiles(o))
	if err != nil {
		return in, err
	}
	if _, err := catalogue.Import(in.ctx, intent.ProjectID{}, entries, false); err != nil {
		return in, err
	}
	if err := in.people(o); err != nil {
		return in, err
	}
	if in.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return in, err
	}
	go func() { _ = http.Serve(in.listener, in.desk.Handler(in.who)) }() // until it is closed
	if err := in.desk.Start(ctx); err != nil {
		return in, err
	}
	return in, in.service.Start(ctx)
}

// people makes projects and environments.
func (in *installation) people(o options) error {
	for n := range o.projects {
		p := intent.Project{ID: uuid.New(), Name: fmt.Sprintf("project-%d", n)}
		if err := in.store.CreateProject(in.ctx, p); err != nil {
			return err
		}
		e := intent.Environment{ID: uuid.New(), ProjectID: p.ID, Name: "prod", Source: intent.Source{URL: "/nowhere"}}
		if err := in.store.CreateEnvironment(in.ctx, e, nil); err != nil {
			return err
		}
		in.projects, in.envs = append(in.projects, p.ID), append(in.envs, e)
	}
	return nil
}

// who identifies provisioners by the header that stands for a certificate here.
func (in *installation) who(r *http.Request) (desk.Who, error) {
	n, err := strconv.Atoi(r.Header.Get(numberHeader))
	if err != nil || n < 0 {
		return desk.Who{}, errors.New("a provisioner without a number")
	}
	return desk.Who{Project: in.projects[n%len(in.projects)], Name: fmt.Sprintf("provisioner-%d", n)}, nil
}

func (in *installation) close() {
	if in.service != nil {
		in.service.Stop()
	}
	if in.desk != nil {
		in.desk.Stop()
	}
	if in.listener != nil {
		_ = in.listener.Close()
	}
	if in.store != nil {
		in.store.Close()
	}
	if in.database != nil {
		_ = in.database.Stop(context.WithoutCancel(in.ctx)) // it is thrown away
	}
	_ = os.RemoveAll(in.dir)
}

// catalogueFiles has one provider, and a template with two services.
func catalogueFiles(o options) map[string][]byte {
	service := func(name string, requires string, actions ...string) string {
		var out []string
		for _, a := range actions {
			out = append(out, fmt.Sprintf(`%q:{"type":"nothing","fields":{}}`, a))
		}
		return fmt.Sprintf(
			`{"name":%q,"dependencies":{"runtime":{"requires":[%s]}},"provisioner":{"actions":{%s}}}`,
			name,
			requires,
			strings.Join(out, ","),
		)
	}
	return map[string][]byte{
		"plugins/cloud.json": []byte(`{"name":"cloud","providertypes":["cloud"],"automatortypes":["nothing"],
			"cloud":{"name":"cloud","parameters":{"admin":{"fields":{}}}},
			"nothing":{"name":"nothing","parameters":{"admin":{"fields":{}}}}}`),
		"providers/lab.json":       []byte(`{"name":"lab","providertype":"cloud","provisioner":{}}`),
		"hardwaretypes/small.json": []byte(`{"name":"small","providermap":{"lab":{"flavor":"s"}}}`),
		"imagetypes/debian.json":   []byte(`{"name":"debian","providermap":{"lab":{"image":"d","sshuser":"root"}}}`),
		"services/db.json":         []byte(service("db", "", "install", "configure", "start", "stop")),
		"services/web.json":        []byte(service("web", `"db"`, "install", "configure", "start", "stop")),
		"clustertemplates/lamp.json": fmt.Appendf(
			nil,
			`{"name":"lamp","defaults":{"services":["db","web"],"provider":"lab",
			"hardwaretype":"small","imagetype":"debian","config":{"peers":"%%num.service.web%%"}},
			"compatibility":{"services":["db","web"]},"constraints":{"size":{"min":1,"max":%d}}}`,
			max(o.nodes, 1),
		),
	}
}

// want releases a version of an environment with clusters of a size; 0: without any.
func (in *installation) want(e intent.Environment, clusters, nodes int) error {
	files := fstest.MapFS{}
	for n := range clusters {
		name := fmt.Sprintf("c%d", n)
		files[manifest.PathOf(name)] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"cluster: %s\nowner: bench\ntemplate: lamp\nsize: %d\nservices: [db, web]\n", name, nodes)}
	}
	manifests, err := in.service.Read(in.ctx, e, files, func(string) {})
	if err != nil {
		return err
	}
	number, err := in.store.StoreVersion(
		in.ctx,
		intent.NewVersion{Environment: e.ID, Clusters: manifests},
		time.Now(),
	)
	if err != nil {
		return err
	}
	if err := in.store.ReleaseVersion(in.ctx, e.ID, number, time.Now()); err != nil {
		return err
	}
	in.service.Wake(e.ID)
	return nil
}

// await waits until all clusters of all environments are in a state.
func (in *installation) await(ctx context.Context, state intent.ClusterState, within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		left := ""
		for _, e := range in.envs {
			all, err := in.store.Clusters(ctx, e.ID, true)
			if err != nil {
				return err
			}
			live := false
			for _, c := range all {
				live = live || c.State != intent.ClusterTerminated
				if c.State == intent.ClusterTerminated && state != intent.ClusterTerminated {
					continue // of an earlier round
				}
				if c.State != state {
					left = fmt.Sprintf("%s of %s is %s: %s", c.Name, e.ID, c.State, c.Problem)
				}
				if c.State == intent.ClusterIncomplete || c.State == intent.ClusterInconsistent {
					return fmt.Errorf("a cluster failed: %s", left)
				}
			}
			if state == intent.ClusterActive && !live {
				left = e.ID.String() + " has no cluster yet"
			}
		}
		if left == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s, %s", within, left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
