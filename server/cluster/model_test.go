package cluster_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
)

// compiled does what a compile of a model that imports ordain does: it stores a version that has seen the clusters as
// they are, and ends the compiles that waited for that.
func (l *lab) compiled() {
	l.t.Helper()
	manifests, err := l.read()
	must(l.t, err)
	_, seen, err := l.Clusters.View(l.ctx, l.e.ID)
	must(l.t, err)
	number, err := l.Store.StoreVersion(l.ctx, intent.NewVersion{
		Environment: l.e.ID, Clusters: manifests,
		Provenance: intent.Provenance{Commit: l.git(l.repo, "rev-parse", "HEAD"), Clusters: seen},
	}, time.Now())
	must(l.t, err)
	must(l.t, l.Store.ReleaseVersion(l.ctx, l.e.ID, number, time.Now()))
	for {
		c, err := l.Store.StartCompile(l.ctx, l.e.ID, time.Now())
		must(l.t, err)
		if c == nil {
			break
		}
		end := intent.CompileEnd{Success: true, Version: &number, At: time.Now()}
		must(l.t, l.Store.FinishCompile(l.ctx, c.ID, end))
	}
	must(l.t, l.Clusters.Reconcile(l.ctx, l.e.ID))
}

// asked returns why compiles wait.
func (l *lab) asked() (why []string) {
	l.t.Helper()
	open, err := l.Store.OpenCompiles(l.ctx, l.e.ID)
	must(l.t, err)
	for _, c := range open {
		why = append(why, c.Trigger.Type+": "+c.Trigger.Message)
	}
	return why
}

// seen is what the model sees of a cluster.
type seen struct {
	InPlace bool   `json:"in_place"`
	Size    int    `json:"size"`
	Owner   string `json:"owner"`
	Nodes   []struct {
		Number    int
		Hostname  string
		State     string
		Addresses map[string]string
		Services  []string
	}
}

func (l *lab) seen() (s seen) {
	l.t.Helper()
	all, _, err := l.Clusters.View(l.ctx, l.e.ID)
	must(l.t, err)
	if all["shop"] != nil {
		must(l.t, json.Unmarshal(all["shop"], &s))
	}
	return s
}

// TestTheModelFollowsItsClusters has a model that looks at its clusters. Each job that changed machines leads to one
// compile; one that changed nothing leads to none, and neither does any of a model that does not look.
func TestTheModelFollowsItsClusters(t *testing.T) {
	l := open(t)
	_, _, err := l.Clusters.Create(l.ctx, l.e, cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.release() // of a model that does not import ordain
	if s := l.seen(); s.InPlace || len(s.Nodes) > 0 {
		t.Errorf("the cluster is being made, and the model sees %+v", s)
	}
	l.work()
	if why := l.asked(); why != nil {
		t.Errorf("a model that does not look at clusters is compiled again: %q", why)
	}
	s := l.seen()
	if !s.InPlace || s.Owner != "anna" || len(s.Nodes) != 2 || s.Nodes[1].Number != 1001 ||
		s.Nodes[1].Addresses["bind_v4"] != "10.0.0.2" || !slices.Contains(s.Nodes[1].Services, "web") ||
		s.Nodes[0].State != "ready" || s.Nodes[0].Hostname != "shop-1000.local" {
		t.Errorf("the model sees %+v", s)
	}

	l.compiled()
	l.work()
	if why := l.asked(); why != nil {
		t.Errorf("nothing changed, and yet: %q", why)
	}
	three := 3
	_, _, err = l.Clusters.Amend(l.ctx, l.e, "shop", cluster.Amendment{Size: &three})
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.compiled()
	if why := l.asked(); why != nil {
		t.Errorf("a job began, and already: %q", why)
	}
	if busy, err := l.Clusters.Busy(l.ctx, l.e.ID); err != nil || !busy {
		t.Errorf("a job runs: %v, %v", busy, err)
	}
	l.work()
	why := l.asked()
	if len(why) != 1 || !strings.HasPrefix(why[0], "cluster: ") ||
		!strings.Contains(why[0], "job 2 of the cluster shop") {
		t.Fatalf("after the job, compiles wait for %q", why)
	}
	if s := l.seen(); len(s.Nodes) != 3 || s.Size != 3 {
		t.Errorf("the model sees %+v", s)
	}
	l.compiled()

	// Another owner changes no machine, but what the model sees.
	file := l.git(l.repo, "show", "HEAD:clusters/shop.yaml")
	l.write("clusters/shop.yaml", strings.Replace(file, "owner: anna", "owner: eve", 1)+"\n")
	l.compiled()
	l.work()
	if why := l.asked(); len(why) != 1 || l.seen().Owner != "eve" {
		t.Errorf("the owner is %s, and compiles wait for %q", l.seen().Owner, why)
	}
	l.compiled()

	// A cluster that is gone is not seen.
	_, err = l.Clusters.Delete(l.ctx, l.e, "shop")
	must(t, err)
	l.git(l.repo, "reset", "-q", "--hard")
	l.compiled()
	l.work()
	if why := l.asked(); len(why) != 1 || l.seen().InPlace {
		t.Errorf("the cluster is gone; compiles wait for %q", why)
	}
}
