package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/desk"
	provisioners "ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/servertest"
)

// webShop is a small catalogue: machines of a pool, scripts, and a template as the LAMP one of Coopr.
const webShop = `{
	"providers": [{"name": "lab", "providertype": "pool", "provisioner": {"ssh_key_resource": "team", "machines": [
		{"address": "192.0.2.1"}, {"address": "192.0.2.2"}, {"address": "192.0.2.3"}]}},
		{"name": "cloud", "providertype": "rented", "provisioner": {}}],
	"providertypes": [{"name": "rented", "parameters": {"admin": {"fields": {}},
		"user": {"fields": {"account": {"type": "text"}, "token": {"type": "password"}}, "required": [["account",
			"token"]]}}}],
	"hardwaretypes": [{"name": "small", "providermap": {"cloud": {"flavor": "s1"}}}],
	"imagetypes": [{"name": "debian", "providermap": {"cloud": {"image": "d12"}}}],
	"services": [
		{"name": "base", "provisioner": {"actions": {"install": {"type": "shell", "fields": {"script": "base.sh"}}}}},
		{"name": "mysql", "dependencies": {"provides": ["sql-db"], "install": {"requires": ["base"]}},
		 "provisioner": {"actions": {"install": {"type": "shell", "fields": {"script": "mysql.sh"}},
			"start": {"type": "shell", "fields": {"script": "mysql.sh"}}, "stop": {"type": "shell", "fields":
				{"script": "x"}}}}},
		{"name": "apache", "description": "a web server", "dependencies": {"runtime": {"requires": ["sql-db"]}},
		 "provisioner": {"actions": {"install": {"type": "shell", "fields": {"script": "apache.sh"}},
			"configure": {"type": "shell", "fields": {"script": "apache.sh"}},
			"start": {"type": "shell", "fields": {"script": "apache.sh"}}, "stop": {"type": "shell", "fields":
				{"script": "x"}}}}},
		{"name": "memcached", "provisioner": {"actions": {"install": {"type": "shell", "fields": {"script":
			"m.sh"}}}}}],
	"clustertemplates": [{"name": "lamp", "description": "web and database",
		"compatibility": {"services": ["base", "mysql", "apache", "memcached"]},
		"defaults": {"services": ["base", "mysql", "apache"], "provider": "lab", "hardwaretype": "small",
			"imagetype": "debian", "config": {"port": 80}},
		"constraints": {"size": {"min": 2, "max": 5}, "layout": {"cantcoexist": [["mysql", "apache"]]},
			"services": {"mysql": {"quantities": {"min": 1, "max": 1}}}},
		"administration": {"leaseduration": {"initial": "2d", "max": "10d", "step": "1d"}}}]
}`

// shop is a server with a project whose environment has a Git repository, and somebody who calls.
type shop struct {
	*client
	*servertest.Server
	who     *caller
	project uuid.UUID
	env     uuid.UUID
	base    string // of the project's catalogue
	remote  string
}

const atClusters = "/api/v2/cluster/clusters"

func openShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel()
	s := &shop{
		Server: servertest.New(t, servertest.Present), who: &caller{}, remote: filepath.Join(t.TempDir(), "shop.git"),
	}
	joining, err := provisioners.New(provisioners.Config{Store: s.Store, Root: s.Agents, Logger: s.Log})
	if err != nil {
		t.Fatal(err)
	}
	s.client = newClient(t, s.Server, func(cfg *Config) { cfg.Auth, cfg.Provisioners = s.who, joining })
	s.git("init", "--quiet", "--bare", "--initial-branch=main", s.remote)
	work := filepath.Join(t.TempDir(), "work")
	s.git("clone", "--quiet", s.remote, work)
	if err := os.WriteFile(filepath.Join(work, "main.cf"), []byte("# a model\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("-C", work, "add", ".")
	s.git("-C", work, "commit", "--quiet", "--no-gpg-sign", "--message=A model")
	s.git("-C", work, "push", "--quiet", "origin", "HEAD:main")
	s.as(person("ada", access.Binding{Role: access.Administrator}))
	s.project = uuid.MustParse(s.call("PUT", "/api/v2/project", `{"name": "shop"}`, 200).text("data", "id"))
	made := s.call("PUT", "/api/v2/environment", fmt.Sprintf(
		`{"project_id": %q, "name": "live", "repository": %q, "branch": "main"}`, s.project, s.remote), 200)
	s.env = uuid.MustParse(made.text("data", "id"))
	s.tid, s.base = s.env.String(), "/api/v2/cluster/project/"+s.project.String()
	return s
}

func (s *shop) as(p access.Principal) { s.who.Principal = p }

// member is somebody with a role in the project.
func (s *shop) member(name string, role access.Role) access.Principal {
	return person(name, access.Binding{Role: role, Scope: access.Scope{Project: s.project}})
}

func (s *shop) git(args ...string) string {
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

// refused calls, and checks the status and a part of what the error says.
func (s *shop) refused(method, path, body string, status int, says string) answer {
	s.t.Helper()
	a := s.call(method, path, body, status)
	if text := a.text("message"); !strings.Contains(text, says) {
		s.t.Errorf("%s %s %s says\n  %s\nand not\n  %s", method, path, body, text, says)
	}
	return a
}

// deploy does what a compile and a release do: the files at the tip of the branch become what is wanted.
func (s *shop) deploy() {
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
		Environment: s.env, Clusters: manifests, Provenance: intent.Provenance{Commit: s.git("-C", folder,
			"rev-parse", "HEAD")},
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
func (s *shop) work() {
	s.t.Helper()
	who := desk.Who{Project: s.project, Name: "a test"}
	for range 100 {
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

// upload uploads a file.
func (s *shop) upload(path, content string, status int) answer {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(content))
	r.Header.Set("Content-Type", "application/octet-stream")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	s.validate(r, w)
	if w.Code != status {
		s.t.Fatalf("an upload to %s answers %d, want %d: %s", path, w.Code, status, w.Body)
	}
	a := answer{t: s.t, to: path}
	if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// An administrator fills the catalogue of a project; Noor creates a cluster, watches it, changes it and deletes it.
// Each step is a commit in her name, and what is not right is refused with the reason.
func TestAClusterFromATemplate(t *testing.T) {
	s := openShop(t)
	done := s.call("POST", s.base+"/import", webShop, 200).part("data")
	if created := done.list("created"); len(created) != 10 || len(done.list("refused")) != 0 {
		t.Fatalf("the import is %v", done.body)
	}
	key := s.base + "/plugins/providertypes/pool/ssh_keys/team"
	s.upload(key, "a key", 200)
	s.call("POST", key+"/versions/1/stage", "", 200)
	s.call("POST", s.base+"/plugins/sync", "", 200)
	noor := s.member("noor@example.org", access.Maintainer)
	s.as(noor)

	form := s.get(s.base + "/clustertemplates/lamp/form").part("data")
	form.is(2.0, "size", "min")
	form.is("lab", "provider", "default")
	form.is(172800000.0, "lease", "initial")
	s.get(s.base+"/clustertemplates/lamp/resolved").is("lamp", "data", "template", "name")

	const wish = `{"name": "web", "clusterTemplate": "lamp", "numMachines": 2, "description": "the shop"}`
	before := s.git("-C", s.remote, "rev-parse", "main")
	planned := s.call("POST", atClusters+"/plan", wish, 200).part("data")
	planned.is("create", "plan", "action")
	planned.is("web-1000.local", "plan", "makes", 0)
	planned.is(before, "base")
	if s.git("-C", s.remote, "rev-parse", "main") != before {
		t.Error("a plan was committed")
	}
	made := s.call("POST", atClusters, wish, 200).part("data")
	tip := s.git("-C", s.remote, "rev-parse", "main")
	made.is(tip, "commit")
	if author := s.git("-C", s.remote, "log", "-1", "--format=%an <%ae>: %s", "main"); author !=
		"noor@example.org <noor@example.org>: Create the cluster web" {
		t.Errorf("the commit is by %s", author)
	}
	file := s.git("-C", s.remote, "show", "main:clusters/web.yaml")
	// The plan may have been made a second earlier, from which its lease counts.
	expires := regexp.MustCompile(`(?m)^expires: .*$`)
	want := strings.TrimSpace(planned.text("file"))
	if expires.ReplaceAllString(file, "expires") != expires.ReplaceAllString(want, "expires") {
		t.Errorf("the file is not the planned one:\n%s\n%s", file, want)
	}
	s.get(atClusters+"/web").is("committed", "data", "state")
	s.refused("POST", atClusters, wish, 409, "clusters/web.yaml exists already")
	if all := s.get(atClusters).list("data"); len(all) != 0 {
		t.Errorf("before it is deployed the list has %v", all)
	}

	s.deploy()
	s.get(atClusters+"?state=pending").is("web", "data", 0, "name")
	status := s.get(atClusters + "/web/status").part("data")
	status.is("create", "action")
	status.is("running", "actionstatus")
	status.is(0.0, "stepscompleted")
	job := s.get(atClusters + "/web/jobs/1").part("data")
	if n := len(job.list("tasks")); float64(n) != status.at("stepstotal") || job.at("stages").(float64) < 4 {
		t.Errorf("the job has %d tasks in %v stages", n, job.at("stages"))
	}
	job.is("create", "tasks", 0, "action")
	job.is(0.0, "tasks", 0, "stage")
	for i, one := range planned.list("plan", "tasks") {
		job.is(one.(map[string]any)["stage"], "tasks", i, "stage")
	}
	s.get(atClusters+"/web/jobs/1?limit=1").is(true, "data", "more")
	s.get(atClusters+"/web/jobs/1?node=1001").is(1001.0, "data", "tasks", 0, "node")
	s.get(s.base+"/metrics/queues").is(s.project.String(), "data", 0, "project")
	s.call("POST", atClusters+"/web/pause", "", 200)
	s.get(atClusters+"/web").is(true, "data", "paused")
	s.call("POST", atClusters+"/web/resume", "", 200)
	s.work()
	all := s.get(atClusters + "/web").part("data")
	all.is("active", "state")
	all.is("complete", "job", "state")
	all.is("192.0.2.1", "nodes", 0, "addresses", "access_v4")
	all.is("web", "applied", "name")
	s.get(atClusters+"/web/jobs").is(1.0, "data", 0, "number")
	s.get(atClusters+"/web/jobs/1/tasks/1").is("done by a test\n", "data", "output")
	s.get(atClusters+"/web/jobs/1/tasks/1").is(1.0, "data", "attempts")
	s.get(atClusters+"/web/services").is("apache", "data", 0, "name")
	s.get(atClusters+"/web/services").is(1.0, "data", 0, "phases", "started")

	s.changes()
	s.refusals()

	deleted := s.call("DELETE", atClusters+"/web", "", 200).part("data")
	if deleted.text("commit") != s.git("-C", s.remote, "rev-parse", "main") {
		t.Errorf("the deletion is %v", deleted.body)
	}
	s.deploy()
	s.work()
	s.call("GET", atClusters+"/web", "", 404)
	s.get(atClusters+"?state=terminated").is("web", "data", 0, "name")
	s.refused("DELETE", atClusters+"/web", "", 404, "there is no cluster web")
}

// changes amends the cluster: each way is a commit. Of two people who have read the same file, the second is told.
func (s *shop) changes() {
	const one = atClusters + "/web"
	plan := s.call("POST", one+"/plan", `{"numMachines": 3}`, 200).part("data", "plan")
	plan.is("change", "action")
	plan.is("web-1002.local", "makes", 0)
	digest := s.get(one+"/file").text("data", "digest")
	s.call("PATCH", one, `{"numMachines": 3, "digest": "`+digest+`"}`, 200).is(3.0, "data", "manifest", "size")
	s.refused("POST", one, `{"numMachines": 4, "digest": "`+digest+`"}`, 409, "was changed by somebody else meanwhile")
	s.call("POST", one, `{"extend": "1d"}`, 200)
	s.refused("PATCH", one, `{"extend": "2d"}`, 400, "may be extended by 24h0m0s at a time")
	s.refused("PATCH", one, `{"expireTime": 1000}`, 400, "which is in the past; to end the cluster, delete it")
	s.refused("PATCH", one, `{"expireTime": []}`, 400, "Input should be a time")

	s.call("PUT", one+"/config", `{"config": {"port": 8080}, "restart": true}`, 200)
	s.get(one+"/config").is(8080.0, "data", "config", "port")
	s.refused("PUT", one+"/config", `{"config": {}, "restart": false}`, 400, "always started again")
	s.call("POST", one+"/services", `{"services": ["memcached"]}`, 200)
	s.refused("POST", one+"/services", `{"services": ["memcached"]}`, 400, "has the service \"memcached\" already")
	s.call("DELETE", one+"/services?services=memcached", "", 200)
	stopped := s.call("POST", one+"/services/mysql/stop", "", 200).part("data", "manifest")
	if got := stopped.list("stopped"); !slices.Equal(got, []any{"apache", "mysql"}) {
		s.t.Errorf("what needs the database runs on: stopped are %v", got)
	}
	s.call("POST", one+"/services/start", "", 200)
	s.refused("POST", one+"/services/start", "", 409, "no service of the cluster is stopped")
	s.call("POST", one+"/services/restart", "", 200).is(1.0, "data", "manifest", "restarts", "base")
	s.call("POST", one+"/clustertemplate/sync", "", 200)
	s.call("POST", one+"/nodes/1001/replace", "", 200).is(1003.0, "data", "manifest", "nodes", 2, "number")
	s.refused("POST", one+"/nodes/7/replace", "", 400, "does not have the node 7")
	s.refused("POST", one+"/abort", "", 409, "nothing runs for the cluster web")

	s.deploy()
	s.call("POST", one+"/abort", "", 200)
	s.get(one).is("inconsistent", "data", "state")
	s.call("POST", one+"/rollback", "", 200).is(2.0, "data", "manifest", "size")
	s.refused("POST", one+"/rollback", "", 409, "the branch has this layout already")
	s.deploy()
	s.call("POST", one+"/retry", "", 200)
	s.work()
	s.get(one+"/status").is("active", "data", "status")
	if nodes := s.get(one).list("data", "nodes"); len(nodes) != 2 {
		s.t.Errorf("nodes that were planned and never made stay: %v", nodes)
	}
}

// refusals asks for what cannot be.
func (s *shop) refusals() {
	noor := s.who.Principal
	create := func(more string, status int, says string) answer {
		s.t.Helper()
		return s.refused("POST", atClusters, `{"name": "other", "clusterTemplate": "lamp", `+more+`}`, status, says)
	}
	create(`"services": ["base", "postgres"]`, 400, `there is no service "postgres"; the template lamp allows base`)
	create(`"numMachines": 0`, 400, "one machine at least")
	create(`"initialLeaseDuration": "-1h"`, 400, "the lease is in the past")
	create(`"initialLeaseDuration": 0`, 400, "the template lamp allows 48h0m0s at first")
	create(`"initialLeaseDuration": "3d"`, 400, "the template allows 48h0m0s at first")
	create(`"initialLeaseDuration": "soon"`, 400, "initialLeaseDuration")
	for size, word := range map[string]string{"1": "2", "6": "5", "10001": ""} {
		reasons := create(`"numMachines": `+size, 400, "").at("reasons")
		if text := fmt.Sprint(reasons); !strings.Contains(text, word) {
			s.t.Errorf("a cluster of %s is refused since %v", size, reasons)
		}
	}
	// Everything wants to be on one machine, and two of them not together.
	none := create(`"services": ["base", "apache"]`, 400, "there is no layout for the cluster other")
	if reasons := none.list("reasons"); len(reasons) == 0 || !strings.Contains(fmt.Sprint(reasons), "sql-db") {
		s.t.Errorf("the reasons are %v", none.body)
	}
	missing := create(`"provider": "cloud", "providerFields": {"account": "noor"}`, 400, "needs these fields: token")
	missing.is("token", "missingFields", 0)
	s.call("POST", atClusters+"/plan",
		`{"name": "other", "clusterTemplate": "lamp", "provider": "cloud", "providerFields": {"account": "noor",
			"token": "t0p"}}`, 200)
	create(`"colour": "red"`, 400, "{'colour'} that are not declared")
	s.refused("POST", atClusters, `{"name": "other", "clusterTemplate": "nothing"}`, 400,
		"the template nothing cannot be used")
	s.refused("POST", atClusters, `{"name": "../x", "clusterTemplate": "lamp"}`, 400, "name")
	s.refused("GET", atClusters+"?state=asleep", "", 400, `there is no state "asleep"`)
	s.refused("PATCH", atClusters+"/nothing", `{"numMachines": 3}`, 404, "there is no cluster nothing")
	s.refused("DELETE", s.base+"/clustertemplates/lamp", "", 409, "web")

	// A reader plans and sees, and does not create; a stranger to the project learns nothing.
	s.as(s.member("vera", access.Viewer))
	s.get(atClusters + "/web")
	s.call("POST", atClusters+"/plan", `{"name": "other", "clusterTemplate": "lamp"}`, 200)
	create(`"numMachines": 2`, 403, "")
	s.call("DELETE", atClusters+"/web", "", 403)
	s.call("POST", atClusters+"/web/pause", "", 403)
	s.call("POST", s.base+"/services", `{"name": "x"}`, 403)
	s.call("GET", "/api/v2/cluster/services", "", 403)
	s.as(s.member("otto", access.Operator))
	s.call("POST", atClusters+"/web/pause", "", 200)
	s.call("POST", atClusters+"/web/resume", "", 200)
	create(`"numMachines": 2`, 403, "")
	s.as(person("mallory", access.Binding{Role: access.Administrator, Scope: access.Scope{Project: uuid.New()}}))
	s.call("GET", s.base+"/services", "", 404)
	s.call("GET", atClusters+"/web", "", 404)

	// What the project may use is used up.
	s.as(noor)
	s.call("PUT", "/api/v2/cluster/tenants/"+s.project.String(), `{"max_clusters": 1}`, 403)
	ada := person("ada", access.Binding{Role: access.Administrator})
	s.as(ada)
	s.call("PUT", "/api/v2/cluster/tenants/"+s.project.String(), `{"max_clusters": 1, "max_nodes": 3}`, 200)
	s.refused("PUT", "/api/v2/cluster/tenants/"+s.project.String(), `{"max_nodes": 1}`, 409, "which is more than 1")
	s.get("/api/v2/cluster/tenants/"+s.project.String()).is(1.0, "data", "clusters")
	s.as(noor)
	create(`"numMachines": 2`, 409, "the project has 1 clusters, and may have 1")
	s.refused("PATCH", atClusters+"/web", `{"numMachines": 5}`, 409, "may have 3")
	s.as(ada)
	s.call("PUT", "/api/v2/cluster/tenants/"+s.project.String(), `{}`, 200)

	// Somebody has made the repository refuse what is pushed.
	s.as(noor)
	hook := filepath.Join(s.remote, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho no pushes today >&2\nexit 1\n"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	before := s.git("-C", s.remote, "rev-parse", "main")
	w := s.send("POST", atClusters, `{"name": "other", "clusterTemplate": "lamp"}`)
	if w.Code < 400 || w.Code >= 500 && w.Code != 503 || !strings.Contains(w.Body.String(), "push") {
		s.t.Errorf("a repository that refuses is answered %d %s", w.Code, w.Body)
	}
	if s.git("-C", s.remote, "rev-parse", "main") != before {
		s.t.Error("it was committed")
	}
	if err := os.Remove(hook); err != nil {
		s.t.Fatal(err)
	}
}

// The files of plug-ins are uploaded, activated together, downloaded by those who may, and deleted when they are
// inactive.
func TestFilesOfPluginsOverTheAPI(t *testing.T) {
	s := openShop(t)
	for _, base := range []string{s.base, "/api/v2/cluster"} {
		const plugin = "/plugins/automatortypes/shell/scripts"
		path := base + plugin + "/web.sh"
		s.upload(path, "#!/bin/sh\n", 200).is("inactive", "data", "status")
		s.upload(path, "#!/bin/sh\necho 2\n", 200).is(2.0, "data", "version")
		s.upload(base+"/plugins/automatortypes/shell/colours/x", "x", 404)
		s.call("POST", path+"/versions/2/stage", "", 200).is("staged", "data", "status")
		s.call("POST", base+"/plugins/sync", "", 200).is(2.0, "data", "activated", 0, "version")
		s.get(path).is("active", "data", 0, "status")
		s.get(base+plugin+"?status=active").is("web.sh", "data", 0, "name")
		s.get(base+"/plugins/resources?status=inactive").is(1.0, "data", 0, "version")
		s.refused("GET", path+"?status=lost", "", 400, "there is no status")
		s.get(path+"/versions/1").is("shell", "data", "plugin")
		s.call("DELETE", path+"/versions/2", "", 409)
		s.call("POST", path+"/versions/2/recall", "", 200).is("recalled", "data", "status")
		w := s.send("GET", path+"/versions/2/content", "")
		if w.Code != 200 || w.Body.String() != "#!/bin/sh\necho 2\n" ||
			!strings.Contains(w.Header().Get("Content-Disposition"), "attachment") {
			t.Errorf("the download is %d %v %q", w.Code, w.Header(), w.Body)
		}
		s.call("DELETE", path+"/versions/1", "", 200)
		s.call("GET", path+"/versions/1/content", "", 404)
	}
	// A page of another site cannot upload, and who may only change the catalogue cannot download a key.
	r := httptest.NewRequest(http.MethodPost, s.base+"/plugins/automatortypes/shell/scripts/evil",
		bytes.NewBufferString("x"))
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != 400 {
		t.Errorf("an upload by a form is answered %d", w.Code)
	}
	s.as(s.member("noor", access.Maintainer))
	s.call("GET", s.base+"/plugins/automatortypes/shell/scripts/web.sh/versions/2/content", "", 403)
}

// The catalogue keeps what was, says which field is wrong, and hides what belongs to another project.
func TestTheCatalogueOverTheAPI(t *testing.T) {
	s := openShop(t)
	s.call("POST", "/api/v2/cluster/import", webShop, 200)
	own := s.base + "/services"
	s.get(own+"/apache").is(nil, "data", "project")
	s.call("POST", own, `{"name": "apache", "description": "ours"}`, 200).is(s.project.String(), "data", "project")
	s.refused("POST", own, `{"name": "apache"}`, 409, "there is a service apache already")
	s.call("PUT", own+"/apache", `{"name": "apache", "description": "newer", "dependencies": {"runtime":
		{"requires": ["sql-db"]}}}`, 200).is(3.0, "data", "version")
	s.get(own+"/apache/2").is("ours", "data", "content", "description")
	s.get(own+"/apache/versions").is(3.0, "data", 0, "version") // the shared one is the first
	s.call("DELETE", own+"/apache/2", "", 200)
	s.call("GET", own+"/apache/2", "", 404)
	s.refused("PUT", own+"/apache", `{"name": "nginx"}`, 400, "it has to stay").is("name", "problems", 0, "field")
	wrong := s.refused("POST", s.base+"/clustertemplates", `{"name": "t", "defaults": {"services": ["no"],
		"provider": "lab"}}`,
		400, "is not right")
	if len(wrong.list("problems")) == 0 {
		t.Errorf("no field is named: %v", wrong.body)
	}
	s.refused("POST", own, `[]`, 400, "JSON object")
	s.refused("POST", own, ``, 400, "JSON object")
	for _, kind := range catalogue.Kinds { // the router finds them all beside the other calls
		for _, path := range []string{"/api/v2/cluster/" + string(kind), s.base + "/" + string(kind)} {
			s.get(path)
			s.refused("POST", path, `{}`, 400, "")
			s.refused("GET", path+"/none", "", 404, "none")
			s.refused("PUT", path+"/none", `{"name": "x"}`, 400, "")
			s.refused("DELETE", path+"/none", "", 404, "none")
			s.refused("GET", path+"/none/7", "", 404, "none")
			s.refused("DELETE", path+"/none/7", "", 404, "none")
			s.refused("GET", path+"/none/versions", "", 404, "none")
		}
	}
	s.refused("GET", own+"/apache/form", "", 404, "only cluster templates")
	s.refused("GET", s.base+"/wishes", "", 404, "the catalogue has no such kind")

	half := `{"services": [{"name": "ok"}, {"name": "b a d"}]}`
	s.refused("POST", s.base+"/import", half, 400, "nothing was imported").is("services[1] name", "problems", 0,
		"field")
	partly := s.call("POST", s.base+"/import?partly=true", half, 200).part("data")
	partly.is("ok", "created", 0, "name")
	partly.is("services[1]", "refused", 0, "from")
	folder := s.call("POST", s.base+"/import", `{"files": {"services/two.json": {"name": "two"}, "README.md":
		"x"}}`, 200)
	folder.is("two", "data", "created", 0, "name")
	exported := s.send("GET", s.base+"/export", "").Body.String()
	s.call("POST", s.base+"/import", exported, 200).is("apache", "data", "unchanged", 0, "name")

	const try = `{"template": {"name": "new", "compatibility": {"services": ["base", "mysql"]},
		"defaults": {"services": ["base", "mysql"], "provider": "lab"},
		"constraints": {"services": {"mysql": {"quantities": {"min": %d, "max": 4}}}}}, "numMachines": 2}`
	for _, base := range []string{s.base, "/api/v2/cluster"} {
		path := base + "/clustertemplates/try"
		tried := s.call("POST", path, fmt.Sprintf(try, 1), 200).part("data")
		if len(tried.list("nodes")) != 2 || tried.at("reasons") != nil {
			t.Errorf("the template gives %v", tried.body)
		}
		none := s.call("POST", path, fmt.Sprintf(try, 3), 200).part("data")
		if none.at("nodes") != nil || !strings.Contains(fmt.Sprint(none.at("reasons")), "mysql") {
			t.Errorf("the template gives %v", none.body)
		}
		s.call("POST", path, `{"template": {"name": "new"}}`, 400)
		s.call("GET", base+"/clustertemplates/new", "", 404)
		s.call("GET", base+"/clustertemplates/new/form", "", 404)
		s.get(base+"/clustertemplates/lamp/form?provider=cloud").is("account", "data", "fields", 0, "name")
		s.refused("GET", base+"/clustertemplates/lamp/form?provider=moon", "", 400, "there is no provider")
		s.get(base + "/clustertemplates/lamp/resolved")
	}
	s.call("DELETE", own+"/two", "", 200)
}

// A join token of a provisioner is shown once, and is for one project; one that was revoked is of no use.
func TestProvisionersOverTheAPI(t *testing.T) {
	s := openShop(t)
	tokens := s.base + "/provisioner_tokens"
	made := s.call("POST", tokens, `{"provisioner": "rack-7", "expire": 600}`, 200).part("data")
	made.is("waiting", "state")
	if list := s.send("GET", tokens, "").Body.String(); strings.Contains(list, made.text("token")) ||
		!strings.Contains(list, `"provisioner":"rack-7"`) {
		t.Errorf("the list is %s", list)
	}
	s.call("POST", tokens, `{"provisioner": "rack-7", "expire": 900000000}`, 400)
	s.call("DELETE", tokens+"/"+made.text("id"), "", 200)
	s.get(tokens).is("revoked", "data", 0, "state")
	s.call("DELETE", tokens+"/"+made.text("id"), "", 404)
	s.refused("POST", s.base+"/provisioners/rack-7/revoke", "", 404, "no provisioner rack-7 has joined")
	if all := s.get(s.base + "/provisioners").list("data"); len(all) != 0 {
		t.Errorf("there are %v", all)
	}
	s.as(s.member("noor", access.Maintainer))
	s.get(s.base + "/provisioners")
	s.call("POST", tokens, `{"provisioner": "rack-7"}`, 403)
}
