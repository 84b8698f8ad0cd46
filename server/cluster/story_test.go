package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/servertest"
)

// lab is a server with a catalogue and an environment whose repository is real.
type lab struct {
	*servertest.Server

	t    *testing.T
	ctx  context.Context
	e    intent.Environment
	repo string // with a working tree
	// machines are what provisioners have made, by tag.
	machines map[string]bool
	fail     func(task.Task) string // why a task fails; empty: it does not
}

const addresses = 6 // machines of the pool

func catalogueFiles() map[string][]byte {
	var machines []string
	for i := range addresses {
		machines = append(machines, fmt.Sprintf(`{"address":"127.0.9.%d","user":"root"}`, i+1))
	}
	shell := func(actions ...string) string {
		var out []string
		for _, a := range actions {
			out = append(out, fmt.Sprintf(`%q:{"type":"shell","fields":{"script":"true","args":%q}}`, a, a))
		}
		return `"provisioner":{"actions":{` + strings.Join(out, ",") + `}}`
	}
	return map[string][]byte{
		"providers/lab.json": []byte(`{"name":"lab","providertype":"pool","provisioner":{"ssh_user":"root",
			"ssh_key_resource":"team","machines":[` + strings.Join(machines, ",") + `]}}`),
		"hardwaretypes/small.json": []byte(`{"name":"small","providermap":{"lab":{"flavor":"s"}}}`),
		"imagetypes/debian.json":   []byte(`{"name":"debian","providermap":{"lab":{"image":"d","sshuser":"root"}}}`),
		"services/db.json": []byte(`{"name":"db","dependencies":{"provides":["sql"]},` +
			shell("install", "configure", "initialize", "start", "stop", "remove") + `}`),
		"services/web.json": []byte(`{"name":"web","dependencies":{"runtime":{"requires":["sql"]}},` +
			shell("install", "configure", "start", "stop", "remove") + `}`),
		"services/cache.json": []byte(
			`{"name":"cache","dependencies":{},` + shell("install", "start", "stop", "remove") + `}`,
		),
		"clustertemplates/lamp.json": []byte(`{"name":"lamp","defaults":{"services":["db","web"],"provider":"lab",
			"hardwaretype":"small","imagetype":"debian","config":{"db":"%ip.service.db%"}},
			"compatibility":{"hardwaretypes":["small"],"imagetypes":["debian"],"services":["db","web","cache"]},
			"constraints":{"size":{"min":1,"max":5},"services":{"db":{"quantities":{"min":1,"max":1}}},
			"layout":{"cantcoexist":[["db","cache"]]}},
			"administration":{"leaseduration":{"initial":0,"max":0,"step":0}}}`),
	}
}

func open(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	return openProject(t, servertest.New(t, time.Now()), "shop", catalogueFiles())
}

// openProject makes a project of a server, with a catalogue and an environment.
func openProject(t *testing.T, s *servertest.Server, name string, files map[string][]byte) *lab {
	t.Helper()
	l := &lab{
		Server: s, t: t, repo: filepath.Join(t.TempDir(), "repo"), machines: map[string]bool{},
		ctx: access.With(t.Context(), access.Principal{Kind: access.Person, Name: "anna"}),
	}
	l.git(".", "init", "-q", "-b", "main", l.repo)
	l.git(l.repo, "config", "receive.denyCurrentBranch", "updateInstead")
	l.write("project.yml", "name: shop\n")
	project := intent.Project{ID: uuid.New(), Name: name}
	must(t, s.Store.CreateProject(l.ctx, project))
	l.e = intent.Environment{
		ID: uuid.New(), ProjectID: project.ID, Name: "prod", Source: intent.Source{URL: l.repo, Branch: "main"},
	}
	must(t, s.Store.CreateEnvironment(l.ctx, l.e, nil))
	entries, err := admin.ReadFolder(files)
	must(t, err)
	if _, err := s.Catalogue.Import(l.ctx, project.ID, entries, false); err != nil {
		t.Fatal(err)
	}
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lab) git(dir string, args ...string) string {
	l.t.Helper()
	cmd := exec.Command(
		"git",
		append([]string{"-C", dir, "-c", "user.name=eve", "-c", "user.email=eve@x"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// write commits a file by hand.
func (l *lab) write(path, content string) {
	l.t.Helper()
	file := filepath.Join(l.repo, path)
	must(l.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(l.t, os.WriteFile(file, []byte(content), 0o644))
	l.git(l.repo, "add", ".")
	l.git(l.repo, "commit", "-q", "-m", "by hand")
}

// release does what a compile and a release do with the clusters of the newest commit.
func (l *lab) release() {
	l.t.Helper()
	manifests, err := l.read()
	must(l.t, err)
	number, err := l.Store.StoreVersion(l.ctx, intent.NewVersion{
		Environment: l.e.ID, Clusters: manifests,
		Provenance: intent.Provenance{Commit: l.git(l.repo, "rev-parse", "HEAD")},
	}, time.Now())
	must(l.t, err)
	must(l.t, l.Store.ReleaseVersion(l.ctx, l.e.ID, number, time.Now()))
	must(l.t, l.Clusters.Reconcile(l.ctx, l.e.ID))
}

func (l *lab) read() (json.RawMessage, error) {
	return l.Clusters.Read(l.ctx, l.e, os.DirFS(l.repo), func(line string) { l.t.Log(line) })
}

func (l *lab) cluster() intent.Cluster {
	l.t.Helper()
	all, err := l.Store.Clusters(l.ctx, l.e.ID, true)
	must(l.t, err)
	if len(all) == 0 {
		l.t.Fatal("there is no cluster")
	}
	return all[len(all)-1]
}

// work carries out all tasks there are, as a provisioner would, and returns what it did. After the tasks of a job it
// reconciles.
func (l *lab) work() (did []string) {
	l.t.Helper()
	who := desk.Who{Project: l.e.ProjectID, Name: "test"}
	for range 1000 {
		tasks, err := l.Desk.Take(l.ctx, who, 100, 0)
		must(l.t, err)
		if len(tasks) == 0 {
			must(l.t, l.Clusters.Reconcile(l.ctx, l.e.ID))
			if tasks, err = l.Desk.Take(l.ctx, who, 100, 0); err != nil || len(tasks) == 0 {
				must(l.t, err)
				return did
			}
		}
		var results []task.Result
		for _, t := range tasks {
			r := task.Result{ID: t.ID, Fence: t.Fence, Status: task.Done}
			what := fmt.Sprintf("%d %s", t.Node.Number, t.Action)
			if t.Service != nil {
				what += " " + t.Service.Name
			}
			if l.fail != nil {
				if why := l.fail(t); why != "" {
					r.Status, r.Problem = task.Refused, why
					results = append(results, r)
					continue
				}
			}
			did = append(did, what)
			switch t.Action {
			case task.Create:
				l.machines[t.Tag] = true
			case task.Confirm:
				ip := fmt.Sprintf("10.0.0.%d", t.Node.Number-999)
				r.Addresses = map[string]string{"access_v4": ip, "bind_v4": ip}
			case task.Delete:
				delete(l.machines, t.Tag)
			case task.Configure:
				if strings.Contains(string(t.Config), "%") || !strings.Contains(string(t.Config), "10.0.0.") {
					l.t.Errorf("%s gets the configuration %s", what, t.Config)
				}
			}
			results = append(results, r)
		}
		if dropped, err := l.Desk.Finish(l.ctx, who, results); err != nil || len(dropped) > 0 {
			l.t.Fatalf("results were dropped: %v, %v", dropped, err)
		}
	}
	l.t.Fatal("it never ends")
	return nil
}

func before(t *testing.T, did []string, first, second string) {
	t.Helper()
	i, j := slices.Index(did, first), slices.Index(did, second)
	if i < 0 || j < 0 || i > j {
		t.Errorf("%q (%d) did not come before %q (%d) in %v", first, i, second, j, did)
	}
}

// TestTheLifeOfACluster creates a cluster, amends it, has a change fail, rolls it back, and deletes it. Each step is a
// commit.
func TestTheLifeOfACluster(t *testing.T) {
	l := open(t)
	p, written, err := l.Clusters.Create(l.ctx, l.e, cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	must(t, err)
	if got := l.git(l.repo, "log", "-1", "--format=%an|%s", written.Commit); got != "anna|Create the cluster shop" {
		t.Errorf("the commit is %q", got)
	}
	if len(p.Plan.Makes) != 2 || !strings.Contains(p.Plan.String(), "start db on 1 node") {
		t.Errorf("the plan is\n%s", p.Plan)
	}
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	did := l.work()
	before(t, did, "1000 start db", "1001 start web")
	if c := l.cluster(); c.State != intent.ClusterActive || len(l.machines) != 2 || c.Applied == nil {
		t.Fatalf("the cluster is %s (%s) with %d machines", c.State, c.Problem, len(l.machines))
	}

	// Two nodes more, and a service.
	four := 4
	_, _, err = l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Size: &four, AddServices: []string{"cache"}})
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	did = l.work()
	before(t, did, "1002 create", "1003 start web")
	if slices.Contains(did, "1000 stop db") || len(l.machines) != 4 {
		t.Errorf("the new nodes disturbed the database, or there are %d machines: %v", len(l.machines), did)
	}

	// A change that fails leaves the cluster inconsistent, and is not tried again by itself.
	_, _, err = l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Restart: []string{"db"}})
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.fail = func(t task.Task) string {
		if t.Action == task.Configure {
			return "the disk is full"
		}
		return ""
	}
	l.release()
	l.work()
	c := l.cluster()
	if c.State != intent.ClusterInconsistent || !strings.Contains(c.Problem, "the disk is full") {
		t.Fatalf("the cluster is %s: %s", c.State, c.Problem)
	}
	l.fail = nil
	if did := l.work(); len(did) != 0 {
		t.Errorf("it was tried again: %v", did)
	}
	_, _, err = l.Clusters.RollBack(l.ctx, l.e, "shop")
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	did = l.work()
	if c := l.cluster(); c.State != intent.ClusterActive || !slices.Contains(did, "1000 start db") {
		t.Fatalf("after the rollback the cluster is %s (%s), and %v was done", c.State, c.Problem, did)
	}

	// A node is replaced: the new one first, then the old one goes.
	_, _, err = l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Replace: []int{1001}})
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	did = l.work()
	before(t, did, "1004 create", "1001 delete")

	_, err = l.Clusters.Delete(l.ctx, l.e, "shop")
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	l.work()
	if c := l.cluster(); c.State != intent.ClusterTerminated || len(l.machines) != 0 {
		t.Fatalf("at the end the cluster is %s (%s), and there are %d machines", c.State, c.Problem, len(l.machines))
	}
}

// TestAFileByHand is solved as a verb would, and a bad one is refused with its path.
func TestAFileByHand(t *testing.T) {
	l := open(t)
	l.write("clusters/shop.yaml", "cluster: shop\nowner: eve\ntemplate: lamp\nsize: 3\nservices: [db, web]\n")
	l.release()
	l.work()
	if c := l.cluster(); c.State != intent.ClusterActive || len(l.machines) != 3 || c.Owner != "eve" {
		t.Fatalf("the cluster is %s with %d machines: %s", c.State, len(l.machines), c.Problem)
	}
	for content, want := range map[string]string{
		"cluster: shop\nowner: eve\ntemplate: lamp\nsize: 30\nservices: [db, web]\n":  "clusters/shop.yaml: ",
		"cluster: shop\nowner: eve\ntemplate: lump\nsize: 3\nservices: [db, web]\n":   "lump",
		"cluster: shop\nowner: eve\ntemplate: lamp\nsize: 3\nservices: [db, ftp]\n":   `there is no service "ftp"`,
		"cluster: shop\nowner: eve\ntemplate: lamp\nsize: 1\nservices: [db, cache]\n": "db",
		"cluster: shop\nowner: eve\ntemplate: lamp\nsize: 3\nservices: [web]\n":       "sql",
	} {
		l.write("clusters/shop.yaml", content)
		if _, err := l.read(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", content, err, want)
		}
	}

	// A file that is gone with all others asks for a confirmation.
	l.git(l.repo, "rm", "-q", "clusters/shop.yaml")
	l.git(l.repo, "commit", "-q", "-m", "the wrong branch")
	l.release()
	l.work()
	if c := l.cluster(); len(l.machines) != 3 ||
		!strings.Contains(c.Problem, "confirm it with ordain cluster delete") {
		t.Fatalf("there are %d machines, and the problem is %q", len(l.machines), c.Problem)
	}
	_, err := l.Clusters.Delete(l.ctx, l.e, "shop")
	must(t, err)
	must(t, l.Clusters.Reconcile(l.ctx, l.e.ID))
	l.work()
	if len(l.machines) != 0 {
		t.Errorf("confirmed, and there are %d machines", len(l.machines))
	}
}

// TestTwoAmendmentsAtOnce: the second one, made from the file as it was, is refused, and nothing of the first is lost.
func TestTwoAmendmentsAtOnce(t *testing.T) {
	l := open(t)
	_, _, err := l.Clusters.Create(l.ctx, l.e, cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	must(t, err)
	results := make(chan error, 2)
	for _, size := range []int{3, 4} {
		go func() {
			_, _, err := l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Size: &size})
			results <- err
		}()
	}
	conflicts := 0
	for range 2 {
		if err := <-results; fault.Is(err, fault.Conflict) {
			conflicts++
		} else if err != nil {
			t.Error(err)
		}
	}
	commits := l.git(l.repo, "rev-list", "--count", "main", "--", "clusters/shop.yaml")
	if want := fmt.Sprint(3 - conflicts); commits != want {
		t.Errorf("there are %s commits, want %s with %d conflicts", commits, want, conflicts)
	}
}

// TestQuotaAndPool: what is too much is refused with words, before anything is made.
func TestQuotaAndPool(t *testing.T) {
	l := open(t)
	three := 3
	must(t, l.Catalogue.SetTenant(l.ctx, l.e.ProjectID, 4, nil, &three))
	_, _, err := l.Clusters.Create(l.ctx, l.e, cluster.Wish{Name: "shop", Template: "lamp", Size: 4})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "may have 3") {
		t.Errorf("the error is %v", err)
	}
	l.write("clusters/shop.yaml", "cluster: shop\nowner: eve\ntemplate: lamp\nsize: 4\nservices: [db, web]\n")
	l.release()
	l.work()
	if c := l.cluster(); len(l.machines) != 0 || !strings.Contains(c.Problem, "may have 3") {
		t.Errorf("there are %d machines, and the problem is %q", len(l.machines), c.Problem)
	}
	must(t, l.Catalogue.SetTenant(l.ctx, l.e.ProjectID, 4, nil, nil))
	must(t, l.Clusters.Reconcile(l.ctx, l.e.ID))
	l.work()
	if len(l.machines) != 4 {
		t.Errorf("with another quota there are %d machines", len(l.machines))
	}
}

// TestALease: people are told once before it ends, it can be extended, and when it is over the cluster is deleted, by a
// commit of the server.
func TestALease(t *testing.T) {
	l := open(t)
	now := time.Now()
	var err error
	l.Clusters, err = cluster.New(cluster.Config{
		Store: l.Store, Catalogues: l.Catalogue, Repository: l.Files, Key: l.Key(), Bus: l.Bus, Logger: l.Log,
		Owns: func(intent.EnvironmentID) bool { return true }, Now: func() time.Time { return now },
	})
	must(t, err)
	_, _, err = l.Clusters.Create(
		l.ctx,
		l.e,
		cluster.Wish{Name: "shop", Template: "lamp", Size: 1, Lease: 48 * time.Hour},
	)
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	l.work()
	notices := func() (titles []string) {
		all, err := l.Store.Notifications(l.ctx, l.e.ID, intent.ListQuery{Limit: 100})
		must(t, err)
		for _, n := range all.Items {
			titles = append(titles, n.Title)
		}
		return titles
	}
	if got := notices(); len(got) != 0 {
		t.Errorf("people are told %q at once", got)
	}
	now = now.Add(30 * time.Hour)
	l.work()
	l.work()
	if got := notices(); !slices.Equal(got, []string{"The lease of the cluster shop ends"}) {
		t.Errorf("people are told %q", got)
	}
	past := now.Add(-time.Hour)
	if _, _, err := l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Expires: &past}); !fault.Is(
		err,
		fault.Invalid,
	) {
		t.Errorf("a lease in the past: %v", err)
	}
	_, _, err = l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Extend: 24 * time.Hour})
	must(t, err)
	now = now.Add(20 * time.Hour) // the lease of before is over, and the extension is not released yet
	l.work()
	if len(l.machines) != 1 || l.git(l.repo, "log", "-1", "--format=%s", "main") != "Change the cluster shop: "+
		"other end of the lease" {
		t.Fatal("an extended cluster was deleted")
	}
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	l.work()
	now = now.Add(24 * time.Hour)
	l.work()
	if got := l.git(l.repo, "log", "-1", "--format=%an: %s", "main"); got != "Ordain: Delete the cluster shop" {
		t.Fatalf("the newest commit is %q", got)
	}
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	l.work()
	if c := l.cluster(); c.State != intent.ClusterTerminated || len(l.machines) != 0 {
		t.Errorf("the cluster is %s with %d machines", c.State, len(l.machines))
	}
}

// TestALateAnswer is dropped: its lease went to another provisioner.
func TestALateAnswer(t *testing.T) {
	l := open(t)
	l.write("clusters/shop.yaml", "cluster: shop\nowner: eve\ntemplate: lamp\nsize: 1\nservices: [db, web]\n")
	l.release()
	slow := desk.Who{Project: l.e.ProjectID, Name: "slow"}
	tasks, err := l.Desk.Take(l.ctx, slow, 1, 0)
	must(t, err)
	if len(tasks) != 1 || tasks[0].Action != task.Create {
		t.Fatalf("the tasks are %+v", tasks)
	}
	other := desk.Who{Project: l.e.ProjectID, Name: "other"}
	if gone, err := l.Desk.Renew(l.ctx, other, []task.Lease{{ID: tasks[0].ID, Fence: tasks[0].Fence}}); err != nil ||
		len(gone) != 1 {
		t.Errorf("another provisioner renewed the lease: %v, %v", gone, err)
	}
	result := task.Result{ID: tasks[0].ID, Fence: tasks[0].Fence, Status: task.Done}
	if dropped, err := l.Desk.Finish(l.ctx, other, []task.Result{result}); err != nil || len(dropped) != 1 {
		t.Errorf("another provisioner finished the task: %v, %v", dropped, err)
	}
	result.Fence++
	if dropped, err := l.Desk.Finish(l.ctx, slow, []task.Result{result}); err != nil || len(dropped) != 1 {
		t.Errorf("an answer with another fence was taken: %v, %v", dropped, err)
	}
	stranger := desk.Who{Project: uuid.New(), Name: "slow"}
	result.Fence--
	if dropped, err := l.Desk.Finish(l.ctx, stranger, []task.Result{result}); err != nil || len(dropped) != 1 {
		t.Errorf("a provisioner of another project finished the task: %v, %v", dropped, err)
	}
	if dropped, err := l.Desk.Finish(l.ctx, slow, []task.Result{result}); err != nil || len(dropped) != 0 {
		t.Errorf("the right answer was dropped: %v, %v", dropped, err)
	}
}

// TestAnAbortedTaskStaysEnded: an attempt that fails after its job was ended is not tried again, and once the cluster
// is deleted nothing makes a machine for it.
func TestAnAbortedTaskStaysEnded(t *testing.T) {
	tool.Heavy(t, "waits for the ends of attempts")
	l := open(t)
	l.write("clusters/shop.yaml", "cluster: shop\nowner: eve\ntemplate: lamp\nsize: 1\nservices: [db, web]\n")
	l.release()
	who := desk.Who{Project: l.e.ProjectID, Name: "test"}
	tasks, err := l.Desk.Take(l.ctx, who, 1, 0)
	must(t, err)
	must(t, l.Clusters.Abort(l.ctx, l.e, "shop"))
	if gone, err := l.Desk.Renew(l.ctx, who, []task.Lease{{ID: tasks[0].ID, Fence: tasks[0].Fence}}); err != nil ||
		len(gone) != 1 {
		t.Errorf("the lease of an aborted task was renewed: %v, %v", gone, err)
	}
	if _, err := l.Desk.Finish(l.ctx, who, []task.Result{
		{ID: tasks[0].ID, Fence: tasks[0].Fence, Status: task.Failed, Problem: "no answer"},
	}); err != nil {
		t.Fatal(err)
	}
	if again, err := l.Desk.Take(l.ctx, who, 10, 7*time.Second); err != nil || len(again) != 0 {
		t.Fatalf("an aborted task is handed out again: %+v, %v", again, err)
	}
	_, err = l.Clusters.Delete(l.ctx, l.e, "shop")
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release()
	l.work()
	if c := l.cluster(); c.State != intent.ClusterTerminated || len(l.machines) != 0 {
		t.Errorf("the cluster is %s (%s) with %d machines", c.State, c.Problem, len(l.machines))
	}
}
