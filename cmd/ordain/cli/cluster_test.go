package cli

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	clusterdesk "ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/servertest"
)

// webShop is a catalogue as Coopr publishes one: a file for each entity.
var webShop = map[string]string{
	"providers/lab.json": `{"name": "lab", "providertype": "pool", "provisioner": {
		"ssh_key_resource": "team", "machines": [
			{"address": "192.0.2.1"}, {"address": "192.0.2.2"}, {"address": "192.0.2.3"}]}}`,
	"providers/cloud.json": `{"name": "cloud", "providertype": "rented", "provisioner": {}}`,
	"providertypes/rented.json": `{"name": "rented", "parameters": {"admin": {"fields": {}}, "user": {"fields":
		{"account": {"type": "text"}, "token": {"type": "password"}}, "required": [["account", "token"]]}}}`,
	"hardwaretypes/small.json": `{"name": "small", "providermap": {"cloud": {"flavor": "s1"}}}`,
	"imagetypes/debian.json":   `{"name": "debian", "providermap": {"cloud": {"image": "d12"}}}`,
	"services/mysql.json": `{"name": "mysql", "dependencies": {"provides": ["sql-db"]}, "provisioner": {"actions": {
		"install": {"type": "shell", "fields": {"script": "a"}}, "start": {"type": "shell", "fields": {"script": "a"}},
		"stop": {"type": "shell", "fields": {"script": "a"}}}}}`,
	"services/apache.json": `{"name": "apache", "description": "a web server",
		"dependencies": {"runtime": {"requires": ["sql-db"]}}, "provisioner": {"actions": {
		"install": {"type": "shell", "fields": {"script": "a"}},
		"configure": {"type": "shell", "fields": {"script": "a"}},
		"start": {"type": "shell", "fields": {"script": "a"}}, "stop": {"type": "shell", "fields": {"script": "a"}}}}}`,
	"services/memcached.json": `{"name": "memcached",
		"provisioner": {"actions": {"install": {"type": "shell", "fields": {"script": "a"}}}}}`,
	"clustertemplates/lamp.json": `{"name": "lamp", "description": "web and database",
		"compatibility": {"services": ["mysql", "apache", "memcached"]},
		"defaults": {"services": ["mysql", "apache"], "provider": "lab", "hardwaretype": "small",
			"imagetype": "debian", "config": {"port": 80}},
		"constraints": {"size": {"min": 2, "max": 5}, "layout": {"cantcoexist": [["mysql", "apache"]]},
			"services": {"mysql": {"quantities": {"min": 1, "max": 1}}}},
		"administration": {"leaseduration": {"initial": "2d", "max": "10d", "step": "1d"}}}`,
	"README.md": "a catalogue",
}

// webClient is a person at a command line, with a server that has a project, whose environment has a repository.
type webClient struct {
	*servertest.Server
	t      *testing.T
	url    string
	remote string
	env    uuid.UUID
}

func openClusters(t *testing.T) *webClient {
	t.Helper()
	s := &webClient{
		Server: servertest.New(t, servertest.Present), t: t, remote: filepath.Join(t.TempDir(), "shop.git"),
	}
	joining, err := authority.New(authority.Config{Store: s.Store, Root: s.Agents, Logger: s.Log})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := api.New(api.Config{
		Control: s.Control, Store: s.Store, Logger: s.Log, Auth: s.API(), People: s.People, Tokens: s.Tokens,
		Now: s.Now, Clusters: s.Clusters, Catalogue: s.Catalogue, Resources: s.Resources, Provisioners: joining,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	t.Cleanup(server.Close)
	s.url = server.URL
	s.git("init", "--quiet", "--bare", "--initial-branch=main", s.remote)
	work := filepath.Join(t.TempDir(), "work")
	s.git("clone", "--quiet", s.remote, work)
	if err := os.WriteFile(filepath.Join(work, "main.cf"), []byte("# a model\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("-C", work, "add", ".")
	s.git("-C", work, "commit", "--quiet", "--no-gpg-sign", "--message=A model")
	s.git("-C", work, "push", "--quiet", "origin", "HEAD:main")
	s.run(0, "project", "create", "shop")
	s.run(0, "environment", "create", "live", "--project", "shop", "--repo", s.remote, "--branch", "main")
	environments, err := s.Store.Environments(t.Context())
	if err != nil || len(environments) != 1 {
		t.Fatalf("%v, %v", environments, err)
	}
	s.env = environments[0].ID
	return s
}

func (s *webClient) git(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Noor", "GIT_AUTHOR_EMAIL=noor@example.com", "GIT_COMMITTER_NAME=Noor",
		"GIT_COMMITTER_EMAIL=noor@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// given runs a command with an input and checks its exit status. It returns what the command printed.
func (s *webClient) given(stdin string, want int, args ...string) string {
	s.t.Helper()
	status, out, errs := ordain(stdin, append(args, "--server", s.url)...)
	if status != want {
		s.t.Fatalf("ordain %s: %d\n%s%s", strings.Join(args, " "), status, out, errs)
	}
	return out + errs
}

func (s *webClient) run(want int, args ...string) string {
	s.t.Helper()
	return s.given("", want, args...)
}

// has checks that a text has some parts.
func (s *webClient) has(text string, wanted ...string) {
	s.t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			s.t.Errorf("there is no %q in\n%s", w, text)
		}
	}
}

// folder writes files to a folder.
func (s *webClient) folder(files map[string]string) string {
	s.t.Helper()
	root := s.t.TempDir()
	for name, text := range files {
		s.write(filepath.Join(root, name), text)
	}
	return root
}

func (s *webClient) write(file, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// deploy does what a compile and a release do: the files at the tip of the branch become what is wanted.
func (s *webClient) deploy() {
	s.t.Helper()
	ctx := s.t.Context()
	e, err := s.Store.Environment(ctx, s.env)
	if err != nil {
		s.t.Fatal(err)
	}
	folder := filepath.Join(s.t.TempDir(), uuid.NewString())
	s.git("clone", "--quiet", s.remote, folder)
	manifests, err := s.Clusters.Read(ctx, e, os.DirFS(folder), func(string) {})
	if err != nil {
		s.t.Fatal(err)
	}
	number, err := s.Store.StoreVersion(ctx, intent.NewVersion{
		Environment: s.env, Clusters: manifests,
		Provenance: intent.Provenance{Commit: s.git("-C", folder, "rev-parse", "HEAD")},
	}, s.Now())
	if err == nil {
		err = s.Store.ReleaseVersion(ctx, s.env, number, s.Now())
	}
	if err == nil {
		err = s.Clusters.Reconcile(ctx, s.env)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// work is a provisioner that finishes all tasks that there are, without doing them.
func (s *webClient) work() {
	s.t.Helper()
	e, err := s.Store.Environment(s.t.Context(), s.env)
	if err != nil {
		s.t.Fatal(err)
	}
	who := clusterdesk.Who{Project: e.ProjectID, Name: "a test"}
	for {
		tasks, err := s.Desk.Take(s.t.Context(), who, 50, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(tasks) == 0 {
			break
		}
		var results []task.Result
		for _, one := range tasks {
			r := task.Result{ID: one.ID, Fence: one.Fence, Status: task.Done, Output: "done by a test\n"}
			if one.Action == task.Confirm {
				r.Addresses = map[string]string{"access_v4": "192.0.2.1"}
			}
			results = append(results, r)
		}
		if _, err := s.Desk.Finish(s.t.Context(), who, results); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.Clusters.Reconcile(s.t.Context(), s.env); err != nil {
		s.t.Fatal(err)
	}
}

// Noor imports a catalogue, plans a cluster and creates it, watches it, changes it in each way, and deletes it. Each
// change is a commit.
func TestClustersOnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	s.has(s.run(0, "cluster", "import", s.folder(webShop)), "created   services/apache", "9 created, 0 replaced")
	s.has(s.given("a key\n", 0, "cluster", "resource", "upload", "providertypes/pool/ssh_keys/team", "-", "--sync"),
		"providertypes/pool/ssh_keys/team", "active")

	tip := func() string { return s.git("-C", s.remote, "rev-parse", "main") }
	before := tip()
	wish := []string{"web", "--template", "lamp", "--size", "2", "--description", "the shop"}
	plan := s.run(0, append([]string{"cluster", "plan"}, wish...)...)
	s.has(plan, "web: create", "web-1000.local", "start apache on 1 node")
	if again := s.run(0, append([]string{"cluster", "create", "--plan"}, wish...)...); again != plan ||
		tip() != before {
		t.Errorf("create --plan says\n%s, and the tip is %s after %s", again, tip(), before)
	}
	s.has(
		s.run(0, append([]string{"cluster", "create", "--config", `{"port": 8080}`}, wish...)...),
		"makes 2",
		"commit: "+tip(),
		"ordain cluster status web --watch",
	)
	s.has(s.git("-C", s.remote, "show", "main:clusters/web.yaml"), "8080", "the shop")
	s.has(s.run(0, "cluster", "status", "web"), "committed, and not deployed yet")
	s.has(s.run(1, append([]string{"cluster", "create"}, wish...)...), "clusters/web.yaml exists already")
	s.deploy()
	s.has(s.run(0, "cluster", "list", "--state", "pending", "--environment", "shop/live"), "web", "lamp")
	s.has(s.run(0, "cluster", "queues"), "shop", "ready")
	s.has(s.run(0, "cluster", "job", "web", "1", "--node", "1000"), "1: create, running", "bootstrap", "1000")
	s.run(0, "cluster", "pause", "web")
	s.has(s.run(0, "cluster", "status", "web"), "paused, ordain cluster resume goes on")
	s.run(0, "cluster", "resume", "web")

	watched := make(chan string)
	go func() {
		_, out, errs := ordain("", "cluster", "status", "web", "--watch", "--server", s.url)
		watched <- out + errs
	}()
	s.work()
	s.has(<-watched, "active; create: complete")
	s.has(s.run(0, "cluster", "show", "web"), "complete", "192.0.2.1", "apache started", "the shop")
	s.has(s.run(0, "cluster", "jobs", "web"), "create", "complete")
	s.has(
		s.run(0, "cluster", "task", "web", "1", "1", "--follow"),
		"1: create on node 1000: complete",
		"done by a test",
	)

	s.has(s.run(0, "cluster", "plan", "web", "--size", "3"), "web: change", "web-1002.local")
	s.has(
		s.run(0, "cluster", "amend", "web", "--size", "3", "--add-service", "memcached", "--extend", "1d"),
		"commit: "+tip(),
	)
	s.run(0, "cluster", "amend", "web", "--replace-node", "1001", "--sync", "--description", "the new shop")
	s.has(s.run(1, "cluster", "amend", "web", "--remove-node", "7"), "does not have the node 7")
	s.has(s.run(0, "cluster", "stop", "web", "mysql"), "stop apache")
	s.run(0, "cluster", "start", "web", "--all")
	s.has(s.run(1, "cluster", "start", "web", "--all"), "no service of the cluster is stopped")
	s.run(0, "cluster", "restart", "web", "mysql")
	s.has(s.run(2, "cluster", "restart", "web"), "--all")
	s.has(s.run(2, "cluster", "amend", "web"), "say what to change")
	s.deploy()
	s.run(0, "cluster", "abort", "web")
	s.has(s.run(1, "cluster", "status", "web", "--watch"), "aborted")
	s.run(0, "cluster", "rollback", "web")
	s.deploy()
	s.run(0, "cluster", "retry", "web")
	s.work()
	s.has(s.run(0, "cluster", "status", "web", "--watch"), "active; ")

	s.has(s.run(2, "cluster", "delete", "web"), "say --yes")
	s.has(s.run(0, "cluster", "delete", "web", "--yes"), "commit: "+tip())
	s.deploy()
	s.work()
	s.has(s.run(1, "cluster", "show", "web"), "there is no cluster web")
	s.has(s.run(0, "cluster", "list", "--ended", "-o", "json"), `"state": "terminated"`)
}

// heard is an output that tells when a text has been written to it.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	once sync.Once
	done chan struct{}
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p)
	if strings.Contains(h.text.String(), h.want) {
		h.once.Do(func() { close(h.done) })
	}
	return len(p), nil
}

// Noor watches a cluster whose file is not deployed yet: a new one, one that was changed, and one that was deleted.
// Each time the watch goes on until it is deployed and done.
func TestAWatchWaitsForTheDeployment(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	s.run(0, "cluster", "import", s.folder(webShop))
	s.given("a key\n", 0, "cluster", "resource", "upload", "providertypes/pool/ssh_keys/team", "-", "--sync")
	watch := func(waits, ends string) {
		t.Helper()
		h := &heard{want: waits, done: make(chan struct{})}
		ended := make(chan int, 1)
		go func() {
			args := []string{"cluster", "status", "web", "--watch", "--server", s.url}
			ended <- Main(args, strings.NewReader(""), h, h)
		}()
		select {
		case <-h.done:
		case status := <-ended:
			t.Fatalf("the watch ended with %d, and did not wait:\n%s", status, h.text.String())
		}
		s.deploy()
		s.work()
		if status := <-ended; status != 0 || !strings.HasSuffix(h.text.String(), ends+"\n") {
			t.Errorf("the watch ended with %d:\n%s", status, h.text.String())
		}
	}
	s.run(0, "cluster", "create", "web", "--template", "lamp", "--size", "2")
	watch("committed, and not deployed yet", "tasks")
	s.run(0, "cluster", "amend", "web", "--size", "3")
	watch("its file has changed and is not deployed yet", "active; change: complete, 6 of 6 tasks")
	s.run(0, "cluster", "delete", "web", "--yes")
	watch("its file has changed and is not deployed yet", "gone")
}

// What cannot be is refused with what to do, and a secret is not taken from the command line.
func TestClustersThatCannotBe(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	s.run(0, "cluster", "import", s.folder(webShop))
	create := func(status int, args ...string) string {
		t.Helper()
		return s.given(
			"t0p\n",
			status,
			append([]string{"cluster", "create", "web", "--template", "lamp", "--plan"}, args...)...)
	}
	s.has(create(1, "--size", "9"), "there is no layout for the cluster web\n  ")
	s.has(create(1, "--provider", "cloud", "--field", "account=noor"), "needs these fields", "\n  missing: token")
	s.has(create(2, "--provider", "cloud", "--field", "account=noor", "--field", "token=t0p"), "--field token=@FILE")
	s.has(create(0, "--provider", "cloud", "--field", "account=noor", "--field", "token=@-"), "web: create")
	s.has(create(1, "--services", "postgres"), `there is no service "postgres"; the template lamp allows`)
	s.has(create(2, "--config", "[]"), "--config is not a JSON object")
	s.has(
		s.run(2, "cluster", "plan", "web", "--template", "lamp", "--extend", "1d"),
		"--template is for new clusters",
	)
	s.run(0, "environment", "create", "test", "--project", "shop", "--repo", s.remote, "--branch", "main")
	s.has(s.run(2, "cluster", "list"), "--environment", "shop/live, shop/test")
}

// The catalogue of a project and the shared one are listed, written, tried, and move between servers as folders.
func TestTheCatalogueOnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	s.run(0, "cluster", "import", s.folder(webShop), "--shared")
	kinds := []string{"cluster", "catalogue"}
	in := func(stdin string, status int, args ...string) string {
		t.Helper()
		return s.given(stdin, status, append(kinds, args...)...)
	}
	s.has(in("", 0, "list", "service"), "apache", "shared", "a web server")
	s.has(in(`{"name": "apache", "description": "ours"}`, 0, "create", "services", "-"), "services", "apache")
	s.has(in(`{"name": "apache", "description": "newer",
		"dependencies": {"runtime": {"requires": ["sql-db"]}}}`, 0, "replace", "services", "apache", "-"), "3")
	s.has(in("", 0, "show", "services", "apache"), `"description": "newer"`)
	s.has(in("", 0, "show", "services", "apache", "--version", "2"), `"description": "ours"`)
	s.has(in("", 0, "list", "services"), "project")
	s.has(in("", 0, "versions", "services", "apache"), "3", "2")
	in("", 0, "delete", "services", "apache", "--version", "2")
	s.has(
		in(`{"name": "t", "defaults": {"services": ["no"], "provider": "lab"}}`, 1, "create", "template", "-"),
		"is not right\n  ",
	)
	s.has(in("{\n\n,}", 1, "create", "template", "-"), "-:3: this is not JSON")
	s.has(in("", 2, "list", "wishes"), "there is no kind wishes; there are automatortypes")

	wrong := s.folder(map[string]string{"services/ok.json": `{"name": "ok"}`, "services/b.json": `{"name": "b a d"}`})
	s.has(s.run(1, "cluster", "import", wrong), "nothing was imported", "services/b.json")
	s.has(
		s.run(1, "cluster", "import", wrong, "--partly"),
		"created   services/ok",
		"refused services/b.json\n  name: ",
	)
	wrong = s.folder(map[string]string{"services/two.json": `{"name": "two"}`, "services/half.json": `{"name"`})
	s.has(
		s.run(1, "cluster", "import", wrong),
		"nothing was imported",
		"refused services/half.json:1: this is not JSON",
	)
	s.has(s.run(1, "cluster", "import", wrong, "--partly"), "created   services/two")

	there := filepath.Join(t.TempDir(), "exported")
	s.run(0, "cluster", "export", there, "--shared")
	s.has(s.run(0, "cluster", "import", there, "--shared"), "0 created, 0 replaced, 9 unchanged")

	s.has(s.run(0, "cluster", "template", "try", "lamp", "--size", "2"), "1000", "1001", "mysql")
	s.has(s.run(0, "cluster", "template", "try", "lamp"), "the template is right")
	file := filepath.Join(s.folder(webShop), "clustertemplates", "lamp.json")
	s.has(s.run(1, "cluster", "template", "try", file, "--size", "9"), "gives no such cluster\n  ")
	s.has(s.run(1, "cluster", "template", "try", "nothing"), "there is no file nothing")

	s.has(s.run(0, "cluster", "tenant", "set", "shop", "--max-clusters", "3", "--workers", "2"), "shop", "3")
	s.has(s.run(0, "cluster", "tenant", "set", "shop", "--max-nodes", "20"), "3", "20")
	s.run(0, "cluster", "tenant", "set", "shop", "--max-clusters", "none")
	s.has(s.run(0, "cluster", "tenant", "show", "shop", "-o", "json"), `"max_clusters": null`, `"max_nodes": 20`)
	s.has(s.run(0, "cluster", "tenant", "list"), "shop")
	s.has(s.run(2, "cluster", "tenant", "set", "shop", "--workers", "none"), "--workers")
}

// The published files of Coopr load unchanged; what needs plug-ins that are not here is named, and left out.
func TestThePublishedFilesOfCoopr(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	const published = "../../../server/cluster/catalogue/testdata/coopr-templates"
	folder := t.TempDir()
	for _, kind := range []string{"clustertemplates", "hardwaretypes", "imagetypes", "providers", "services"} {
		if err := os.CopyFS(filepath.Join(folder, kind), os.DirFS(filepath.Join(published, kind))); err != nil {
			t.Fatal(err)
		}
	}
	for kind, names := range catalogue.Optional() { // types of plug-ins that can be added, such as for Chef
		for name, text := range names {
			s.write(filepath.Join(folder, string(kind), name+".json"), string(text))
		}
	}
	s.write(filepath.Join(folder, "providers", "rackspace.json"),
		strings.Replace(webShop["providers/lab.json"], `"lab"`, `"rackspace"`, 1))
	s.has(s.run(1, "cluster", "import", folder), "nothing was imported", `there is no provider type "google"`)
	s.has(s.run(1, "cluster", "import", folder, "--partly"), "created   clustertemplates/hadoop-distributed",
		"created   services/apache-httpd", "refused providers/google.json\n  providertype: there is no provider type")
	s.has(s.run(0, "cluster", "catalogue", "list", "imagetypes"), "ubuntu14", "centos7")
	s.has(s.run(1, "cluster", "import", folder, "--partly"), "0 created, 0 replaced")
}

// A file of a plug-in is uploaded, takes effect with the others, is downloaded, recalled and deleted.
func TestFilesOfPluginsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := openClusters(t)
	const name = "automatortypes/shell/scripts/web.sh"
	in := func(stdin string, status int, args ...string) string {
		t.Helper()
		return s.given(stdin, status, append([]string{"cluster", "resource"}, args...)...)
	}
	s.has(in("one", 0, "upload", name, "-"), name, "inactive")
	s.has(in("two", 0, "upload", name, "-", "--stage"), "staged")
	s.has(in("", 0, "sync"), name, "active")
	s.has(in("", 0, "list", "--status", "active"), "2")
	s.has(in("", 0, "list", name), "inactive", "active")
	if out := in("", 0, "download", name, "-", "--version", "1"); out != "one" {
		t.Errorf("the download is %q", out)
	}
	file := filepath.Join(t.TempDir(), "web.sh")
	in("", 0, "download", name, file)
	if text, err := os.ReadFile(file); err != nil || string(text) != "two" {
		t.Errorf("the file is %q, %v", text, err)
	}
	s.has(in("", 0, "recall", name), "recalled")
	in("", 0, "sync")
	in("", 0, "delete", name, "--version", "2")
	s.has(in("", 1, "download", name, "-", "--version", "2"), "exist")
	s.has(in("", 2, "upload", "web.sh", file), "it looks like automatortypes/shell/scripts/web.sh")
	s.has(in("", 0, "upload", "automatortypes/shell/scripts/other.sh", file), "3")
}

// A long output loses its beginning. Those who follow it see each line once.
func TestWhatATaskAdds(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ before, now, want string }{
		{"", "a\n", "a\n"}, {"a\n", "a\nb\n", "b\n"}, {"a\nb\n", "b\nc\n", "c\n"}, {"a\n", "a\n", ""},
		{"a\n", "x\n", "x\n"},
	} {
		if got := added(one.before, one.now); got != one.want {
			t.Errorf("after %q, %q adds %q", one.before, one.now, got)
		}
	}
}
