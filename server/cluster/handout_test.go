package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
)

// away is a catalogue that cannot be read for a while.
type away struct {
	desk.Catalogues
	gone bool
}

func (a *away) Pinned(
	ctx context.Context, project intent.ProjectID, pins map[catalogue.Kind]map[string]int,
) (*catalogue.Catalogue, error) {
	if a.gone {
		return nil, fault.New("test", fault.Unavailable, "the database restarts")
	}
	return a.Catalogues.Pinned(ctx, project, pins)
}

// Tasks were leased to a provisioner, and then the desk could not compose them. They do not wait for the end of the
// lease: the next one that asks gets them, as a first attempt.
func TestTasksThatCouldNotBeHandedOut(t *testing.T) {
	l := open(t)
	catalogues := &away{Catalogues: l.Catalogue, gone: true}
	var err error
	l.Desk, err = desk.New(desk.Config{
		Store: l.Store, Catalogues: catalogues, Resources: l.Resources, Key: l.Key(), Bus: l.Bus, Logger: l.Log,
	})
	must(t, err)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	if tasks, err := l.Desk.Take(l.ctx, l.provisioner(), 10, 0); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("%+v, %v", tasks, err)
	}
	catalogues.gone = false
	tasks := l.take(10)
	if len(tasks) != 2 {
		t.Fatalf("%d tasks are handed out, want both", len(tasks))
	}
	for _, one := range tasks {
		if one.Attempt != 1 || one.Action != task.Create {
			t.Errorf("the %s is attempt %d", one.Action, one.Attempt)
		}
	}
}

// A project whose only cluster is paused keeps no provisioner of the server.
func TestAPausedClusterHoldsNoProvisioner(t *testing.T) {
	l := open(t)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	projects := func() int {
		t.Helper()
		work, err := l.Store.ClusterWork(l.ctx)
		must(t, err)
		return len(work)
	}
	if n := projects(); n != 1 {
		t.Fatalf("%d projects have work, want one", n)
	}
	must(t, l.Clusters.Pause(l.ctx, l.e, "shop", true))
	if n := projects(); n != 0 {
		t.Errorf("the cluster is paused, and %d projects have work", n)
	}
	if tasks := l.take(10); len(tasks) != 0 {
		t.Errorf("tasks of a paused cluster are handed out: %+v", tasks)
	}
	must(t, l.Clusters.Pause(l.ctx, l.e, "shop", false))
	running := l.take(1)
	must(t, l.Clusters.Pause(l.ctx, l.e, "shop", true))
	if n := projects(); len(running) != 1 || n != 1 {
		t.Errorf("a task runs to its end, and %d projects have work", n)
	}
}

// A plug-in that fails again and again, each time with other facts, does not fill the record: what is too much at once
// ends the task, and what is too much in all is not added.
func TestTooManyFacts(t *testing.T) {
	l := open(t)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1})
	c := l.named("shop")
	facts := func() int {
		t.Helper()
		nodes, err := l.Store.ClusterNodes(l.ctx, false, c.ID)
		must(t, err)
		return len(nodes[0].Facts)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", task.MaxFacts-1000) + `"`)
	for i := range 8 {
		more, err := json.Marshal(map[string]json.RawMessage{fmt.Sprint("fact", i): large})
		must(t, err)
		must(t, l.Store.AddClusterNodeFacts(l.ctx, []store.ClusterFacts{{Cluster: c.ID, Node: 1000, Facts: more}}))
	}
	if n := facts(); n < 3*task.MaxFacts || n > 1<<20 {
		t.Errorf("the record has %d bytes of facts", n)
	}
	before := facts()
	one := l.take(1)[0]
	l.finish(one, task.Result{
		Status: task.Done, Facts: task.Fields{"a": large, "b": large},
	})
	if c := l.named("shop"); facts() > before+1000 {
		t.Errorf("the record has %d bytes of facts: %s", facts(), c.Problem)
	}
	must(t, l.Clusters.Reconcile(l.ctx, l.e.ID))
	if c := l.named("shop"); !strings.Contains(c.Problem, "bytes of facts, and may return 262144") {
		t.Errorf("the problem is %q", c.Problem)
	}
}

// A cluster that ended long ago is forgotten, and of the jobs of the others only the newest ones stay.
func TestThePastIsForgotten(t *testing.T) {
	l := open(t)
	l.create(cluster.Wish{Name: "gone", Template: "lamp", Size: 1})
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1})
	l.work()
	l.end("gone")
	l.work()
	for range 3 {
		l.amend("shop", cluster.Amendment{Restart: []string{"db"}})
		l.work()
	}
	shop := l.named("shop")
	l.amend("shop", cluster.Amendment{Restart: []string{"db"}}) // this job runs
	jobs := func(id uuid.UUID) (numbers []int) {
		t.Helper()
		all, err := l.Store.ClusterJobs(l.ctx, id, 100)
		must(t, err)
		for _, j := range all {
			numbers = append(numbers, j.Number)
		}
		return numbers
	}
	before := jobs(shop.ID)
	if len(before) != 5 {
		t.Fatalf("the jobs are %v", before)
	}
	ended := l.named("gone")
	must(t, l.Store.TidyClusters(l.ctx, 2, ended.Ended.Add(-time.Second)))
	if got := jobs(shop.ID); len(got) != 2 || got[0] != before[0] || got[1] != before[1] {
		t.Errorf("of the jobs %v, these stay: %v", before, got)
	}
	if l.named("gone").ID != ended.ID {
		t.Error("a cluster was forgotten too early")
	}
	must(t, l.Store.TidyClusters(l.ctx, 2, ended.Ended.Add(time.Second)))
	all, err := l.Store.Clusters(l.ctx, l.e.ID, true)
	must(t, err)
	if len(all) != 1 || all[0].Name != "shop" {
		t.Errorf("the clusters are %+v", all)
	}
	if l.work(); l.named("shop").State != intent.ClusterActive {
		t.Errorf("the job that ran did not end: %s", l.named("shop").Problem)
	}
}
