package clusters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/cloudtest"
	"ordain.dev/ordain/server/config"
)

// service is the script of all services: it keeps a folder in the state of its last action, with the configuration.
const service = `#!/bin/sh
set -e
dir="/srv/$1"
case "$2" in
install) mkdir -p "$dir"; echo installed > "$dir/state" ;;
configure) cp "$ORDAIN_TASK" "$dir/task.json"; echo configured > "$dir/state" ;;
start) echo "started $(hostname)" > "$dir/state" ;;
stop) echo stopped > "$dir/state" ;;
remove) rm -rf "$dir" ;;
esac
echo "$1: $2 on $(hostname)"
`

const clean = "#!/bin/sh\nrm -rf /srv/*\n"

// story is a server, an environment, and machines of a pool.
type story struct {
	*lab.Place

	parts    server.Clusters
	ctx      context.Context
	e        intent.Environment
	machines []*clustertest.Machine
	look     func() // what happens around the server while something is awaited; nil: nothing
}

// newStory has machines of a pool.
func newStory(t *testing.T, machines int) *story {
	s := begin(t)
	s.machines = clustertest.Machines(t, machines)
	s.offer(s.pool(), "pool", s.machines[0].Key())
	s.upload(catalogue.ProviderTypes, "pool", "scripts", "clean.sh", []byte(clean))
	_, err := s.parts.Resources.Sync(s.ctx, s.e.ProjectID)
	s.must(err)
	return s
}

// begin starts a server with an environment.
func begin(t *testing.T) *story {
	clustertest.NeedRoot(t)
	w := lab.OwnWorld(t, func(o *config.Config) {
		o.ClusterBackoff, o.ClusterLease = time.Second, 5*time.Second
	})
	s := &story{
		Place: lab.NewDeployedPlace(t, w), parts: w.Server.Clusters(),
		ctx: access.With(t.Context(), access.Principal{Kind: access.Person, Name: "anna"}),
	}
	var err error
	s.e, err = s.Store.Environment(s.ctx, s.Env)
	s.must(err)
	return s
}

// offer imports the catalogue with a provider, whose machines let a key in.
func (s *story) offer(provider []byte, plugin string, key []byte) {
	s.T.Helper()
	entries, err := admin.ReadFolder(s.catalogue(provider))
	s.must(err)
	_, err = s.parts.Catalogue.Import(s.ctx, s.e.ProjectID, entries, false)
	s.must(err)
	s.upload(catalogue.ProviderTypes, plugin, "ssh_keys", "team", key)
	s.upload(catalogue.AutomatorTypes, "shell", "scripts", "service.sh", []byte(service))
	_, err = s.parts.Resources.Sync(s.ctx, s.e.ProjectID)
	s.must(err)
}

func (s *story) must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

func (s *story) upload(kind catalogue.Kind, plugin, resource, name string, content []byte) {
	s.T.Helper()
	ref := intent.ClusterResourceRef{
		Project: s.e.ProjectID, Kind: string(kind), Plugin: plugin, Type: resource, Name: name,
	}
	r, err := s.parts.Resources.Upload(s.ctx, ref, bytes.NewReader(content))
	s.must(err)
	_, err = s.parts.Resources.Stage(s.ctx, r.ClusterResourceRef)
	s.must(err)
}

// pool is a provider that lends the machines of the story.
func (s *story) pool() []byte {
	var pool []string
	for _, m := range s.machines {
		keys, err := json.Marshal(m.HostKeys())
		s.must(err)
		pool = append(
			pool,
			fmt.Sprintf(`{"address":%q,"port":%d,"user":"root","hostkeys":%s}`, m.Address, m.Port, keys),
		)
	}
	return fmt.Appendf(nil, `{"name":"lab","providertype":"pool","provisioner":{"ssh_user":"root",
		"ssh_key_resource":"team","clean_script":"clean.sh","machines":[%s]}}`, strings.Join(pool, ","))
}

// catalogue is what a provider with the name lab is used for.
func (s *story) catalogue(provider []byte) map[string][]byte {
	shell := func(name, dependencies string, actions ...string) []byte {
		var out []string
		for _, a := range actions {
			out = append(
				out,
				fmt.Sprintf(`%q:{"type":"shell","fields":{"script":"service.sh","args":"%s %s"}}`, a, name, a),
			)
		}
		return fmt.Appendf(nil, `{"name":%q,"dependencies":{%s},"provisioner":{"actions":{%s}}}`, name, dependencies,
			strings.Join(out, ","))
	}
	return map[string][]byte{
		"providers/lab.json": provider,
		"hardwaretypes/small.json": fmt.Appendf(nil, `{"name":"small","providermap":{"lab":{"flavor":%q}}}`,
			cloudtest.Flavor),
		"imagetypes/debian.json": fmt.Appendf(nil,
			`{"name":"debian","providermap":{"lab":{"image":%q,"sshuser":"root"}}}`, cloudtest.Image),
		"services/mysql.json": shell(
			"mysql",
			`"provides":["sql"]`,
			"install",
			"configure",
			"start",
			"stop",
			"remove",
		),
		"services/apache.json": shell(
			"apache",
			`"runtime":{"requires":["sql"]}`,
			"install",
			"configure",
			"start",
			"stop",
			"remove",
		),
		"services/memcached.json": shell("memcached", "", "install", "start", "stop", "remove"),
		"clustertemplates/lamp.json": []byte(
			`{"name":"lamp","defaults":{"services":["apache","mysql"],"provider":"lab",
			"hardwaretype":"small","imagetype":"debian","config":{"database":"%ip.access_v4.service.mysql%"}},
			"compatibility":{"hardwaretypes":["small"],"imagetypes":["debian"],
			"services":["apache","mysql","memcached"]},
			"constraints":{"size":{"min":1,"max":10},"layout":{"cantcoexist":[["apache","mysql"]]},
			"services":{"mysql":{"quantities":{"min":1,"max":1}}}}}`,
		),
	}
}

// amend commits a change, and waits until it is in place.
func (s *story) amend(a cluster.Amendment) {
	s.T.Helper()
	_, written, err := s.parts.Clusters.Amend(s.ctx, s.e, "shop", a)
	s.must(err)
	s.inPlace(written.Commit)
}

// inPlace waits until the cluster is as a commit has it.
func (s *story) inPlace(commit string) {
	s.T.Helper()
	s.until("commit "+commit+" is in place", func(c intent.Cluster) bool {
		return c.State == intent.ClusterActive && c.AppliedAt == commit
	})
}

func (s *story) cluster() intent.Cluster {
	s.T.Helper()
	all, err := s.Store.Clusters(s.ctx, s.Env, true)
	s.must(err)
	if len(all) == 0 {
		return intent.Cluster{}
	}
	return all[len(all)-1]
}

func (s *story) until(what string, is func(intent.Cluster) bool) {
	s.T.Helper()
	lab.WaitFor(s.T, func() bool {
		if s.look != nil {
			s.look()
		}
		c := s.cluster()
		failed := c.State == intent.ClusterIncomplete || c.State == intent.ClusterInconsistent
		if failed && !is(c) && !c.Retry {
			s.T.Fatalf("%s does not come true: %s", what, c.Problem)
		}
		return is(c)
	}, func() string {
		c := s.cluster()
		jobs, _ := s.Store.ClusterJobs(s.ctx, c.ID, 1) // for the message only
		text := fmt.Sprintf("%s does not come true: the cluster is %s: %s", what, c.State, c.Problem)
		for _, j := range jobs {
			tasks, _ := s.Store.ClusterTasks(s.ctx, j.ID)
			for _, t := range tasks {
				if t.State != intent.TaskComplete {
					text += fmt.Sprintf(
						"\n%d %s %s: %s after %d attempts: %s",
						t.Node,
						t.Action,
						t.Service,
						t.State,
						t.Attempts,
						t.Problem,
					)
				}
			}
		}
		return text
	})
}

// with returns the machines that have a service started, by what lies on them.
func (s *story) with(service string) (out []*clustertest.Machine) {
	for _, m := range s.machines {
		if file := "/srv/" + service + "/state"; m.Exists(file) && strings.HasPrefix(m.Read(file), "started") {
			out = append(out, m)
		}
	}
	return out
}

// machineOf returns the machine that is lent to a node.
func (s *story) machineOf(number int) *clustertest.Machine {
	s.T.Helper()
	nodes, err := s.Store.ClusterNodes(s.ctx, false, s.cluster().ID)
	s.must(err)
	for _, n := range nodes {
		var facts struct {
			Addresses map[string]string `json:"addresses"`
		}
		s.must(json.Unmarshal(n.Facts, &facts))
		for _, m := range s.machines {
			if n.Number == number && m.Address == facts.Addresses["access_v4"] {
				return m
			}
		}
	}
	s.T.Fatalf("node %d has no machine", number)
	return nil
}

func (s *story) count(service string, want int) {
	s.T.Helper()
	if got := len(s.with(service)); got != want {
		s.T.Errorf("%d machines have %s started, want %d", got, service, want)
	}
}

// TestTheStoryOfACluster: a LAMP-like cluster of three nodes is made, amended to five, gets a service, has a node
// replaced whose machine broke, and is deleted. Each step is a commit, and what counts is what lies on the machines.
func TestTheStoryOfACluster(t *testing.T) {
	tool.Heavy(t, "runs servers and machines")
	s := newStory(t, 7)
	_, written, err := s.parts.Clusters.Create(s.ctx, s.e, cluster.Wish{Name: "shop", Template: "lamp", Size: 3})
	s.must(err)
	s.Git("fetch", "-q", "origin")
	who := strings.TrimSpace(s.Git("log", "-1", "--format=%an|%cn|%s", "origin/main"))
	if who != "anna|Ordain|Create the cluster shop" {
		t.Errorf("the commit is %q", who)
	}
	s.inPlace(written.Commit)
	s.count("mysql", 1)
	s.count("apache", 2)
	database := s.with("mysql")[0]
	for _, m := range s.with("apache") {
		if task := m.Read("/srv/apache/task.json"); !strings.Contains(task, `"database": "`+database.Address+`"`) {
			t.Errorf("apache on %s is configured with %s", m.Address, task)
		}
	}

	before := database.Read("/srv/mysql/state")
	five := 5
	s.amend(cluster.Amendment{Size: &five})
	s.count("apache", 4)
	if s.with("mysql")[0] != database || database.Read("/srv/mysql/state") != before {
		t.Error("the database moved")
	}

	s.amend(cluster.Amendment{AddServices: []string{"memcached"}})
	s.count("memcached", 5)

	// A machine breaks. Its node is replaced; but nobody may say that the machine is gone before it was cleaned.
	broken := s.machineOf(1002)
	broken.Stop()
	_, _, err = s.parts.Clusters.Amend(s.ctx, s.e, "shop", cluster.Amendment{Replace: []int{1002}})
	s.must(err)
	s.until("the change fails", func(c intent.Cluster) bool { return c.State == intent.ClusterInconsistent })
	lab.Mentions(t, s.cluster().Problem, "delete on node 1002", broken.Address)
	s.count("apache", 4) // the new one works, and what the broken one has cannot be seen: it is off
	broken.Restart()
	s.must(s.parts.Clusters.Retry(s.ctx, s.e, "shop"))
	s.until(
		"the broken machine is given back",
		func(c intent.Cluster) bool { return c.State == intent.ClusterActive },
	)
	if broken.Exists("/srv/apache") {
		t.Error("the machine was given back as it was")
	}
	s.count("apache", 4)

	s.amend(cluster.Amendment{RemoveServices: []string{"memcached"}})
	for _, m := range s.machines {
		if m.Exists("/srv/memcached") {
			t.Errorf("%s still has memcached", m.Address)
		}
	}

	_, err = s.parts.Clusters.Delete(s.ctx, s.e, "shop")
	s.must(err)
	s.until("the cluster ends", func(c intent.Cluster) bool { return c.State == intent.ClusterTerminated })
	for _, m := range s.machines {
		for _, service := range []string{"apache", "mysql"} {
			if m.Exists("/srv/" + service) {
				t.Errorf("%s still has %s", m.Address, service)
			}
		}
	}
	s.tellsNoSecrets()
}

// tellsNoSecrets looks for the private key in what the record and Git have.
func (s *story) tellsNoSecrets() {
	s.T.Helper()
	line := strings.Split(string(s.machines[0].Key()), "\n")[1]
	if text := s.Git("log", "-p", "--all"); strings.Contains(text, line) {
		s.T.Error("the private key is in Git")
	}
	c := s.cluster()
	jobs, err := s.Store.ClusterJobs(s.ctx, c.ID, 100)
	s.must(err)
	for _, j := range jobs {
		tasks, err := s.Store.ClusterTasks(s.ctx, j.ID)
		s.must(err)
		for _, t := range tasks {
			whole, err := s.Store.ClusterTask(s.ctx, j.ID, t.Number)
			s.must(err)
			if strings.Contains(whole.Output+whole.Problem, line) {
				s.T.Errorf("the private key is in the output of task %d", t.Number)
			}
		}
	}
}

// TestAMachineWithAnotherKey: a machine whose host key is not the declared one is not used, and the reason is told.
func TestAMachineWithAnotherKey(t *testing.T) {
	tool.Heavy(t, "runs servers and machines")
	s := newStory(t, 2)
	for _, m := range s.machines {
		m.ChangeHostKey()
	}
	_, _, err := s.parts.Clusters.Create(s.ctx, s.e, cluster.Wish{
		Name: "shop", Template: "lamp", Size: 1, Services: []string{"mysql"},
	})
	s.must(err)
	s.until("the cluster fails", func(c intent.Cluster) bool { return c.State == intent.ClusterIncomplete })
	lab.Mentions(t, s.cluster().Problem, "host key")
	if slices.ContainsFunc(s.machines, func(m *clustertest.Machine) bool { return m.Exists("/srv/mysql") }) {
		t.Error("something was installed all the same")
	}
}
