package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/task"
)

// shoot checks a page on every screen.
func (b *tab) shoot(name string) {
	b.t.Helper()
	b.accessibleOn(name, screens)
	b.look(1280, 900, "light")
}

// press clicks a button of the page by its text.
func (b *tab) press(text string) {
	b.t.Helper()
	button := `[...document.querySelectorAll('main button, main a.button')]
		.find(x => x.textContent.trim() === ` + quote(text) + `)`
	b.until(`document.readyState === 'complete' && ` + button)
	b.do(chromedp.Click(chromedp.JSPath(button)))
}

func quote(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// A person makes a cluster by form, watches its job move without touching the page, reads the output of a task while it
// arrives, amends the cluster, and deletes it. Every page on the way is accessible on every screen.
func TestJourneyOfACluster(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	w := newClusterWorld(t)
	b := browse(t, w.h)
	b.look(1280, 900, "light")
	b.open(w.at("/clusters"))
	b.shoot("clusters-empty")
	b.press("New cluster")
	b.until(`document.title.startsWith('New cluster') && document.readyState === 'complete'`)
	b.shoot("clusters-templates")
	b.open(w.at("/new-cluster?template=lamp"))
	b.shoot("clusters-new")
	const size = `document.getElementById('c-size')`
	b.do(chromedp.SendKeys(chromedp.CSS("#c-name"), "shop"))
	eval[bool](b, `(`+size+`.value = '3', document.getElementById('c-hardwaretype').value = 'small', true)`)
	b.press("Show the plan")
	b.until(`document.body.textContent.includes('these cannot hold together') && document.readyState === 'complete'`)
	b.shoot("clusters-contradiction")
	eval[bool](b, `(document.getElementById('c-hardwaretype').value = '', true)`)
	b.press("Show the plan")
	b.until(`document.getElementById('plan') && document.readyState === 'complete'`)
	b.shoot("clusters-plan")
	b.press("Create")
	b.until(`document.body.textContent.includes('Committed as') && document.readyState === 'complete'`)
	b.shoot("clusters-written")
	w.release()

	b.press("The cluster")
	b.until(`document.getElementById('live')?.textContent === 'Live'`)
	tasks := w.take(2)
	w.finish(tasks[0], task.Done, "made\n", "")
	b.until(`document.querySelector('#cluster-head progress')?.value === 1`)
	b.until(`document.querySelector('#cluster-graph a.box').textContent === 'createrunning · 1/3'`)
	b.shoot("clusters-live")
	b.open(w.at("/clusters"))
	b.shoot("clusters-list")

	// The output of a task arrives while it is read.
	b.open(w.at("/clusters/shop/jobs/1/tasks/2"))
	b.until(`document.getElementById('live').textContent === 'Live'`)
	b.until(`document.querySelector('#cluster-task-head .state').textContent.trim() === 'running'`)
	must(t, w.Desk.Start(t.Context()))
	t.Cleanup(w.Desk.Stop)
	w.Desk.Output(
		task.Output{Lease: task.Lease{ID: tasks[1].ID, Fence: tasks[1].Fence}, Text: "looking for a machine\n"},
	)
	b.until(`document.querySelector('#cluster-task-log .log')?.textContent.includes('looking for a machine')`)
	b.shoot("clusters-task")
	w.finish(tasks[1], task.Refused, "looking for a machine\nnone\n", "no machine answers: "+hostile)
	b.until(`document.querySelector('#cluster-task-head .state').textContent.trim() === 'failed'`)
	must(t, w.Clusters.Reconcile(t.Context(), w.e.ID))
	b.open(w.at("/clusters/shop"))
	b.until(`document.querySelector('#cluster-head .banner.failed')?.textContent.includes('no machine answers')`)
	b.shoot("clusters-failed")
	b.press("Retry")
	b.until(`document.querySelector('.banner.done')?.textContent.includes('Another job')`)
	must(t, w.Clusters.Reconcile(t.Context(), w.e.ID))
	w.work()
	b.until(`document.querySelector('#cluster-head .state').textContent.trim() === 'active'`)
	b.shoot("clusters-active")
	b.open(w.at("/clusters/shop/jobs/2"))
	b.shoot("clusters-job")

	// One node more, and a service.
	b.open(w.at("/clusters/shop/change"))
	b.shoot("clusters-change")
	eval[bool](b, `(`+size+`.value = '4', document.querySelector('input[value=ads]').checked = true, true)`)
	b.press("Show the plan")
	b.until(
		`document.getElementById('plan')?.textContent.includes('1 machine made') && document.readyState === 'complete'`,
	)
	b.shoot("clusters-change-plan")
	b.press("Commit this change")
	b.until(`document.body.textContent.includes('Committed as') && document.readyState === 'complete'`)
	w.release()
	b.press("The cluster")
	b.until(`document.getElementById('cluster-wanted')?.textContent.includes('What changes')`)
	b.until(`document.getElementById('live').textContent === 'Live'`)
	b.shoot("clusters-changing")
	w.work()
	b.until(`document.querySelectorAll('#cluster-nodes tbody tr').length === 4`)
	b.until(`document.querySelector('#cluster-head .state').textContent.trim() === 'active'`)

	b.press("See what would be deleted")
	b.until(`document.getElementById('confirm') && document.readyState === 'complete'`)
	b.shoot("clusters-delete")
	b.do(chromedp.SendKeys(chromedp.CSS("#confirm"), "shop"))
	b.press("Delete")
	b.until(`document.body.textContent.includes('Committed as') && document.readyState === 'complete'`)
	w.release()
	w.work()
	b.open(w.at("/clusters?show=all"))
	b.until(`document.querySelector('#clusterrows .state')?.textContent.trim() === 'deleted'`)
	w.harmless("the last page", eval[string](b, `document.documentElement.outerHTML`))
}

// large records a cluster of so many nodes and services, whose first job has begun, and returns that job.
func (w *clusterWorld) large(nodes, services int) (job uuid.UUID) {
	w.t.Helper()
	ctx := w.t.Context()
	m := &manifest.Manifest{Name: "large", Owner: "ida", Template: "lamp", Size: nodes, Provider: "lab"}
	want := plan.Want{Services: map[string]*catalogue.Service{}}
	for i := range services {
		name := fmt.Sprintf("service-%02d", i)
		s := &catalogue.Service{Head: catalogue.Head{Name: name}}
		s.Provisioner.Actions = map[catalogue.Action]catalogue.ActionOf{}
		for _, a := range []catalogue.Action{
			catalogue.Install, catalogue.Configure, catalogue.Initialize, catalogue.Start,
		} {
			s.Provisioner.Actions[a] = catalogue.ActionOf{Type: "shell"}
		}
		if i > 0 {
			s.Dependencies.Runtime.Requires = []string{m.Services[i-1]}
		}
		want.Services[name] = s
		m.Services = append(m.Services, name)
	}
	var rows []intent.ClusterNode
	id := uuid.New()
	for i := range nodes {
		n := manifest.Node{Number: 1000 + i, HardwareType: "small", ImageType: "debian", Services: m.Services,
			Hostname: manifest.Hostname("large", 1000+i, "")}
		m.Nodes = append(m.Nodes, n)
		want.Nodes = append(want.Nodes, plan.Wants{Number: n.Number, Services: n.Services})
		rows = append(rows, intent.ClusterNode{Cluster: id, Number: n.Number, Hostname: n.Hostname, Hardware: "small",
			Image: "debian", Provider: "lab"})
	}
	made, err := plan.Make(nil, want)
	must(w.t, err)
	text, err := json.Marshal(m)
	must(w.t, err)
	must(w.t, w.Store.AddCluster(ctx, intent.Cluster{
		ID: id, Environment: w.e.ID, Name: "large", Owner: "ida", Wanted: text,
	}))
	var tasks []intent.ClusterTask
	for _, one := range made.Tasks {
		t := intent.ClusterTask{ID: uuid.New(), Number: one.Number, Project: w.e.ProjectID, Node: one.Node,
			Service: one.Service, Action: string(one.Action), Provider: "lab", After: one.After}
		for _, n := range one.Needs {
			t.Needs = append(t.Needs, int32(n))
		}
		tasks = append(tasks, t)
	}
	job = uuid.New()
	_, err = w.Store.StartClusterJob(ctx, w.e.ID, intent.ClusterJob{
		ID: job, Cluster: id, Action: "create", Goal: text, MadeBy: "ida",
	}, rows, tasks)
	must(w.t, err)
	w.Bus.Publish(bus.Event{Environment: w.e.ID, Topic: bus.Cluster})
	return job
}

// The pages of a cluster of 500 nodes and 30 services, 61,500 tasks, are small, and do not read all tasks: that alone
// takes several times as long as a page. Other tests run beside this one, so no time is right in itself.
func TestPagesOfALargeClusterAreBounded(t *testing.T) {
	tool.Heavy(t, "makes thousands of machines")
	t.Parallel()
	w := newClusterWorld(t)
	job := w.large(500, 30)
	for path, most := range map[string]int{
		"/clusters": 20_000, "/clusters/large": 150_000, "/clusters/large?steps=7&nodes=20": 150_000,
		"/clusters/large/jobs/1": 150_000, "/clusters/large/jobs/1?stage=5&page=3": 150_000,
		"/clusters/large/jobs/1?step=start+service-07&node=1300": 100_000,
		"/clusters/large/jobs/1/tasks/30000":                     40_000,
	} {
		size, quick := 0, false
		for range 5 {
			begun := time.Now()
			all, err := w.Store.ClusterTasks(t.Context(), job)
			must(t, err)
			reading := time.Since(begun)
			begun = time.Now()
			page := get(t, w.h, w.at(path))
			took := time.Since(begun)
			if size = page.Body.Len(); page.Code != http.StatusOK || len(all) != 61_500 {
				t.Fatalf("%s: %d, and there are %d tasks", path, page.Code, len(all))
			}
			t.Logf("%s: %d bytes in %s; all tasks in %s", path, size, took.Round(time.Millisecond),
				reading.Round(time.Millisecond))
			if quick = took < reading; quick {
				break
			}
		}
		if size > most {
			t.Errorf("%s has %d bytes, and may have %d", path, size, most)
		}
		if !quick {
			t.Errorf("%s takes longer than to read all tasks", path)
		}
	}
	for query, one := range map[string]string{
		"step=start+service-07&node=1300": "start service-07 on node 1300</a>",
		"node=1300&state=ready":           "create on node 1300</a>",
	} {
		page := w.get("/clusters/large/jobs/1?" + query)
		contains(t, page, one)
		if n := strings.Count(page, " on node 1"); n != 1 {
			t.Errorf("%s shows %d tasks", query, n)
		}
	}
	contains(t, w.get("/clusters/large/jobs/1?stage=5&page=3"), "201–300 of")
	for _, none := range []string{"node=x", "stage=999", "state=%00", "step=dance"} {
		contains(t, w.get("/clusters/large/jobs/1?"+none), "No task matches this filter.")
	}
	contains(t, w.get("/clusters/large"), "the steps of a stage share a box", "30 services", "1–25 of 500",
		"0 of 120 tasks")
	_, steps, _ := strings.Cut(w.get("/clusters/large?steps=2"), `<section id="cluster-steps"`)
	steps, _, _ = strings.Cut(steps, "</section>")
	if !strings.Contains(steps, ">1025<") || strings.Contains(steps, ">1000<") {
		t.Error("the second page of the steps shows others")
	}
	if os.Getenv("ORDAIN_CONSOLE_SHOTS") != "" {
		b := browse(t, w.h)
		b.open(w.at("/clusters/large"))
		b.shoot("clusters-large")
	}
}
