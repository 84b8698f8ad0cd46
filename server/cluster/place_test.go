package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// Somebody moves a provider to another region while a cluster has machines there, and the cluster takes the newest
// catalogue. The machine would not be found in the new region and count as gone, so its tasks are refused until the
// provider is where it was.
func TestAProviderThatMoves(t *testing.T) {
	l := openClouds(t)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1, Provider: "cloud"})
	l.work()
	move := func(region string) {
		t.Helper()
		_, err := l.Catalogue.Replace(l.ctx, l.e.ProjectID, catalogue.Providers, "cloud", []byte(cloudIn(region)))
		must(t, err)
		l.amend("shop", cluster.Amendment{Sync: true, Restart: []string{"db"}})
		l.work()
	}
	move("us-east-1")
	c := l.named("shop")
	for _, word := range []string{"node 1000 was made where", "eu-west-1", "us-east-1", "put the provider's fields"} {
		if c.State != intent.ClusterInconsistent || !strings.Contains(c.Problem, word) {
			t.Errorf("the cluster is %s, and its problem does not say %q: %s", c.State, word, c.Problem)
		}
	}
	l.end("shop")
	l.work()
	if len(l.machines) != 1 || l.named("shop").State == intent.ClusterTerminated {
		t.Fatalf("the cluster is %s with %d machines", l.named("shop").State, len(l.machines))
	}
}

// The same, but the provider moves back.
func TestAProviderThatMovesBack(t *testing.T) {
	l := openClouds(t)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 1, Provider: "cloud"})
	l.work()
	for _, region := range []string{"us-east-1", "eu-west-1"} {
		_, err := l.Catalogue.Replace(l.ctx, l.e.ProjectID, catalogue.Providers, "cloud", []byte(cloudIn(region)))
		must(t, err)
		l.amend("shop", cluster.Amendment{Sync: true, Restart: []string{"db"}})
		l.work()
	}
	l.end("shop")
	l.work()
	if c := l.named("shop"); len(l.machines) != 0 || c.State != intent.ClusterTerminated {
		t.Errorf("the cluster is %s (%s) with %d machines", c.State, c.Problem, len(l.machines))
	}
}

// The first machine of a cluster was made in an account of the cloud. The plug-in is told, so that it makes the second
// one in no other account.
func TestTheAccountOfACluster(t *testing.T) {
	l := openClouds(t)
	l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 2, Provider: "cloud"})
	first := l.take(1)
	if len(first) != 1 || first[0].Action != task.Create || first[0].Node.Facts["provider_account"] != nil {
		t.Fatalf("the tasks are %+v", first)
	}
	l.finish(first[0], task.Result{
		Status: task.Done, Facts: task.Fields{"provider_account": json.RawMessage(`"111111111111"`)},
	})
	told := 0
	for _, next := range l.take(10) {
		if next.Action == task.Create {
			told++
		}
		if account := next.Node.Facts["provider_account"]; string(account) != `"111111111111"` {
			t.Errorf("the %s of node %d is told the account %s", next.Action, next.Node.Number, account)
		}
	}
	if told != 1 {
		t.Errorf("%d creates were handed out, want one", told)
	}
}

// Somebody writes another provider into the file of a cluster that has machines: with the same nodes, and with others
// in their place. Nothing is made or deleted at either provider.
func TestAnotherProviderByHand(t *testing.T) {
	l := openClouds(t)
	const file = "cluster: shop\nowner: eve\ntemplate: lamp\nsize: 2\nservices: [db, web]\n"
	l.write("clusters/shop.yaml", file)
	l.release()
	l.work()
	if len(l.machines) != 2 {
		t.Fatalf("there are %d machines", len(l.machines))
	}
	for what, more := range map[string]string{
		"the same nodes": "provider: cloud\n",
		"other nodes": "provider: cloud\nnodes:\n" +
			"- {number: 1002, hostname: a.local, hardwaretype: small, imagetype: debian, services: [db, web]}\n" +
			"- {number: 1003, hostname: b.local, hardwaretype: small, imagetype: debian, services: [web]}\n",
	} {
		l.write("clusters/shop.yaml", file+more)
		l.release()
		if did := l.work(); len(did) != 0 || len(l.machines) != 2 {
			t.Errorf("%s: %v was done, and there are %d machines", what, did, len(l.machines))
		}
		if c := l.named("shop"); !strings.Contains(c.Problem, "is at the provider lab, and cannot move to cloud") {
			t.Errorf("%s: the problem is %q", what, c.Problem)
		}
	}
	l.write("clusters/shop.yaml", file)
	l.release()
	l.work()
	l.end("shop")
	l.work()
	if c := l.named("shop"); len(l.machines) != 0 || c.State != intent.ClusterTerminated {
		t.Errorf("the cluster is %s (%s) with %d machines", c.State, c.Problem, len(l.machines))
	}
}
