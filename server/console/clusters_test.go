package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/servertest"
)

// hostile is text that must never become markup.
const hostile = `</pre><script>alert(1)</script><img src=x onerror=alert(1)>`

// clusterWorld is a server with a repository, a pool of machines that nobody answers for, and templates. The test does
// the work of provisioners.
type clusterWorld struct {
	*servertest.Server
	t    *testing.T
	e    intent.Environment
	bare string
	h    http.Handler
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ida", "GIT_AUTHOR_EMAIL=ida@example.com", "GIT_COMMITTER_NAME=Ida",
		"GIT_COMMITTER_EMAIL=ida@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

func newClusterWorld(t *testing.T, change ...func(*Config)) *clusterWorld {
	t.Helper()
	// The clock of the database is the real one, so that of the pages is, too.
	s := servertest.New(t, time.Now().UTC())
	w := &clusterWorld{Server: s, t: t, bare: filepath.Join(t.TempDir(), "shop.git")}
	work := t.TempDir()
	git(t, work, "init", "--quiet", "--initial-branch=main")
	must(t, os.WriteFile(filepath.Join(work, "main.cf"), []byte("# a model\n"), 0o644))
	git(t, work, "add", ".")
	git(t, work, "commit", "--quiet", "--message=A model")
	git(t, work, "clone", "--quiet", "--bare", work, w.bare)
	project, err := s.Control.CreateProject(t.Context(), intent.Project{Name: "shop"})
	must(t, err)
	w.e, err = s.Control.CreateEnvironment(t.Context(), control.NewEnvironment{Environment: intent.Environment{
		ProjectID: project.ID, Name: "live", Source: intent.Source{URL: w.bare, Branch: "main"},
	}})
	must(t, err)
	w.define(catalogue.ProviderTypes, `{"name": "metal", "parameters": {"admin": {"fields": {}}, "user": {"fields": {
		"rack": {"label": "Rack", "type": "text", "tip": "Where it stands `+hostile+`"},
		"zone": {"label": "Zone", "type": "select", "options": ["a", "b", 3], "default": "a"},
		"spare": {"label": "Spare parts", "type": "checkbox", "default": false},
		"tags": {"label": "Tags", "type": "json"},
		"token": {"label": "Token", "type": "password", "tip": "Of the data centre"}},
		"required": [["rack", "token"]]}}}`)
	var machines []string
	for i := range 60 {
		machines = append(machines, fmt.Sprintf(`{"address": "192.0.2.%d"}`, i+1))
	}
	w.define(catalogue.Providers, `{"name": "lab", "providertype": "pool", "provisioner": {"ssh_key_resource": "team",
		"machines": [`+strings.Join(machines, ",")+`]}}`)
	w.define(catalogue.Providers, `{"name": "cage", "providertype": "metal"}`)
	w.define(
		catalogue.HardwareTypes,
		`{"name": "small", "providermap": {"pool": {"flavor": "s"}, "metal": {"flavor": "s"}}}`,
	)
	w.define(
		catalogue.HardwareTypes,
		`{"name": "large", "providermap": {"pool": {"flavor": "l"}, "metal": {"flavor": "l"}}}`,
	)
	w.define(
		catalogue.ImageTypes,
		`{"name": "debian", "providermap": {"pool": {"image": "d"}, "metal": {"image": "d"}}}`,
	)
	for _, one := range [][2]string{
		{"base"}, {"db", `"dependencies": {"provides": ["sql"]},`},
		{"web", `"description": "Serves pages", "dependencies": {"runtime": {"requires": ["sql"]}},`},
		{"ads", `"description": "` + hostile + `",`},
	} {
		w.define(catalogue.Services, `{"name": "`+one[0]+`", `+one[1]+` "provisioner": {"actions": {
			"install": {"type": "shell", "fields": {"script": "install"}},
			"configure": {"type": "shell", "fields": {"script": "configure"}},
			"start": {"type": "shell", "fields": {"script": "start"}},
			"stop": {"type": "shell", "fields": {"script": "stop"}},
			"remove": {"type": "shell", "fields": {"script": "remove"}}}}}`)
	}
	w.define(catalogue.Templates, `{"name": "lamp", "label": "Web shop", "description": "A database, and web servers",
		"compatibility": {"services": ["base", "db", "web", "ads"], "hardwaretypes": ["small", "large"]},
		"defaults": {"services": ["base", "db", "web"], "provider": "lab", "hardwaretype": "small",
			"dnsSuffix": "shop.example.com", "config": {"port": 80}},
		"constraints": {"size": {"min": 2, "max": 50}, "layout": {"cantcoexist": [["db", "web"]]},
			"services": {"db": {"quantities": {"min": "1", "max": "1"}, "hardwaretypes": ["large"]},
				"web": {"quantities": {"min": 1}}}},
		"administration": {"leaseduration": {"initial": "2d", "max": "10d", "step": "1d"}}}`)
	set := []func(*Config){func(c *Config) { c.Now, c.Pace = time.Now, 20*time.Millisecond }}
	w.h = newConsole(t, s, append(set, change...)...)
	return w
}

func (w *clusterWorld) define(kind catalogue.Kind, text string) {
	w.t.Helper()
	if _, err := w.Catalogue.Create(w.t.Context(), w.e.ProjectID, kind, []byte(text)); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// at returns an address of the environment's pages.
func (w *clusterWorld) at(path string) string { return envURL(w.e.ID) + path }

// get returns the text of a page.
func (w *clusterWorld) get(path string) string {
	w.t.Helper()
	answer := get(w.t, w.h, w.at(path))
	if answer.Code != http.StatusOK {
		w.t.Fatalf("%s: %d\n%s", path, answer.Code, answer.Body)
	}
	w.harmless(path, answer.Body.String())
	return answer.Body.String()
}

func (w *clusterWorld) harmless(what, body string) {
	w.t.Helper()
	for _, bad := range []string{"<script>alert", "<img", "onerror=alert(1)>", "s3cret"} {
		if strings.Contains(body, bad) {
			w.t.Errorf("%s has %q", what, bad)
		}
	}
}

func (w *clusterWorld) send(path string, values url.Values, code int) string {
	w.t.Helper()
	answer := post(w.h, w.at(path), values)
	if answer.Code != code {
		w.t.Fatalf("%s: %d, and not %d\n%s", path, answer.Code, code, answer.Body)
	}
	w.harmless(path, answer.Body.String())
	return answer.Body.String()
}

// release stores a version of the newest commit, releases it, and looks at the clusters.
func (w *clusterWorld) release() {
	w.t.Helper()
	ctx := w.t.Context()
	work := w.t.TempDir()
	git(w.t, work, "clone", "--quiet", w.bare, ".")
	manifests, err := w.Clusters.Read(ctx, w.e, os.DirFS(work), func(string) {})
	must(w.t, err)
	at := w.Now().Add(time.Second)
	w.SetClock(at)
	run := intent.Compile{ID: uuid.New(), Environment: w.e.ID, Requested: at, Update: true, Export: true}
	must(w.t, w.Store.EnqueueCompile(ctx, run))
	_, err = w.Store.StartCompile(ctx, w.e.ID, at)
	must(w.t, err)
	v := intent.NewVersion{Environment: w.e.ID, Clusters: manifests}
	v.Provenance = intent.Provenance{Compile: run.ID, Commit: git(w.t, work, "rev-parse", "HEAD")}
	number, err := w.Store.StoreVersion(ctx, v, at)
	must(w.t, err)
	must(w.t, w.Store.FinishCompile(ctx, run.ID, intent.CompileEnd{Success: true, Version: &number, At: at}))
	must(w.t, w.Control.Release(ctx, w.e.ID, number))
	must(w.t, w.Clusters.Reconcile(ctx, w.e.ID))
}

func (w *clusterWorld) who() desk.Who {
	return desk.Who{Project: w.e.ProjectID, Name: "worker-1"}
}

// take takes tasks as a provisioner.
func (w *clusterWorld) take(room int) []task.Task {
	w.t.Helper()
	tasks, err := w.Desk.Take(w.t.Context(), w.who(), room, 0)
	must(w.t, err)
	return tasks
}

// finish ends a task as a provisioner.
func (w *clusterWorld) finish(t task.Task, status task.Status, output, problem string) {
	w.t.Helper()
	result := task.Result{ID: t.ID, Fence: t.Fence, Status: status, Output: output, Problem: problem}
	if t.Action == task.Create && status == task.Done {
		result.Addresses = map[string]string{
			"access_v4": fmt.Sprintf("192.0.2.%d", t.Node.Number%100+1),
			"bind_v4":   fmt.Sprintf("10.0.0.%d", t.Node.Number%100+1),
		}
		result.Facts = task.Fields{"providerid": json.RawMessage(`"m-1"`)}
	}
	dropped, err := w.Desk.Finish(w.t.Context(), w.who(), []task.Result{result})
	must(w.t, err)
	if len(dropped) > 0 {
		w.t.Fatalf("%s on node %d was dropped", t.Action, t.Node.Number)
	}
}

// work does all that there is to do.
func (w *clusterWorld) work() {
	w.t.Helper()
	for {
		tasks := w.take(100)
		if len(tasks) == 0 {
			must(w.t, w.Clusters.Reconcile(w.t.Context(), w.e.ID))
			return
		}
		for _, one := range tasks {
			w.finish(one, task.Done, "done\n", "")
		}
	}
}

// wanted are the values of the form for a new cluster.
func wanted(change ...string) url.Values {
	v := url.Values{
		"template": {
			"lamp",
		}, "fields-of": {"lab"}, "provider": {"lab"}, "name": {"shop"}, "size": {"3"}, "lease": {"2d"},
		"service": {"base", "db", "web"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if v.Del(change[i]); change[i+1] != "" {
			v[change[i]] = strings.Split(change[i+1], "|")
		}
	}
	return v
}

var markForm = regexp.MustCompile(`name="mark" value="([0-9a-f]+)"`)

// mark returns the mark of the plan that a page shows.
func mark(t *testing.T, page string) string {
	t.Helper()
	found := markForm.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page shows no plan:\n%s", page)
	}
	return found[1]
}

// create makes a cluster by form: plan, then commit.
func (w *clusterWorld) create(change ...string) {
	w.t.Helper()
	values := wanted(change...)
	values.Set("mark", mark(w.t, w.send("/new-cluster", values, http.StatusOK)))
	w.send("/clusters", values, http.StatusOK)
}

// contains checks that a page has texts.
func contains(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not contain %q", text)
		}
	}
	if t.Failed() && os.Getenv("ORDAIN_CONSOLE_PAGES") != "" {
		t.Log(page)
	}
}

// A person chooses a template, sees what would be made, creates the cluster, and follows it until it is in place. Each
// step is a commit; the list and the pages say how far it is.
func TestAClusterIsMadeByForm(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	w := newClusterWorld(t)
	contains(t, w.get("/clusters"), "This environment has no clusters", "/new-cluster")
	contains(t, w.get("/new-cluster"), "Web shop", "2 to 50 nodes", "base, db, web", "?template=lamp")
	contains(t, w.get("/new-cluster?template=lamp"), `value="web" checked`, `value="ads"> `, "At most 2d at first",
		"small where it fits", "port", `placeholder="shop.example.com"`, `value="lab" selected`)

	planned := w.send("/new-cluster", wanted(), http.StatusOK)
	contains(
		t,
		planned,
		"3 machines made",
		"1000–1001",
		"What would be done",
		"create on 3 nodes",
		"install db on 1 node",
		">Create<",
		`value="shop"`,
	)
	if log := git(t, w.bare, "log", "--oneline", "main"); strings.Contains(log, "cluster") {
		t.Fatalf("showing a plan committed something: %s", log)
	}
	w.create()
	if file := git(t, w.bare, "show", "main:clusters/shop.yaml"); !strings.Contains(file, "size: 3") {
		t.Errorf("the file is\n%s", file)
	}
	if get(t, w.h, w.at("/clusters/shop")).Code != http.StatusNotFound {
		t.Error("a cluster that is not released has a page")
	}
	w.release()
	contains(t, w.get("/clusters"), "being made", "0 of ", "tasks done", ">lamp<", "in 47 h", "Job 1")
	page := w.get("/clusters/shop")
	contains(t, page, "being made", "it was not in place in full yet", "Steps of job 1", "ready · 0/3",
		"The same as a table", "shop-1000.shop.example.com", "planned", "End the job", "Pause")

	first := w.take(1)[0]
	w.Desk.Output(task.Output{Lease: task.Lease{ID: first.ID, Fence: first.Fence}, Text: hostile + "\n"})
	w.finish(first, task.Done, "It printed "+hostile+"\n", "")
	job := w.get("/clusters/shop/jobs/1")
	contains(t, job, "1 of ", "create on node 1000", "Any step", "install web")
	contains(t, w.get("/clusters/shop/jobs/1?step=install+db&state=waiting"), "install db on node 100", "1 in all")
	contains(t, w.get("/clusters/shop/jobs/1/tasks/1"), "It printed &lt;/pre&gt;&lt;script&gt;", "1 attempt")
	w.work()
	page = w.get("/clusters/shop")
	contains(t, page, ">active<", "It is as wanted", "started", "192.0.2.1", "from outside", "Restart")
	contains(t, w.get("/clusters"), ">active<")
}

// What a person typed survives every error, but secrets; each error stands beside its field.
func TestAFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	page := w.send(
		"/new-cluster",
		wanted("name", `no spaces"><b>`, "size", "many", "lease", "3", "config", "{\n\"a\": x}",
			"service", "", "dns", "-", "description", hostile),
		http.StatusBadRequest,
	)
	contains(
		t,
		page,
		"cannot be the name of a cluster",
		"give a number of nodes",
		"with a unit",
		"in line 2",
		"choose at least one service",
		`value="no spaces&#34;&gt;&lt;b&gt;"`,
		`value="many"`,
		`value="3"`,
		"&#34;a&#34;: x}",
		`value="-"`,
		"&lt;/pre&gt;",
	)
	// Reasons why there is no layout stand beside the fields that they concern.
	page = w.send("/new-cluster", wanted("hardwaretype", "small"), http.StatusBadRequest)
	contains(t, page, "these cannot hold together", "db needs the hardware type large",
		"new nodes are to have the hardware type small", "What to do")
	if beside := inputOf(t, page, "hardwaretype"); !strings.Contains(beside, "db needs the hardware type large") {
		t.Errorf("beside the field stands %s", beside)
	}
	page = w.send("/new-cluster", wanted("size", "70"), http.StatusBadRequest)
	if beside := inputOf(t, page, "size"); !strings.Contains(beside, "70") || !strings.Contains(beside, "at most") {
		t.Errorf("beside the size stands %s", beside)
	}
	page = w.send("/new-cluster", wanted("lease", "5d"), http.StatusBadRequest)
	if beside := inputOf(t, page, "lease"); !strings.Contains(beside, "the template allows") {
		t.Errorf("beside the lease stands %s", beside)
	}
	// Another provider asks for other fields.
	page = w.send("/new-cluster", wanted("provider", "cage"), http.StatusOK)
	contains(
		t,
		page,
		"asks for other fields",
		`name="field.rack"`,
		`type="password"`,
		`name="field.zone"`,
		"Where it stands",
	)
	cage := func(more ...string) url.Values {
		return wanted(append([]string{"provider", "cage", "fields-of", "cage"}, more...)...)
	}
	page = w.send("/new-cluster", cage("field.token", "s3cret"), http.StatusBadRequest)
	contains(t, page, "the provider cage needs this", `name="typed" value="field.token"`, "Type it again")
	page = w.send(
		"/new-cluster",
		cage("field.token", "s3cret", "field.rack", "r7", "field.tags", "[1,", "field.zone", `"z"`),
		http.StatusBadRequest,
	)
	contains(t, page, "this is no JSON", "none of the choices", `value="r7"`)
	full := cage(
		"field.token",
		"s3cret",
		"field.rack",
		"r7",
		"field.tags",
		`["x"]`,
		"field.zone",
		"3",
		"field.spare",
		"true",
	)
	page = w.send("/new-cluster", full, http.StatusOK)
	contains(t, page, "3 machines made", `value="r7"`, `<option value="3" selected>`)
	full.Set("mark", mark(t, page))
	full["typed"] = []string{"field.token"}
	full.Del("field.token")
	contains(t, w.send("/clusters", full, http.StatusBadRequest), "type it again: secrets are not kept")
	full.Set("field.token", "s3cret")
	contains(t, w.send("/clusters", full, http.StatusOK), "Committed as", "on its way")
	file := git(t, w.bare, "show", "main:clusters/shop.yaml")
	for _, want := range []string{"rack: r7", "zone: 3", "spare: true", "- x"} {
		if !strings.Contains(file, want) {
			t.Errorf("the file lacks %q:\n%s", want, file)
		}
	}
	if strings.Contains(file, "s3cret") {
		t.Error("the secret is in Git")
	}
	page = w.send("/new-cluster", wanted(), http.StatusConflict)
	if beside := inputOf(t, page, "name"); !strings.Contains(beside, "exists already") {
		t.Errorf("beside the name stands %s", beside)
	}
}

// inputOf returns what stands below a field of a form.
func inputOf(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<div id="wrong-c-`+name+`">`)
	if !found {
		t.Fatalf("there is no field %s in\n%s", name, page)
	}
	beside, _, _ := strings.Cut(rest, "</div>")
	return beside
}

// Nothing is committed but what was shown: when the form changed since, the new plan is shown.
func TestOnlyThePlanThatWasShownIsCommitted(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	values := wanted()
	values.Set("mark", mark(t, w.send("/new-cluster", values, http.StatusOK)))
	values.Set("size", "4")
	contains(t, w.send("/clusters", values, http.StatusOK), "Nothing was committed", "4 machines made")
	if log := git(t, w.bare, "log", "--format=%s", "main"); log != "A model" {
		t.Errorf("commits: %s", log)
	}
}

// A cluster is amended: its size, a service, its configuration, its lease, a node; each is planned, then committed.
func TestAClusterIsChanged(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	w := newClusterWorld(t)
	w.create()
	w.release()
	w.work()
	// commit plans and commits a change, and deploys it.
	commit := func(values url.Values, planShows ...string) {
		t.Helper()
		page := w.send("/clusters/shop/change", values, http.StatusOK)
		contains(t, page, append(planShows, "Commit this change")...)
		values.Set("mark", mark(t, page))
		contains(t, w.send("/clusters/shop/commit", values, http.StatusOK), "Committed as")
		w.release()
	}
	contains(t, w.get("/clusters/shop/change"), `value="3"`, `value="db" checked`, "newest versions")
	commit(
		url.Values{
			"do":      {"full"},
			"size":    {"5"},
			"service": {"base", "db", "web", "ads"},
			"config":  {`{"port": 8080}`},
		},
		"2 machines made",
		"install ads on 3 nodes",
		"install ads on 2 nodes",
		"The file:",
		"size: <mark>5</mark>",
		"port: 8080",
	)
	page := w.get("/clusters/shop")
	contains(t, page, "changing", "What changes", "&#43; size: <mark>5</mark>", "- size: <mark>3</mark>")
	w.work()
	commit(url.Values{"do": {"stop"}, "service": {"db"}}, "Stop db of shop", "stop web on", "stop db on 1 node")
	w.work()
	contains(t, w.get("/clusters/shop"), "(stopped)", "stopped")
	commit(url.Values{"do": {"replace"}, "node": {"1002"}}, "Replace node 1002", "1 machine made, 1 machine deleted",
		"shop-1002.shop.example.com")
	w.work()
	commit(url.Values{"do": {"extend"}, "extend": {"1d"}}, "No machine is touched", "expires:")
	page = w.send("/clusters/shop/change", url.Values{"do": {"extend"}, "extend": {"9d"}}, http.StatusBadRequest)
	if beside := inputOf(t, page, "extend"); !strings.Contains(beside, "at a time") {
		t.Errorf("beside the lease stands %s", beside)
	}
	w.work()
	// It fails, is rolled back, and deleted.
	commit(url.Values{"do": {"start"}, "service": {"web"}}, "Start web of shop", "start db on 1 node")
	one := w.take(1)[0]
	w.finish(one, task.Refused, "no", "the disk of "+hostile+" is full")
	must(t, w.Clusters.Reconcile(t.Context(), w.e.ID))
	page = w.get("/clusters/shop")
	contains(t, page, "inconsistent", "is full", "Look at the output of what failed", "Roll back…", "Retry")
	contains(t, w.get("/clusters/shop/jobs/5"), "failed", "is full", "dropped")
	page = w.get("/clusters/shop/rollback")
	contains(t, w.send("/clusters/shop/rollback", url.Values{"mark": {mark(t, page)}}, http.StatusOK), "Committed as")
	w.release()
	w.work()
	contains(t, w.get("/clusters/shop"), ">active<")
	page = w.get("/clusters/shop/delete")
	contains(t, page, "5 machines deleted", "Type <strong>shop</strong>")
	contains(t, w.send("/clusters/shop/delete", url.Values{"mark": {mark(t, page)}, "confirm": {"live"}},
		http.StatusBadRequest), "not the name of the cluster")
	w.send("/clusters/shop/delete", url.Values{"mark": {mark(t, page)}, "confirm": {"shop"}}, http.StatusOK)
	w.release()
	contains(t, w.get("/clusters/shop"), "being deleted", "Its file was deleted")
	w.work()
	contains(t, w.get("/clusters"), "no clusters")
	page = w.get("/clusters?show=all")
	contains(t, page, ">deleted<")
	ended := regexp.MustCompile(`href="/e/[^/]+(/clusters/[0-9a-f-]{36})"`).FindStringSubmatch(page)
	if ended == nil {
		t.Fatal("a cluster that ended has no page")
	}
	contains(t, w.get(ended[1]), "It has no machines", "Jobs")
}

// A person who may only read sees everything and can plan; nothing on the pages commits or operates.
func TestClustersForReaders(t *testing.T) {
	t.Parallel()
	who := &caller{}
	w := newClusterWorld(t, func(c *Config) { c.Auth = who })
	as := func(role access.Role) {
		who.Principal = access.Principal{Kind: access.Person, Name: "ida",
			Bindings: []access.Binding{{Role: role, Scope: access.Scope{Project: w.e.ProjectID}}}}
	}
	as(access.Administrator)
	w.create()
	w.release()
	as(access.Viewer)
	list, one := w.get("/clusters"), w.get("/clusters/shop")
	for _, no := range []string{"/new-cluster", "/pause", "/abort", "/change", "/delete"} {
		if strings.Contains(list, no+`"`) || strings.Contains(one, no+`"`) {
			t.Errorf("a reader is offered %s", no)
		}
	}
	page := w.send("/new-cluster", wanted("name", "other"), http.StatusOK)
	contains(t, page, "3 machines made", "You may plan here, and not commit")
	values := wanted("name", "other", "mark", mark(t, page))
	for path, form := range map[string]url.Values{
		"/clusters": values, "/clusters/shop/commit": {"do": {"full"}}, "/clusters/shop/delete": {"confirm": {"shop"}},
		"/clusters/shop/pause": nil, "/clusters/shop/abort": nil, "/clusters/shop/retry": nil,
		"/clusters/shop/rollback": nil,
	} {
		if code := post(w.h, w.at(path), form).Code; code != http.StatusForbidden {
			t.Errorf("a reader sends %s: %d", path, code)
		}
	}
	as(access.Operator)
	contains(t, w.get("/clusters/shop"), "/pause", "/abort")
	must303(t, post(w.h, w.at("/clusters/shop/pause"), nil))
	contains(t, w.get("/clusters/shop"), ">paused<", "until somebody resumes it")
	if tasks := w.take(1); len(tasks) > 0 {
		t.Error("a paused cluster hands out tasks")
	}
	must303(t, post(w.h, w.at("/clusters/shop/resume"), nil))
	must303(t, post(w.h, w.at("/clusters/shop/abort"), nil))
	contains(t, w.get("/clusters/shop"), "was ended by ida", "Retry it to go on", "incomplete")
	must303(t, post(w.h, w.at("/clusters/shop/retry"), nil))
}

func must303(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
}

// A hostile name in an address is answered, and never shown as markup.
func TestHostileClusterAddresses(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	for _, path := range []string{
		"/clusters/" + url.PathEscape(hostile), "/clusters/" + url.PathEscape(hostile) + "/change",
		"/clusters/shop/jobs/x",
		"/clusters/" + uuid.NewString(), "/clusters/a/jobs/99999999999999999999",
		"/new-cluster?template=" + url.QueryEscape(hostile),
		"/clusters/shop/delete", "/clusters/shop/rollback", "/clusters/%00", "/clusters/%00/change",
	} {
		answer := get(t, w.h, w.at(path))
		if answer.Code != http.StatusNotFound && answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d\n%s", path, answer.Code, answer.Body)
		}
		w.harmless(path, answer.Body.String())
	}
}
