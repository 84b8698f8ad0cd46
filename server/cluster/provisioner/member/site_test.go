package member_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	agents "ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/gateway"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/provisioner/member"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// site is a server with a desk and a project, at which provisioners join over TLS.
type site struct {
	t       *testing.T
	store   *store.Store
	bus     *bus.Bus
	agents  *agents.Service
	service *authority.Service
	desk    *desk.Desk
	gateway *gateway.Gateway
	project uuid.UUID
	env     uuid.UUID
	ahead   atomic.Int64 // of the server's clock, in nanoseconds
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func newSite(t *testing.T, change func(*authority.Config)) *site {
	t.Helper()
	log := storetest.Logger(t)
	key, err := secret.OpenKey(t.TempDir() + "/key")
	must(t, err)
	s := &site{t: t, bus: &bus.Bus{}}
	s.store, err = store.Open(t.Context(), store.Config{URL: storetest.URL(t), Logger: log})
	must(t, err)
	t.Cleanup(s.store.Close)
	s.project, s.env = s.newProject("p")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.agents, err = agents.New(t.Context(), agents.Config{
		Store: s.store, Key: key, Bus: s.bus, Logger: log, URL: func() string { return "https://" + l.Addr().String() },
		Now: s.now,
	})
	must(t, err)
	config := authority.Config{Store: s.store, Root: s.agents, Logger: log, Now: s.now}
	if change != nil {
		change(&config)
	}
	s.service, err = authority.New(config)
	must(t, err)
	s.desk, err = desk.New(desk.Config{
		Store: s.store, Catalogues: catalogues{}, Resources: resources{}, Key: key, Bus: s.bus, Logger: log,
	})
	must(t, err)
	must(t, s.desk.Start(t.Context()))
	t.Cleanup(s.desk.Stop)
	commands, err := record.New(record.Config{Store: s.store, Key: key, Bus: s.bus})
	must(t, err)
	inner := s.service.Handler(s.desk)
	s.gateway, err = gateway.New(gateway.Config{
		Authority: s.agents, Record: commands, Store: s.store, Bus: s.bus, Logger: log, Version: "test", Listener: l,
		Hosts: []string{"127.0.0.1"},
		Provisioners: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat)) // the clock of this server
			inner.ServeHTTP(w, r)
		}),
	})
	must(t, err)
	must(t, s.gateway.Start(t.Context()))
	t.Cleanup(s.gateway.Stop)
	return s
}

func (s *site) newProject(name string) (project, env uuid.UUID) {
	s.t.Helper()
	project, env = uuid.New(), uuid.New()
	must(s.t, s.store.CreateProject(s.t.Context(), intent.Project{ID: project, Name: name}))
	must(s.t, s.store.CreateEnvironment(s.t.Context(),
		intent.Environment{ID: env, ProjectID: project, Name: "e " + name}, nil))
	return project, env
}

// token makes a join token.
func (s *site) token(project uuid.UUID, name string) (intent.ProvisionerToken, string) {
	s.t.Helper()
	token, text, err := s.service.CreateToken(s.t.Context(), project, name, 0)
	must(s.t, err)
	return token, text
}

// join makes a provisioner of the project.
func (s *site) join(project uuid.UUID, name string) *provisioner {
	s.t.Helper()
	_, text := s.token(project, name)
	folder := filepath.Join(s.t.TempDir(), "state")
	must(s.t, member.Join(s.t.Context(), text, folder))
	return s.open(folder)
}

// provisioner is one that has joined, as a test sees it.
type provisioner struct {
	*member.Member
	*client.Client
	folder string
}

func (s *site) open(folder string) *provisioner {
	s.t.Helper()
	m, err := member.Open(folder, storetest.Logger(s.t))
	must(s.t, err)
	s.t.Cleanup(m.Stop)
	c, err := client.New(client.Config{Base: m.Base(), HTTP: m.HTTP(), Patience: 10 * time.Second})
	must(s.t, err)
	return &provisioner{m, c, folder}
}

func (p *provisioner) hello(ctx context.Context) (task.Welcome, error) {
	return p.Hello(ctx, task.Hello{Protocol: task.Version, Program: "test 1", Room: 4})
}

// work gives a project a job that makes machines.
func (s *site) work(project, env uuid.UUID, machines int) (job uuid.UUID) {
	s.t.Helper()
	m := manifest.Manifest{Name: "c-" + uuid.NewString()[:8], Owner: "ada", Template: "plain", Size: machines}
	cluster := intent.Cluster{ID: uuid.New(), Environment: env, Name: m.Name, Owner: "ada"}
	var nodes []intent.ClusterNode
	j := intent.ClusterJob{ID: uuid.New(), Cluster: cluster.ID, Action: "create", MadeBy: "ada"}
	var tasks []intent.ClusterTask
	for i := range machines {
		n := manifest.Node{Number: manifest.FirstNode + i, Hostname: manifest.Hostname(m.Name, i, "local")}
		m.Nodes = append(m.Nodes, n)
		nodes = append(nodes, intent.ClusterNode{
			Cluster: cluster.ID, Number: n.Number, Hostname: n.Hostname, Hardware: "small", Image: "debian",
			Provider: "cloud",
		})
		tasks = append(tasks, intent.ClusterTask{
			ID: uuid.New(), Number: i, Project: project, Node: n.Number, Action: string(task.Create), Provider: "cloud",
		})
	}
	var err error
	cluster.Wanted, err = json.Marshal(m)
	must(s.t, err)
	j.Goal = cluster.Wanted
	must(s.t, s.store.AddCluster(s.t.Context(), cluster))
	_, err = s.store.StartClusterJob(s.t.Context(), env, j, nodes, tasks)
	must(s.t, err)
	s.bus.Publish(bus.Event{Environment: env, Topic: bus.Cluster, ID: cluster.ID.String()})
	return j.ID
}

// catalogues offer the same to all projects.
type catalogues struct{}

func (catalogues) Catalogue(context.Context, intent.ProjectID) (*catalogue.Catalogue, error) {
	template := &catalogue.Template{Head: catalogue.Head{Name: "plain"}}
	template.Defaults.Provider = "cloud"
	return catalogue.New(template,
		&catalogue.PluginType{Head: catalogue.Head{Name: "sky"}},
		&catalogue.Provider{Head: catalogue.Head{Name: "cloud"}, ProviderType: "sky"}), nil
}

func (c catalogues) Pinned(
	ctx context.Context, project intent.ProjectID, _ map[catalogue.Kind]map[string]int,
) (*catalogue.Catalogue, error) {
	return c.Catalogue(ctx, project)
}

func (catalogues) ProviderSecrets(
	_ context.Context, project uuid.UUID, _ string, _ int,
) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{"password": json.RawMessage(`"secret of ` + project.String() + `"`)}, nil
}

// content is a resource that takes a while on the way.
var content = bytes.Repeat([]byte("0123456789abcdef"), 1<<18)

type resources struct{}

func (resources) Active(context.Context, uuid.UUID, string, string) ([]task.Resource, error) {
	return nil, nil
}

func (resources) OpenHash(_ context.Context, _ uuid.UUID, hash string) (io.ReadCloser, int64, error) {
	if hash != protocol.Hash(content) {
		return nil, 0, fault.New("resources.OpenHash", fault.NotFound, "there is no such resource")
	}
	return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
}
